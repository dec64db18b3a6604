//! Values in error texts.

const SECOND: u64 = 1_000_000_000;

/// The shortest text that reads as the same number, with an exponent for
/// those below 0.0001 and from a million on.
pub fn show_float(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let scientific = format!("{value:e}");
    let exponent = scientific.split_once('e').and_then(|(_, exponent)| exponent.parse::<i32>().ok()).unwrap_or(0);
    if value == 0.0 || (-4..6).contains(&exponent) {
        return format!("{value}");
    }
    let mantissa = scientific.split('e').next().unwrap_or_default();
    format!("{mantissa}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.unsigned_abs())
}

/// A span given in nanoseconds: `1h0m0s`, `1m30s`, `1.5s`, `500ms`, `-1ns`.
pub fn show_duration(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let span = nanos.unsigned_abs();
    if span == 0 {
        return "0s".to_owned();
    }
    if span < SECOND {
        let (unit, name) = match span {
            0..1_000 => (1, "ns"),
            1_000..1_000_000 => (1_000, "µs"),
            _ => (1_000_000, "ms"),
        };
        return format!("{sign}{}{}{name}", span / unit, fraction(span % unit, unit));
    }
    let seconds = span / SECOND;
    let (hours, minutes, last) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let last = format!("{last}{}s", fraction(span % SECOND, SECOND));
    match (hours, minutes) {
        (0, 0) => format!("{sign}{last}"),
        (0, _) => format!("{sign}{minutes}m{last}"),
        _ => format!("{sign}{hours}h{minutes}m{last}"),
    }
}

/// `.5` for 500 of 1000; nothing for a whole number.
fn fraction(rest: u64, unit: u64) -> String {
    let digits = unit.ilog10() as usize;
    if rest == 0 { String::new() } else { format!(".{rest:0digits$}").trim_end_matches('0').to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_short_as_they_can_be() {
        let shown = [0.99, -1.0, 0.006999999999999999, 0.0, 1e21, 1e-5, -2.5e-7, 123456789.0].map(show_float);
        assert_eq!(shown, ["0.99", "-1", "0.006999999999999999", "0", "1e+21", "1e-05", "-2.5e-07", "1.23456789e+08"]);
        assert_eq!([f64::NAN, f64::INFINITY, f64::NEG_INFINITY].map(show_float), ["NaN", "+Inf", "-Inf"]);
    }

    #[test]
    fn spans_have_the_units_they_need() {
        let second = 1_000_000_000;
        let shown = [0, -1, 1_500, 500_000_000, 5_999_000_000, 3600 * second, 60_500_000_000, -60 * second, i64::MIN]
            .map(show_duration);
        let texts =
            ["0s", "-1ns", "1.5µs", "500ms", "5.999s", "1h0m0s", "1m0.5s", "-1m0s", "-2562047h47m16.854775808s"];
        assert_eq!(shown, texts);
    }
}
