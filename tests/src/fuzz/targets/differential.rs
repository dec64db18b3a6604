//! Requests, to hyper and to us.

use super::super::Target;
use super::super::words::{one, seen};
use super::http1::WORDS;
use super::request;
use crate::differential::compare;
use crate::simulation::draw::Draw;

pub(in super::super) const TARGET: Target = Target {
    name: "differential",
    about: "what we and hyper make of the same bytes is the same, but for what `known` lists",
    seeds: include_str!("../../../fuzz/request.txt"),
    words: WORDS,
    sentence,
    judge: |input| compare(input).map(seen),
};

/// Mostly such that hyper and we serve it, so that there is something to
/// compare; then others behind it.
fn sentence(draw: &mut Draw) -> Vec<u8> {
    let mut out = Vec::new();
    while !draw.one_in(3) {
        out.extend_from_slice(sound(draw).as_bytes());
    }
    if draw.one_in(2) || out.is_empty() {
        out.extend_from_slice(&(request::TARGET.sentence)(draw));
    }
    out
}

fn sound(draw: &mut Draw) -> String {
    let line = [
        "GET / HTTP/1.1\r\n",
        "POST /a?b=c%20d HTTP/1.1\r\n",
        "PUT http://u@h:80/p?q HTTP/1.1\r\n",
        "OPTIONS * HTTP/1.1\r\n",
        "BREW //x;y=z/../%2e HTTP/1.1\r\n",
        "DELETE http://h HTTP/1.1\r\n",
        "GET / HTTP/1.0\r\n",
        "\r\nHEAD /?a?b HTTP/1.1\n",
    ];
    let field = [
        "X-A: 1\r\n",
        "x-a:  2 \t\r\n",
        "X-B:\r\n",
        "Cookie: a=b; c=d\n",
        "X-C: \u{e9}\r\n",
        "Connection: keep-alive\r\n",
    ];
    let mut out = format!("{}Host: h\r\n", one(draw, &line));
    for _ in 0..draw.below(4) {
        out.push_str(one(draw, &field));
    }
    let body: String = "hello, whoever reads it".chars().cycle().take(draw.below(70) as usize).collect();
    match draw.below(3) {
        0 => out.push_str("\r\n"),
        1 => out.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len())),
        _ => {
            out.push_str("Transfer-Encoding: chunked\r\n\r\n");
            for piece in body.as_bytes().chunks(draw.between(1, 40) as usize) {
                let extension = one(draw, &["", "", "", ";a", ";a=\"b c\"", " ", ";\t"]);
                let piece = String::from_utf8_lossy(piece);
                out.push_str(&format!("{:x}{extension}\r\n{piece}\r\n", piece.len()));
            }
            out.push_str(one(draw, &["0\r\n\r\n", "0\r\nT: v\r\n\r\n", "000;x\r\nT: v\r\nU:\r\nHost: late\r\n\r\n"]));
        }
    }
    out
}
