//! Plain values.

use super::super::latin;
use super::super::pattern::Pattern;
use super::malformed;
use crate::replay::row::{Verdict, differs};
use serde_json::Value;

/// The two are equal. `{"re": …}` matches, `{"len": n}` has that length; no
/// and nothing are the same.
///
/// # Errors
/// The difference.
pub fn same_value(what: &str, want: &Value, got: &Value) -> Verdict {
    let equal = match want {
        Value::Object(rule) => match (rule.get("re"), rule.get("len")) {
            (Some(pattern), _) => {
                let pattern = Pattern::new(pattern.as_str().unwrap_or_default()).map_err(malformed)?;
                got.as_str().is_some_and(|got| pattern.is_match(got))
            }
            (_, Some(length)) => got.as_str().map(|got| got.chars().count() as u64) == length.as_u64(),
            _ => want == got,
        },
        Value::Number(want) => want.as_f64() == got.as_f64(),
        Value::Bool(false) | Value::Null => matches!(got, Value::Null | Value::Bool(false)),
        _ => want == got,
    };
    if equal {
        return Ok(());
    }
    differs(format!("{what}: expected {}, got {}", short(want), short(got)))
}

fn short(value: &Value) -> String {
    latin::shortened(&value.to_string())
}
