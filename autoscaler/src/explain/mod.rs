//! Makes the decisions of a recording ([`crate::record`]) once more, with the
//! very code that an autoscaler decides with, and says where they differ from
//! what is recorded.
//!
//! | job | module |
//! | --- | --- |
//! | other settings than those of the recording | [`changes`] |
//! | a decision for people | `words` |
//!
//! Other settings change the decisions and not the world: pods come and go as
//! they did, whatever is ordered now.

pub mod changes;
mod words;

use crate::Config;
use crate::decider::{Decider, Input};
pub use crate::record::decided::{Decided, Difference, Outcome};
use crate::record::line::{Begun, FORMAT, Got, Head, Heard, Line};
use changes::Changes;
use policy::moment::Moment;
use policy::revision::{Metric, RevisionId};
use policy::world::RevisionView;
use serde::Serialize;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of a line.
pub const LINE_MAX: usize = 64 << 20;
/// The last moment of a recording, in nanoseconds since 1970: in 2096. Beyond,
/// times cannot be reckoned with.
const NOW_MAX: i64 = 4_000_000_000_000_000_000;

/// A recording that is played again, line by line.
pub struct Replay {
    changes: Changes,
    /// `None` before the first head.
    config: Option<Config>,
    revisions: HashMap<u32, Known>,
}

struct Known {
    decider: Decider,
    /// As recorded, without the changes.
    seen: RevisionView,
}

/// What a line says.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Told {
    /// A recording, or another file of it, begins.
    Head {
        /// Version of the program that has recorded.
        version: String,
        /// `default` or `strict`.
        mode: &'static str,
        /// When.
        at: String,
    },
    /// A decision, or none where one is recorded.
    Decision(Box<Step>),
    /// The reader was too slow, and inputs are missing.
    Gap {
        /// When.
        at: String,
        /// How many.
        lost: u64,
    },
    /// Something that nothing was decided upon.
    Nothing,
}

/// One decision: as recorded, and as made anew.
#[derive(Debug, Serialize)]
pub struct Step {
    /// When, in UTC.
    pub at: String,
    /// `namespace/name`.
    pub revision: String,
    /// Its service.
    pub service: Arc<str>,
    /// As recorded; `None` = nothing was decided then.
    pub recorded: Option<Decided>,
    /// As made anew; `None` = nothing is decided now.
    pub now: Option<Decided>,
    /// The first input, limit or result that differs.
    pub differs: Option<Difference>,
    /// The same moment as a number.
    #[serde(skip)]
    pub moment: Moment,
    #[serde(skip)]
    pub(crate) metric: Metric,
}

/// What is wrong with a line.
#[derive(Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where in the line, if that is known; the first is 1.
    pub column: Option<usize>,
    /// What, naming the field.
    pub what: String,
}

impl From<String> for Fault {
    fn from(what: String) -> Fault {
        Fault { column: None, what }
    }
}

impl Replay {
    /// Before the first line.
    pub fn new(changes: Changes) -> Replay {
        Replay { changes, config: None, revisions: HashMap::new() }
    }

    /// Takes the next line in.
    ///
    /// # Errors
    /// What is wrong with it. What follows makes no sense then.
    pub fn line(&mut self, line: &[u8]) -> Result<Told, Fault> {
        let line = serde_json::from_slice(line).map_err(|error| {
            let what = error.to_string();
            let what = what.rsplit_once(" at line ").map_or(&*what, |(what, _)| what).to_owned();
            Fault { column: Some(error.column()), what }
        })?;
        if let Line::Head(head) = line {
            return self.head(&head);
        }
        let config = self.config.as_ref().ok_or_else(|| "there is no `head` before it".to_owned())?;
        Ok(match line {
            Line::Head(_) => Told::Nothing,
            Line::Revision(begun) => {
                let (n, known) = self.changes.begin(*begun, config)?;
                self.revisions.insert(n, known);
                Told::Nothing
            }
            Line::Input(heard) => self.hear(*heard)?,
            Line::Gone(gone) => {
                self.revisions.remove(&gone.n);
                Told::Nothing
            }
            Line::Gap(gap) => Told::Gap { at: words::time(moment("now", gap.now)?), lost: gap.lost },
        })
    }

    fn head(&mut self, head: &Head) -> Result<Told, Fault> {
        if head.format != FORMAT {
            return Err(format!("`format`: it is {}, and {FORMAT} is known", head.format).into());
        }
        let mut config = head.config().map_err(|why| format!("`schedules`: {why}"))?;
        config.compat = self.changes.compat.unwrap_or(config.compat);
        self.config = Some(config);
        self.revisions.clear();
        let mode = words::mode(head.mode.into());
        Ok(Told::Head { version: head.version.clone(), mode, at: words::time(moment("at", head.at)?) })
    }

    fn hear(&mut self, heard: Heard) -> Result<Told, Fault> {
        let Heard { n, now, got, decided: recorded } = heard;
        let Some(Known { decider, seen }) = self.revisions.get_mut(&n) else {
            return Err(format!("`n`: there is no revision {n}").into());
        };
        let now = moment("now", now)?;
        let taken = match got {
            Got::View(view) => {
                *seen = view.after(seen);
                decider.take(&Input::View(&self.changes.view(seen)), now)
            }
            Got::Stat(said) => {
                let (at, urgent, stat) = (Moment::from_unix_nanos(said.at), said.urgent, said.stat.stat());
                decider.take(&Input::Stat { at, stat: &stat, urgent }, now)
            }
            Got::Scraped(round) => {
                decider.take(&Input::Scraped { outcome: &round.outcome(), took: Duration::ZERO }, now)
            }
            Got::Due => decider.take(&Input::Due, now),
        };
        let made = taken.decided().map(Decided::of);
        if recorded.is_none() && made.is_none() {
            return Ok(Told::Nothing);
        }
        Ok(Told::Decision(Box::new(Step {
            at: words::time(now),
            revision: decider.id.to_string(),
            service: decider.view.spec.service.clone(),
            differs: difference(recorded.as_ref(), made.as_ref()),
            recorded,
            now: made,
            moment: now,
            metric: decider.view.spec.scale.metric,
        })))
    }
}

fn difference(recorded: Option<&Decided>, now: Option<&Decided>) -> Option<Difference> {
    let words = |decided: Option<&Decided>| if decided.is_some() { "at once" } else { "not then" }.to_owned();
    match (recorded, now) {
        (Some(recorded), Some(now)) => recorded.difference(now),
        (None, None) => None,
        _ => Some(Difference { what: "decided", recorded: words(recorded), now: words(now) }),
    }
}

fn moment(name: &str, nanos: i64) -> Result<Moment, Fault> {
    match nanos {
        0..=NOW_MAX => Ok(Moment::from_unix_nanos(nanos)),
        _ => Err(format!("`{name}`: {nanos} is no time of a recording").into()),
    }
}

impl Changes {
    fn begin(&self, begun: Begun, config: &Config) -> Result<(u32, Known), Fault> {
        let Begun { n, now, id, view, state } = begun;
        let now = moment("now", now)?;
        let (namespace, name) = id.split_once('/').ok_or_else(|| format!("`id`: `{id}` is not namespace/name"))?;
        let id = RevisionId::new(namespace, name);
        let seen = view.view()?;
        let changed = self.view(&seen);
        let decider = match state {
            None => Decider::new(id, changed, config, now),
            // It remembers windows as long as they were.
            Some(held) => {
                let mut decider = Decider::new(id, Arc::new(seen.clone()), config, now);
                decider.hold(held).map_err(|why| format!("`state`: {why}"))?;
                if !self.is_none() {
                    decider.take(&Input::View(&changed), now);
                }
                decider
            }
        };
        Ok((n, Known { decider, seen }))
    }
}
