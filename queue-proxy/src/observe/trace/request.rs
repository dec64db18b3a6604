//! The spans of one request, as it goes through.

use super::queue::SpanQueue;
use super::sampler::Sampler;
use super::span::{Kind, Span};
use crate::observe::facts::{RequestFacts, split_host, text};
use crate::observe::metrics::{Attribute, Method, Scope, method_name};
use http::header::{HeaderMap, HeaderName, HeaderValue};
use plumbing::clock;
use plumbing::trace_context::{Context, SpanId, new_span, new_trace};
use policy::moment::Moment;

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// The first status that is a server's fault.
const SERVER_FAULT: u16 = 500;
/// The first status that is a fault to whoever asked.
const CLIENT_FAULT: u16 = 400;

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
    parent: SpanId,
    state: String,
    method: String,
    attributes: Vec<(&'static str, Attribute)>,
    url: String,
    protocol: &'static str,
    proxy: SpanId,
    start: Moment,
    proxied: Option<Moment>,
    waited: Option<(Moment, Option<Moment>)>,
    called: Option<Moment>,
    answer: Option<u16>,
}

/// How a request ended, for its spans.
pub(crate) struct Ended {
    pub(crate) status: u16,
    pub(crate) response_bytes: u64,
    /// Host and port of the app.
    pub(crate) app: (String, u16),
}

impl RequestTrace {
    pub(crate) fn begin(facts: &RequestFacts<'_>, sampler: Sampler) -> RequestTrace {
        let header = facts.parts.headers.get(TRACEPARENT).map_or(&b""[..], HeaderValue::as_bytes);
        let parent = Context::parse(header);
        let trace = parent.map_or_else(new_trace, |parent| parent.trace);
        let sampled = sampler.decides(parent.as_ref(), &trace);
        let flags = parent.map_or(0, |parent| parent.flags);
        let server = Context { trace, span: new_span(), flags }.decided(sampled);
        let recorded = sampled.then(|| Box::new(Recorded::begin(facts, parent.as_ref())));
        RequestTrace { server, client: server.child(), recorded }
    }

    /// The request passes on towards the app.
    pub(crate) fn proxied(&mut self) {
        if let Some(recorded) = &mut self.recorded {
            recorded.proxied.get_or_insert_with(clock::now);
        }
    }

    /// It begins to wait for a place.
    pub(crate) fn queued(&mut self) {
        self.proxied();
        if let Some(recorded) = &mut self.recorded {
            recorded.waited.get_or_insert_with(|| (clock::now(), None));
        }
    }

    /// It goes to the app, with these headers.
    pub(crate) fn at_app(&mut self, fields: &mut HeaderMap) {
        self.proxied();
        if let Some(recorded) = &mut self.recorded {
            let now = clock::now();
            recorded.called.get_or_insert(now);
            if let Some((_, until)) = &mut recorded.waited {
                until.get_or_insert(now);
            }
        }
        if let Ok(value) = HeaderValue::from_str(&self.client.header()) {
            fields.insert(TRACEPARENT, value);
        }
    }

    /// The app has answered.
    pub(crate) fn answered(&mut self, status: u16) {
        if let Some(recorded) = &mut self.recorded {
            recorded.answer = Some(status);
        }
    }

    /// It is over: its spans go to the queue, the innermost first.
    pub(crate) fn finish(self, ended: &Ended, queue: &SpanQueue) {
        let Some(recorded) = self.recorded else { return };
        queue.push(recorded.spans(self.server, self.client, ended));
    }
}

impl Recorded {
    fn begin(facts: &RequestFacts<'_>, parent: Option<&Context>) -> Recorded {
        let method = facts.parts.method.as_str();
        let target = facts.parts.uri.path_and_query().map_or("", http::uri::PathAndQuery::as_str);
        Recorded {
            parent: parent.map_or([0; 8], |parent| parent.span),
            state: parent.map_or("", |_| text(&facts.parts.headers, "tracestate")).to_owned(),
            method: method.to_owned(),
            attributes: server_attributes(facts),
            url: target.to_owned(),
            protocol: &facts.protocol()["HTTP/".len()..],
            proxy: new_span(),
            start: clock::now(),
            proxied: None,
            waited: None,
            called: None,
            answer: None,
        }
    }

    fn spans(self, server: Context, client: Context, ended: &Ended) -> Vec<Span> {
        let end = clock::now();
        let internal = |name: &str, place: Context, parent: SpanId, start: Moment, end: Moment, children: u32| Span {
            name: name.to_owned(),
            kind: Kind::Internal,
            scope: Scope::Queue,
            place,
            parent,
            remote_parent: false,
            state: self.state.clone(),
            start,
            end,
            attributes: Vec::new(),
            failed: false,
            children,
        };
        let proxy = Context { span: self.proxy, ..server };
        let mut spans = Vec::with_capacity(4);
        if let Some((from, until)) = self.waited {
            spans.push(internal("kn.queueproxy.wait", server.child(), self.proxy, from, until.unwrap_or(end), 0));
        }
        if let Some(called) = self.called {
            spans.push(Span {
                name: format!("HTTP {}", self.method),
                kind: Kind::Client,
                scope: Scope::Http,
                attributes: self.client_attributes(&ended.app),
                failed: self.answer.is_none_or(|status| status >= CLIENT_FAULT),
                ..internal("", client, self.proxy, called, end, 0)
            });
        }
        if let Some(proxied) = self.proxied {
            let children = u32::try_from(spans.len()).unwrap_or_default();
            spans.push(internal("kn.queueproxy.proxy", proxy, server.span, proxied, end, children));
        }
        let mut root = Span {
            name: self.method.clone(),
            kind: Kind::Server,
            scope: Scope::Http,
            remote_parent: self.parent != [0; 8],
            failed: ended.status >= SERVER_FAULT,
            ..internal("", server, self.parent, self.start, end, u32::from(self.proxied.is_some()))
        };
        root.attributes = self.attributes;
        let size = i64::try_from(ended.response_bytes).unwrap_or(i64::MAX);
        root.attributes.push(("http.response.body.size", Attribute::Int(size)));
        root.attributes.push(("http.response.status_code", Attribute::Int(i64::from(ended.status))));
        spans.push(root);
        spans
    }

    fn client_attributes(&self, (host, port): &(String, u16)) -> Vec<(&'static str, Attribute)> {
        let mut all = method_attributes(&self.method);
        all.push(("url.full", Attribute::Text(format!("http://{host}:{port}{}", self.url))));
        all.push(("server.address", Attribute::Text(host.clone())));
        all.push(("server.port", Attribute::Int(i64::from(*port))));
        all.push(("network.protocol.version", Attribute::Text(self.protocol.to_owned())));
        if let Some(status) = self.answer {
            all.push(("http.response.status_code", Attribute::Int(i64::from(status))));
        }
        all
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

fn server_attributes(facts: &RequestFacts<'_>) -> Vec<(&'static str, Attribute)> {
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
    all.push(("kn.route.tag", text_of(facts.route_tag())));
    all
}
