//! What the driver saw of a case, for checks to look into.

use super::case::Case;
use super::compare::{self, Slack, headers};
use crate::replay::row::{Miss, Verdict};
use policy::compat::Compat;
use serde_json::Value;

/// The outcome of every step, as rows write it.
#[derive(Clone, Copy)]
pub struct Observed<'a> {
    /// The case.
    pub case: &'a Case,
    /// One outcome a step.
    pub got: &'a [Value],
    /// How the sidecar was run.
    pub mode: Compat,
    /// What this machine adds to windows of time.
    pub slack: Slack,
}

/// One answer, request or other outcome.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a>(pub &'a Value);

/// What a check says: why it does not hold.
pub type Held = Result<(), String>;

impl<'a> Observed<'a> {
    /// The `number`-th outcome of this kind of step, from 0.
    ///
    /// # Errors
    /// When the case did not come so far.
    pub fn nth(&self, op: &str, number: usize) -> Result<Part<'a>, String> {
        let steps = self.case.steps.iter().zip(self.got);
        let mut outcomes = steps.filter(|(step, _)| step.op.name() == op).map(|(_, got)| Part(got));
        outcomes.nth(number).ok_or_else(|| format!("there is no {op} number {number}"))
    }

    /// The `number`-th answer that was read.
    ///
    /// # Errors
    /// When the case did not come so far.
    pub fn answer(&self, number: usize) -> Result<Part<'a>, String> {
        self.nth("recv", number)
    }

    /// The first answer over HTTP/2.
    ///
    /// # Errors
    /// When there is none.
    pub fn h2(&self) -> Result<Part<'a>, String> {
        let all = self.nth("h2", 0)?.0;
        all["responses"].get(0).map(Part).ok_or_else(|| "there was no answer over HTTP/2".to_owned())
    }

    /// What the app saw at the end.
    ///
    /// # Errors
    /// When the case did not ask.
    pub fn requests(&self) -> Result<Vec<Part<'a>>, String> {
        let all = self.nth("upstream", 0)?.0;
        Ok(all["requests"].as_array().into_iter().flatten().map(Part).collect())
    }

    /// All lines that a stream brought, whatever the row looks for.
    ///
    /// # Errors
    /// When the case did not ask.
    pub fn lines(&self, stream: &str) -> Result<Vec<&'a str>, String> {
        let all = self.nth(stream, 0)?.0;
        let all = all.get("all").unwrap_or(&all["lines"]);
        Ok(all.as_array().into_iter().flatten().filter_map(Value::as_str).collect())
    }

    /// Everything is as recorded.
    ///
    /// # Errors
    /// The first difference.
    pub fn as_recorded(&self) -> Held {
        for (number, (step, got)) in self.case.steps.iter().zip(self.got).enumerate() {
            let name = step.op.name();
            said(compare::step(step, got, self.slack)).map_err(|why| format!("step {number} ({name}): {why}"))?;
        }
        Ok(())
    }

    /// What was recorded of the `number`-th step of this kind.
    pub fn recorded(&self, op: &str, number: usize) -> &'a Value {
        let mut steps = self.case.steps.iter().filter(|step| step.op.name() == op);
        steps.nth(number).map_or(&Value::Null, |step| &step.expect)
    }
}

impl<'a> Part<'a> {
    /// The answer has this status.
    ///
    /// # Errors
    /// When it has another, or there is none.
    pub fn status(self, wanted: u16) -> Held {
        self.status_among(&[wanted])
    }

    /// The answer has one of these statuses.
    ///
    /// # Errors
    /// When it has another, or there is none.
    pub fn status_among(self, wanted: &[u16]) -> Held {
        match self.code() {
            Some(code) if wanted.contains(&code) => Ok(()),
            _ => Err(format!("status: expected {wanted:?}, got {}", self.shown())),
        }
    }

    /// The status, of an answer in either version.
    pub fn code(self) -> Option<u16> {
        match self.0["status"].as_u64() {
            Some(code) => u16::try_from(code).ok(),
            None => self.header(":status")?.parse().ok(),
        }
    }

    /// The body is this.
    ///
    /// # Errors
    /// When it is another.
    pub fn body(self, wanted: &str) -> Held {
        if self.0["body"] == wanted {
            return Ok(());
        }
        Err(format!("body: expected {wanted:?}, got {}", self.shown()))
    }

    /// The first value of a header.
    pub fn header(self, name: &str) -> Option<&'a str> {
        headers::by_name(&self.0["headers"]).get(name)?.first()?.as_str()
    }

    /// Whether a key of it says yes.
    pub fn is(self, key: &str) -> bool {
        self.0[key] == true
    }

    /// A text in it.
    pub fn text(self, key: &str) -> &'a str {
        self.0[key].as_str().unwrap_or_default()
    }

    /// A number in it.
    pub fn number(self, key: &str) -> Option<f64> {
        self.0[key].as_f64()
    }

    /// The connection ended, in whatever way.
    pub fn ended(self) -> bool {
        self.is("eof") || self.is("reset")
    }

    /// It, for people.
    pub fn shown(self) -> String {
        super::latin::shortened(&self.0.to_string())
    }
}

/// Holds, or says why not.
///
/// # Errors
/// `why`, when it does not hold.
pub fn holds(fact: bool, why: impl FnOnce() -> String) -> Held {
    if fact { Ok(()) } else { Err(why()) }
}

fn said(verdict: Verdict) -> Held {
    verdict.map_err(|miss| match miss {
        Miss::Differs(why) => why,
        Miss::NotJudged => "not judged".to_owned(),
    })
}
