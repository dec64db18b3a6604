//! The trace of one request, as it goes through.

use super::queue::SpanQueue;
use super::recorded::{Ended, Recorded};
use super::sampler::Sampler;
use crate::component::Component;
use crate::facts::RequestFacts;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use plumbing::trace_context::{Context, hex, new_span, new_trace};
use policy::moment::Moment;
use std::time::Duration;

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// One request's trace. When it is not recorded, it still gives the app a
/// span id of ours.
pub(crate) struct RequestTrace {
    /// The server span's place.
    server: Context,
    /// The client span's, which is what the app sees.
    client: Context,
    recorded: Option<Box<Recorded>>,
}

impl RequestTrace {
    pub(crate) fn begin(facts: &RequestFacts<'_>, component: Component, sampler: Sampler) -> RequestTrace {
        let header = facts.parts.headers.get(TRACEPARENT).map_or(&b""[..], HeaderValue::as_bytes);
        let parent = Context::parse(header);
        let trace = parent.map_or_else(new_trace, |parent| parent.trace);
        let sampled = sampler.decides(parent.as_ref(), &trace);
        let flags = parent.map_or(0, |parent| parent.flags);
        let server = Context { trace, span: new_span(), flags }.decided(sampled);
        let recorded = sampled.then(|| Box::new(Recorded::begin(facts, component, server, parent.as_ref())));
        RequestTrace { server, client: server.child(), recorded }
    }

    /// The trace's id as text.
    pub(crate) fn id(&self) -> String {
        let mut id = String::with_capacity(32);
        hex(&mut id, &self.server.trace);
        id
    }

    pub(crate) fn is_recorded(&self) -> bool {
        self.recorded.is_some()
    }

    /// The request passes on towards the app.
    pub(crate) fn proxied(&mut self) {
        if let Some(recorded) = &mut self.recorded {
            recorded.proxied();
        }
    }

    /// It begins to wait for a place.
    pub(crate) fn queued(&mut self) {
        if let Some(recorded) = &mut self.recorded {
            recorded.queued();
        }
    }

    /// It has one, or this is why not.
    pub(crate) fn waited(&mut self, refused: Option<&str>) {
        if let Some(recorded) = &mut self.recorded {
            recorded.waited(refused);
        }
    }

    /// It goes to `whom` (host and port) with these headers. A second try at
    /// the same one is the same span.
    pub(crate) fn called(&mut self, fields: &mut HeaderMap, whom: impl FnOnce() -> (String, u16), named_by_path: bool) {
        if let Some(recorded) = &mut self.recorded {
            recorded.waited(None);
            recorded.proxied();
            recorded.called(self.client, whom, named_by_path);
        }
        if let Ok(value) = HeaderValue::from_str(&self.client.header()) {
            fields.insert(TRACEPARENT, value);
        }
    }

    /// The app has answered.
    pub(crate) fn answered(&mut self, status: u16) {
        if let Some(recorded) = &mut self.recorded {
            recorded.answered(status);
        }
    }

    /// The try is over without an answer that is passed on, and there may be another.
    pub(crate) fn came_back(&mut self, why: Option<&str>) {
        self.client = self.server.child();
        if let Some(recorded) = &mut self.recorded {
            recorded.call_ended(why);
            recorded.proxy_ended();
        }
    }

    /// A span that is over, of stages without a gap.
    pub(crate) fn stages(&mut self, name: &'static str, began: Moment, stages: &[(&'static str, Duration)]) {
        if let Some(recorded) = &mut self.recorded {
            recorded.stages(name, began, stages);
        }
    }

    /// It is over: its spans go to the queue, the innermost first.
    pub(crate) fn finish(self, ended: &Ended<'_>, queue: &SpanQueue) {
        let Some(recorded) = self.recorded else { return };
        queue.push(recorded.spans(ended));
    }
}
