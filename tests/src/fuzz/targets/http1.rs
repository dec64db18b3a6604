//! What both sides of HTTP/1 share: messages that come in pieces.

use super::super::words::{must, one};
use crate::simulation::draw::Draw;
use http::header::{HeaderMap, HeaderName};
use plumbing::h1::bare::{End, Read};

/// Inputs up to this length are split at every place, others at some.
const EVERY_PLACE: usize = 64;

/// Reads the input in one piece, and in many ways in pieces: it must be the
/// same message.
pub(super) fn whole(input: &[u8], read: impl Fn(&[&[u8]]) -> Read) -> Result<Read, String> {
    let whole = read(&[input]);
    let same = |whole: &Read, pieces: &Read, how: &dyn Fn() -> String| {
        // A field that is none may be refused at once, or when it is seen that
        // no fold makes it one.
        let early = matches!((&whole.end, &pieces.end), (End::More, End::Refused(_))) && whole.head.is_none();
        match early && matches!(read(&[input, b"\r\n\r\n"]).end, End::Refused(_)) {
            true => Ok(()),
            false => same(whole, pieces, how),
        }
    };
    let step = (input.len() / EVERY_PLACE).max(1);
    for at in (1..input.len()).step_by(step) {
        let (first, second) = input.split_at(at);
        same(&whole, &read(&[first, second]), &|| format!("split at {at}"))?;
    }
    let single: Vec<&[u8]> = input.chunks(1).collect();
    same(&whole, &read(&single), &|| "byte by byte".to_owned())?;
    Ok(whole)
}

fn same(whole: &Read, pieces: &Read, how: &dyn Fn() -> String) -> Result<(), String> {
    let fine = match (&whole.end, &pieces.end) {
        // Whose end has not come is refused later, or not yet.
        (End::Refused(_), End::Refused(_) | End::More) => true,
        _ => whole == pieces,
    };
    must(fine, || format!("{}: {pieces:?}\n  in one piece: {whole:?}", how()))
}

/// The fields without those that only say how the message is framed.
pub(super) fn passed_on(fields: &HeaderMap, framing: &[HeaderName]) -> HeaderMap {
    let mut fields = fields.clone();
    framing.iter().for_each(|name| drop(fields.remove(name)));
    fields
}

/// Fields, a body, and what follows.
pub(super) fn rest(draw: &mut Draw, out: &mut String) {
    let fields = [
        "Host: a",
        "host: a:80",
        "Content-Length: 5",
        "Content-Length: 0",
        "content-length: 05",
        "Content-Length: 5, 5",
        "Content-Length: +5",
        "Transfer-Encoding: chunked",
        "transfer-encoding: Chunked",
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: identity",
        "Transfer-Encoding : chunked",
        "Connection: close",
        "Connection: keep-alive, Upgrade",
        "Upgrade: websocket",
        "Expect: 100-continue",
        "X-A: 1",
        "X-A:  2 \t",
        "X-B:",
        "X-C: \u{e9}",
        " folded",
        "\tfolded",
        "Trailer: T",
        "TE: trailers",
        "Date: x",
        "X: y\0z",
        ": no name",
        "no colon",
    ];
    for _ in 0..draw.below(6) {
        out.push_str(one(draw, &fields));
        out.push_str(one(draw, &["\r\n", "\r\n", "\r\n", "\r\n", "\n", "\r"]));
    }
    out.push_str(one(draw, &["\r\n", "\r\n", "\r\n", "\n", ""]));
    match draw.below(4) {
        0 => out.push_str("hello"),
        1 => {}
        _ => chunks(draw, out),
    }
    if draw.one_in(3) {
        out.push_str("GET /next HTTP/1.1\r\nHost: b\r\n\r\n");
    }
}

fn chunks(draw: &mut Draw, out: &mut String) {
    let sizes = ["5", "05", "5;a=b", "5 ", "0x5", "5;\u{1}", "fffffffffffffffff", "A", "-5", "5;\"\\\r\"", " 5"];
    for _ in 0..draw.below(3) {
        let size = if draw.one_in(2) { "5" } else { one(draw, &sizes) };
        let end = if draw.one_in(8) { "\n" } else { "\r\n" };
        out.push_str(&format!("{size}{end}hello{end}"));
    }
    out.push_str(one(draw, &["0\r\n", "0\r\n", "00;x\r\n", "0\n", ""]));
    for _ in 0..draw.below(3) {
        out.push_str(one(draw, &["T: v\r\n", "Content-Length: 7\r\n", "Host: c\r\n", "T: w\n", "bad\r\n"]));
    }
    out.push_str(one(draw, &["\r\n", "\r\n", "\n", ""]));
}

/// Pieces of messages.
pub(super) const WORDS: &[&str] = &[
    "\r\n",
    "\n",
    "\r",
    "\r\n\r\n",
    "HTTP/1.1",
    "HTTP/1.0",
    "HTTP/2.0",
    " ",
    "\t",
    ":",
    "0\r\n\r\n",
    "Content-Length: ",
    "Transfer-Encoding: chunked\r\n",
    "Connection: close\r\n",
    "\0",
    "GET ",
    "http://a",
    "/",
    "*",
];
