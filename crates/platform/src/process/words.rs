//! Texts for people: what was run, and how it ended.

use super::guard::Exit;
use std::ffi::OsStr;
use std::ffi::OsString;

/// Longest command line in a text, in bytes.
const COMMAND_LIMIT: usize = 120;

/// Program and arguments, joined by spaces and cut.
pub(super) fn command_line(program: &OsStr, args: &[OsString]) -> String {
    let mut line = program.to_string_lossy().into_owned();
    for arg in args {
        if line.len() > COMMAND_LIMIT {
            break;
        }
        line.push(' ');
        line.push_str(&arg.to_string_lossy());
    }
    if line.len() > COMMAND_LIMIT {
        line.truncate(line.floor_char_boundary(COMMAND_LIMIT));
        line.push('…');
    }
    line.replace(char::is_control, " ")
}

/// How a process ended: "ended with code 1".
pub(super) fn exit(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("ended with code {code}"),
        Exit::Signal(signal) => match signal_name(signal) {
            Some(name) => format!("was ended by signal {signal} ({name})"),
            None => format!("was ended by signal {signal}"),
        },
        Exit::Lost => "was killed because its guard process was lost".to_owned(),
    }
}

fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        1 => "HUP",
        2 => "INT",
        3 => "QUIT",
        4 => "ILL",
        6 => "ABRT",
        7 => "BUS",
        8 => "FPE",
        9 => "KILL",
        11 => "SEGV",
        13 => "PIPE",
        15 => "TERM",
        24 => "XCPU",
        31 => "SYS",
        _ => return None,
    })
}

/// The end of a sentence that quotes the app's last words; empty when it had none.
pub(super) fn last_words(words: &str) -> String {
    match words.trim() {
        "" => String::new(),
        words => format!("; its last line on stderr: {words}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_commands_are_cut_between_characters() {
        let args = vec![OsString::from("ü".repeat(200)), OsString::from("never seen")];
        let line = command_line(OsStr::new("sh"), &args);
        assert!(line.starts_with("sh ü") && line.ends_with('…') && line.len() < 130, "{line}");
        assert_eq!(command_line(OsStr::new("a"), &["b\nc".into()]), "a b c");
    }

    #[test]
    fn ends_are_told_by_code_or_by_signal() {
        assert_eq!(exit(Exit::Code(3)), "ended with code 3");
        assert_eq!(exit(Exit::Signal(9)), "was ended by signal 9 (KILL)");
        assert_eq!(exit(Exit::Signal(64)), "was ended by signal 64");
    }
}
