//! A decision with its inputs, the limits that acted, and the order, as it is
//! written down; and where two of them differ.

use super::number::Number;
use crate::decider::Evaluated;
use policy::judge::Judged;
use policy::limit::Steps;
use policy::scale::Decision;
use policy::world::Path;
use serde::{Deserialize, Serialize};
use std::fmt::Debug;
use std::sync::Arc;

/// One decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decided {
    /// What was wished for, and why; `None` = there was nothing to decide on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) wish: Option<Wish>,
    /// Why there was nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) undecided: Option<String>,
    /// Bounds and the way to zero: the limits that acted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) bounds: Vec<Limit>,
    /// Pods wanted after them; -1 = unknown.
    pub(crate) want: i32,
    /// Pods ordered so far.
    pub(crate) ordered: Option<u32>,
    pub(crate) direct: bool,
    pub(crate) activators: u32,
    /// It turned active, idle or starting.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) changed: bool,
    /// The pods that are to go.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) go_first: Vec<Arc<str>>,
}

/// A decision without its numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    ordered: Option<u32>,
    want: i32,
    direct: bool,
    in_panic: bool,
    undecided: Option<String>,
}

/// `Decision` as it is written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wish {
    pub(crate) stable: Number,
    pub(crate) panic: Number,
    pub(crate) ready: u32,
    pub(crate) starting: u32,
    pub(crate) target: Number,
    pub(crate) wish_stable: Number,
    pub(crate) wish_panic: Number,
    pub(crate) ratio: Number,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) in_panic: bool,
    pub(crate) max_panic_pods: i32,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) by_panic_window: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) limits: Vec<Limit>,
    pub(crate) desired: i32,
    pub(crate) excess_burst_capacity: i32,
}

/// Name, pods before it, pods after it.
pub(crate) type Limit = (String, i32, i32);

/// The first input, limit or result in which two decisions differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Which one.
    pub what: &'static str,
    /// In the recording.
    pub recorded: String,
    /// As decided anew.
    pub now: String,
}

impl Decided {
    pub(crate) fn of(evaluated: &Evaluated) -> Decided {
        let Evaluated { judged: Judged { decision, verdict }, ordered, order, .. } = evaluated;
        Decided {
            wish: decision.as_ref().ok().map(Wish::of),
            undecided: decision.as_ref().err().map(|why| why.as_str().to_owned()),
            bounds: limits(&verdict.steps),
            want: verdict.want,
            ordered: *ordered,
            direct: verdict.path == Path::Direct,
            activators: verdict.activators,
            changed: verdict.changed,
            go_first: order.as_ref().map(|order| order.go_first.clone()).unwrap_or_default(),
        }
    }

    /// Pods ordered; `None` before the first order.
    pub fn ordered(&self) -> Option<u32> {
        self.ordered
    }

    /// What people take for the same when it comes again.
    pub fn outcome(&self) -> Outcome {
        let Decided { wish, undecided, want, ordered, direct, .. } = self;
        let in_panic = wish.as_ref().is_some_and(|wish| wish.in_panic);
        Outcome { ordered: *ordered, want: *want, direct: *direct, in_panic, undecided: undecided.clone() }
    }

    /// Where `now` differs first, in the order in which a decision is made.
    pub fn difference(&self, now: &Decided) -> Option<Difference> {
        if self == now {
            return None;
        }
        let differ = |(recorded, now): (Fact, Fact)| {
            (recorded != now).then_some(Difference { what: recorded.0, recorded: recorded.1, now: now.1 })
        };
        self.facts().into_iter().zip(now.facts()).find_map(differ)
    }

    fn facts(&self) -> Vec<Fact> {
        // In full, so that it shows where only the last digit differs.
        fn fact(what: &'static str, value: impl Debug) -> Fact {
            (what, format!("{value:?}"))
        }
        let wish = self.wish.as_ref();
        let number = |of: fn(&Wish) -> Number| wish.map_or(f64::NAN, |wish| of(wish).0);
        let count = |of: fn(&Wish) -> i64| wish.map_or(-1, of);
        let acted = |limits: Option<&Vec<Limit>>| {
            let words = limits.into_iter().flatten().map(|(name, from, to)| format!("{name} {from}->{to}"));
            words.collect::<Vec<_>>().join(", ")
        };
        vec![
            ("undecided", self.undecided.clone().unwrap_or_else(|| "no".to_owned())),
            fact("stable", number(|wish| wish.stable)),
            fact("panic", number(|wish| wish.panic)),
            fact("ready", count(|wish| wish.ready.into())),
            fact("starting", count(|wish| wish.starting.into())),
            fact("target", number(|wish| wish.target)),
            fact("wish_stable", number(|wish| wish.wish_stable)),
            fact("wish_panic", number(|wish| wish.wish_panic)),
            fact("ratio", number(|wish| wish.ratio)),
            fact("in_panic", wish.is_some_and(|wish| wish.in_panic)),
            fact("by_panic_window", wish.is_some_and(|wish| wish.by_panic_window)),
            ("limits", acted(wish.map(|wish| &wish.limits))),
            fact("max_panic_pods", count(|wish| wish.max_panic_pods.into())),
            fact("desired", count(|wish| wish.desired.into())),
            fact("excess_burst_capacity", wish.map(|wish| wish.excess_burst_capacity)),
            ("bounds", acted(Some(&self.bounds))),
            fact("want", self.want),
            fact("ordered", self.ordered),
            ("path", if self.direct { "direct" } else { "activator" }.to_owned()),
            fact("activators", self.activators),
            fact("changed", self.changed),
            fact("go_first", &self.go_first),
        ]
    }
}

type Fact = (&'static str, String);

impl Wish {
    fn of(decision: &Decision) -> Wish {
        let why = &decision.why;
        Wish {
            stable: Number(why.stable),
            panic: Number(why.panic),
            ready: why.ready,
            starting: why.starting,
            target: Number(why.target),
            wish_stable: Number(why.wish_stable),
            wish_panic: Number(why.wish_panic),
            ratio: Number(why.ratio),
            in_panic: decision.panic,
            max_panic_pods: decision.max_panic_pods,
            by_panic_window: why.by_panic_window,
            limits: limits(&why.steps),
            desired: decision.desired,
            excess_burst_capacity: decision.excess_burst_capacity,
        }
    }
}

fn limits(steps: &Steps) -> Vec<Limit> {
    steps.iter().map(|step| (step.limit.as_str().to_owned(), step.from, step.to)).collect()
}
