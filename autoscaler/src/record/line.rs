//! The lines of a recording: one JSON object each.

use super::decided::Decided;
use super::number::Number;
use super::view::View;
use crate::decider::{Held, Input};
use crate::schedule::Entry;
use crate::{Config, decider::Decider};
use policy::collect::Silence;
use policy::compat::Compat;
use policy::moment::Moment;
use policy::scrape::{Outcome, ScrapeError};
use policy::stat::Stat;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// The format of the lines.
pub(crate) const FORMAT: u32 = 1;

/// Times are nanoseconds since 1970.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Line {
    /// Begins a file; nothing before it counts any more.
    Head(Head),
    /// A revision is known from here on.
    Revision(Box<Begun>),
    /// It got something, and decided upon it or not.
    Input(Box<Heard>),
    /// It is gone, or another replica's.
    Gone(Gone),
    /// The reader was too slow.
    Gap(Gap),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Head {
    pub(crate) format: u32,
    /// Of the program.
    pub(crate) version: String,
    pub(crate) at: i64,
    /// How many files there were before this one.
    pub(crate) part: u64,
    pub(crate) mode: Mode,
    /// What an empty window means where pods are asked.
    pub(crate) silence: Quiet,
    pub(crate) tick_nanos: u64,
    /// Only of these services or revisions; all without any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) services: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) schedules: Vec<Entry>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Mode {
    Default,
    Strict,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Quiet {
    Unknown,
    Idle,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Begun {
    /// Stands for it in what follows.
    pub(crate) n: u32,
    pub(crate) now: i64,
    /// `namespace/name`.
    pub(crate) id: String,
    pub(crate) view: View,
    /// What it remembers; without it, it is new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) state: Option<Held>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Heard {
    pub(crate) n: u32,
    pub(crate) now: i64,
    pub(crate) got: Got,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) decided: Option<Decided>,
}

/// [`Input`] as it is written.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Got {
    View(View),
    Stat(Said),
    Scraped(Round),
    Due,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Said {
    pub(crate) at: i64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) urgent: bool,
    pub(crate) stat: Numbers,
}

/// What a round of asking came to.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Round {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stat: Option<Numbers>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Numbers {
    pub(crate) pod: Arc<str>,
    #[serde(default, skip_serializing_if = "Number::is_zero")]
    pub(crate) concurrency: Number,
    #[serde(default, skip_serializing_if = "Number::is_zero")]
    pub(crate) proxied_concurrency: Number,
    #[serde(default, skip_serializing_if = "Number::is_zero")]
    pub(crate) requests: Number,
    #[serde(default, skip_serializing_if = "Number::is_zero")]
    pub(crate) proxied_requests: Number,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Gone {
    pub(crate) n: u32,
    pub(crate) now: i64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Gap {
    pub(crate) now: i64,
    /// Inputs that are missing.
    pub(crate) lost: u64,
}

impl Head {
    pub(crate) fn of(config: &Config, services: Vec<String>, now: Moment) -> Head {
        Head {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            at: now.unix_nanos(),
            part: 0,
            mode: config.compat.into(),
            silence: match config.silence {
                Silence::Unknown => Quiet::Unknown,
                Silence::Idle => Quiet::Idle,
            },
            tick_nanos: u64::try_from(config.tick.as_nanos()).unwrap_or(u64::MAX),
            services,
            schedules: config.schedules.iter().map(Entry::from).collect(),
        }
    }

    pub(crate) fn config(&self) -> Result<Config, String> {
        let schedules: Result<Vec<_>, String> = self.schedules.iter().map(Entry::schedule).collect();
        Ok(Config {
            compat: self.mode.into(),
            silence: match self.silence {
                Quiet::Unknown => Silence::Unknown,
                Quiet::Idle => Silence::Idle,
            },
            tick: Duration::from_nanos(self.tick_nanos),
            schedules: schedules?.into(),
            ..Config::default()
        })
    }
}

impl From<Compat> for Mode {
    fn from(compat: Compat) -> Mode {
        match compat {
            Compat::Strict => Mode::Strict,
            Compat::Better => Mode::Default,
        }
    }
}

impl From<Mode> for Compat {
    fn from(mode: Mode) -> Compat {
        match mode {
            Mode::Strict => Compat::Strict,
            Mode::Default => Compat::Better,
        }
    }
}

impl Got {
    /// What `decider` is about to take in.
    pub(crate) fn of(input: &Input<'_>, decider: &Decider) -> Got {
        match input {
            Input::View(view) => Got::View(View::change(&decider.view, view)),
            Input::Stat { at, stat, urgent } => {
                Got::Stat(Said { at: at.unix_nanos(), urgent: *urgent, stat: Numbers::of(stat) })
            }
            Input::Scraped { outcome, .. } => Got::Scraped(Round {
                stat: outcome.stat.as_ref().ok().and_then(Option::as_ref).map(Numbers::of),
                error: outcome.stat.as_ref().err().map(|error| error.as_str().to_owned()),
            }),
            Input::Due => Got::Due,
        }
    }
}

impl Round {
    pub(crate) fn outcome(self) -> Outcome {
        let stat = match self.error {
            // Which one makes no difference to a decision.
            Some(_) => Err(ScrapeError::Other),
            None => Ok(self.stat.map(Numbers::stat)),
        };
        Outcome { stat, partial: false }
    }
}

impl Numbers {
    fn of(stat: &Stat) -> Numbers {
        Numbers {
            pod: stat.pod_name.clone(),
            concurrency: Number(stat.average_concurrency),
            proxied_concurrency: Number(stat.average_proxied_concurrency),
            requests: Number(stat.request_count),
            proxied_requests: Number(stat.proxied_request_count),
        }
    }

    pub(crate) fn stat(self) -> Stat {
        Stat {
            pod_name: self.pod,
            average_concurrency: self.concurrency.0,
            average_proxied_concurrency: self.proxied_concurrency.0,
            request_count: self.requests.0,
            proxied_request_count: self.proxied_requests.0,
        }
    }
}
