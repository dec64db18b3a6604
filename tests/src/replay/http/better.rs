//! Named checks of the better outcome. Of a `quirk` they hold for the
//! original too; of a `flaw` they must fail on the recording.

use super::super::cases::wire::Head;
use super::row::Seen;
use std::time::Duration;

/// What must hold of one row.
pub struct Check {
    /// The row.
    pub row: &'static str,
    /// What it asks for, as a claim.
    pub name: &'static str,
    /// Looks.
    pub look: fn(&Seen) -> Result<(), String>,
}

const fn check(row: &'static str, name: &'static str, look: fn(&Seen) -> Result<(), String>) -> Check {
    Check { row, name, look }
}

/// All of them.
pub const CHECKS: &[Check] = &[
    check("htp-043", "the wait is not charged to the first-byte limit", |seen| {
        status(seen, &[200])?;
        holds(seen.response.ends_with("hi"), seen)
    }),
    check("htp-044", "an answer cut by a limit does not pass for whole", cut),
    check("htp-044", "nothing is written into it", |seen| holds(!seen.response.contains("timeout"), seen)),
    check("htp-045", "an answer cut by a limit does not pass for whole", cut),
    check("htp-045", "its pieces go on as they come", |seen| {
        holds(seen.first_byte.is_some_and(|at| at < Duration::from_millis(900)), seen)
    }),
    check("htp-048", "it is refused, or held and served by a pod that is there", |seen| status(seen, &[502, 200])),
    check("htp-049", "it is a bad gateway", |seen| status(seen, &[502])),
    check("htp-050", "it is a bad gateway", |seen| status(seen, &[502])),
    check("htp-060", "it is a bad gateway, and was sent once", |seen| {
        status(seen, &[502])?;
        holds(seen.pod_received.matches("POST / ").count() == 1, seen)
    }),
    check("htp-062", "a connection on which bytes flow is not idle", |seen| holds(!seen.ended, seen)),
];

/// The checks of a row.
pub fn of(row: &str) -> impl Iterator<Item = &'static Check> {
    CHECKS.iter().filter(move |check| check.row == row)
}

/// All of a row's hold.
///
/// # Errors
/// The first that does not, by name, and why.
pub fn hold(row: &str, seen: &Seen) -> Result<(), String> {
    for check in of(row) {
        (check.look)(seen).map_err(|why| format!("not so that {}: {why}", check.name))?;
    }
    Ok(())
}

fn status(seen: &Seen, among: &[u16]) -> Result<(), String> {
    let status = Head::read(seen.response.as_bytes()).and_then(|head| head.status());
    holds(status.is_some_and(|status| among.contains(&status)), seen)
}

/// It began, and ended early where its end is known.
fn cut(seen: &Seen) -> Result<(), String> {
    let Some(head) = Head::read(seen.response.as_bytes()) else { return Err(format!("there is no answer: {seen:?}")) };
    let body = &seen.response[head.len..];
    let whole = match head.get("content-length").and_then(|length| length.parse().ok()) {
        Some(length) => body.len() >= length,
        None => body.ends_with("0\r\n\r\n"),
    };
    holds(head.status() == Some(200) && body.contains("abc") && !whole && seen.ended, seen)
}

fn holds(so: bool, seen: &Seen) -> Result<(), String> {
    if so { Ok(()) } else { Err(format!("{seen:?}")) }
}
