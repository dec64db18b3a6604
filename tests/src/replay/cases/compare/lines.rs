//! Lines that the process wrote.

use super::same_value;
use crate::replay::row::{Verdict, differs};
use serde_json::Value;

/// As many lines as recorded, each as recorded, in their order; lines that
/// are compared as JSON have none.
pub(super) fn same(want: &Value, got: &Value) -> Verdict {
    let (want, got) = (list(want), list(got));
    if want.len() != got.len() {
        return differs(format!("expected {} lines, got {}: {}", want.len(), got.len(), Value::from(got)));
    }
    if want.iter().all(|line| line.get("json_subset").is_some()) {
        return in_any_order(&want, got);
    }
    want.iter().zip(&got).enumerate().try_for_each(|(number, (want, got))| line(number, want, got))
}

fn in_any_order(want: &[Value], mut got: Vec<Value>) -> Verdict {
    for (number, want) in want.iter().enumerate() {
        match got.iter().position(|got| line(number, want, got).is_ok()) {
            Some(place) => drop(got.remove(place)),
            None => return differs(format!("no line holds {}: {}", want["json_subset"], Value::from(got))),
        }
    }
    Ok(())
}

fn line(number: usize, want: &Value, got: &Value) -> Verdict {
    let what = format!("line {number}");
    if let Some(text) = want.get("text") {
        return same_value(&what, text, got);
    }
    if want.get("re").is_some() {
        return same_value(&what, want, got);
    }
    let parsed: Value = match serde_json::from_str(got.as_str().unwrap_or_default()) {
        Ok(parsed) => parsed,
        Err(_) => return differs(format!("{what} is no JSON: {got}")),
    };
    if holds(&parsed, &want["json_subset"]) {
        return Ok(());
    }
    differs(format!("{what}: expected to hold {}, got {got}", want["json_subset"]))
}

/// Whether `all` has the keys and values of `part`.
fn holds(all: &Value, part: &Value) -> bool {
    match part {
        Value::Object(part) => part.iter().all(|(key, value)| all.get(key).is_some_and(|all| holds(all, value))),
        _ => all == part,
    }
}

fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_lines_may_come_in_any_order_and_hold_more() {
        let want = json!([{"json_subset": {"a": 1}}, {"json_subset": {"b": {"c": 2}}}]);
        let got = json!([r#"{"b":{"c":2,"d":3}}"#, r#"{"a":1,"x":0}"#]);
        assert_eq!(same(&want, &got), Ok(()));
        assert!(same(&want, &json!([r#"{"a":1}"#, r#"{"a":1}"#])).is_err());
        assert!(same(&want, &json!([r#"{"a":1}"#])).is_err());
    }

    #[test]
    fn lines_of_text_keep_their_order() {
        let want = json!([{"text": "a"}, {"re": "^b+$"}]);
        assert_eq!(same(&want, &json!(["a", "bb"])), Ok(()));
        assert!(same(&want, &json!(["bb", "a"])).is_err());
    }
}
