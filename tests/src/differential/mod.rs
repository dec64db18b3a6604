//! The same bytes to our server for HTTP/1 and to hyper's. Whatever both serve
//! must look the same to a handler: method, target, fields, body, trailers,
//! and where the next request begins. Where one serves what the other does not,
//! that is a difference that `known` lists, or a fault.
//!
//! | job | module |
//! | --- | --- |
//! | a connection to each of the two | `sides` |
//! | what a handler sees, and what a client gets | `heard` |
//! | differences that are meant | `known` |

mod heard;
mod known;
mod sides;

use heard::{Heard, Served, Step};
use known::{LAXER, STRICTER};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// What has come of the inputs so far.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Requests that both served, and that looked the same.
    pub same: u64,
    /// Inputs with a request that neither served.
    pub refused: u64,
    /// Connections on which both served more than one.
    pub reused: u64,
    /// Differences that are meant, by what they are.
    pub known: BTreeMap<&'static str, u64>,
    /// Others, in a [`survey`]: how they differ, how often, and the shortest
    /// input that shows it.
    pub faults: BTreeMap<String, (u64, Vec<u8>, String)>,
    is_survey: bool,
}

thread_local! {
    static TALLY: RefCell<Tally> = RefCell::default();
}

/// What has come of the inputs that this thread has tried.
pub fn tally() -> Tally {
    TALLY.with_borrow(Tally::clone)
}

/// From now on a fault does not end this thread's run: each kind of them is
/// kept, with an input.
pub fn survey() {
    TALLY.with_borrow_mut(|tally| tally.is_survey = true);
}

/// What an input came to, to tell new from known.
#[derive(Debug, Hash)]
pub struct Outcome {
    /// Requests that both served, each by its method, and how much there was of it.
    pub served: Vec<(String, usize, usize, usize)>,
    /// What our side answered to the one that it refused.
    pub refused: Option<String>,
    /// How the two differed.
    pub known: Option<&'static str>,
}

/// Gives both the same bytes.
///
/// # Errors
/// How the two differ, if that is not meant, or which of them hangs.
pub fn compare(input: &[u8]) -> Result<Outcome, String> {
    compared(input).or_else(|fault| {
        TALLY.with_borrow_mut(|tally| {
            if !tally.is_survey {
                return Err(fault.told);
            }
            let (count, shortest, told) = tally.faults.entry(fault.kind).or_default();
            if *count == 0 || input.len() < shortest.len() {
                (*shortest, *told) = (input.to_vec(), fault.told);
            }
            *count += 1;
            Ok(Outcome { served: Vec::new(), refused: None, known: None })
        })
    })
}

/// A difference that nobody means.
struct Fault {
    /// The same for all of its kind.
    kind: String,
    told: String,
}

impl Fault {
    fn new(what: &str, ours: &Heard, theirs: &Heard) -> Fault {
        let answer = ours.refusal.as_deref().unwrap_or("no word");
        let told = format!("{what}\n  ours:  {ours}\n  hyper: {theirs}");
        Fault { kind: format!("{what}; ours says {answer}"), told }
    }
}

fn compared(input: &[u8]) -> Result<Outcome, Fault> {
    let (ours, theirs) = sides::both(input).map_err(|hangs| Fault { kind: hangs.clone(), told: hangs })?;
    let mut outcome = Outcome { served: Vec::new(), refused: None, known: None };
    let mut place = 0;
    let known = loop {
        match (ours.step(place), theirs.step(place)) {
            (Some(Step::Served(us)), Some(Step::Served(them))) => {
                if let Some(what) = us.differs_from(them) {
                    return Err(Fault::new(what, &ours, &theirs));
                }
                outcome.served.push(us.shape());
                if us.ends_http() {
                    break None;
                }
            }
            (Some(Step::Served(us)), _) => break Some(laxer(us, input, &ours, &theirs)?),
            (_, Some(Step::Served(them))) => break Some(stricter(them, input, &ours, &theirs)?),
            _ => break None,
        }
        place += 1;
    };
    outcome.refused = ours.refusal.clone();
    outcome.known = known;
    TALLY.with_borrow_mut(|tally| {
        tally.same += outcome.served.len() as u64;
        tally.reused += u64::from(outcome.served.len() > 1);
        tally.refused += u64::from(known.is_none() && outcome.refused.is_some());
        if let Some(known) = known {
            *tally.known.entry(known).or_default() += 1;
        }
    });
    Ok(outcome)
}

fn stricter(them: &Served, input: &[u8], ours: &Heard, theirs: &Heard) -> Result<&'static str, Fault> {
    let answered = ours.refusal.as_deref().unwrap_or("");
    let meant = STRICTER.iter().find(|row| row.answer == answered && (row.of)(them, input));
    meant.map(|row| row.what).ok_or_else(|| Fault::new("hyper serves what we do not", ours, theirs))
}

fn laxer(us: &Served, input: &[u8], ours: &Heard, theirs: &Heard) -> Result<&'static str, Fault> {
    let meant = LAXER.iter().find(|row| (row.of)(us, input));
    meant.map(|row| row.what).ok_or_else(|| Fault::new("we serve what hyper does not", ours, theirs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_both_serve_is_the_same_and_the_connection_goes_on() {
        let outcome = compare(
            b"POST /a?b HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nT: v\r\n\r\n\
              GET http://u@h/x HTTP/1.1\r\nHost: other\r\n\r\nGET / HTTP/1.0\r\n\r\nGET /not HTTP/1.1\r\nHost: h\r\n\r\n",
        );
        let outcome = outcome.unwrap();
        assert_eq!(outcome.served.len(), 3, "{outcome:?}");
        assert_eq!((outcome.refused, outcome.known), (None, None));
    }

    #[test]
    fn differences_that_are_meant_have_their_names() {
        let known = |input: &str| compare(input.as_bytes()).unwrap().known;
        assert!(known("GET / HTTP/1.1\r\n\r\n").is_some());
        assert!(known("GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\n 2\r\n\r\n").is_some());
        let chunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert!(known(&format!("{chunked}00000000000000005\r\nhello\r\n0\r\n\r\n")).is_some());
        assert_eq!(known("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), None);
        assert_eq!(known("GET\r\n\r\n"), None);
    }

    #[test]
    fn each_difference_has_a_name_of_its_own() {
        let mut names: Vec<_> = STRICTER.iter().map(|row| row.what).chain(LAXER.iter().map(|row| row.what)).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), STRICTER.len() + LAXER.len());
    }
}
