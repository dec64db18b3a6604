//! A number as it is, also where JSON has none for it.

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// Equal to another one when not a digit differs; no number equals itself.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Number(pub(crate) f64);

impl PartialEq for Number {
    fn eq(&self, other: &Number) -> bool {
        self.0.to_bits() == other.0.to_bits() || (self.0.is_nan() && other.0.is_nan())
    }
}

impl Number {
    pub(crate) fn is_zero(&self) -> bool {
        *self == Number(0.0)
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            number if number.is_finite() => to.serialize_f64(number),
            number if number.is_nan() => to.serialize_str("NaN"),
            number if number > 0.0 => to.serialize_str("inf"),
            _ => to.serialize_str("-inf"),
        }
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Number, D::Error> {
        from.deserialize_any(Reader).map(Number)
    }
}

struct Reader;

impl Visitor<'_> for Reader {
    type Value = f64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, \"NaN\", \"inf\" or \"-inf\"")
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<f64, E> {
        Ok(number)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<f64, E> {
        Ok(number as f64)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<f64, E> {
        Ok(number as f64)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<f64, E> {
        match text {
            "NaN" => Ok(f64::NAN),
            "inf" => Ok(f64::INFINITY),
            "-inf" => Ok(f64::NEG_INFINITY),
            _ => Err(E::invalid_value(serde::de::Unexpected::Str(text), &self)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_comes_back_as_it_was() {
        let odd = [0.1 + 0.2, -0.0, 0.0, 1e308, 5e-324, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1.0 / 3.0];
        for number in odd.map(Number) {
            let text = serde_json::to_string(&number).unwrap();
            assert_eq!(serde_json::from_str::<Number>(&text).unwrap(), number, "{text}");
        }
        assert_eq!(serde_json::from_str::<Number>("2").unwrap(), Number(2.0));
        assert!(serde_json::from_str::<Number>("\"much\"").is_err());
        assert_ne!(Number(0.0), Number(-0.0));
    }
}
