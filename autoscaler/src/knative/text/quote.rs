//! Texts in quotes, as error texts show them.

/// In double quotes, with what cannot be printed escaped.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\0'..' ' | '\x7f' => quoted.push_str(&format!("\\x{:02x}", u32::from(c))),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_printed_is_escaped() {
        assert_eq!(quoted("a\"b\\c\n\u{1}\u{85}ü"), r#""a\"b\\c\n\x01\u0085ü""#);
    }
}
