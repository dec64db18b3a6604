//! `Forwarded`, made of `X-Forwarded-*`. The input is lines: `for`, `host`,
//! `proto` or `forwarded`, and a value.

use super::super::Target;
use super::super::words::{about, must, one, seen};
use crate::simulation::draw::Draw;
use http::HeaderValue;
use http::header::{FORWARDED, HeaderMap, HeaderName};
use plumbing::forwarded;
use policy::compat::Compat;

pub(in super::super) const TARGET: Target = Target {
    name: "forwarded",
    about: "what is made is RFC 7239, names the nodes that were given, and is made the same of itself",
    seeds: include_str!("../../../fuzz/forwarded.txt"),
    words: &[
        "for ",
        "host ",
        "proto ",
        "forwarded ",
        "\n",
        ", ",
        "[::1]:80",
        "::ffff:1.2.3.4",
        "\"",
        "\\\"",
        "_hidden",
    ],
    sentence,
    judge,
};

/// What a node or value may grow by: its name, quotes, and separators.
const EACH: usize = 16;

fn sentence(draw: &mut Draw) -> Vec<u8> {
    let nodes =
        ["192.0.2.1", "::1", "[2001:db8::1]", "192.0.2.1:80", "[::1]:443", "unknown", "_a", "", " ", "a b", "\"x\\\""];
    let mut out = String::new();
    for _ in 0..draw.between(1, 5) {
        out.push_str(one(draw, &["for ", "for ", "for ", "host ", "proto ", "forwarded "]));
        for at in 0..draw.below(5) {
            if at > 0 {
                out.push_str(one(draw, &[", ", ",", " ,\t", ",,"]));
            }
            out.push_str(one(draw, &nodes));
        }
        out.push('\n');
    }
    out.into_bytes()
}

fn fields(input: &[u8]) -> HeaderMap {
    let mut fields = HeaderMap::new();
    for line in input.split(|byte| *byte == b'\n') {
        let named = [("for ", "x-forwarded-for"), ("host ", "x-forwarded-host"), ("proto ", "x-forwarded-proto")];
        let named = named.into_iter().chain([("forwarded ", "forwarded")]);
        for (word, name) in named {
            if let Some(value) = line.strip_prefix(word.as_bytes())
                && let Ok(value) = HeaderValue::from_bytes(value)
            {
                fields.append(HeaderName::from_static(name), value);
            }
        }
    }
    fields
}

fn judge(input: &[u8]) -> Result<u64, String> {
    let given = fields(input);
    forwarded::add(&mut given.clone(), Compat::Strict);
    let mut made = given.clone();
    forwarded::add(&mut made, Compat::Better);
    let mut twice = made.clone();
    forwarded::add(&mut twice, Compat::Better);
    must(twice == made, || "a second time changes it".to_owned())?;
    let was_there = given.get(FORWARDED).is_some_and(|value| !value.is_empty());
    let (Some(line), false) = (made.get(FORWARDED), was_there) else {
        return Ok(seen((was_there, about(given.len()))));
    };
    let line = line.to_str().map_err(|error| error.to_string())?;
    if line.is_empty() {
        return Ok(seen("empty"));
    }
    let commas = input.iter().filter(|byte| **byte == b',').count();
    must(line.len() <= 2 * input.len() + EACH * (commas + given.len() + 1), || format!("it is long: {line}"))?;
    let elements = read(line)?;
    let lines = given.get_all("x-forwarded-for").iter().filter_map(|value| value.to_str().ok());
    let nodes: Vec<&str> =
        lines.flat_map(|line| line.split(',')).map(str::trim).filter(|node| !node.is_empty()).collect();
    let named: Vec<&str> =
        elements.iter().flatten().filter(|pair| pair.0 == "for").map(|pair| pair.1.as_str()).collect();
    let bare = |node: &str| node.trim_start_matches('[').trim_end_matches(']').to_owned();
    let same = nodes.len() == named.len()
        && nodes.iter().zip(&named).all(|(given, told)| given == told || is_same_address(&bare(given), &bare(told)));
    must(same, || format!("{nodes:?} become {named:?}"))?;
    // Once more, of what it says itself: nothing that was fixed is fixed again.
    let mut again = given.clone();
    again.remove("x-forwarded-for");
    again.remove(FORWARDED);
    if !named.is_empty() {
        again.insert("x-forwarded-for", HeaderValue::from_str(&named.join(", ")).map_err(|error| error.to_string())?);
    }
    forwarded::add(&mut again, Compat::Better);
    must(again.get(FORWARDED).is_some_and(|value| value.as_bytes() == line.as_bytes()), || {
        format!("{line} becomes {:?}", again.get(FORWARDED))
    })?;
    Ok(seen((
        elements.len().min(5),
        about(line.len()),
        line.contains('['),
        line.contains('\\'),
        line.contains("host="),
    )))
}

fn is_same_address(given: &str, told: &str) -> bool {
    match (given.parse::<std::net::IpAddr>(), told.parse::<std::net::IpAddr>()) {
        (Ok(given), Ok(told)) => given == told,
        _ => false,
    }
}

type Pairs = Vec<(String, String)>;

/// RFC 7239, section 4, strictly: elements of pairs.
fn read(line: &str) -> Result<Vec<Pairs>, String> {
    let fault = |what: &str, at: &str| Err(format!("{what} before {at:?} in {line}"));
    let (mut elements, mut pairs, mut rest) = (Vec::new(), Pairs::new(), line);
    loop {
        let Some((name, after)) = rest.split_once('=') else { return fault("no pair", rest) };
        if name.is_empty() || !name.chars().all(is_token) {
            return fault("no name", rest);
        }
        let (value, after) = match after.strip_prefix('"') {
            Some(quoted) => unquote(quoted).ok_or_else(|| format!("an open quote in {line}"))?,
            None => {
                let end = after.find(|c| !is_token(c)).unwrap_or(after.len());
                (after[..end].to_owned(), &after[end..])
            }
        };
        pairs.push((name.to_owned(), value));
        if after.is_empty() {
            elements.push(pairs);
            return Ok(elements);
        }
        if let Some(more) = after.strip_prefix(", ") {
            elements.push(std::mem::take(&mut pairs));
            rest = more;
        } else if let Some(more) = after.strip_prefix(';') {
            rest = more;
        } else {
            return fault("no separator", after);
        }
    }
}

fn unquote(text: &str) -> Option<(String, &str)> {
    let (mut out, mut chars) = (String::new(), text.char_indices());
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((out, &text[at + 1..])),
            '\\' => out.push(chars.next()?.1),
            other => out.push(other),
        }
    }
    None
}

fn is_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c)
}
