//! Amounts as Kubernetes writes them.

use std::fmt;

/// An amount. It is written as short as it can be without a fraction: 2048 MiB
/// are `2Gi`, and 1536 MiB are `1536Mi`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// So many of something: `1500`, `2k`.
    Count(i64),
    /// So many MiB.
    Mebibytes(i64),
}

const DECIMAL: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut number, unit, suffixes) = match *self {
            Quantity::Count(count) => (count, 1000, DECIMAL),
            Quantity::Mebibytes(count) => (count.saturating_mul(1 << 20), 1024, BINARY),
        };
        let mut power = 0;
        while number != 0 && number % unit == 0 && power + 1 < suffixes.len() {
            number /= unit;
            power += 1;
        }
        write!(f, "{number}{}", suffixes[power])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_as_short_as_they_can_be_without_a_fraction() {
        let counts = [0, 1, 1500, 2000, -3000, 1_000_000, 1_000_001].map(|count| Quantity::Count(count).to_string());
        assert_eq!(counts, ["0", "1", "1500", "2k", "-3k", "1M", "1000001"]);
        let bytes = [0, 1, 200, 1024, 1536, 1 << 20].map(|count| Quantity::Mebibytes(count).to_string());
        assert_eq!(bytes, ["0", "1Mi", "200Mi", "1Gi", "1536Mi", "1Ti"]);
    }
}
