//! One line of the log.

use super::config::{Config, Level, Severity, Time};
use observe::Identity;
use observe::go_text;
use observe::go_time;
use policy::moment::Moment;
use std::fmt::Write;

/// How lines look; what is the same in each is made once.
pub(super) struct Form {
    config: Config,
    logger: &'static str,
    /// Fields of each line, as JSON members.
    context: String,
}

/// A line that is being written. Fields follow the message.
pub(super) struct Line<'a> {
    form: &'a Form,
    out: String,
    /// Of a line for people, the fields are gathered apart.
    fields: String,
}

/// Where in the source.
pub(super) struct Place<'a> {
    pub(super) file: &'a str,
    pub(super) line: u32,
}

impl Form {
    pub(super) fn new(config: Config, logger: &'static str, who: &Identity, commit: &str) -> Form {
        let mut context = String::new();
        for (name, value) in &config.initial {
            member(&mut context, config.console, name, &value.to_string());
        }
        let key = format!("{}/{}", who.namespace, who.revision);
        for (name, value) in [("commit", commit), ("knative.dev/key", &key), ("knative.dev/pod", &who.pod)] {
            if !(name == "commit" && value.is_empty()) {
                member(&mut context, config.console, name, &quoted(value));
            }
        }
        Form { config, logger, context }
    }

    pub(super) fn begin(&self, level: Level, at: Moment, place: Option<&Place<'_>>, message: &str) -> Line<'_> {
        let place = place.filter(|_| self.config.caller).map(|place| self.caller(place)).unwrap_or_default();
        let mut line = Line { form: self, out: String::with_capacity(256), fields: self.context.clone() };
        if self.config.console {
            line.begin_for_people(level, at, &place, message);
        } else {
            line.begin_json(level, at, &place, message);
        }
        line
    }

    /// The file with its folder, as Go's packages show it.
    fn caller(&self, place: &Place<'_>) -> String {
        let short = match place.file.rmatch_indices('/').nth(1) {
            Some((at, _)) if !self.config.full_caller => &place.file[at + 1..],
            _ => place.file,
        };
        format!("{short}:{}", place.line)
    }

    fn severity(&self, level: Level) -> String {
        let lower = match level {
            Level::Debug => "debug",
            Level::Info => "info",
            Level::Warn => "warn",
            Level::Error => "error",
            Level::DPanic => "dpanic",
            Level::Panic => "panic",
            Level::Fatal => "fatal",
        };
        match self.config.severity {
            Severity::Stackdriver => stackdriver(level).to_owned(),
            Severity::Lower => lower.to_owned(),
            Severity::Capital => lower.to_uppercase(),
            Severity::LowerColour => coloured(level, lower),
            Severity::CapitalColour => coloured(level, &lower.to_uppercase()),
        }
    }

    /// The time, and whether it is text.
    fn time(&self, at: Moment) -> (String, bool) {
        let mut out = String::new();
        #[expect(clippy::cast_precision_loss, reason = "zap writes these times as floats")]
        let nanos = at.unix_nanos() as f64;
        match self.config.time {
            Time::Rfc3339Nanos => go_time::rfc3339_nanos(&mut out, at),
            Time::Rfc3339 => go_time::rfc3339(&mut out, at),
            Time::Iso8601 => go_time::iso8601(&mut out, at),
            Time::EpochSeconds => return (format!("{}", nanos / 1e9), false),
            Time::EpochMillis => return (format!("{}", nanos / 1e6), false),
            Time::EpochNanos => return (at.unix_nanos().to_string(), false),
        }
        (out, true)
    }
}

fn stackdriver(level: Level) -> &'static str {
    match level {
        Level::Debug => "DEBUG",
        Level::Info => "INFO",
        Level::Warn => "WARNING",
        Level::Error => "ERROR",
        Level::DPanic => "CRITICAL",
        Level::Panic => "ALERT",
        Level::Fatal => "EMERGENCY",
    }
}

fn coloured(level: Level, text: &str) -> String {
    let colour = match level {
        Level::Debug => 35,
        Level::Info => 34,
        Level::Warn => 33,
        Level::Error | Level::DPanic | Level::Panic | Level::Fatal => 31,
    };
    format!("\u{1b}[{colour}m{text}\u{1b}[0m")
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    go_text::json(&mut out, text);
    out.push('"');
    out
}

/// Adds a member; zap puts a space between them for people only.
fn member(out: &mut String, spaced: bool, name: &str, value: &str) {
    if !out.is_empty() {
        out.push_str(if spaced { ", " } else { "," });
    }
    out.push('"');
    go_text::json(out, name);
    out.push_str(if spaced { "\": " } else { "\":" });
    out.push_str(value);
}

impl Line<'_> {
    fn begin_json(&mut self, level: Level, at: Moment, place: &str, message: &str) {
        let config = &self.form.config;
        let (time, is_text) = self.form.time(at);
        let parts = [
            (&config.level_key, quoted(&self.form.severity(level))),
            (&config.time_key, if is_text { quoted(&time) } else { time }),
            (&config.name_key, quoted(self.form.logger)),
            (&config.caller_key, if place.is_empty() { String::new() } else { quoted(place) }),
            (&config.message_key, quoted(message)),
        ];
        for (key, value) in parts {
            if !key.is_empty() && !value.is_empty() {
                member(&mut self.out, false, key, &value);
            }
        }
    }

    fn begin_for_people(&mut self, level: Level, at: Moment, place: &str, message: &str) {
        let config = &self.form.config;
        let parts = [
            (&config.time_key, self.form.time(at).0),
            (&config.level_key, self.form.severity(level)),
            (&config.name_key, self.form.logger.to_owned()),
            (&config.caller_key, place.to_owned()),
            (&config.message_key, message.to_owned()),
        ];
        let shown = parts.into_iter().filter(|(key, value)| !key.is_empty() && !value.is_empty());
        self.out = shown.map(|(_, value)| value).collect::<Vec<_>>().join("\t");
    }

    pub(super) fn text(&mut self, name: &str, value: &str) {
        self.raw(name, &quoted(value));
    }

    /// A value that is JSON already.
    pub(super) fn raw(&mut self, name: &str, value: &str) {
        member(&mut self.fields, self.form.config.console, name, value);
    }

    pub(super) fn end(self) -> String {
        let (out, fields, end) = (self.out, self.fields, &self.form.config.line_end);
        let mut line = String::with_capacity(out.len() + fields.len() + 8);
        let _ = match (self.form.config.console, fields.is_empty(), out.is_empty()) {
            (true, true, _) => write!(line, "{out}{end}"),
            (true, false, _) => write!(line, "{out}\t{{{fields}}}{end}"),
            (false, false, false) => write!(line, "{{{out},{fields}}}{end}"),
            (false, ..) => write!(line, "{{{out}{fields}}}{end}"),
        };
        line
    }
}
