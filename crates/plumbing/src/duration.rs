//! Durations as Knative's settings write them: `60s`, `1m30s`, `1.5h`, `500ms`.

use std::time::Duration;

const UNITS: [(&str, f64); 8] =
    [("ns", 1e-9), ("us", 1e-6), ("µs", 1e-6), ("μs", 1e-6), ("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];

/// Longest duration that is accepted: 100 years, far from any overflow.
const SECONDS_MAX: f64 = 100.0 * 365.25 * 86400.0;

/// Reads a duration that is not negative; a bare `0` needs no unit.
///
/// # Errors
/// What is wrong, in words that name the text.
pub fn parse(text: &str) -> Result<Duration, String> {
    let fault = || format!("`{text}` is no duration such as 500ms, 60s, 1m30s or 1.5h");
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let mut rest = text;
    let mut seconds = 0.0;
    while !rest.is_empty() || rest.len() == text.len() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let number: f64 = rest[..digits].parse().map_err(|_| fault())?;
        rest = &rest[digits..];
        let letters = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
        let unit = UNITS.iter().find(|(name, _)| *name == &rest[..letters]).ok_or_else(fault)?;
        seconds += number * unit.1;
        rest = &rest[letters..];
    }
    if seconds > SECONDS_MAX {
        return Err(format!("`{text}` is longer than 100 years"));
    }
    Ok(Duration::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms_of_the_settings_are_read() {
        for (text, millis) in
            [("60s", 60_000), ("1m30s", 90_000), ("1.5h", 5_400_000), ("500ms", 500), ("0", 0), ("0s", 0), (".5s", 500)]
        {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_named() {
        for text in ["", "60", "s", "-5s", "1x", "1.2.3s", "1s ", "5 s", "1e9h", "é"] {
            assert!(parse(text).unwrap_err().contains(text), "{text}");
        }
        assert!(parse("99999999h").is_err());
    }
}
