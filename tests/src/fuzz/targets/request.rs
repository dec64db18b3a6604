//! Requests: what is taken is one request, however it comes, and the same one
//! when we have written it to the app.

use super::super::Target;
use super::super::words::{about, must, one, seen};
use super::http1::{self, WORDS, passed_on, whole};
use crate::simulation::draw::Draw;
use http::header::{CONTENT_LENGTH, HOST, HeaderValue, TRANSFER_ENCODING};
use plumbing::h1::bare::{End, read_request, write_request};

pub(in super::super) const TARGET: Target = Target {
    name: "request",
    about: "a request is read the same in any pieces, and written and read again it is the same",
    seeds: include_str!("../../../fuzz/request.txt"),
    words: WORDS,
    sentence,
    judge,
};

/// The sidecar's limit, and one that inputs reach.
const HEADS: [usize; 2] = [1 << 20, 128];

fn sentence(draw: &mut Draw) -> Vec<u8> {
    let mut out = one(draw, &["", "", "", "\r\n", "\n"]).to_owned();
    out.push_str(one(draw, &["GET", "POST", "HEAD", "CONNECT", "OPTIONS", "P\u{e9}", ""]));
    out.push_str(one(draw, &[" ", " ", " ", "  ", "\t"]));
    out.push_str(one(
        draw,
        &["/", "/a?b#c", "*", "http://u@h:80/p?q", "a:80", "http://h", "//x", "", "/\u{e9}", "https://[::1]/"],
    ));
    out.push_str(one(
        draw,
        &[" HTTP/1.1\r\n", " HTTP/1.1\r\n", " HTTP/1.1\n", " HTTP/1.0\r\n", " HTTP/2.0\r\n", "\r\n"],
    ));
    if draw.one_in(2) {
        out.push_str("Host: a\r\n");
    }
    http1::rest(draw, &mut out);
    out.into_bytes()
}

fn judge(input: &[u8]) -> Result<u64, String> {
    let mut shapes = Vec::new();
    for most in HEADS {
        let read = whole(input, |pieces| read_request(pieces, most))?;
        must(read.body.len() <= input.len(), || "the body is longer than the input".to_owned())?;
        let end = match &read.end {
            End::Refused(why) => why.as_str(),
            End::Whole(_) => "whole",
            End::More => "more",
        };
        shapes.push(seen((end, about(read.body.len()), read.trailers.len())));
        let (End::Whole(_), Some(head)) = (&read.end, &read.head) else { continue };
        let bytes = write_request(head, &read.body, &read.trailers)?;
        let again = read_request(&[&bytes], most + bytes.len());
        let told = || format!("{}\n  read: {read:?}\n  again: {again:?}", bytes.escape_ascii());
        must(again.end == End::Whole(0), told)?;
        let Some(second) = &again.head else { return Err(told()) };
        let framing = [CONTENT_LENGTH, TRANSFER_ENCODING];
        let mut fields = passed_on(&head.fields, &framing);
        fields.entry(HOST).or_insert(HeaderValue::from_static("app"));
        must(fields == passed_on(&second.fields, &framing), told)?;
        must((&head.method, &head.target) == (&second.method, &second.target), told)?;
        must((&read.body, &read.trailers) == (&again.body, &again.trailers), told)?;
        shapes.push(seen((
            &head.method,
            head.fields.len(),
            head.length.is_some(),
            head.keep_alive,
            head.upgrade,
            head.version,
        )));
    }
    Ok(seen(shapes))
}
