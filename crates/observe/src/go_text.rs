//! Numbers and strings as Go writes them: templates, metric text and log
//! lines are compared with those of a Go program.

use std::fmt::Write;

/// The precision that Go takes for the shortest form when it decides about
/// the exponent (`strconv`: `if shortest { eprec = 6 }`).
const SHORTEST_PRECISION: i32 = 6;

/// A float as `%v`, and `strconv` with `'g', -1`, write it: the shortest
/// digits that read back, with an exponent below 1e-4 and from 1e+06 on.
pub fn float(out: &mut String, value: f64) {
    if value.is_nan() {
        out.push_str("NaN");
        return;
    }
    if value.is_infinite() {
        out.push_str(if value > 0.0 { "+Inf" } else { "-Inf" });
        return;
    }
    // Rust's exponent form has the same shortest digits.
    let form = format!("{value:e}");
    let (digits, exponent) = form.split_once('e').unwrap_or((&form, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..SHORTEST_PRECISION).contains(&exponent) {
        let _ = write!(out, "{value}");
        return;
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    let _ = write!(out, "{digits}e{sign}{:02}", exponent.abs());
}

/// A string inside the quotes of a JSON string.
pub fn json(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c < ' ' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            // Line separators end a line for some readers of JSON lines.
            '\u{2028}' | '\u{2029}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_read_as_those_of_go() {
        let golden = [
            (0.0, "0"),
            (0.00118, "0.00118"),
            (0.0001, "0.0001"),
            (0.000_012_34, "1.234e-05"),
            (123_456.0, "123456"),
            (1_234_567.0, "1.234567e+06"),
            (1e6, "1e+06"),
            (1e21, "1e+21"),
            (7.5, "7.5"),
            (10_000.0, "10000"),
            (-1.0, "-1"),
            (f64::INFINITY, "+Inf"),
        ];
        for (value, text) in golden {
            let mut out = String::new();
            float(&mut out, value);
            assert_eq!(out, text);
        }
    }

    #[test]
    fn json_strings_are_valid_json() {
        for text in ["plain", "a\"b\\c\n\r\t\u{1}\u{7f}é\u{2028}"] {
            let mut out = String::from("\"");
            json(&mut out, text);
            out.push('"');
            assert_eq!(serde_json::from_str::<String>(&out).unwrap(), text);
        }
    }
}
