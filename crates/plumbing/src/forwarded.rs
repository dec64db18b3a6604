//! The standard `Forwarded` field (RFC 7239), made of `X-Forwarded-*` for apps
//! that read only that.

use http::header::{FORWARDED, HeaderMap, HeaderName, HeaderValue};
use policy::compat::Compat;
use std::net::IpAddr;

const FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// Adds the field where there is none, or an empty one, and something to make
/// it of. To be called before our own peer is appended: the field tells what
/// the hops before us said.
pub fn add(fields: &mut HeaderMap, compat: Compat) {
    if fields.get(FORWARDED).is_some_and(|value| !value.is_empty()) {
        return;
    }
    let nodes = nodes(fields, compat);
    let mut first: Vec<String> = nodes.first().map(|node| format!("for={node}")).into_iter().collect();
    first.extend(text(fields, &HOST).map(|host| format!("host={}", value(host, compat))));
    first.extend(text(fields, &PROTO).map(|proto| format!("proto={}", value(proto, compat))));
    if first.is_empty() {
        return;
    }
    let rest = nodes.iter().skip(1).map(|node| format!("for={node}"));
    let line: Vec<String> = std::iter::once(first.join(";")).chain(rest).collect();
    if let Ok(line) = HeaderValue::from_str(&line.join(", ")) {
        fields.insert(FORWARDED, line);
    }
}

fn text<'a>(fields: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    fields.get(name)?.to_str().ok().filter(|text| !text.is_empty())
}

fn nodes(fields: &HeaderMap, compat: Compat) -> Vec<String> {
    match compat {
        // The first line alone, without a last comma; whatever has a colon goes
        // into brackets.
        Compat::Strict => {
            let line = text(fields, &FOR)
                .map(|line| line.strip_suffix(',').unwrap_or(line).split(',').map(|node| node.trim()));
            let write = |node: &str| if node.contains(':') { format!("\"[{node}]\"") } else { node.to_owned() };
            line.map(|nodes| nodes.map(write).collect()).unwrap_or_default()
        }
        Compat::Better => {
            let lines = fields.get_all(FOR).iter().filter_map(|line| line.to_str().ok());
            let nodes = lines.flat_map(|line| line.split(',')).map(str::trim).filter(|node| !node.is_empty());
            nodes.map(node).collect()
        }
    }
}

/// A node as RFC 7239 writes it: IPv6 in brackets, and quotes around whatever
/// is no token.
fn node(given: &str) -> String {
    match given.parse::<IpAddr>() {
        Ok(IpAddr::V6(address)) => format!("\"[{address}]\""),
        _ => value(given, Compat::Better),
    }
}

fn value(given: &str, compat: Compat) -> String {
    let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    if compat == Compat::Strict || given.chars().all(token) {
        return given.to_owned();
    }
    format!("\"{}\"", given.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(lines: &[(&HeaderName, &str)], compat: Compat) -> Option<String> {
        let mut fields = HeaderMap::new();
        for (name, value) in lines {
            fields.append(*name, value.parse().unwrap());
        }
        add(&mut fields, compat);
        fields.get(FORWARDED).map(|value| value.to_str().unwrap().to_owned())
    }

    #[test]
    fn strict_mode_writes_what_the_reference_writes() {
        let made = |lines: &[(&HeaderName, &str)]| made(lines, Compat::Strict).unwrap();
        let all = [(&FOR, "192.0.2.43, 2001:db8::17 ,unknown"), (&PROTO, "https"), (&HOST, "ex.com")];
        assert_eq!(made(&all), "for=192.0.2.43;host=ex.com;proto=https, for=\"[2001:db8::17]\", for=unknown");
        assert_eq!(made(&[(&PROTO, "http")]), "proto=http");
        assert_eq!(made(&[(&HOST, "ex.com:8443")]), "host=ex.com:8443");
        assert_eq!(made(&[(&FOR, "a,,b")]), "for=a, for=, for=b");
        assert_eq!(made(&[(&FOR, "1.2.3.4:99, b,")]), "for=\"[1.2.3.4:99]\", for=b");
    }

    #[test]
    fn by_default_all_lines_count_and_each_node_is_well_formed() {
        let made = |lines: &[(&HeaderName, &str)]| made(lines, Compat::Better).unwrap();
        assert_eq!(made(&[(&FOR, "a,,b"), (&FOR, "c")]), "for=a, for=b, for=c");
        assert_eq!(made(&[(&FOR, "1.2.3.4:99, [::1]:80, ::1")]), "for=\"1.2.3.4:99\", for=\"[::1]:80\", for=\"[::1]\"");
        assert_eq!(made(&[(&HOST, "ex.com:8443")]), "host=\"ex.com:8443\"");
    }

    #[test]
    fn what_a_hop_before_us_wrote_stays_and_nothing_is_made_of_nothing() {
        assert_eq!(made(&[(&FORWARDED, "for=x"), (&FOR, "1.2.3.4")], Compat::Better).unwrap(), "for=x");
        assert_eq!(made(&[(&FORWARDED, ""), (&FOR, "1.2.3.4")], Compat::Better).unwrap(), "for=1.2.3.4");
        assert_eq!(made(&[], Compat::Better), None);
    }
}
