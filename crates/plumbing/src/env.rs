//! A typed reader of environment variables that collects faults.
//!
//! It is given the variables and does not read the process's own: only a
//! `main` does. Forms and texts follow the reference where it has some: a
//! required variable may be empty, an empty number or boolean is a fault.

use crate::duration;
use crate::fault::Faults;
use std::collections::HashMap;
use std::ffi::OsString;
use std::str::FromStr;
use std::time::Duration;

/// Variables, and what was found wrong with them.
#[derive(Debug, Default)]
pub struct Env {
    values: HashMap<String, String>,
    faults: Faults,
}

/// The forms of a boolean that the reference takes.
const TRUE: [&str; 6] = ["1", "t", "T", "TRUE", "true", "True"];
const FALSE: [&str; 6] = ["0", "f", "F", "FALSE", "false", "False"];

impl Env {
    /// Over the given variables. Bytes that are no text are replaced.
    pub fn new(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Env {
        let text = |bytes: OsString| bytes.to_string_lossy().into_owned();
        let values = variables.into_iter().map(|(name, value)| (text(name), text(value))).collect();
        Env { values, faults: Faults::new() }
    }

    /// Adds a fault.
    pub fn fault(&mut self, line: impl Into<String>) {
        self.faults.add(line);
    }

    /// The value, unless a fault was found.
    ///
    /// # Errors
    /// All faults.
    pub fn finish<T>(self, value: T) -> Result<T, Faults> {
        self.faults.unless(value)
    }

    /// As it stands; `None` when the variable is not there.
    pub fn raw(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    /// Text; empty when the variable is not there.
    pub fn text(&self, name: &str) -> String {
        self.raw(name).unwrap_or_default().to_owned()
    }

    /// Text of a variable that must be there, if only empty.
    pub fn required(&mut self, name: &str) -> String {
        match self.values.get(name) {
            Some(value) => value.clone(),
            None => {
                self.missing(name);
                String::new()
            }
        }
    }

    /// A whole number of a variable that must be there.
    pub fn required_int(&mut self, name: &str) -> i64 {
        if !self.values.contains_key(name) {
            self.missing(name);
        }
        self.int(name).unwrap_or_default()
    }

    /// A whole number: decimal, with or without a sign.
    pub fn int(&mut self, name: &str) -> Option<i64> {
        self.typed(name, "int", |text| text.parse().ok())
    }

    /// A boolean; false when the variable is not there.
    pub fn flag(&mut self, name: &str) -> bool {
        let form = |text: &str| match text {
            text if TRUE.contains(&text) => Some(true),
            text if FALSE.contains(&text) => Some(false),
            _ => None,
        };
        self.typed(name, "bool", form).unwrap_or_default()
    }

    /// A duration such as `10s`. Empty counts as not there, as for all
    /// settings that the reference does not have.
    pub fn duration(&mut self, name: &str) -> Option<Duration> {
        self.own(name, duration::parse)
    }

    /// A setting of ours in any form that can be read from text.
    pub fn own_form<T: FromStr<Err: std::fmt::Display>>(&mut self, name: &str, what: &str) -> Option<T> {
        self.own(name, |text| text.parse().map_err(|error: T::Err| format!("`{text}` is no {what}: {error}")))
    }

    /// A setting of ours, read by `read`; empty counts as not there.
    pub fn own<T>(&mut self, name: &str, read: impl FnOnce(&str) -> Result<T, String>) -> Option<T> {
        let text = self.values.get(name).filter(|text| !text.is_empty())?;
        match read(text) {
            Ok(value) => Some(value),
            Err(fault) => {
                self.faults.add(format!("{name}: {fault}"));
                None
            }
        }
    }

    fn missing(&mut self, name: &str) {
        self.faults.add(format!("required key {name} missing value"));
    }

    fn typed<T>(&mut self, name: &str, what: &str, read: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        let text = self.values.get(name)?;
        let value = read(text);
        if value.is_none() {
            self.faults.add(format!(
                "envconfig.Process: assigning {name}: converting '{text}' to type {what}: invalid syntax or out of range"
            ));
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(lines: &[(&str, &str)]) -> Env {
        Env::new(lines.iter().map(|(name, value)| (name.into(), value.into())))
    }

    #[test]
    fn numbers_and_booleans_have_the_forms_of_the_reference() {
        let mut env = env(&[("A", "+7"), ("B", "-7"), ("C", "t"), ("D", "False"), ("E", "0"), ("S", "")]);
        assert_eq!((env.int("A"), env.int("B"), env.int("NONE")), (Some(7), Some(-7), None));
        assert_eq!((env.flag("C"), env.flag("D"), env.flag("E"), env.flag("NONE")), (true, false, false, false));
        assert_eq!(env.required("S"), "");
        assert_eq!(env.finish(()), Ok(()));
    }

    #[test]
    fn all_faults_are_told_by_name_together() {
        let mut env = env(&[("A", "ten"), ("B", ""), ("C", "yes"), ("D", "5"), ("F", "99999999999999999999")]);
        assert_eq!(env.required_int("MISSING"), 0);
        assert_eq!(env.required("ALSO"), "");
        assert_eq!((env.int("A"), env.int("B"), env.flag("C"), env.int("F")), (None, None, false, None));
        assert_eq!((env.duration("D"), env.own_form::<u16>("A", "port")), (None, None));
        let faults = env.finish(()).unwrap_err();
        let lines = faults.lines();
        assert_eq!(lines[0], "required key MISSING missing value");
        assert_eq!(lines[1], "required key ALSO missing value");
        for (line, name) in lines[2..].iter().zip(["A", "B", "C", "F", "D", "A"]) {
            assert!(line.contains(&format!("{name}:")), "{line}");
        }
        assert_eq!(lines.len(), 8);
    }

    #[test]
    fn an_empty_setting_of_ours_is_none() {
        let mut env = env(&[("A", ""), ("B", "1m30s"), ("C", "127.0.0.9")]);
        assert_eq!((env.duration("A"), env.own_form::<u16>("A", "port")), (None, None));
        assert_eq!(env.duration("B"), Some(Duration::from_secs(90)));
        assert_eq!(env.own_form::<std::net::IpAddr>("C", "address"), Some([127, 0, 0, 9].into()));
        assert_eq!(env.finish(()), Ok(()));
    }
}
