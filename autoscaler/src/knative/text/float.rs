//! Numbers with a fraction.

use super::Misread;

const PARSER: &str = "ParseFloat";

/// Reads a number: decimal, or hexadecimal with a binary exponent, with
/// underscores between digits; also infinity and no number, in any case.
///
/// # Errors
/// [`Misread::Range`] for one beyond all finite numbers, else
/// [`Misread::Syntax`].
pub fn float(text: &str) -> Result<f64, Misread> {
    if let Some(value) = named(text) {
        return Ok(value);
    }
    let value = plain(text).and_then(|digits| match hexadecimal_digits(&digits) {
        Some((negative, digits)) => hexadecimal(digits).map(|value| if negative { -value } else { value }),
        None => decimal(&digits),
    });
    match value {
        Some(value) if value.is_infinite() => Err(Misread::range(PARSER, text)),
        Some(value) => Ok(value),
        None => Err(Misread::syntax(PARSER, text)),
    }
}

/// What is no number, and what is beyond all.
fn named(text: &str) -> Option<f64> {
    let lower = text.to_ascii_lowercase();
    match lower.as_str() {
        "nan" => Some(f64::NAN),
        "inf" | "+inf" | "infinity" | "+infinity" => Some(f64::INFINITY),
        "-inf" | "-infinity" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

/// Without its underscores, in lower case; `None` where one of them does not
/// stand between two digits (the prefix of a hexadecimal number counts as one).
fn plain(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let unsigned = lower.strip_prefix(['+', '-']).unwrap_or(&lower);
    let hexadecimal = unsigned.starts_with("0x");
    let prefix = if hexadecimal { lower.len() - unsigned.len() + 1 } else { usize::MAX };
    let bytes = lower.as_bytes();
    let is_digit = |place: usize| {
        let byte = bytes.get(place).copied().unwrap_or(b' ');
        byte.is_ascii_digit() || hexadecimal && byte.is_ascii_hexdigit() || place == prefix
    };
    let stands_well = |place: usize| place > 0 && is_digit(place - 1) && is_digit(place + 1);
    let well = bytes.iter().enumerate().all(|(place, &byte)| byte != b'_' || stands_well(place));
    well.then(|| lower.replace('_', ""))
}

fn decimal(text: &str) -> Option<f64> {
    // Names are read before; the rest has the grammar of our own parser.
    let numeric = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.e".contains(&byte));
    numeric.then(|| text.parse().ok()).flatten()
}

/// Sign and what follows the prefix of a hexadecimal number.
fn hexadecimal_digits(text: &str) -> Option<(bool, &str)> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text).strip_prefix("0x")?;
    Some((text.starts_with('-'), digits))
}

/// A hexadecimal number; its exponent, to the base of 2, must be there.
fn hexadecimal(text: &str) -> Option<f64> {
    let (mantissa, exponent) = text.split_once('p')?;
    let unsigned = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    if unsigned.is_empty() || !unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // Beyond any mantissa that a setting can hold.
    const FAR: i64 = 1 << 40;
    let exponent = exponent.parse::<i64>().unwrap_or(if exponent.starts_with('-') { -FAR } else { FAR });
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.len() + fraction.len() == 0 {
        return None;
    }
    // 64 bits, the last of which also stands for all that were dropped.
    let (mut bits, mut scale) = (0_u64, -4 * i64::try_from(fraction.len()).ok()?);
    for digit in whole.chars().chain(fraction.chars()) {
        let digit = u64::from(digit.to_digit(16)?);
        if bits >> 60 == 0 {
            bits = bits << 4 | digit;
        } else {
            scale += 4;
            bits |= u64::from(digit != 0);
        }
    }
    Some(scaled(bits, scale.saturating_add(exponent.clamp(-FAR, FAR))))
}

/// `bits` times 2 to the power of `exponent`.
fn scaled(bits: u64, exponent: i64) -> f64 {
    if bits == 0 {
        return 0.0;
    }
    // In steps, since the power alone may be out of reach where the product is not.
    const STEP: i64 = 1000;
    let mut value = bits as f64;
    let mut left = exponent.clamp(-4 * STEP, 4 * STEP);
    while left != 0 {
        let step = left.clamp(-STEP, STEP);
        value *= 2_f64.powi(i32::try_from(step).unwrap_or(0));
        left -= step;
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponents_underscores_and_hexadecimal_numbers_are_taken() {
        let read = ["1e3", "1_000", ".5", "5.", "+1E-2", "0x1p4", "0X1.8p+1", "-0x_fp0", "1_0e1_0"].map(float);
        assert_eq!(read, [Ok(1000.0), Ok(1000.0), Ok(0.5), Ok(5.0), Ok(0.01), Ok(16.0), Ok(3.0), Ok(-15.0), Ok(1e11)]);
        assert_eq!(float("-0").map(f64::is_sign_negative), Ok(true));
        // A half is rounded to even, and anything beyond it up.
        let above = 1.0 + f64::EPSILON;
        let rounded = ["0x1.00000000000008p0", "0x1.00000000000018p0", "0x1.000000000000080001p0"].map(float);
        assert_eq!(rounded, [Ok(1.0), Ok(1.0 + 2.0 * f64::EPSILON), Ok(above)]);
    }

    #[test]
    fn what_is_no_number_has_names() {
        assert!(float("NaN").is_ok_and(f64::is_nan));
        assert_eq!(
            ["inf", "+Inf", "-INFINITY"].map(float),
            [Ok(f64::INFINITY), Ok(f64::INFINITY), Ok(f64::NEG_INFINITY)]
        );
        for odd in ["+nan", "infin", "in", "1inf"] {
            assert!(float(odd).is_err(), "{odd:?}");
        }
    }

    #[test]
    fn all_else_is_refused() {
        for odd in [
            "", ".", "e5", "1e", " 1", "1 ", "0x10", "0x1p", "0xp1", "_1", "1_", "1__0", "1_.5", "1e_5", "1,5", "0x1pz",
        ] {
            assert!(matches!(float(odd), Err(Misread::Syntax(_))), "{odd:?}: {:?}", float(odd));
        }
        for far in ["1e999", "-1e400", "0x1p99999", "0x1p99999999999999999999"] {
            assert!(matches!(float(far), Err(Misread::Range(_))), "{far:?}: {:?}", float(far));
        }
        assert_eq!(["1e-999", "0x1p-99999", "0x0p99999"].map(float), [Ok(0.0), Ok(0.0), Ok(0.0)]);
    }
}
