//! Bytes as rows write them: a string of code points 0 to 255, one a byte.

use anyhow::{Context, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// The bytes that `text` stands for; `fill` letters replace `@FILL@`.
///
/// # Errors
/// When a code point is no byte.
pub fn bytes(text: &str, fill: Option<usize>) -> anyhow::Result<Vec<u8>> {
    let Some(fill) = fill else {
        return plain(text);
    };
    let (before, after) = text.split_once("@FILL@").context("malformed row: fill without @FILL@")?;
    let mut all = plain(before)?;
    all.resize(all.len() + fill, b'a');
    all.extend(plain(after)?);
    Ok(all)
}

/// The string that stands for `bytes`.
pub fn text(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

/// The bytes that `text` encodes.
///
/// # Errors
/// When it is no base64.
pub fn base64(text: &str) -> anyhow::Result<Vec<u8>> {
    STANDARD.decode(text).context("malformed row: bad base64")
}

/// The beginning of a text, for people.
pub fn shortened(text: &str) -> String {
    const KEPT: usize = 300;
    match text.char_indices().nth(KEPT) {
        Some((at, _)) => format!("{}… ({} in all)", &text[..at], text.chars().count()),
        None => text.to_owned(),
    }
}

fn plain(text: &str) -> anyhow::Result<Vec<u8>> {
    text.chars()
        .map(|point| match u8::try_from(u32::from(point)) {
            Ok(byte) => Ok(byte),
            Err(_) => bail!("malformed row: {point:?} is no byte"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_point_is_a_byte_both_ways() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(bytes(&text(&all), None).unwrap(), all);
        assert!(bytes("…", None).is_err());
    }

    #[test]
    fn fill_is_put_where_it_belongs() {
        assert_eq!(bytes("x@FILL@y", Some(3)).unwrap(), b"xaaay");
        assert!(bytes("xy", Some(3)).is_err());
    }
}
