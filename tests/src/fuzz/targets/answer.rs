//! Answers of apps: one answer, however it comes, and the same one when we
//! have written it to the client. An input may begin with `HEAD ` or
//! `CONNECT `: the method that it answers.

use super::super::Target;
use super::super::words::{about, must, one, seen};
use super::http1::{self, WORDS, passed_on, whole};
use crate::simulation::draw::Draw;
use http::header::{CONNECTION, CONTENT_LENGTH, DATE, TRANSFER_ENCODING};
use http::{Method, StatusCode};
use plumbing::h1::bare::{End, read_answer, write_answer};

pub(in super::super) const TARGET: Target = Target {
    name: "answer",
    about: "an answer is read the same in any pieces, and written and read again it is the same",
    seeds: include_str!("../../../fuzz/answer.txt"),
    words: WORDS,
    sentence,
    judge,
};

fn sentence(draw: &mut Draw) -> Vec<u8> {
    let mut out = one(draw, &["", "", "", "HEAD ", "CONNECT ", "\r\n"]).to_owned();
    out.push_str(one(draw, &["HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/2.0", "HTTP/1.2"]));
    out.push_str(one(
        draw,
        &[
            " 200 OK",
            " 200",
            " 204 No Content",
            " 304 Not Modified",
            " 101 Switch",
            " 100 Continue",
            " 599 \u{e9}",
            " 20",
            " 1000",
        ],
    ));
    out.push_str(one(draw, &["\r\n", "\r\n", "\r\n", "\n"]));
    http1::rest(draw, &mut out);
    out.into_bytes()
}

fn judge(input: &[u8]) -> Result<u64, String> {
    let (method, input) = match input {
        [b'H', b'E', b'A', b'D', b' ', rest @ ..] => (Method::HEAD, rest),
        [b'C', b'O', b'N', b'N', b'E', b'C', b'T', b' ', rest @ ..] => (Method::CONNECT, rest),
        all => (Method::GET, all),
    };
    let read = whole(input, |pieces| read_answer(pieces, &method))?;
    let end = match &read.end {
        End::Refused(why) => why.as_str(),
        End::Whole(_) => "whole",
        End::More => "more",
    };
    let shape = (end, about(read.body.len()), read.trailers.len(), &method);
    let (End::Whole(_), Some(head)) = (&read.end, &read.head) else { return Ok(seen(shape)) };
    let is_interim = head.status.is_informational() && head.status != StatusCode::SWITCHING_PROTOCOLS;
    if !is_interim {
        let bytes = write_answer(head, &read.body, &read.trailers)?;
        let again = read_answer(&[&bytes], &method);
        let told = || format!("{}\n  read: {read:?}\n  again: {again:?}", bytes.escape_ascii());
        must(again.end == End::Whole(0), told)?;
        let Some(second) = &again.head else { return Err(told()) };
        let framing = [CONTENT_LENGTH, TRANSFER_ENCODING, CONNECTION, DATE];
        must(passed_on(&head.fields, &framing) == passed_on(&second.fields, &framing), told)?;
        must((head.status, head.upgrade) == (second.status, second.upgrade), told)?;
        must((&read.body, &read.trailers) == (&again.body, &again.trailers), told)?;
    }
    Ok(seen((
        shape,
        head.status.as_u16() / 100,
        head.fields.len(),
        head.length.is_some(),
        head.keep_alive,
        head.upgrade,
    )))
}
