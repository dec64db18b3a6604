//! Numbers, strings and characters of a template.

use super::lex::Token;

/// Reads a number, with its sign.
pub(super) fn number(text: &str) -> Result<(Token, &str), String> {
    let end = text.char_indices().find(|(at, c)| !belongs(text, *at, *c)).map_or(text.len(), |(at, _)| at);
    let (number, rest) = text.split_at(end);
    let token = int(number).map(Token::Int).or_else(|| float(number).map(Token::Float));
    token.map(|token| (token, rest)).ok_or_else(|| {
        if number.ends_with('i') { format!("complex number {number}") } else { format!("bad number syntax: {number}") }
    })
}

fn belongs(text: &str, at: usize, c: char) -> bool {
    match c {
        '+' | '-' => at == 0 || matches!(text.as_bytes()[at - 1], b'e' | b'E' | b'p' | b'P') && !is_hex_digits(text),
        '.' | '_' => true,
        c => c.is_ascii_alphanumeric(),
    }
}

/// In `0xe+1` the `e` is a digit.
fn is_hex_digits(text: &str) -> bool {
    let bare = text.trim_start_matches(['+', '-']);
    (bare.starts_with("0x") || bare.starts_with("0X")) && !bare.contains(['p', 'P'])
}

fn int(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (digits, radix, prefixed) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&digits[2..], 16, true),
        [b'0', b'b' | b'B', ..] => (&digits[2..], 2, true),
        [b'0', b'o' | b'O', ..] => (&digits[2..], 8, true),
        [b'0', _, ..] => (&digits[1..], 8, true),
        _ => (digits, 10, false),
    };
    let digits = plain(digits, prefixed)?;
    // Signs inside would be taken for part of the number.
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    let signed = if negative { format!("-{digits}") } else { digits };
    i64::from_str_radix(&signed, radix).ok()
}

/// Without underscores, which may only stand between digits.
fn plain(digits: &str, prefixed: bool) -> Option<String> {
    let bad = digits.contains("__") || digits.ends_with('_') || digits.starts_with('_') && !prefixed;
    (!bad).then(|| digits.replace('_', ""))
}

fn float(text: &str) -> Option<f64> {
    let allowed = |c: char| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-' | '_');
    if !text.chars().all(allowed) || !text.contains(['.', 'e', 'E']) {
        return None;
    }
    plain(text, false)?.parse().ok().filter(|value: &f64| value.is_finite())
}

/// Reads a string or a character; a character is a number.
pub(super) fn quoted(text: &str, quote: char) -> Result<(Token, &str), String> {
    let inside = &text[1..];
    if quote == '`' {
        let (raw, rest) = inside.split_once('`').ok_or("a string is not closed")?;
        return Ok((Token::Text(raw.replace('\r', "")), rest));
    }
    let mut out = Vec::new();
    let mut rest = inside;
    let mut count = 0;
    loop {
        let c = rest.chars().next().ok_or("a string is not closed")?;
        let after = &rest[c.len_utf8()..];
        match c {
            c if c == quote => {
                let value = String::from_utf8(out).map_err(|_| "a string is not UTF-8".to_owned())?;
                return match (quote, count) {
                    ('"', _) => Ok((Token::Text(value), after)),
                    (_, 1) => Ok((Token::Int(i64::from(value.chars().next().map_or(0, u32::from))), after)),
                    _ => Err("malformed character constant".to_owned()),
                };
            }
            '\\' => rest = escape(after, quote, &mut out)?,
            '\n' => return Err("a string is not closed".to_owned()),
            c => {
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                rest = after;
            }
        }
        count += 1;
    }
}

/// One escape of Go's, after its backslash.
fn escape<'a>(text: &'a str, quote: char, out: &mut Vec<u8>) -> Result<&'a str, String> {
    let c = text.chars().next().ok_or("a string is not closed")?;
    let rest = &text[c.len_utf8()..];
    let simple = match c {
        'a' => Some(7),
        'b' => Some(8),
        'f' => Some(12),
        'n' => Some(b'\n'),
        'r' => Some(b'\r'),
        't' => Some(b'\t'),
        'v' => Some(11),
        '\\' => Some(b'\\'),
        c if c == quote => u8::try_from(c).ok(),
        _ => None,
    };
    if let Some(byte) = simple {
        out.push(byte);
        return Ok(rest);
    }
    let (digits, radix) = match c {
        'x' => (2, 16),
        'u' => (4, 16),
        'U' => (8, 16),
        '0'..='7' => (3, 8),
        _ => return Err(format!("unknown escape \\{c}")),
    };
    let from = if c.is_ascii_digit() { text } else { rest };
    let number = from.get(..digits).filter(|digits| digits.chars().all(|c| c.is_digit(radix)));
    let bad = || format!("bad escape \\{c}");
    let value = number.and_then(|digits| u32::from_str_radix(digits, radix).ok()).ok_or_else(bad)?;
    if matches!(c, 'u' | 'U') {
        let c = char::from_u32(value).ok_or_else(bad)?;
        out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    } else {
        out.push(u8::try_from(value).map_err(|_| bad())?);
    }
    Ok(&from[digits..])
}
