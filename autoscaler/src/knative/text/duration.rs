//! Spans of time.

use super::Misread;
use super::quote::quoted;

/// Units, in nanoseconds; the two spellings of micro are different letters.
const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Reads a span, such as `1m30s`, `1.5h`, `-1s` or a bare `0`, in nanoseconds.
///
/// # Errors
/// [`Misread::Syntax`], also for one beyond 292 years.
pub fn duration(text: &str) -> Result<i64, Misread> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if unsigned == "0" {
        return Ok(0);
    }
    let nanos = nanos(unsigned).map_err(|fault| fault.misread(text))?;
    let negative = text.starts_with('-');
    match (negative, i64::try_from(nanos)) {
        (true, Ok(nanos)) => Ok(-nanos),
        (false, Ok(nanos)) => Ok(nanos),
        (true, Err(_)) if nanos == i64::MIN.unsigned_abs() => Ok(i64::MIN),
        _ => Err(Fault::Invalid.misread(text)),
    }
}

enum Fault<'a> {
    Invalid,
    NoUnit,
    Unit(&'a str),
}

impl Fault<'_> {
    fn misread(&self, text: &str) -> Misread {
        let text = quoted(text);
        Misread::Syntax(match self {
            Fault::Invalid => format!("time: invalid duration {text}"),
            Fault::NoUnit => format!("time: missing unit in duration {text}"),
            Fault::Unit(unit) => format!("time: unknown unit {} in duration {text}", quoted(unit)),
        })
    }
}

fn nanos(text: &str) -> Result<u64, Fault<'_>> {
    const FARTHEST: u64 = i64::MIN.unsigned_abs();
    if text.is_empty() {
        return Err(Fault::Invalid);
    }
    let (mut rest, mut sum) = (text, 0_u64);
    while !rest.is_empty() {
        let (whole, after) = digits(rest);
        let (fraction, after) = match after.strip_prefix('.') {
            Some(after) => digits(after),
            None => ("", after),
        };
        if whole.is_empty() && fraction.is_empty() {
            return Err(Fault::Invalid);
        }
        let end = after.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(after.len());
        let (name, after) = after.split_at(end);
        if name.is_empty() {
            return Err(Fault::NoUnit);
        }
        let (_, unit) = UNITS.iter().find(|(unit, _)| *unit == name).ok_or(Fault::Unit(name))?;
        let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| Fault::Invalid)? };
        let part = whole.checked_mul(*unit).and_then(|part| part.checked_add(of_fraction(fraction, *unit)));
        sum = part.and_then(|part| sum.checked_add(part)).filter(|&sum| sum <= FARTHEST).ok_or(Fault::Invalid)?;
        rest = after;
    }
    Ok(sum)
}

/// Digits at the beginning, and what follows.
fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// That fraction of a unit, rounded down; more than 18 digits change nothing.
fn of_fraction(digits: &str, unit: u64) -> u64 {
    let digits = &digits[..digits.len().min(18)];
    let scale = 10_f64.powi(i32::try_from(digits.len()).unwrap_or(0));
    digits.parse::<u64>().map_or(0, |digits| (digits as f64 * (unit as f64 / scale)) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn fault(text: &str) -> String {
        duration(text).unwrap_err().as_str().to_owned()
    }

    #[test]
    fn parts_fractions_and_signs_are_taken() {
        let read = ["1m30s", "1.5h", "-1s", "+0", "100000ms", "1h1s", ".5s", "1.s", "3µs", "7us", "1ns"].map(duration);
        let nanos =
            [90 * SECOND, 5400 * SECOND, -SECOND, 0, 100 * SECOND, 3601 * SECOND, SECOND / 2, SECOND, 3000, 7000, 1];
        assert_eq!(read, nanos.map(Ok));
        assert_eq!(duration("0.0000000019s"), Ok(1));
    }

    #[test]
    fn each_fault_has_its_sentence() {
        assert_eq!(fault("60"), "time: missing unit in duration \"60\"");
        assert_eq!(fault("5x"), "time: unknown unit \"x\" in duration \"5x\"");
        assert_eq!(fault("-5 s"), "time: unknown unit \" s\" in duration \"-5 s\"");
        for text in ["", "-", "abc", ".s", "1s.", "9223372037s", "99999999999999999999s", "1s-1s"] {
            assert!(duration(text).is_err(), "{text:?}: {:?}", duration(text));
        }
        assert_eq!(fault("abc"), "time: invalid duration \"abc\"");
        assert_eq!(duration("-9223372036854775808ns"), Ok(i64::MIN));
    }
}
