//! A wake-up from zero, phase by phase: shown in metrics, in the log, in a
//! trace, and in the answers of those who waited for it.

use crate::metrics::Metrics;
use crate::revision::Revision;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use observe::Watch;
use plumbing::{clock, headers};
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::time::Instant;

const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");

/// The phases in their order, as they are called in metrics, log and headers.
pub(crate) const PHASES: [&str; 6] = ["signal", "order", "start", "ready", "connect", "first_byte"];

/// One wake-up. Each moment is noted once, by whoever sees it first.
#[derive(Debug)]
pub(crate) struct Wake {
    began: Instant,
    signalled: OnceLock<Instant>,
    ordered: OnceLock<Instant>,
    ready: OnceLock<Instant>,
    app_start: OnceLock<Duration>,
    told: AtomicBool,
    /// A trace shows it.
    traced: AtomicBool,
}

impl Wake {
    pub(crate) fn begin() -> Wake {
        Wake {
            began: Instant::now(),
            signalled: OnceLock::new(),
            ordered: OnceLock::new(),
            ready: OnceLock::new(),
            app_start: OnceLock::new(),
            told: AtomicBool::new(false),
            traced: AtomicBool::new(false),
        }
    }

    /// For how long it has been going on.
    pub(crate) fn lasts(&self) -> Duration {
        self.began.elapsed()
    }

    /// The autoscaler has been told.
    pub(crate) fn signalled(&self) {
        let _ = self.signalled.set(Instant::now());
    }

    /// The platform shows a pod that starts.
    pub(crate) fn ordered(&self) {
        let _ = self.ordered.set(Instant::now());
    }

    /// A pod is ready; how long its app took to start.
    pub(crate) fn ready(&self, app_start: Option<Duration>) {
        self.ordered();
        let _ = self.ready.set(Instant::now());
        if let Some(span) = app_start {
            let _ = self.app_start.set(span);
        }
    }

    /// It has ended.
    pub(crate) fn is_over(&self, metrics: &Metrics, revision: &Revision) {
        metrics.woken(self);
        let app_ms = self.app_start().map(|span| span.as_millis() as u64);
        tracing::info!(revision = %revision.id, took_ms = self.took().as_millis() as u64, app_ms, "woke up");
    }

    /// From the first request to the first ready pod.
    pub(crate) fn took(&self) -> Duration {
        self.ready.get().map_or_else(|| self.lasts(), |ready| *ready - self.began)
    }

    /// The part of it that is the app's own start.
    pub(crate) fn app_start(&self) -> Option<Duration> {
        self.app_start.get().copied()
    }
}

/// A request that waited for a wake-up.
pub(crate) struct Cold {
    wake: Arc<Wake>,
    came: Instant,
    granted: Instant,
}

impl Cold {
    /// It has a slot; it came at `came`.
    pub(crate) fn granted(wake: Arc<Wake>, came: Instant) -> Cold {
        Cold { wake, came, granted: Instant::now() }
    }

    /// Its answer begins: writes the phases into it, and tells of the wake-up
    /// if it is the first to be answered; of those of which spans are kept, the
    /// first has them.
    pub(crate) fn answered(
        &self,
        connected: Option<Instant>,
        fields: &mut HeaderMap,
        metrics: &Metrics,
        revision: &Revision,
        watch: &mut Watch,
    ) {
        let phases = self.phases(connected);
        let waited = self.granted.saturating_duration_since(self.came);
        fields.insert(headers::COLD_START, HeaderValue::from(u64::try_from(waited.as_millis()).unwrap_or(u64::MAX)));
        if let Ok(line) = HeaderValue::from_str(&server_timing(&phases)) {
            // Beside the app's own, if it gives any.
            fields.append(SERVER_TIMING, line);
        }
        if watch.is_recorded() && !self.wake.traced.swap(true, Ordering::Relaxed) {
            let stages: [_; PHASES.len()] = std::array::from_fn(|at| (PHASES[at], phases[at]));
            watch.stages("wake", clock::at(self.wake.began), &stages);
        }
        if !self.wake.told.swap(true, Ordering::Relaxed) {
            metrics.cold_start(&phases);
            let [signal, order, start, ready, connect, first_byte] = phases.map(|span| span.as_micros() as u64);
            let app = self.wake.app_start().map(|span| span.as_micros() as u64);
            tracing::info!(
                revision = %revision.id, signal, order, start, app, ready, connect, first_byte,
                "cold start, in microseconds"
            );
        }
    }

    fn phases(&self, connected: Option<Instant>) -> [Duration; 6] {
        let wake = &self.wake;
        let mut last = wake.began;
        let connected = connected.unwrap_or(self.granted);
        let moments = [
            wake.signalled.get().copied(),
            wake.ordered.get().copied(),
            wake.ready.get().copied(),
            Some(self.granted),
            Some(connected),
            Some(Instant::now()),
        ];
        // A moment that was not seen makes its phase empty and the next one longer.
        moments.map(|moment| {
            let moment = moment.unwrap_or(last).max(last);
            moment - std::mem::replace(&mut last, moment)
        })
    }
}

fn server_timing(phases: &[Duration; 6]) -> String {
    let mut line = String::with_capacity(160);
    for (name, span) in PHASES.iter().zip(phases) {
        let comma = if line.is_empty() { "" } else { ", " };
        let _ = write!(line, "{comma}wake_{name};dur={:.3}", span.as_secs_f64() * 1000.0);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_phases_follow_each_other_without_a_gap() {
        let ms = Duration::from_millis;
        let wake = Arc::new(Wake::begin());
        let came = Instant::now();
        let pass = |millis| tokio::time::advance(ms(millis));
        pass(1).await;
        wake.signalled();
        pass(2).await;
        wake.ordered();
        pass(30).await;
        wake.ready(Some(ms(20)));
        pass(4).await;
        let cold = Cold::granted(wake.clone(), came);
        pass(5).await;
        let connected = Instant::now();
        pass(6).await;
        assert_eq!(cold.phases(Some(connected)), [1, 2, 30, 4, 5, 6].map(ms));
        assert_eq!((wake.took(), wake.app_start()), (ms(33), Some(ms(20))));
        let line = server_timing(&cold.phases(Some(connected)));
        assert!(line.starts_with("wake_signal;dur=1.000, wake_order;dur=2.000, wake_start;dur=30.000, "), "{line}");
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_not_seen_has_no_length_of_its_own() {
        let wake = Arc::new(Wake::begin());
        tokio::time::advance(Duration::from_millis(7)).await;
        wake.ready(None);
        let phases = Cold::granted(wake, Instant::now()).phases(None);
        assert_eq!(phases.map(|span| span.as_millis()), [0, 7, 0, 0, 0, 0]);
    }
}
