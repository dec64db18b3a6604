//! A request's URL as Go's `net/url` shows it.

use std::borrow::Cow;
use std::fmt::Write;

/// A target in its parts. Scheme and host are empty unless the whole URL was
/// asked for, as of a proxy.
struct Url<'a> {
    scheme: &'a str,
    host: &'a str,
    path: &'a str,
    query: Option<&'a str>,
}

impl<'a> Url<'a> {
    fn of(target: &'a str) -> Url<'a> {
        let (whole, query) = match target.split_once('?') {
            Some((whole, query)) => (whole, Some(query)),
            None => (target, None),
        };
        let absolute = whole.split_once("://").filter(|(scheme, _)| !scheme.is_empty() && !scheme.contains('/'));
        let Some((scheme, rest)) = absolute else { return Url { scheme: "", host: "", path: whole, query } };
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        Url { scheme, host, path, query }
    }

    fn hostname_and_port(&self) -> (&'a str, &'a str) {
        match self.host.rsplit_once(':') {
            Some((name, port)) if !port.contains(']') => (name.trim_matches(['[', ']']), port),
            _ => (self.host.trim_matches(['[', ']']), ""),
        }
    }

    fn write_path(&self, out: &mut String) {
        out.push_str(&escaped(self.path));
        if let Some(query) = self.query {
            out.push('?');
            out.push_str(query);
        }
    }
}

/// `URL.String`.
pub(super) fn write(out: &mut String, target: &str) {
    let url = Url::of(target);
    if !url.scheme.is_empty() {
        let _ = write!(out, "{}://{}", url.scheme, url.host);
    }
    url.write_path(out);
}

pub(super) fn is_absolute(target: &str) -> bool {
    !Url::of(target).scheme.is_empty()
}

/// A part by the name that Go has for it; `None` for other names.
pub(super) fn part<'a>(target: &'a str, name: &str) -> Option<Cow<'a, str>> {
    let url = Url::of(target);
    let text = Cow::Borrowed;
    Some(match name {
        "Path" => Cow::Owned(String::from_utf8_lossy(&unescaped(url.path)).into_owned()),
        "EscapedPath" => escaped(url.path),
        "RawQuery" => text(url.query.unwrap_or("")),
        "Host" => text(url.host),
        "Scheme" => text(url.scheme),
        "Hostname" => text(url.hostname_and_port().0),
        "Port" => text(url.hostname_and_port().1),
        "String" => {
            let mut out = String::new();
            write(&mut out, target);
            Cow::Owned(out)
        }
        "RequestURI" => {
            let mut out = String::new();
            url.write_path(&mut out);
            Cow::Owned(out)
        }
        _ => return None,
    })
}

/// The path as it came, if it may stand in a URL; else written anew.
fn escaped(path: &str) -> Cow<'_, str> {
    if path.bytes().all(may_stand) && escapes_are_whole(path) {
        return Cow::Borrowed(path);
    }
    let mut out = String::with_capacity(path.len() * 2);
    for byte in unescaped(path) {
        if byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    Cow::Owned(out)
}

fn may_stand(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.~!$&'()*+,;=:@[]%/".contains(&byte)
}

fn escapes_are_whole(path: &str) -> bool {
    path.split('%').skip(1).all(|after| {
        let mut digits = after.bytes().take(2);
        let hex = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_hexdigit());
        hex(digits.next()) && hex(digits.next())
    })
}

fn unescaped(path: &str) -> Vec<u8> {
    let digit = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16));
    let bytes = path.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match (byte, digit(bytes.get(at + 1)), digit(bytes.get(at + 2))) {
            (b'%', Some(high), Some(low)) => {
                out.push(u8::try_from(high * 16 + low).unwrap_or(b'%'));
                at += 3;
            }
            _ => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    out
}
