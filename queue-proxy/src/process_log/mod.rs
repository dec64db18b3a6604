//! The process's own log, in the form that Knative's logging config asks for.
//!
//! The config is that of zap, Go's logger, laid over Knative's built-in one:
//! JSON lines to standard error with severities in capitals. Written at once
//! and in full, unlike the log of requests: the last words before an end count.

mod config;
mod layer;
mod line;

#[cfg(test)]
mod tests;

use config::Config;
use layer::Layer;
use line::Form;
use observe::Identity;
use parking_lot::Mutex;
use plumbing::clock;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::{Arc, OnceLock};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

pub use config::Level;

/// Whose log it is.
const LOGGER: &str = "queueproxy";
/// Its name when the config could not be used.
const FALLBACK: &str = "fallback-logger.queueproxy";

static INSTALLED: OnceLock<ProcessLog> = OnceLock::new();

/// A log; clones write to the same places.
#[derive(Clone)]
pub struct ProcessLog {
    form: Arc<Form>,
    targets: Arc<[Target]>,
    level: Level,
}

enum Target {
    Stdout,
    Stderr,
    File(Mutex<File>),
    /// Lines of tests.
    #[cfg(test)]
    Kept(Arc<Mutex<Vec<u8>>>),
}

impl ProcessLog {
    /// By `SERVING_LOGGING_CONFIG` and `SERVING_LOGGING_LEVEL`, either of which
    /// may be empty. The second part is why the config was not used, if so.
    pub fn new(config: &str, level: &str, who: &Identity, commit: &str) -> (ProcessLog, Option<String>) {
        let read = Config::parse(config).and_then(|config| Ok((targets(&config.outputs)?, config)));
        let (targets, mut config, logger, fault) = match read {
            Ok((targets, config)) => (targets, config, LOGGER, None),
            Err(fault) => (vec![Target::Stderr], Config::default(), FALLBACK, Some(fault)),
        };
        if let Some(level) = Level::parse(level) {
            config.level = level;
        }
        let level = config.level;
        let form = Arc::new(Form::new(config, logger, who, commit));
        (ProcessLog { form, targets: targets.into(), level }, fault)
    }

    /// Makes it the process's log. Later calls do nothing: tests share a process.
    pub fn install(&self) {
        let _ = INSTALLED.set(self.clone());
        let _ = tracing_subscriber::registry().with(Layer::new(self.clone())).try_init();
    }

    /// The last line of a process that cannot go on; the caller ends it.
    /// `tracing` has no such level.
    pub fn fatal(&self, message: &str, error: &str) {
        let mut line = self.form.begin(Level::Fatal, clock::now(), None, message);
        if !error.is_empty() {
            line.text("error", error);
        }
        self.write(&line.end());
    }

    fn write(&self, line: &str) {
        for target in self.targets.iter() {
            // Whoever cannot log cannot say so either.
            let _ = match target {
                Target::Stdout => std::io::stdout().lock().write_all(line.as_bytes()),
                Target::Stderr => std::io::stderr().lock().write_all(line.as_bytes()),
                Target::File(file) => file.lock().write_all(line.as_bytes()),
                #[cfg(test)]
                Target::Kept(kept) => kept.lock().write_all(line.as_bytes()),
            };
        }
    }
}

/// The last line of the process, through the installed log; to standard
/// error as it is when there is none yet.
pub fn fatal(message: &str, error: &str) {
    match INSTALLED.get() {
        Some(log) => log.fatal(message, error),
        None => {
            let _ = writeln!(std::io::stderr(), "{message}: {error}");
        }
    }
}

fn targets(outputs: &[String]) -> Result<Vec<Target>, String> {
    outputs.iter().map(|output| target(output)).collect()
}

fn target(output: &str) -> Result<Target, String> {
    match output {
        "stdout" => Ok(Target::Stdout),
        "stderr" => Ok(Target::Stderr),
        path => {
            let path = path.strip_prefix("file://").unwrap_or(path);
            let file = OpenOptions::new().append(true).create(true).open(path);
            file.map(|file| Target::File(Mutex::new(file))).map_err(|error| format!("outputPaths: {path}: {error}"))
        }
    }
}
