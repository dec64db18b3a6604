//! Whole numbers: decimal, with an optional sign, without separators.

use super::Misread;

/// Reads a number of 32 bits.
///
/// # Errors
/// [`Misread::Range`] for one that does not fit, else [`Misread::Syntax`].
pub fn int32(text: &str) -> Result<i32, Misread> {
    i32::try_from(whole(text, "ParseInt")?).map_err(|_| Misread::range("ParseInt", text))
}

/// Reads a number of 64 bits.
///
/// # Errors
/// [`Misread::Range`] for one that does not fit, else [`Misread::Syntax`].
pub fn int64(text: &str) -> Result<i64, Misread> {
    whole(text, "Atoi")
}

fn whole(text: &str, parser: &str) -> Result<i64, Misread> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Misread::syntax(parser, text));
    }
    text.parse().map_err(|_| Misread::range(parser, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_and_leading_zeros_are_taken_and_nothing_else() {
        assert_eq!(["+3", "05", "-0", "2147483647"].map(int32), [Ok(3), Ok(5), Ok(0), Ok(i32::MAX)]);
        for odd in ["", "+", "--1", " 1", "1.0", "1_000", "0x1", "١"] {
            assert!(matches!(int32(odd), Err(Misread::Syntax(_))), "{odd:?}");
        }
    }

    #[test]
    fn what_does_not_fit_is_told_apart() {
        let range = "strconv.ParseInt: parsing \"2147483648\": value out of range";
        assert_eq!(int32("2147483648"), Err(Misread::Range(range.into())));
        assert_eq!(int64("2147483648"), Ok(2_147_483_648));
        assert!(matches!(int64("-9223372036854775809"), Err(Misread::Range(_))));
    }
}
