//! The task that sends what an observer gathers, from the start of a process
//! to its end.

use crate::config::Config;
use crate::observer::{Observer, Setup};
use plumbing::shutdown::Shutdown;
use policy::compat::Compat;
use std::time::Duration;

/// How long the last metrics and spans may take: a collector that hangs must
/// not hold the end.
const LAST_MESSAGES: Duration = Duration::from_millis(500);
/// The same as the reference has it.
const LAST_MESSAGES_STRICT: Duration = Duration::from_secs(10);
/// How long the last lines of standard output may take, when nobody reads.
const LAST_LINES: Duration = Duration::from_millis(200);

/// An observer, and the task that sends.
pub struct Sending {
    /// What the request path is given.
    pub observer: Observer,
    stop: Shutdown,
}

impl Sending {
    /// Starts what is asked for; tells the log what of it is not done.
    pub fn start(config: Config, setup: Setup) -> Sending {
        let compat = setup.compat;
        let (observer, unmet) = Observer::start(config, setup);
        unmet.errors.iter().for_each(|error| tracing::error!("{error}"));
        unmet.notices.iter().for_each(|notice| tracing::warn!("{notice}"));
        let longest = match compat {
            Compat::Better => LAST_MESSAGES,
            Compat::Strict => LAST_MESSAGES_STRICT,
        };
        let stop = Shutdown::new();
        if !observer.is_off() {
            let (observer, over) = (observer.clone(), stop.clone());
            stop.spawn(async move { observer.run(over.draining(), longest).await });
        }
        Sending { observer, stop }
    }

    /// Sends and writes what is left.
    pub async fn end(self) {
        self.stop.drain();
        self.stop.finished().await;
        self.observer.close(LAST_LINES);
    }
}
