//! Seeds as text: a line each, bytes that are no plain text as `\r`, `\n`,
//! `\t`, `\\`, `\'`, `\"` or `\xNN`. Lines that begin with `#` are comments.

/// All seeds of a file.
pub(super) fn seeds(text: &str) -> Vec<Vec<u8>> {
    text.lines().filter(|line| !line.starts_with('#')).map(unescape).collect()
}

/// Bytes as a line.
pub(super) fn escape(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

fn unescape(line: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = line.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let (byte, after) = match (*first, after) {
            (b'\\', [b'x', high, low, after @ ..]) => (hex(*high) << 4 | hex(*low), after),
            (b'\\', [letter, after @ ..]) => (control(*letter), after),
            (byte, after) => (byte, after),
        };
        out.push(byte);
        rest = after;
    }
    out
}

fn control(letter: u8) -> u8 {
    match letter {
        b'r' => b'\r',
        b'n' => b'\n',
        b't' => b'\t',
        other => other,
    }
}

fn hex(digit: u8) -> u8 {
    char::from(digit).to_digit(16).map_or(0, |value| value as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_come_back() {
        let all: Vec<u8> = (0..=255).collect();
        let text = format!("# a comment\n{}\n\nplain", escape(&all));
        assert_eq!(seeds(&text), [all, Vec::new(), b"plain".to_vec()]);
    }
}
