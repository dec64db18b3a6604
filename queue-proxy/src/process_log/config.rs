//! zap's config as Knative gives it.

use serde_json::{Map, Value};

/// Levels, zap's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For developers.
    Debug,
    /// State changes.
    Info,
    /// Something is odd.
    Warn,
    /// Something failed.
    Error,
    /// Failed, and a developer's process would panic.
    DPanic,
    /// Panics.
    Panic,
    /// The process ends.
    Fatal,
}

impl Level {
    /// A level's name, in lower or upper case.
    pub fn parse(name: &str) -> Option<Level> {
        Some(match name.to_ascii_lowercase().as_str() {
            "debug" => Level::Debug,
            "info" => Level::Info,
            "warn" | "warning" => Level::Warn,
            "error" => Level::Error,
            "dpanic" => Level::DPanic,
            "panic" => Level::Panic,
            "fatal" => Level::Fatal,
            _ => return None,
        })
    }
}

/// How a level is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Severity {
    /// `INFO`, `WARNING`, `EMERGENCY`: Knative's own.
    Stackdriver,
    /// `info`, `warn`.
    Lower,
    /// `INFO`, `WARN`.
    Capital,
    /// The same with colours of terminals.
    LowerColour,
    CapitalColour,
}

/// How a time is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Time {
    Rfc3339Nanos,
    Rfc3339,
    Iso8601,
    EpochSeconds,
    EpochMillis,
    EpochNanos,
}

/// What to write, and where. An empty key leaves its field out.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Config {
    pub(super) level: Level,
    pub(super) outputs: Vec<String>,
    /// For people, not JSON.
    pub(super) console: bool,
    pub(super) caller: bool,
    pub(super) full_caller: bool,
    pub(super) level_key: String,
    pub(super) time_key: String,
    pub(super) name_key: String,
    pub(super) caller_key: String,
    pub(super) message_key: String,
    pub(super) severity: Severity,
    pub(super) time: Time,
    pub(super) line_end: String,
    pub(super) initial: Map<String, Value>,
}

impl Default for Config {
    /// Knative's built-in one.
    fn default() -> Config {
        let text = str::to_owned;
        Config {
            level: Level::Info,
            outputs: vec![text("stderr")],
            console: false,
            caller: true,
            full_caller: false,
            level_key: text("severity"),
            time_key: text("timestamp"),
            name_key: text("logger"),
            caller_key: text("caller"),
            message_key: text("message"),
            severity: Severity::Stackdriver,
            time: Time::Rfc3339Nanos,
            line_end: text("\n"),
            initial: Map::new(),
        }
    }
}

impl Config {
    /// Reads a config; what it leaves out is as in the built-in one.
    pub(super) fn parse(text: &str) -> Result<Config, String> {
        let mut config = Config::default();
        if text.is_empty() {
            return Ok(config);
        }
        let map: Map<String, Value> = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if let Some(level) = text_of(&map, "level")? {
            config.level = match level {
                // zap's zero value.
                "" => Level::Info,
                level => Level::parse(level).ok_or_else(|| format!("level: unrecognized level: {level:?}"))?,
            };
        }
        match text_of(&map, "encoding")? {
            None | Some("json") => {}
            Some("console") => config.console = true,
            Some(other) => return Err(format!("encoding: no encoder registered for name {other:?}")),
        }
        if let Some(outputs) = map.get("outputPaths").filter(|value| !value.is_null()) {
            config.outputs = list(outputs).ok_or("outputPaths: is no list of strings")?;
        }
        config.caller = !map.get("disableCaller").and_then(Value::as_bool).unwrap_or_default();
        if let Some(Value::Object(initial)) = map.get("initialFields") {
            config.initial = initial.clone();
        }
        if let Some(Value::Object(encoder)) = map.get("encoderConfig") {
            config.read_encoder(encoder)?;
        }
        Ok(config)
    }

    fn read_encoder(&mut self, encoder: &Map<String, Value>) -> Result<(), String> {
        let keys = [
            ("levelKey", &mut self.level_key),
            ("timeKey", &mut self.time_key),
            ("nameKey", &mut self.name_key),
            ("callerKey", &mut self.caller_key),
            ("messageKey", &mut self.message_key),
        ];
        for (name, key) in keys {
            if let Some(value) = text_of(encoder, name)? {
                value.clone_into(key);
            }
        }
        // Unknown encoders are the plainest one, as in zap.
        self.severity = match text_of(encoder, "levelEncoder")? {
            None => self.severity,
            Some("capital") => Severity::Capital,
            Some("capitalColor") => Severity::CapitalColour,
            Some("color") => Severity::LowerColour,
            Some(_) => Severity::Lower,
        };
        self.time = match text_of(encoder, "timeEncoder")? {
            None => self.time,
            Some("rfc3339nano" | "RFC3339Nano") => Time::Rfc3339Nanos,
            Some("rfc3339" | "RFC3339") => Time::Rfc3339,
            Some("iso8601" | "ISO8601") => Time::Iso8601,
            Some("millis") => Time::EpochMillis,
            Some("nanos") => Time::EpochNanos,
            Some(_) => Time::EpochSeconds,
        };
        if let Some(encoder) = text_of(encoder, "callerEncoder")? {
            self.full_caller = encoder == "full";
        }
        if let Some(end) = text_of(encoder, "lineEnding")?
            && !end.is_empty()
        {
            end.clone_into(&mut self.line_end);
        }
        Ok(())
    }
}

fn text_of<'a>(map: &'a Map<String, Value>, name: &str) -> Result<Option<&'a str>, String> {
    match map.get(name) {
        None | Some(Value::Null) => Ok(None),
        // Times may also be objects with a layout; nobody sets them so.
        Some(value) => value.as_str().map(Some).ok_or_else(|| format!("{name}: {value} is no string")),
    }
}

fn list(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
}
