//! The spans of one request, while they go on and when they have ended.

use super::attributes::{of_method, of_request};
use super::span::{Kind, Span};
use crate::component::Component;
use crate::facts::{RequestFacts, text};
use crate::identity::Identity;
use crate::metrics::{Attribute, Scope};
use plumbing::clock;
use plumbing::trace_context::{Context, SpanId};
use policy::moment::Moment;
use std::borrow::Cow;
use std::time::Duration;

/// The first status that is a server's fault.
const SERVER_FAULT: u16 = 500;
/// The first status that is a fault to whoever asked.
const CLIENT_FAULT: u16 = 400;
/// Why a wait ended that nobody refused.
const CLIENT_LEFT: &str = "context canceled";

/// What is kept for the spans.
pub(super) struct Recorded {
    component: Component,
    parent: SpanId,
    state: String,
    method: String,
    attributes: Vec<(&'static str, Attribute)>,
    url: String,
    protocol: &'static str,
    server: Context,
    start: Moment,
    /// Spans that have ended, in the order in which they did.
    done: Vec<Span>,
    proxy: Option<Open>,
    wait: Option<Open>,
    call: Option<Call>,
}

/// A span that goes on.
#[derive(Clone, Copy)]
struct Open {
    place: Context,
    start: Moment,
}

/// A try at the app, or at a pod.
struct Call {
    open: Open,
    attributes: Vec<(&'static str, Attribute)>,
    name: String,
    answer: Option<u16>,
}

/// How a request ended, for its spans.
pub(crate) struct Ended<'a> {
    pub(crate) status: u16,
    pub(crate) response_bytes: u64,
    /// The revision that it was for, where there are many.
    pub(crate) revision: Option<&'a Identity>,
}

impl Recorded {
    pub(super) fn begin(
        facts: &RequestFacts<'_>,
        component: Component,
        server: Context,
        parent: Option<&Context>,
    ) -> Recorded {
        let method = facts.parts.method.as_str();
        let target = facts.parts.uri.path_and_query().map_or("", http::uri::PathAndQuery::as_str);
        Recorded {
            component,
            parent: parent.map_or([0; 8], |parent| parent.span),
            state: parent.map_or("", |_| text(&facts.parts.headers, "tracestate")).to_owned(),
            method: method.to_owned(),
            attributes: of_request(facts, component),
            url: target.to_owned(),
            protocol: &facts.protocol()["HTTP/".len()..],
            server,
            start: clock::now(),
            done: Vec::with_capacity(4),
            proxy: None,
            wait: None,
            call: None,
        }
    }

    fn open(&self) -> Open {
        Open { place: self.server.child(), start: clock::now() }
    }

    pub(super) fn proxied(&mut self) {
        if self.proxy.is_none() {
            self.proxy = Some(self.open());
        }
    }

    pub(super) fn queued(&mut self) {
        if self.component == Component::Sidecar {
            self.proxied();
        }
        if self.wait.is_none() {
            self.wait = Some(self.open());
        }
    }

    pub(super) fn called(&mut self, place: Context, whom: impl FnOnce() -> (String, u16), named_by_path: bool) {
        if self.call.is_some() {
            return;
        }
        let (host, port) = whom();
        let name = match self.component {
            Component::Sidecar => format!("HTTP {}", self.method),
            // The reference's: as many names as there are paths.
            Component::Activator if named_by_path => {
                format!("{} {}", self.method, self.url.split('?').next().unwrap_or(""))
            }
            Component::Activator => self.method.clone(),
        };
        let mut attributes = of_method(&self.method);
        attributes.push(("url.full", Attribute::Text(format!("http://{host}:{port}{}", self.url))));
        attributes.push(("server.address", Attribute::Text(host)));
        attributes.push(("server.port", Attribute::Int(i64::from(port))));
        attributes.push(("network.protocol.version", Attribute::Text(self.protocol.to_owned())));
        self.call = Some(Call { open: Open { place, start: clock::now() }, attributes, name, answer: None });
    }

    /// Where the wait and the tries stand: below the proxy's span while there is one.
    fn within(&self) -> SpanId {
        self.proxy.map_or(self.server.span, |proxy| proxy.place.span)
    }

    pub(super) fn waited(&mut self, refused: Option<&str>) {
        let Some(wait) = self.wait.take() else { return };
        let mut span = self.internal(self.component.wait_span(), wait, self.within());
        span.failed = refused.map(|why| Cow::Owned(why.to_owned()));
        self.done.push(span);
    }

    /// The app, or the pod, has answered.
    pub(super) fn answered(&mut self, status: u16) {
        if let Some(call) = &mut self.call {
            call.answer = Some(status);
        }
    }

    pub(super) fn call_ended(&mut self, failed: Option<&str>) {
        let Some(call) = self.call.take() else { return };
        let Call { open, mut attributes, name, answer } = call;
        if let Some(status) = answer {
            attributes.push(("http.response.status_code", Attribute::Int(i64::from(status))));
        }
        let blank = || answer.is_none_or(|status| status >= CLIENT_FAULT).then_some(Cow::Borrowed(""));
        let span = Span {
            name,
            kind: Kind::Client,
            scope: Scope::Http,
            attributes,
            failed: failed.map(|why| Cow::Owned(why.to_owned())).or_else(blank),
            ..self.internal("", open, self.within())
        };
        self.done.push(span);
    }

    pub(super) fn proxy_ended(&mut self) {
        let Some(proxy) = self.proxy.take() else { return };
        let span = self.internal(self.component.proxy_span(), proxy, self.server.span);
        self.done.push(span);
    }

    pub(super) fn stages(&mut self, name: &'static str, began: Moment, stages: &[(&'static str, Duration)]) {
        let whole = Open { place: self.server.child(), start: began };
        let mut start = began;
        for (name, took) in stages {
            let open = Open { place: self.server.child(), start };
            start = start + *took;
            let span = Span { end: start, ..self.internal(name, open, whole.place.span) };
            self.done.push(span);
        }
        let span = Span { end: start, ..self.internal(name, whole, self.server.span) };
        self.done.push(span);
    }

    /// One that ends now.
    fn internal(&self, name: &str, Open { place, start }: Open, parent: SpanId) -> Span {
        Span {
            name: name.to_owned(),
            kind: Kind::Internal,
            scope: self.component.scope(),
            place,
            parent,
            remote_parent: false,
            state: self.state.clone(),
            start,
            end: clock::now(),
            attributes: Vec::new(),
            failed: None,
            children: 0,
        }
    }

    pub(super) fn spans(mut self, ended: &Ended<'_>) -> Vec<Span> {
        // At an activator nothing but its client's leaving ends a wait so.
        let left = (self.component == Component::Activator).then_some(CLIENT_LEFT);
        self.waited(left);
        self.call_ended(None);
        self.proxy_ended();
        let mut root = Span {
            name: self.method.clone(),
            kind: Kind::Server,
            scope: Scope::Http,
            remote_parent: self.parent != [0; 8],
            failed: (ended.status >= SERVER_FAULT).then_some(Cow::Borrowed("")),
            ..self.internal("", Open { place: self.server, start: self.start }, self.parent)
        };
        let Recorded { done: mut spans, attributes, .. } = self;
        root.attributes = attributes;
        root.attributes.extend(ended.revision.into_iter().flat_map(Identity::attributes));
        let size = i64::try_from(ended.response_bytes).unwrap_or(i64::MAX);
        root.attributes.push(("http.response.body.size", Attribute::Int(size)));
        root.attributes.push(("http.response.status_code", Attribute::Int(i64::from(ended.status))));
        spans.push(root);
        for at in 0..spans.len() {
            let below = spans.iter().filter(|span| span.parent == spans[at].place.span).count();
            spans[at].children = u32::try_from(below).unwrap_or(u32::MAX);
        }
        spans
    }
}
