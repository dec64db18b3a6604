//! A template's text, cut into pieces as Go's lexer cuts it.

use super::number;

/// Where an action begins and ends.
const LEFT: &str = "{{";
const RIGHT: &str = "}}";
const COMMENT: &str = "/*";
const COMMENT_END: &str = "*/";

/// A piece of a template.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Piece {
    /// Text between actions, trimmed where markers ask for it.
    Text(String),
    /// One action.
    Action(Vec<Token>),
}

/// A piece of an action.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// `.name`, without its dot; the flag says that white space stood before it.
    Field(String, bool),
    /// `.` alone.
    Dot,
    /// `$name`, with its dollar.
    Variable(String),
    /// A word: a function or a keyword.
    Word(String),
    Text(String),
    Int(i64),
    Float(f64),
    Bool(bool),
    Nil,
    Pipe,
    Open,
    /// `)`
    Close,
    Comma,
    /// `:=`
    Declare,
    /// `=`
    Assign,
}

/// Cuts a template into its pieces.
///
/// # Errors
/// Why it is no template, or what of it is not supported.
pub(super) fn pieces(template: &str) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut rest = template;
    let mut trim_next = false;
    while let Some((text, action)) = rest.split_once(LEFT) {
        let (trim_before, action) = left_marker(action);
        let (inside, after, trim_after) = match action.strip_prefix(COMMENT) {
            Some(comment) => comment_end(comment)?,
            None => action_end(action)?,
        };
        push_text(&mut pieces, text, trim_next, trim_before);
        if let Some(inside) = inside {
            pieces.push(Piece::Action(tokens(inside)?));
        }
        (rest, trim_next) = (after, trim_after);
    }
    push_text(&mut pieces, rest, trim_next, false);
    Ok(pieces)
}

fn push_text(pieces: &mut Vec<Piece>, text: &str, start: bool, end: bool) {
    let text = if start { text.trim_start_matches(is_space) } else { text };
    let text = if end { text.trim_end_matches(is_space) } else { text };
    if !text.is_empty() {
        pieces.push(Piece::Text(text.to_owned()));
    }
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

/// `- ` after the left delimiter trims the text before.
fn left_marker(action: &str) -> (bool, &str) {
    match action.strip_prefix('-') {
        Some(rest) if rest.starts_with(is_space) => (true, &rest[1..]),
        _ => (false, action),
    }
}

type End<'a> = (Option<&'a str>, &'a str, bool);

fn comment_end(comment: &str) -> Result<End<'_>, String> {
    let (_, rest) = comment.split_once(COMMENT_END).ok_or("a comment is not closed")?;
    match rest.strip_prefix(RIGHT) {
        Some(after) => Ok((None, after, false)),
        None => match rest.strip_prefix(is_space).and_then(|rest| rest.strip_prefix("-}}")) {
            Some(after) => Ok((None, after, true)),
            None => Err("a comment ends before its action does".to_owned()),
        },
    }
}

/// The end of an action: delimiters inside of strings do not count.
fn action_end(action: &str) -> Result<End<'_>, String> {
    let mut quote = None;
    let mut escaped = false;
    for (at, c) in action.char_indices() {
        match quote {
            Some('`') if c == '`' => quote = None,
            Some('`') => {}
            Some(_) if c == '\n' => return Err("a string is not closed".to_owned()),
            Some(_) if escaped => escaped = false,
            Some(_) if c == '\\' => escaped = true,
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if matches!(c, '"' | '\'' | '`') => quote = Some(c),
            None if action[at..].starts_with(RIGHT) => {
                let (inside, after) = (&action[..at], &action[at + RIGHT.len()..]);
                let trimmed = inside.strip_suffix('-').filter(|inside| inside.ends_with(is_space));
                return Ok((Some(trimmed.unwrap_or(inside)), after, trimmed.is_some()));
            }
            None => {}
        }
    }
    Err("an action is not closed".to_owned())
}

/// Cuts an action into its tokens.
fn tokens(action: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = action;
    loop {
        let trimmed = rest.trim_start_matches(is_space);
        let spaced = trimmed.len() < rest.len() || tokens.is_empty();
        let Some(first) = trimmed.chars().next() else { return Ok(tokens) };
        let (token, after) = token(trimmed, first, spaced)?;
        let word = matches!(
            token,
            Token::Int(_)
                | Token::Float(_)
                | Token::Word(_)
                | Token::Bool(_)
                | Token::Nil
                | Token::Variable(_)
                | Token::Field(..)
        );
        if word && !after.starts_with(ends_word) && !after.is_empty() {
            return Err(format!("bad character after \"{}\"", &trimmed[..trimmed.len() - after.len()]));
        }
        tokens.push(token);
        rest = after;
    }
}

/// What may follow a word at once.
fn ends_word(c: char) -> bool {
    is_space(c) || matches!(c, '.' | ',' | '|' | ':' | '=' | ')' | '(')
}

fn token(text: &str, first: char, spaced: bool) -> Result<(Token, &str), String> {
    let one = |token: Token| Ok((token, &text[first.len_utf8()..]));
    match first {
        '|' => one(Token::Pipe),
        '(' => one(Token::Open),
        ')' => one(Token::Close),
        ',' => one(Token::Comma),
        '=' => one(Token::Assign),
        ':' => text.strip_prefix(":=").map(|rest| (Token::Declare, rest)).ok_or_else(|| "expected :=".to_owned()),
        '"' | '\'' | '`' => number::quoted(text, first),
        '.' => {
            let rest = &text[1..];
            if rest.starts_with(|c: char| c.is_ascii_digit()) {
                return number::number(text);
            }
            let (name, rest) = split_word(rest);
            if name.is_empty() { Ok((Token::Dot, rest)) } else { Ok((Token::Field(name.to_owned(), spaced), rest)) }
        }
        '$' => {
            let (name, rest) = split_word(&text[1..]);
            Ok((Token::Variable(format!("${name}")), rest))
        }
        '+' | '-' => number::number(text),
        c if c.is_ascii_digit() => number::number(text),
        c if c == '_' || c.is_alphabetic() => {
            let (word, rest) = split_word(text);
            let token = match word {
                "true" => Token::Bool(true),
                "false" => Token::Bool(false),
                "nil" => Token::Nil,
                word => Token::Word(word.to_owned()),
            };
            Ok((token, rest))
        }
        c => Err(format!("unexpected {c:?} in an action")),
    }
}

fn split_word(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(text.len());
    text.split_at(end)
}
