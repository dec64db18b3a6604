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

/// A duration as Go prints it: `30s`, `1m30s`, `1.5s`, `300ms`, `0s`.
pub fn text(span: Duration) -> String {
    let nanos = span.as_nanos();
    if nanos == 0 {
        return "0s".to_owned();
    }
    if span < Duration::from_secs(1) {
        let (unit, name) = match nanos {
            0..1_000 => (1, "ns"),
            1_000..1_000_000 => (1_000, "µs"),
            _ => (1_000_000, "ms"),
        };
        return format!("{}{name}", nanos as f64 / unit as f64);
    }
    let (hours, minutes) = (span.as_secs() / 3600, span.as_secs() / 60 % 60);
    let seconds = span.as_secs() % 60;
    let fraction = match span.subsec_nanos() {
        0 => String::new(),
        nanos => format!(".{nanos:09}").trim_end_matches('0').to_owned(),
    };
    match (hours, minutes) {
        (0, 0) => format!("{seconds}{fraction}s"),
        (0, _) => format!("{minutes}m{seconds}{fraction}s"),
        _ => format!("{hours}h{minutes}m{seconds}{fraction}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_written_as_go_writes_them() {
        for (nanos, text) in [
            (0, "0s"),
            (5, "5ns"),
            (1_500, "1.5µs"),
            (300_000_000, "300ms"),
            (30_000_000_000, "30s"),
            (333_333_333, "333.333333ms"),
            (1_500_000_000, "1.5s"),
            (90_000_000_000, "1m30s"),
            (3_600_000_000_000, "1h0m0s"),
        ] {
            assert_eq!(super::text(Duration::from_nanos(nanos)), text);
        }
    }

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
