//! One request, watched.

use super::metrics::Labels;
use super::observer::Inner;
use super::request_log::Captured;
use super::trace::{Ended, RequestTrace};
use http::HeaderMap;
use plumbing::clock;
use policy::compat::Compat;
use policy::moment::Moment;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The status of requests whose client has left, as nginx has it.
const CLIENT_GONE: u16 = 499;
const TIMED_OUT: u16 = 504;
const CUT: u16 = 500;
const SWITCHED: u16 = 101;
const OK: u16 = 200;

/// One request from its head to its last byte. Dropped without
/// [`Watch::finish`] it counts as left by its client: what ends a request
/// without a word is its task being dropped with its connection.
#[must_use = "a request that is not watched to its end counts as left by its client"]
pub struct Watch {
    live: Option<Live>,
}

struct Live {
    inner: Arc<Inner>,
    began: Moment,
    /// When it went to the app.
    called: Option<Moment>,
    /// When the app answered, and what.
    answered: Option<(Moment, u16)>,
    labels: Option<Labels>,
    /// Bytes of the request's body that were read.
    read: Option<Arc<AtomicU64>>,
    /// Rare, and large: not worth its room in each watch.
    kept: Option<Box<Kept>>,
}

struct Kept {
    trace: Option<RequestTrace>,
    logged: Option<Captured>,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// With its last byte, the app's answer or one of ours.
    Whole,
    /// A limit passed, before the answer began or after.
    TimedOut,
    /// Its client left.
    ClientGone,
    /// The app broke off in its answer.
    Cut,
    /// It was upgraded, and its tunnel has ended.
    Tunnel,
}

/// A request's end, and what was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The status that was sent (or would have been).
    pub status: u16,
    /// How.
    pub end: End,
    /// Bytes of the answer's body that were written.
    pub response_bytes: u64,
}

impl Watch {
    /// Watches nothing.
    pub fn off() -> Watch {
        Watch { live: None }
    }

    pub(super) fn begin(
        inner: Arc<Inner>,
        labels: Option<Labels>,
        trace: Option<RequestTrace>,
        logged: Option<Captured>,
    ) -> Watch {
        let kept = (trace.is_some() || logged.is_some()).then(|| Box::new(Kept { trace, logged }));
        Watch {
            live: Some(Live { inner, began: clock::now(), called: None, answered: None, labels, read: None, kept }),
        }
    }

    /// Where to count the bytes of the request's body; `None` when nobody
    /// wants to know.
    pub(super) fn reader(&mut self) -> Option<Arc<AtomicU64>> {
        let live = self.live.as_mut().filter(|live| live.labels.is_some())?;
        Some(live.read.get_or_insert_default().clone())
    }

    /// True when nobody wants to know.
    pub fn is_off(&self) -> bool {
        self.live.is_none()
    }

    fn trace(&mut self) -> Option<&mut RequestTrace> {
        self.live.as_mut()?.kept.as_mut()?.trace.as_mut()
    }

    /// It is counted and passes on towards the app.
    pub fn proxied(&mut self) {
        if let Some(trace) = self.trace() {
            trace.proxied();
        }
    }

    /// It asks for a place. Only with a limit, and also when it gets one at once.
    pub fn queued(&mut self) {
        if let Some(trace) = self.trace() {
            trace.queued();
        }
    }

    /// It has its place and goes to the app with these headers, which get our
    /// `traceparent` when traces are on. A second try changes nothing.
    pub fn at_app(&mut self, fields: &mut HeaderMap) {
        let Some(live) = &mut self.live else { return };
        if live.called.is_none() {
            live.called = Some(clock::now());
            if let (Some(metrics), Some(_)) = (&live.inner.metrics, live.labels) {
                metrics.started();
            }
        }
        if let Some(trace) = self.trace() {
            trace.at_app(fields);
        }
    }

    /// The head of the app's answer has come.
    pub fn answered(&mut self, status: u16) {
        let Some(live) = &mut self.live else { return };
        live.answered.get_or_insert_with(|| (clock::now(), status));
        if let Some(trace) = self.trace() {
            trace.answered(status);
        }
    }

    /// It is over.
    pub fn finish(mut self, outcome: Outcome) {
        if let Some(live) = self.live.take() {
            live.finish(&outcome);
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(live) = self.live.take() {
            let status = live.answered.map_or(CLIENT_GONE, |(_, status)| status);
            live.finish(&Outcome { status, end: End::ClientGone, response_bytes: 0 });
        }
    }
}

impl Live {
    fn finish(self, outcome: &Outcome) {
        let now = clock::now();
        let shown = Shown::of(outcome, self.inner.compat);
        if let (Some(metrics), Some(labels)) = (&self.inner.metrics, self.labels) {
            let sent = self.read.as_ref().map_or(0, |read| read.load(Ordering::Relaxed));
            if let Some(called) = self.called {
                let (until, status) = self.answered.unwrap_or((now, 0));
                metrics.called(labels, status, until.since(called), sent);
                metrics.invoked(shown.invocation, now.since(called));
            }
            metrics.served(labels, shown.server, now.since(self.began), sent, outcome.response_bytes);
        }
        let Some(kept) = self.kept else { return };
        if let (Some(trace), Some(tracer)) = (kept.trace, &self.inner.tracer) {
            let (status, response_bytes) = (shown.server, outcome.response_bytes);
            trace.finish(&Ended { status, response_bytes, app: self.inner.app.clone() }, &tracer.queue);
        }
        if let (Some(request), Some(log)) = (kept.logged, &self.inner.log) {
            log.write(&request, shown.log.0, shown.log.1, now.since(self.began).as_secs_f64());
        }
    }
}

/// An outcome as each of the three tells it.
struct Shown {
    server: u16,
    invocation: u16,
    log: (u16, u64),
}

impl Shown {
    fn of(outcome: &Outcome, compat: Compat) -> Shown {
        let Outcome { status, end, response_bytes, .. } = *outcome;
        let strict = compat == Compat::Strict;
        let all = |code: u16| Shown { server: code, invocation: code, log: (code, response_bytes) };
        match end {
            End::Whole => all(status),
            // The reference's counter never learns that a limit has passed.
            End::TimedOut | End::ClientGone if strict => Shown { invocation: OK, ..all(status) },
            End::TimedOut => all(TIMED_OUT),
            End::ClientGone => all(CLIENT_GONE),
            // As if nothing had been sent: it is not known what arrived.
            End::Cut => Shown { log: (CUT, 0), ..all(CUT) },
            // The reference hands the connection over and sees no status.
            End::Tunnel if strict => Shown { log: (OK, 0), ..all(OK) },
            End::Tunnel => all(SWITCHED),
        }
    }
}
