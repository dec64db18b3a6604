//! Fields of a JSON object, read as Go's decoder reads them: unknown fields
//! and nulls do not matter, a wrong type is a fault.

use serde_json::{Map, Value};

/// One object and its place.
pub(super) struct Fields {
    path: String,
    map: Map<String, Value>,
}

impl Fields {
    pub(super) fn parse(text: &str, faults: &mut Vec<String>) -> Fields {
        let map = if text.trim().is_empty() {
            Map::new()
        } else {
            match serde_json::from_str(text) {
                Ok(Value::Object(map)) => map,
                Ok(Value::Null) => Map::new(),
                Ok(_) => {
                    faults.push("OBSERVABILITY_CONFIG: is no JSON object".to_owned());
                    Map::new()
                }
                Err(error) => {
                    faults.push(format!("OBSERVABILITY_CONFIG: is not JSON: {error}"));
                    Map::new()
                }
            }
        };
        Fields { path: String::new(), map }
    }

    /// A fault of one of the fields.
    pub(super) fn fault(&self, name: &str, text: &str) -> String {
        format!("OBSERVABILITY_CONFIG: {}{name}: {text}", self.path)
    }

    fn get(&self, name: &str) -> Option<&Value> {
        let exact = self.map.get(name);
        // Go's decoder does not look at the case of names.
        let found = exact.or_else(|| self.map.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, v)| v));
        found.filter(|value| !value.is_null())
    }

    fn read<T>(
        &self,
        name: &str,
        what: &str,
        faults: &mut Vec<String>,
        as_type: impl Fn(&Value) -> Option<T>,
    ) -> Option<T> {
        let value = self.get(name)?;
        let read = as_type(value);
        if read.is_none() {
            faults.push(self.fault(name, &format!("{value} is no {what}")));
        }
        read
    }

    pub(super) fn object(&self, name: &str, faults: &mut Vec<String>) -> Fields {
        let map = self.read(name, "object", faults, |value| value.as_object().cloned()).unwrap_or_default();
        Fields { path: format!("{}{name}.", self.path), map }
    }

    pub(super) fn string(&self, name: &str, faults: &mut Vec<String>) -> String {
        self.optional_string(name, faults).unwrap_or_default()
    }

    pub(super) fn optional_string(&self, name: &str, faults: &mut Vec<String>) -> Option<String> {
        self.read(name, "string", faults, |value| value.as_str().map(str::to_owned))
    }

    pub(super) fn boolean(&self, name: &str, faults: &mut Vec<String>) -> bool {
        self.read(name, "boolean", faults, Value::as_bool).unwrap_or_default()
    }

    pub(super) fn integer(&self, name: &str, faults: &mut Vec<String>) -> i64 {
        self.read(name, "integer", faults, Value::as_i64).unwrap_or_default()
    }

    pub(super) fn number(&self, name: &str, faults: &mut Vec<String>) -> f64 {
        self.read(name, "number", faults, Value::as_f64).unwrap_or_default()
    }
}
