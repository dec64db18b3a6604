//! Prometheus' text form, as far as rows ask for it.

use serde_json::{Map, Value, json};

/// Series, types and bucket bounds of the lines.
pub fn read(lines: &[&str]) -> Value {
    let mut series = Vec::new();
    let (mut types, mut bounds) = (Map::new(), Map::new());
    for line in lines {
        if let Some(named) = line.strip_prefix("# TYPE ") {
            if let Some((name, kind)) = named.split_once(' ') {
                types.insert(name.to_owned(), json!(kind));
            }
            continue;
        }
        let Some((name, labels, value)) = (!line.starts_with('#')).then(|| sample(line)).flatten() else {
            continue;
        };
        if let (Some(base), Some(bound)) = (name.strip_suffix("_bucket"), labels.get("le")) {
            let all = bounds.entry(base).or_insert_with(|| json!([]));
            if let Some(all) = all.as_array_mut().filter(|all| !all.contains(bound)) {
                all.push(bound.clone());
            }
        }
        series.push(json!({ "name": name, "labels": labels, "value": value }));
    }
    json!({ "series": series, "types": types, "bucket_bounds": bounds })
}

fn sample(line: &str) -> Option<(&str, Map<String, Value>, f64)> {
    let end = line.find(['{', ' '])?;
    let (name, mut rest) = line.split_at(end);
    let mut labels = Map::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            if let Some(after) = rest.strip_prefix('}') {
                rest = after;
                break;
            }
            let (label, after) = rest.trim_start_matches([',', ' ']).split_once("=\"")?;
            let (value, after) = quoted(after)?;
            labels.insert(label.to_owned(), json!(value));
            rest = after;
        }
    }
    let value = rest.split_whitespace().next()?.parse().ok()?;
    Some((name, labels, value))
}

/// Text up to the closing quote, and what follows it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut points = text.char_indices();
    while let Some((at, point)) = points.next() {
        match point {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => match points.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_types_and_bounds_are_found() {
        let lines = [
            "# HELP h text",
            "# TYPE h histogram",
            r#"h_bucket{le="0.5",a="x\"y\\z,}"} 1"#,
            r#"h_bucket{a="o",le="0.5"} 1"#,
            r#"h_bucket{le="+Inf"} 2 1700000000"#,
            "g 3e2",
        ];
        let told = read(&lines);
        assert_eq!(told["types"], json!({"h": "histogram"}));
        assert_eq!(told["bucket_bounds"], json!({"h": ["0.5", "+Inf"]}));
        assert_eq!(told["series"][0]["labels"]["a"], "x\"y\\z,}");
        assert_eq!(told["series"][3], json!({"name": "g", "labels": {}, "value": 300.0}));
    }
}
