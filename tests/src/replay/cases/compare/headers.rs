//! Header fields.

use super::same_value;
use crate::replay::row::{Verdict, differs};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Headers that may come or not, whatever was recorded.
const FREE: [&str; 3] = ["date", "retry-after", "server-timing"];

/// The same fields with the same values, but for what is free; `unsized`:
/// the body is free, and so is its length.
///
/// # Errors
/// The first difference.
pub fn same(want: &Value, got: &Value, unsized_body: bool) -> Verdict {
    let (want, got) = (by_name(want), by_name(got));
    let names: BTreeSet<&String> = want.keys().chain(got.keys()).collect();
    for name in names {
        let none = Vec::new();
        let (wanted, there) = (want.get(name).unwrap_or(&none), got.get(name).unwrap_or(&none));
        let free = name == "date" || (wanted.is_empty() && is_free(name));
        if free || (unsized_body && name == "content-length") {
            continue;
        }
        if wanted.len() != there.len() {
            return differs(format!("header {name}: expected {}, got {}", list(wanted), list(there)));
        }
        for (want, got) in wanted.iter().zip(there) {
            let what = format!("header {name}");
            match name.as_str() {
                "trailer" => same_value(&what, &without_case(want), &without_case(got))?,
                _ => same_value(&what, want, got)?,
            }
        }
    }
    Ok(())
}

/// Whether a replacement may add this header.
pub fn is_free(name: &str) -> bool {
    FREE.contains(&name) || name.starts_with("x-zeroscale-")
}

/// Values by lower-case name, in their order.
pub fn by_name(fields: &Value) -> BTreeMap<String, Vec<&Value>> {
    let mut all: BTreeMap<String, Vec<&Value>> = BTreeMap::new();
    for field in fields.as_array().into_iter().flatten() {
        let name = field[0].as_str().unwrap_or_default().to_ascii_lowercase();
        all.entry(name).or_default().push(&field[1]);
    }
    all
}

/// `Trailer` holds names of headers, whose case is free.
fn without_case(value: &Value) -> Value {
    match (value, value.get("re").and_then(Value::as_str)) {
        (_, Some(pattern)) => json!({ "re": format!("(?i){pattern}") }),
        (Value::String(text), None) => json!(text.to_ascii_lowercase()),
        _ => value.clone(),
    }
}

fn list(values: &[&Value]) -> String {
    match values {
        [] => "none".to_owned(),
        _ => values.iter().map(|value| value.to_string()).collect::<Vec<_>>().join(" and "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_case_of_names_are_free_but_not_the_order_of_equal_names() {
        let want = json!([["A", "1"], ["a", "2"], ["B", "3"]]);
        assert_eq!(same(&want, &json!([["b", "3"], ["a", "1"], ["A", "2"]]), false), Ok(()));
        assert!(same(&want, &json!([["b", "3"], ["a", "2"], ["A", "1"]]), false).is_err());
    }

    #[test]
    fn some_headers_may_be_added_and_no_others() {
        let want = json!([["A", "1"]]);
        let with = |name: &str| same(&want, &json!([["A", "1"], [name, "x"]]), false);
        for name in ["Date", "Retry-After", "X-Zeroscale-Reason", "Server-Timing"] {
            assert_eq!(with(name), Ok(()));
        }
        assert!(with("Server").is_err());
        assert!(same(&want, &json!([]), false).is_err());
        assert!(same(&json!([["Retry-After", "1"]]), &json!([]), false).is_err());
    }

    #[test]
    fn names_in_trailer_have_no_case_either() {
        let got = json!([["trailer", "grpc-status, x"]]);
        assert_eq!(same(&json!([["Trailer", "Grpc-Status, X"]]), &got, false), Ok(()));
        assert_eq!(same(&json!([["Trailer", {"re": "^Grpc-Status, X$"}]]), &got, false), Ok(()));
        assert!(same(&json!([["Trailer", "X"]]), &got, false).is_err());
    }

    #[test]
    fn a_value_may_be_an_expression() {
        let want = json!([["A", {"re": "^x+$"}], ["B", {"len": 2}]]);
        assert_eq!(same(&want, &json!([["a", "xx"], ["b", "yy"]]), false), Ok(()));
        assert!(same(&want, &json!([["a", "y"], ["b", "yy"]]), false).is_err());
    }
}
