//! Reading rows, and comparing outcomes with what they record.

use policy::moment::Moment;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt::Debug;
use std::time::Duration;

/// Why a row did not pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Miss {
    /// The first difference, or what is wrong with the row.
    Differs(String),
    /// There is no judge for it.
    NotJudged,
}

/// What came of a row, or of a part of it.
pub type Verdict<T = ()> = Result<T, Miss>;

/// Relative tolerance where a result depends on the platform's `pow`.
pub const POW: f64 = 1e-12;

/// 2000-01-01T00:00:00Z, from which rows count their milliseconds.
const EPOCH_MILLIS: i64 = 946_684_800_000;

/// The moment that a row calls `millis`.
pub fn at(millis: i64) -> Moment {
    Moment::from_unix_millis(EPOCH_MILLIS.saturating_add(millis))
}

/// The moment of a time in a row.
pub fn time(value: &Value) -> Verdict<Moment> {
    Ok(at(int(value)?))
}

/// A span given in whole seconds.
pub fn seconds(value: &Value) -> Verdict<Duration> {
    let whole: u64 = part(value)?;
    Ok(Duration::from_secs(whole))
}

/// A difference, told in one sentence.
pub fn differs<T>(why: impl Into<String>) -> Verdict<T> {
    Err(Miss::Differs(why.into()))
}

/// A whole number.
pub fn int(value: &Value) -> Verdict<i64> {
    part(value)
}

/// A number, also one that JSON cannot write.
pub fn float(value: &Value) -> Verdict<f64> {
    match value.as_str() {
        Some("NaN") => Ok(f64::NAN),
        Some("Infinity") => Ok(f64::INFINITY),
        Some("-Infinity") => Ok(f64::NEG_INFINITY),
        Some(text) => differs(format!("malformed row: {text:?} is no number")),
        None => part(value),
    }
}

/// A list.
pub fn list(value: &Value) -> Verdict<&[Value]> {
    match value.as_array() {
        Some(list) => Ok(list),
        None => differs(format!("malformed row: {value} is no list")),
    }
}

/// Anything that serde can read.
pub fn part<T: DeserializeOwned>(value: &Value) -> Verdict<T> {
    T::deserialize(value).map_err(|error| Miss::Differs(format!("malformed row: {error} (in {value})")))
}

/// A list of anything that serde can read; null, and nothing, stand for none.
pub fn parts<T: DeserializeOwned>(value: &Value) -> Verdict<Vec<T>> {
    let list: Option<Vec<T>> = part(value)?;
    Ok(list.unwrap_or_default())
}

/// The two are equal.
pub fn same<T: PartialEq + Debug>(what: &str, expected: T, got: T) -> Verdict {
    if expected == got {
        return Ok(());
    }
    differs(format!("{what}: expected {expected:?}, got {got:?}"))
}

/// The two are the same number, to the last bit (but for the sign of zero).
pub fn exact(what: &str, expected: &Value, got: f64) -> Verdict {
    within(what, expected, got, 0.0)
}

/// The two differ by at most `tolerance`, relative to the expected one, or
/// absolute below 1.
pub fn within(what: &str, expected: &Value, got: f64, tolerance: f64) -> Verdict {
    let expected = float(expected)?;
    let both_none = expected.is_nan() && got.is_nan();
    let margin = tolerance * expected.abs();
    if both_none || expected == got || (expected - got).abs() <= margin {
        return Ok(());
    }
    differs(format!("{what}: expected {expected:?}, got {got:?}"))
}

/// Prefixes a difference with where it is.
pub fn located(place: impl FnOnce() -> String, verdict: Verdict) -> Verdict {
    verdict.map_err(|miss| match miss {
        Miss::Differs(why) => Miss::Differs(format!("{}: {why}", place())),
        Miss::NotJudged => Miss::NotJudged,
    })
}
