//! Events as lines.

use super::ProcessLog;
use super::config::Level;
use super::line::{Line, Place};
use plumbing::clock;
use std::fmt::{Debug, Write};
use tracing::field::{Field, Visit};
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::Context;

/// The place of events in the log.
pub(super) struct Layer {
    log: ProcessLog,
}

impl Layer {
    pub(super) fn new(log: ProcessLog) -> Layer {
        Layer { log }
    }

    fn most(&self) -> LevelFilter {
        match self.log.level {
            Level::Debug => LevelFilter::DEBUG,
            Level::Info => LevelFilter::INFO,
            Level::Warn => LevelFilter::WARN,
            Level::Error => LevelFilter::ERROR,
            // Nothing that is traced is worse than an error.
            Level::DPanic | Level::Panic | Level::Fatal => LevelFilter::OFF,
        }
    }
}

impl<S: Subscriber> tracing_subscriber::Layer<S> for Layer {
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        *metadata.level() <= self.most()
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.most())
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        let level = match *metadata.level() {
            tracing::Level::ERROR => Level::Error,
            tracing::Level::WARN => Level::Warn,
            tracing::Level::INFO => Level::Info,
            tracing::Level::DEBUG | tracing::Level::TRACE => Level::Debug,
        };
        let mut message = Message(String::new());
        event.record(&mut message);
        let place = metadata.file().zip(metadata.line()).map(|(file, line)| Place { file, line });
        let mut line = self.log.form.begin(level, clock::now(), place.as_ref(), &message.0);
        event.record(&mut Fields(&mut line));
        self.log.write(&line.end());
    }
}

const MESSAGE: &str = "message";

/// The event's message.
struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == MESSAGE {
            let _ = write!(self.0, "{value:?}");
        }
    }
}

/// All else.
struct Fields<'a, 'b>(&'a mut Line<'b>);

impl Visit for Fields<'_, '_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() != MESSAGE {
            self.0.text(field.name(), &format!("{value:?}"));
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() != MESSAGE {
            self.0.text(field.name(), value);
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0.raw(field.name(), &value.to_string());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.raw(field.name(), &value.to_string());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.raw(field.name(), &value.to_string());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        if value.is_finite() {
            self.0.raw(field.name(), &value.to_string());
        } else {
            self.0.text(field.name(), &value.to_string());
        }
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.0.text(field.name(), &value.to_string());
    }
}
