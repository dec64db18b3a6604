//! Why a revision has the pods that it has: for people in words, for programs
//! as JSON.
//!
//! | job | module |
//! | --- | --- |
//! | one revision's answer, now or at a time | `answer` |
//! | which setting is behind a limit | `settings` |
//! | names that were meant, perhaps | `near` |
//! | times as people write them | [`time`] |
//! | the answer in words | [`words`] |
//! | the path on the admin port | [`api`] |
//!
//! An answer is made when it is asked for, from copies: decisions go on
//! meanwhile.

pub(crate) mod answer;
pub mod api;
mod near;
mod settings;
pub mod time;
pub mod words;

#[cfg(test)]
mod tests;

pub(crate) use near::near;
use policy::moment::Moment;
use serde::{Deserialize, Serialize};

/// Revisions of one service in an answer.
pub const REVISIONS_MAX: usize = 16;

/// One revision's answer. Times are in seconds since 1970.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Why {
    /// `namespace/name`.
    pub revision: String,
    /// The service it belongs to.
    pub service: String,
    /// The time that was asked about.
    pub at: f64,
    /// When it was answered.
    pub now: f64,
    /// When the history begins; `None` before the first decision.
    pub history_since: Option<f64>,
    /// What load is measured in: `concurrency` or `rps`.
    pub metric: String,
    /// What is known beside the decision; only of now.
    pub inputs: Option<Inputs>,
    /// The decision that stood then; `None` before the first.
    pub decision: Option<Decision>,
    /// True when nothing was decided at that time: the autoscaler was away, and
    /// the decision is the last one before.
    pub undecided: bool,
    /// What would change it; only of now.
    pub changes: Option<Changes>,
    /// The decision before it.
    pub before: Option<Decision>,
    /// The one after it, if there was one.
    pub after: Option<Decision>,
}

/// What a decision starts from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Inputs {
    /// Load that one pod should carry.
    pub target: f64,
    /// Load that one pod can carry.
    pub total: f64,
    /// The stable window.
    pub stable: Window,
    /// The panic window.
    pub panic: Window,
    /// Panic begins when the wish of the panic window is so many times the
    /// ready pods.
    pub panic_threshold: f64,
    /// When panic ends if the load stays below that; `None` = calm.
    pub panic_until: Option<f64>,
    /// Pods that panic holds at least.
    pub panic_pods: Option<i32>,
    /// Pods that take requests.
    pub ready: u32,
    /// Pods that start.
    pub starting: u32,
    /// Pods that end.
    pub terminating: u32,
    /// Wanted pods for which there is no room.
    pub no_room: u32,
    /// Why its pods cannot be started, if they cannot.
    pub trouble: Option<String>,
    /// `starting`, `active` or `idle`.
    pub activity: String,
    /// Since when.
    pub activity_since: f64,
    /// At least so many pods, by a schedule that holds now.
    pub floor: Option<i32>,
}

/// One averaging window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// Its length.
    pub seconds: u64,
    /// Its average now.
    pub average: f64,
    /// What was recorded in each second, the newest last; `null` = nothing.
    pub samples: Vec<Option<f64>>,
}

/// One decision, or several equal ones in a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// When it was first made.
    pub from: f64,
    /// When it was last made.
    pub to: f64,
    /// How many times in a row.
    pub times: u32,
    /// Why none could be made; the one before stands then.
    pub no_decision: Option<String>,
    /// The averages and what they ask for.
    pub load: Option<Load>,
    /// Every limit that acted, in order.
    pub limits: Vec<Limit>,
    /// Pods wished for before bounds.
    pub desired: Option<i32>,
    /// Pods ordered.
    pub wanted: Option<u32>,
    /// `activator` or `direct`.
    pub path: String,
    /// Spare load; negative = through the activator.
    pub excess_burst_capacity: Option<i32>,
}

/// The load that a decision saw.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Average over the stable window, at the last of the decisions.
    pub stable: f64,
    /// Its lowest and highest in all of them.
    pub stable_range: (f32, f32),
    /// Average over the panic window.
    pub panic: f64,
    /// Its lowest and highest.
    pub panic_range: (f32, f32),
    /// Load that one pod should carry.
    pub target: f64,
    /// Pods that the stable window asks for.
    pub wish_stable: f64,
    /// Pods that the panic window asks for.
    pub wish_panic: f64,
    /// The latter over the ready pods.
    pub ratio: f64,
    /// True in panic.
    pub in_panic: bool,
    /// Which wish was taken: `stable` or `panic`.
    pub window: String,
    /// Ready pods at the time.
    pub ready: u32,
    /// Pods that started at the time.
    pub starting: u32,
}

/// One limit that acted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    /// Its name.
    pub limit: String,
    /// Pods before it.
    pub from: i32,
    /// Pods after it; the same when it only held the number.
    pub to: i32,
    /// What it does.
    pub what: String,
    /// The setting behind it, as it is now.
    pub setting: Option<Setting>,
}

/// One setting, and where it can be changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
    /// Annotation, key of a config map, flag, or key of a file.
    pub places: Vec<String>,
}

/// What would change a decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Changes {
    /// Loads that would, those that bring more pods first.
    pub list: Vec<Change>,
    /// The limit that keeps the number from rising whatever the load.
    pub more_held: Option<String>,
    /// The limit that keeps it from falling.
    pub fewer_held: Option<String>,
    /// The load over the panic window, and what comes if it stays.
    pub as_now: f64,
    /// `None` = nothing.
    pub then: Option<Change>,
    /// True when it would have taken too long to look at all.
    pub cut_short: bool,
}

/// A load, how long, and the pods that are ordered then.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// `above`, `below`, `nothing` (no request), `request` (the first one) or
    /// `any`.
    pub when: String,
    /// A load that leads to it, where it takes one.
    pub does: Option<f64>,
    /// The nearest that does not.
    pub does_not: Option<f64>,
    /// For so many seconds.
    pub seconds: u32,
    /// Pods ordered then.
    pub pods: u32,
    /// The same in words.
    pub words: String,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Refused {
    /// No service and no revision has that name; some that have a similar one.
    Unknown(Vec<String>),
    /// The history begins later.
    TooEarly {
        /// Of which revision.
        revision: String,
        /// When it begins; `None` = nothing was decided yet.
        since: Option<Moment>,
    },
    /// It lies in the future.
    Future,
}
