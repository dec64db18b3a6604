//! One request, watched.

use super::component::Component;
use super::facts::RequestFacts;
use super::identity::Identity;
use super::metrics::{Book, Labels, Series};
use super::observer::Inner;
use super::request_log::Captured;
use super::trace::{Ended, RequestTrace};
use http::{HeaderMap, HeaderName, HeaderValue};
use plumbing::clock;
use policy::compat::Compat;
use policy::moment::Moment;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

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
    /// In a box: what waits is to be small, and most are off.
    live: Option<Box<Live>>,
}

struct Live {
    inner: Arc<Inner>,
    began: Moment,
    /// When it went to the app, or to the pod that has it.
    called: Option<Moment>,
    /// When the app answered, and what.
    answered: Option<(Moment, u16)>,
    labels: Option<Labels>,
    /// Bytes of the request's body that were read.
    read: Option<Arc<AtomicU64>>,
    /// In boxes as well: few are traced or logged.
    trace: Option<Box<RequestTrace>>,
    logged: Option<Box<Captured>>,
    /// At an activator, and so not in the way of a sidecar's.
    aim: Option<Box<Aim>>,
}

/// What a request for one of many revisions has beside.
#[derive(Default)]
struct Aim {
    /// Its revision, once that is known, and the pod that has it.
    who: Option<Arc<Identity>>,
    /// What is counted of that revision.
    book: Option<Arc<Book>>,
    /// The host that was asked for.
    host: Option<Box<str>>,
    /// The pod's address, where labels show it.
    pod: Option<Box<str>>,
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
        facts: &RequestFacts<'_>,
        labels: Option<Labels>,
        trace: Option<RequestTrace>,
        logged: Option<Captured>,
    ) -> Watch {
        let named_later = labels.is_some() && inner.component == Component::Activator;
        let aim = named_later.then(|| Box::new(Aim { host: Some(facts.host().into()), ..Aim::default() }));
        let (trace, logged) = (trace.map(Box::new), logged.map(Box::new));
        let live =
            Live { inner, began: clock::now(), called: None, answered: None, labels, read: None, trace, logged, aim };
        Watch { live: Some(Box::new(live)) }
    }

    /// Counts, and nothing else.
    pub(super) fn counting(inner: Arc<Inner>, labels: Labels, began: Moment) -> Watch {
        let live = Live {
            inner,
            began,
            called: None,
            answered: None,
            labels: Some(labels),
            read: None,
            trace: None,
            logged: None,
            aim: None,
        };
        Watch { live: Some(Box::new(live)) }
    }

    /// The watch itself, for whoever sees its request's end; nothing is left here.
    pub fn take(&mut self) -> Watch {
        Watch { live: self.live.take() }
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
        self.live.as_mut()?.trace.as_deref_mut()
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

    /// It waits no longer: it has its place, or this is why not.
    pub fn waited(&mut self, refused: Option<&str>) {
        if let Some(trace) = self.trace() {
            trace.waited(refused);
        }
    }

    /// It is for this revision, one of many.
    pub fn is_for(&mut self, who: impl FnOnce() -> Arc<Identity>, series: &Series) {
        let Some(live) = &mut self.live else { return };
        let aim = live.aim.get_or_insert_default();
        aim.who = Some(who());
        if let Some(metrics) = &live.inner.metrics {
            aim.book = Some(series.book(metrics));
        }
    }

    /// These headers were set on its way: a template may want them.
    pub fn marked<'a>(&mut self, marks: impl Iterator<Item = (&'a HeaderName, &'a HeaderValue)>) {
        let Some(live) = &mut self.live else { return };
        if let (Some(captured), Some(log)) = (&mut live.logged, &live.inner.log) {
            marks.for_each(|(name, value)| log.capture_header(captured, name, value));
        }
    }

    /// It goes to this pod with these headers, which get our `traceparent`
    /// when traces are on.
    pub fn at_pod(&mut self, fields: &mut HeaderMap, name: &Arc<str>, address: SocketAddr) {
        let Some(live) = &mut self.live else { return };
        let strict = live.inner.compat == Compat::Strict;
        let now = clock::now();
        // A pod has answered, and its answer was not passed on.
        if live.call_ended(now).is_some() {
            live.answered = None;
            if let Some(trace) = &mut live.trace {
                trace.came_back(None);
            }
        }
        live.called = Some(now);
        if live.labels.is_some() && strict {
            live.aim.get_or_insert_default().pod = Some(address.to_string().into());
        }
        if let Some(read) = &live.read {
            read.store(0, Ordering::Relaxed);
        }
        // The reference leaves both empty.
        let who = live.aim.as_mut().and_then(|aim| aim.who.as_mut());
        if let (Some(who), true, false) = (who, live.logged.is_some(), strict) {
            let who = Arc::make_mut(who);
            who.pod = name.clone();
            who.pod_ip = address.ip().to_canonical().to_string().into();
        }
        if let Some(trace) = &mut live.trace {
            trace.called(fields, || (address.ip().to_string(), address.port()), strict);
        }
    }

    /// What became of that: the status of the pod's answer, or why there is none.
    pub fn tried(&mut self, outcome: Result<u16, &str>) {
        match outcome {
            Ok(status) => self.answered(status),
            Err(why) => {
                let Some(live) = &mut self.live else { return };
                live.call_ended(clock::now());
                if let Some(trace) = &mut live.trace {
                    trace.came_back(Some(why));
                }
            }
        }
    }

    /// True when spans are kept of it.
    pub fn is_recorded(&self) -> bool {
        self.live.as_ref().and_then(|live| live.trace.as_deref()).is_some_and(RequestTrace::is_recorded)
    }

    /// It waited for something that went on in stages, each of which begins
    /// where the one before ended: a span, with one below it for each.
    pub fn stages(&mut self, name: &'static str, began: Moment, stages: &[(&'static str, Duration)]) {
        let Some(live) = &mut self.live else { return };
        // The reference has no such spans.
        if let (Some(trace), Compat::Better) = (&mut live.trace, live.inner.compat) {
            trace.stages(name, began, stages);
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
        if let Some(trace) = &mut live.trace {
            let app = &live.inner.app;
            trace.called(fields, || app.clone().unwrap_or_default(), false);
        }
    }

    /// A plain one goes to the app, with a body of so many bytes.
    pub fn at_app_plain(&mut self, at: Moment, body_bytes: usize) {
        let Some(live) = &mut self.live else { return };
        live.called = Some(at);
        if let Some(metrics) = &live.inner.metrics {
            metrics.started();
        }
        if body_bytes > 0 {
            live.read = Some(Arc::new(AtomicU64::new(body_bytes as u64)));
        }
    }

    /// The head of the app's answer to a plain one came then.
    pub fn answered_plain(&mut self, status: u16, at: Moment) {
        if let Some(live) = &mut self.live {
            live.answered = Some((at, status));
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
    pub fn finish(self, outcome: Outcome) {
        if !self.is_off() {
            self.finish_at(outcome, clock::now());
        }
    }

    /// It was over then.
    pub fn finish_at(mut self, outcome: Outcome, at: Moment) {
        if let Some(mut live) = self.live.take() {
            live.finish(&outcome, at);
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(mut live) = self.live.take() {
            let status = live.answered.map_or(CLIENT_GONE, |(_, status)| status);
            live.finish(&Outcome { status, end: End::ClientGone, response_bytes: 0 }, clock::now());
        }
    }
}

impl Live {
    /// Where it is counted.
    fn book(&self) -> Option<&Book> {
        let metrics = self.inner.metrics.as_ref()?;
        let aimed = self.aim.as_ref().and_then(|aim| aim.book.as_deref());
        Some(aimed.unwrap_or(&metrics.own))
    }

    fn bytes_read(&self) -> u64 {
        self.read.as_ref().map_or(0, |read| read.load(Ordering::Relaxed))
    }

    /// Counts what went to the app, or to a pod, and is over now; for how long
    /// it was there.
    fn call_ended(&mut self, now: Moment) -> Option<Duration> {
        let called = self.called.take()?;
        let (until, status) = self.answered.unwrap_or((now, 0));
        if let (Some(book), Some(labels)) = (self.book(), self.labels) {
            let pod = self.aim.as_ref().and_then(|aim| aim.pod.as_deref());
            book.called(labels, pod, status, until.since(called), self.bytes_read());
        }
        Some(now.since(called))
    }

    fn finish(&mut self, outcome: &Outcome, now: Moment) {
        let shown = Shown::of(outcome, self.inner.compat);
        let called = self.call_ended(now);
        if let (Some(book), Some(labels)) = (self.book(), self.labels) {
            if let (Some(span), Component::Sidecar) = (called, self.inner.component) {
                book.invoked(shown.invocation, span);
            }
            let host = self.aim.as_ref().and_then(|aim| aim.host.as_ref());
            let labels = host.map_or(labels, |host| book.name_host(labels, host));
            book.served(labels, shown.server, now.since(self.began), self.bytes_read(), outcome.response_bytes);
        }
        let who = self.aim.as_ref().and_then(|aim| aim.who.as_deref());
        if let (Some(trace), Some(tracer)) = (self.trace.take(), &self.inner.tracer) {
            let ended = Ended { status: shown.server, response_bytes: outcome.response_bytes, revision: who };
            trace.finish(&ended, &tracer.queue);
        }
        if let (Some(request), Some(log)) = (&self.logged, &self.inner.log) {
            log.write(request, who, shown.log, now.since(self.began).as_secs_f64());
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
