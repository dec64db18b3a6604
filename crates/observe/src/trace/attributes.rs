//! What spans say of a request.

use crate::component::Component;
use crate::facts::{RequestFacts, split_host, text};
use crate::metrics::{Attribute, Method, method_name};

/// The method, and as it stood if it is no known one.
pub(super) fn of_method(method: &str) -> Vec<(&'static str, Attribute)> {
    let label = method.parse().map_or("", |method| method_name(Method::of(&method)));
    let mut all = vec![("http.request.method", Attribute::Text(label.to_owned()))];
    if label != method {
        all.push(("http.request.method_original", Attribute::Text(method.to_owned())));
    }
    all
}

/// Of one that comes in.
pub(super) fn of_request(facts: &RequestFacts<'_>, component: Component) -> Vec<(&'static str, Attribute)> {
    let text_of = |text: &str| Attribute::Text(text.to_owned());
    let fields = &facts.parts.headers;
    let (host, port) = split_host(facts.host());
    let peer = facts.peer();
    let mut all = vec![("server.address", text_of(host))];
    all.extend(of_method(facts.parts.method.as_str()));
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
