//! The spans of one request, as it goes through.

use super::queue::SpanQueue;
use super::sampler::Sampler;
use super::span::{Kind, Span};
use crate::component::Component;
use crate::facts::{RequestFacts, split_host, text};
use crate::identity::Identity;
use crate::metrics::{Attribute, Method, Scope, method_name};
use http::header::{HeaderMap, HeaderName, HeaderValue};
use plumbing::clock;
use plumbing::trace_context::{Context, SpanId, hex, new_span, new_trace};
use policy::moment::Moment;
use std::borrow::Cow;
use std::time::Duration;

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// The first status that is a server's fault.
const SERVER_FAULT: u16 = 500;
/// The first status that is a fault to whoever asked.
const CLIENT_FAULT: u16 = 400;
/// Why a wait ended that nobody refused.
const CLIENT_LEFT: &str = "context canceled";

/// One request's trace. When it is not recorded, it still gives the app a
/// span id of ours.
pub(crate) struct RequestTrace {
    /// The server span's place.
    server: Context,
    /// The client span's, which is what the app sees.
    client: Context,
    recorded: Option<Box<Recorded>>,
}

/// What is kept for the spans.
struct Recorded {
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
        if let Some(call) = self.recorded.as_mut().and_then(|recorded| recorded.call.as_mut()) {
            call.answer = Some(status);
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

impl Recorded {
    fn begin(facts: &RequestFacts<'_>, component: Component, server: Context, parent: Option<&Context>) -> Recorded {
        let method = facts.parts.method.as_str();
        let target = facts.parts.uri.path_and_query().map_or("", http::uri::PathAndQuery::as_str);
        Recorded {
            component,
            parent: parent.map_or([0; 8], |parent| parent.span),
            state: parent.map_or("", |_| text(&facts.parts.headers, "tracestate")).to_owned(),
            method: method.to_owned(),
            attributes: server_attributes(facts, component),
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

    fn proxied(&mut self) {
        if self.proxy.is_none() {
            self.proxy = Some(self.open());
        }
    }

    fn queued(&mut self) {
        if self.component == Component::Sidecar {
            self.proxied();
        }
        if self.wait.is_none() {
            self.wait = Some(self.open());
        }
    }

    fn called(&mut self, place: Context, whom: impl FnOnce() -> (String, u16), named_by_path: bool) {
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
        let mut attributes = method_attributes(&self.method);
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

    fn waited(&mut self, refused: Option<&str>) {
        let Some(wait) = self.wait.take() else { return };
        let mut span = self.internal(self.component.wait_span(), wait, self.within());
        span.failed = refused.map(|why| Cow::Owned(why.to_owned()));
        self.done.push(span);
    }

    fn call_ended(&mut self, failed: Option<&str>) {
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

    fn proxy_ended(&mut self) {
        let Some(proxy) = self.proxy.take() else { return };
        let span = self.internal(self.component.proxy_span(), proxy, self.server.span);
        self.done.push(span);
    }

    fn stages(&mut self, name: &'static str, began: Moment, stages: &[(&'static str, Duration)]) {
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

    fn spans(mut self, ended: &Ended<'_>) -> Vec<Span> {
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

fn method_attributes(method: &str) -> Vec<(&'static str, Attribute)> {
    let label = method.parse().map_or("", |method| method_name(Method::of(&method)));
    let mut all = vec![("http.request.method", Attribute::Text(label.to_owned()))];
    if label != method {
        all.push(("http.request.method_original", Attribute::Text(method.to_owned())));
    }
    all
}

fn server_attributes(facts: &RequestFacts<'_>, component: Component) -> Vec<(&'static str, Attribute)> {
    let text_of = |text: &str| Attribute::Text(text.to_owned());
    let fields = &facts.parts.headers;
    let (host, port) = split_host(facts.host());
    let peer = facts.peer();
    let mut all = vec![("server.address", text_of(host))];
    all.extend(method_attributes(facts.parts.method.as_str()));
    all.push(("url.scheme", text_of(if facts.tls { "https" } else { "http" })));
    if let Some(port) = port {
        all.push(("server.port", Attribute::Int(i64::from(port))));
    }
    all.push(("network.peer.address", text_of(&peer.ip().to_string())));
    all.push(("network.peer.port", Attribute::Int(i64::from(peer.port()))));
    let agent = text(fields, "user-agent");
    if !agent.is_empty() {
        all.push(("user_agent.original", text_of(agent)));
    }
    let forwarded = text(fields, "x-forwarded-for").split(',').next().unwrap_or("").trim();
    let client = if forwarded.is_empty() { peer.ip().to_string() } else { forwarded.to_owned() };
    all.push(("client.address", Attribute::Text(client)));
    all.push(("url.path", text_of(facts.parts.uri.path())));
    all.push(("network.protocol.version", text_of(&facts.protocol()["HTTP/".len()..])));
    if component == Component::Sidecar {
        all.push(("kn.route.tag", text_of(facts.route_tag())));
    }
    all
}
