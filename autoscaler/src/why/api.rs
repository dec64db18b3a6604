//! `GET /why/NAME[?at=TIME][&format=text]` on the admin port: NAME is a service,
//! `namespace/revision` or a revision. One piece of code for all programs that
//! have such a port.

use super::{Refused, Why, time, words};
use crate::Autoscaler;
use policy::moment::Moment;
use serde::{Deserialize, Serialize};

/// Where it is.
pub const PREFIX: &str = "/why/";

/// Longest name, in bytes: namespace and name of a revision.
const NAME_MAX: usize = 512;

/// What the port answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// HTTP status: 200, 400 (the time makes no sense), 404 (no such service,
    /// or nothing is known of the time).
    pub code: u16,
    /// Whether the body is JSON; else it is text.
    pub json: bool,
    /// The body.
    pub body: String,
}

/// The body of a good answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answers {
    /// One for each revision of the service.
    pub revisions: Vec<Why>,
}

/// The body of another one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fault {
    /// `unknown`, `too_early`, `future` or `bad_time`.
    pub kind: String,
    /// One sentence.
    pub error: String,
    /// Names that were meant, perhaps.
    pub near: Vec<String>,
    /// When the history begins, in seconds since 1970.
    pub since: Option<f64>,
}

/// Answers, when `path` is of this kind. May take some milliseconds, so it is
/// not for a thread on which others wait.
pub fn answer(autoscaler: &Autoscaler, path: &str, query: Option<&str>, now: Moment) -> Option<Answer> {
    let name = decoded(path.strip_prefix(PREFIX)?);
    let pairs: Vec<(String, String)> = query.unwrap_or_default().split('&').map(pair).collect();
    let value = |key: &str| pairs.iter().rev().find(|(name, _)| name == key).map(|(_, value)| value.as_str());
    let zone = time::zone();
    let at = match value("at").map(|at| time::parse(at, now, &zone)).transpose() {
        Ok(at) => at,
        Err(error) => return Some(fault(400, "bad_time", error, Vec::new(), None)),
    };
    let asked = if name.len() <= NAME_MAX { autoscaler.why(&name, at, now) } else { Err(Refused::Unknown(Vec::new())) };
    Some(match asked {
        Ok(all) if value("format") == Some("text") => Answer { code: 200, json: false, body: words::text(&all, &zone) },
        Ok(all) => json(200, &Answers { revisions: all }),
        Err(refused) => refuse(&name, at, refused),
    })
}

fn refuse(name: &str, at: Option<Moment>, refused: Refused) -> Answer {
    match refused {
        Refused::Unknown(near) => {
            let hint = match near.as_slice() {
                [] => String::new(),
                near => format!("; there is {}", near.join(", ")),
            };
            fault(404, "unknown", format!("no service or revision is called `{name}`{hint}"), near, None)
        }
        Refused::TooEarly { revision, since: Some(since) } => {
            let asked = at.map(|at| format!(", after {}", time::rfc3339(at))).unwrap_or_default();
            let error = format!("the history of {revision} begins at {}{asked}", time::rfc3339(since));
            fault(404, "too_early", error, Vec::new(), Some(since.unix_millis() as f64 / 1000.0))
        }
        Refused::TooEarly { revision, since: None } => {
            fault(404, "too_early", format!("nothing was decided for {revision} yet"), Vec::new(), None)
        }
        Refused::Future => fault(400, "future", "that time has not come yet".to_owned(), Vec::new(), None),
    }
}

fn fault(code: u16, kind: &str, error: String, near: Vec<String>, since: Option<f64>) -> Answer {
    json(code, &Fault { kind: kind.to_owned(), error, near, since })
}

fn json(code: u16, value: &impl Serialize) -> Answer {
    match serde_json::to_string(value) {
        Ok(body) => Answer { code, json: true, body: body + "\n" },
        Err(error) => Answer { code: 500, json: false, body: format!("{error}\n") },
    }
}

fn pair(text: &str) -> (String, String) {
    let (name, value) = text.split_once('=').unwrap_or((text, ""));
    (decoded(name), decoded(value))
}

/// Without `%XX`. A plus stays one: it stands in times.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let hex = |at: usize| after.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        match (first, hex(0), hex(1)) {
            (b'%', Some(high), Some(low)) => {
                bytes.push((high * 16 + low) as u8);
                rest = &after[2..];
            }
            _ => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The path of a question, for whoever asks.
pub fn path(name: &str, at: Option<Moment>) -> String {
    let mut path = PREFIX.to_owned();
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'/' => path.push(char::from(byte)),
            other => path.push_str(&format!("%{other:02X}")),
        }
    }
    if let Some(at) = at {
        path.push_str(&format!("?at={}", time::rfc3339(at)));
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_is_read_as_it_was_meant() {
        let at = time::parse("2026-05-04T07:30:00Z", Moment::default(), &jiff::tz::TimeZone::UTC).unwrap();
        assert_eq!(path("a b/ü", Some(at)), "/why/a%20b/%C3%BC?at=2026-05-04T07:30:00.000Z");
        assert_eq!(decoded("a%20b/%C3%BC"), "a b/ü");
        assert_eq!(decoded("%zz%2"), "%zz%2");
        assert_eq!(pair("at=1%3A2+3"), ("at".to_owned(), "1:2+3".to_owned()));
    }

    #[test]
    fn faults_say_what_would_be_right() {
        let near = refuse("shpo", None, Refused::Unknown(vec!["shop".to_owned()]));
        assert!(near.code == 404 && near.body.contains("is called `shpo`; there is shop"), "{near:?}");
        let since = Some(Moment::from_unix_millis(1_000));
        let early =
            refuse("shop", Some(Moment::default()), Refused::TooEarly { revision: "default/shop".to_owned(), since });
        assert!(
            early.code == 404 && early.body.contains("at 1970-01-01T00:00:01.000Z, after 1970-01-01T00:00:00.000Z"),
            "{early:?}"
        );
        assert_eq!(refuse("shop", None, Refused::Future).code, 400);
    }
}
