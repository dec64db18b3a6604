//! Text made harmless, as Go's template functions do it.

use policy::compat::Compat;
use std::fmt::Write;

/// `js`: for a string of JavaScript. Strict mode writes `\'`, and numbers of
/// five digits, as the reference does; neither is JSON, so the default mode
/// writes `\u0027` and pairs.
pub(super) fn js(text: &str, compat: Compat) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\'' if compat == Compat::Strict => out.push_str("\\'"),
            '\'' | '<' | '>' | '&' | '=' => code(&mut out, u32::from(c)),
            c if c < ' ' => code(&mut out, u32::from(c)),
            c if c.is_ascii() || is_print(c) => out.push(c),
            c if compat == Compat::Strict => code(&mut out, u32::from(c)),
            c => c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| code(&mut out, u32::from(*unit))),
        }
    }
    out
}

fn code(out: &mut String, code: u32) {
    let _ = write!(out, "\\u{code:04X}");
}

/// Letters, marks, numbers, punctuation, symbols and the plain space, as
/// Go's `unicode.IsPrint`.
pub(super) fn is_print(c: char) -> bool {
    // Rust asks itself the same for its debug form; as the first character
    // marks would be escaped too, hence the letter before.
    let mut buffer = [b'a'; 5];
    let length = c.encode_utf8(&mut buffer[1..]).len();
    let text = std::str::from_utf8(&buffer[..=length]).unwrap_or("a ");
    matches!(c, '"' | '\'' | '\\') || text.escape_debug().nth(1) == Some(c)
}

/// `html`.
pub(super) fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' => out.push_str("&#34;"),
            '\'' => out.push_str("&#39;"),
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\0' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// `urlquery`.
pub(super) fn query(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(char::from(byte)),
            b' ' => out.push('+'),
            byte => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

/// A string as Go's `%q` writes it.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            c if is_print(c) => out.push(c),
            c if c < ' ' || c == '\u{7f}' => {
                let _ = write!(out, "\\x{:02x}", u32::from(c));
            }
            c if u32::from(c) < 0x1_0000 => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => {
                let _ = write!(out, "\\U{:08x}", u32::from(c));
            }
        }
    }
    out.push('"');
    out
}
