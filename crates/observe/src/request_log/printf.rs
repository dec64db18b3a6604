//! `printf`, with the verbs that lines of a log use.

use super::escape::quoted;
use super::funcs;
use super::run::{Done, Failed};
use super::value::Value;
use std::fmt::Write;

/// A wider field is a mistake, and would fill the memory.
const WIDEST: usize = 1000;

const SUPPORTED: &str = "%v %s %q %d %t %f %e %g %x %X %%";

/// One piece of a format.
enum Part<'a> {
    Text(&'a str),
    Percent,
    Verb(Verb),
}

#[derive(Default)]
struct Verb {
    left: bool,
    plus: bool,
    zero: bool,
    width: usize,
    precision: Option<usize>,
    letter: char,
}

/// The number of verbs that take a value.
///
/// # Errors
/// The first that is not supported.
pub(super) fn verbs(format: &str) -> Result<usize, String> {
    let parts = parts(format)?;
    Ok(parts.iter().filter(|part| matches!(part, Part::Verb(_))).count())
}

/// A format and its values, as text.
pub(super) fn format(args: &[Value<'_>]) -> Done<String> {
    let (Some(Value::Text(format)), values) = (args.first(), args.get(1..).unwrap_or_default()) else {
        return Err(Failed);
    };
    let mut values = values.iter();
    let mut out = String::new();
    for part in parts(format).map_err(|_| Failed)? {
        match part {
            Part::Text(text) => out.push_str(text),
            Part::Percent => out.push('%'),
            Part::Verb(verb) => verb.write(&mut out, values.next().ok_or(Failed)?)?,
        }
    }
    if values.next().is_some() { Err(Failed) } else { Ok(out) }
}

fn parts(format: &str) -> Result<Vec<Part<'_>>, String> {
    let mut parts = Vec::new();
    let mut rest = format;
    while let Some((text, after)) = rest.split_once('%') {
        parts.push(Part::Text(text));
        let (verb, after) = verb(after)?;
        parts.push(verb);
        rest = after;
    }
    parts.push(Part::Text(rest));
    Ok(parts)
}

fn verb(text: &str) -> Result<(Part<'_>, &str), String> {
    let mut verb = Verb::default();
    let flags = text.len() - text.trim_start_matches(['-', '+', '0']).len();
    for flag in text[..flags].chars() {
        match flag {
            '-' => verb.left = true,
            '+' => verb.plus = true,
            _ => verb.zero = true,
        }
    }
    let (width, rest) = digits(&text[flags..])?;
    verb.width = width.unwrap_or(0);
    let rest = match rest.strip_prefix('.') {
        Some(rest) => {
            let (precision, rest) = digits(rest)?;
            verb.precision = Some(precision.unwrap_or(0));
            rest
        }
        None => rest,
    };
    let letter = rest.chars().next().ok_or_else(|| format!("%{text}, of {SUPPORTED}"))?;
    let after = &rest[letter.len_utf8()..];
    let bare = after.len() + letter.len_utf8() == text.len();
    match letter {
        '%' if bare => return Ok((Part::Percent, after)),
        'v' | 's' | 'q' | 'd' | 't' | 'f' | 'e' | 'x' | 'X' => {}
        'g' if verb.precision.is_none() => {}
        _ => return Err(format!("%{}, of {SUPPORTED}", &text[..text.len() - after.len()])),
    }
    verb.letter = letter;
    Ok((Part::Verb(verb), after))
}

fn digits(text: &str) -> Result<(Option<usize>, &str), String> {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = &text[..text.len() - rest.len()];
    if digits.is_empty() {
        return Ok((None, rest));
    }
    match digits.parse() {
        Ok(number) if number <= WIDEST => Ok((Some(number), rest)),
        _ => Err(format!("width or precision {digits}")),
    }
}

impl Verb {
    fn write(&self, out: &mut String, value: &Value<'_>) -> Done<()> {
        let (text, numeric) = self.text(value)?;
        let length = text.chars().count();
        let padding = self.width.saturating_sub(length);
        if self.left {
            out.push_str(&text);
            out.extend(std::iter::repeat_n(' ', padding));
        } else if self.zero && numeric {
            // Zeros stand between sign and digits.
            let (sign, digits) = text.split_at(usize::from(text.starts_with(['-', '+'])));
            out.push_str(sign);
            out.extend(std::iter::repeat_n('0', padding));
            out.push_str(digits);
        } else {
            let fill = if self.zero && matches!(self.letter, 'v' | 's' | 'q' | 'x' | 'X') { '0' } else { ' ' };
            out.extend(std::iter::repeat_n(fill, padding));
            out.push_str(&text);
        }
        Ok(())
    }

    /// The text before padding; true for numbers.
    fn text(&self, value: &Value<'_>) -> Done<(String, bool)> {
        let text = match (value, self.letter) {
            (Value::Text(text), 'v' | 's') => return Ok((self.cut(text).to_owned(), false)),
            (Value::Text(text), 'q') => return Ok((quoted(self.cut(text)), false)),
            (Value::Text(text), letter @ ('x' | 'X')) => return Ok((hex(text, letter, self.precision), false)),
            (Value::Bool(value), 'v' | 't') => return Ok((value.to_string(), false)),
            (Value::List(list), 'v' | 's') => {
                let all: Vec<&str> = list.iter().map(|text| self.cut(text)).collect();
                // Go pads each element.
                return if self.width == 0 { Ok((format!("[{}]", all.join(" ")), false)) } else { Err(Failed) };
            }
            (Value::Int(value), 'v' | 'd') if self.precision.is_none() => value.to_string(),
            (Value::Int(value), 'x') if self.precision.is_none() => signed_hex(*value).to_lowercase(),
            (Value::Int(value), 'X') if self.precision.is_none() => signed_hex(*value),
            (Value::Float(value), 'f') => format!("{value:.*}", self.precision.unwrap_or(6)),
            (Value::Float(value), 'e') => exponent(*value, self.precision.unwrap_or(6)),
            (Value::Float(_), 'v' | 'g') if self.precision.is_none() => {
                let mut text = String::new();
                funcs::print(&mut text, value)?;
                text
            }
            _ => return Err(Failed),
        };
        let signed = if self.plus && !text.starts_with('-') { format!("+{text}") } else { text };
        Ok((signed, true))
    }

    /// A precision cuts text, by characters.
    fn cut<'a>(&self, text: &'a str) -> &'a str {
        let end = self.precision.and_then(|longest| text.char_indices().nth(longest));
        end.map_or(text, |(end, _)| &text[..end])
    }
}

fn hex(text: &str, letter: char, longest: Option<usize>) -> String {
    let mut out = String::new();
    for byte in text.bytes().take(longest.unwrap_or(usize::MAX)) {
        let _ = if letter == 'x' { write!(out, "{byte:02x}") } else { write!(out, "{byte:02X}") };
    }
    out
}

fn signed_hex(value: i64) -> String {
    let sign = if value < 0 { "-" } else { "" };
    format!("{sign}{:X}", value.unsigned_abs())
}

/// Rust writes `1e2` where Go writes `1e+02`.
fn exponent(value: f64, precision: usize) -> String {
    let text = format!("{value:.precision$e}");
    match text.split_once('e') {
        Some((digits, exponent)) => {
            let (sign, exponent) = match exponent.strip_prefix('-') {
                Some(exponent) => ('-', exponent),
                None => ('+', exponent),
            };
            format!("{digits}e{sign}{exponent:0>2}")
        }
        None => text,
    }
}
