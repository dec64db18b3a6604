//! Logs: one line an event, keys and values, to standard error.

use std::io::IsTerminal;
pub use tracing::Level;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt;

/// How lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Text,
    /// For collectors: one JSON object a line.
    Json,
}

/// Installs the process's log. Later calls do nothing: tests share a process.
pub fn install(format: Format, level: Level) {
    // Colours only for a person's eyes.
    let colours = std::io::stderr().is_terminal();
    let lines = fmt()
        .with_ansi(colours)
        .with_max_level(LevelFilter::from_level(level))
        .with_writer(std::io::stderr)
        .with_target(false);
    let _ = match format {
        Format::Text => lines.try_init(),
        Format::Json => lines.json().flatten_event(true).try_init(),
    };
}
