//! All that the decisions on one revision remember, to the last digit, as a
//! recording begins with it.
//!
//! `policy::saved` is what a restart is told instead: less of it, moved to the
//! present.

use super::Decider;
use crate::record::number::Number;
use policy::active::{Active, Activity};
use policy::collect::{Collection, SavedCollection};
use policy::decider::Status;
use policy::moment::Moment;
use policy::overload::{self, Jump, Overload, SavedOverload};
use policy::reporters::{Reporters, SavedReporter, SavedReporters};
use policy::revision::Aggregation;
use policy::scale::{Memory, SavedMemory};
use policy::steady::Steady;
use policy::window::SavedWindow;
use policy::world::Path;
use policy::zero::ZeroState;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// Whole seconds since 1970 lie within this; nanoseconds go no further.
const SECONDS_MAX: i64 = 9_300_000_000;
/// Buckets, and candidates, of one window: a day.
const BUCKETS_MAX: usize = 86_400;
/// How many seconds at most are counted for a reporter that is silent.
const FILLED_MAX: i64 = 3600;

/// Times are nanoseconds since 1970, seconds whole ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Held {
    /// Concurrency over the stable and the panic window, arrivals over both.
    windows: [Buckets; 4],
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    weighted: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    reporters: Vec<Reporter>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    gone: Vec<(Arc<str>, Option<i64>, i64)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    asked_for: Option<i64>,
    overload: Queue,
    slots: Number,
    memory: Remembered,
    desired: i32,
    excess_burst_capacity: i32,
    active: (String, String),
    active_since: i64,
    initialized: bool,
    ordered: Option<u32>,
    direct: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Buckets {
    first: Option<i64>,
    last: Option<i64>,
    total: Number,
    /// The latest one last; what is missing is zero.
    buckets: Vec<Number>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reporter {
    name: Arc<str>,
    at: i64,
    concurrency: Number,
    requests: Number,
    inside: Number,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pushed: Option<i64>,
    announced: (Number, Number),
    filled: Option<(i64, Number, Number)>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Queue {
    /// Second, inside, arrived.
    last: [Option<(i64, Number, Number)>; 2],
    served: Number,
    ended: Number,
    jump: Option<(Number, Number)>,
    stuck: u32,
    left_out: Option<i64>,
    stable: Vec<(i64, i32)>,
    panic: Vec<(i64, i32)>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Remembered {
    panic_since: Option<i64>,
    max_panic_pods: i32,
    after_panic: Option<i32>,
    /// Pods, credit, when, since when.
    steady: (i32, Number, Option<i64>, Option<i64>),
    delay: Vec<(i64, i32)>,
    delay_nanos: u64,
}

impl Decider {
    /// All that is remembered.
    pub(crate) fn held(&self) -> Held {
        // By name, all of them: whoever adds a field says whether it is held.
        let Decider {
            collection,
            reporters,
            asked_for,
            overload,
            slots,
            memory,
            status,
            zero,
            ordered,
            path,
            // Known from the view and the settings.
            view: _,
            id: _,
            compat: _,
            silence: _,
            schedules: _,
            // No decision looks at these.
            durations: _,
            requested: _,
            history: _,
            dropped_stats: _,
            decisions: _,
            serial: _,
        } = self;
        let SavedCollection { windows, aggregation } = collection.save();
        let SavedReporters { list, gone } = reporters.save();
        let nanos = |at: Option<Moment>| at.map(Moment::unix_nanos);
        let activity = zero.activity();
        Held {
            windows: windows.map(Buckets::of),
            weighted: aggregation == Aggregation::WeightedExponential,
            reporters: list.into_iter().map(Reporter::of).collect(),
            gone: gone.into_iter().map(|(name, pushed, since)| (name, nanos(pushed), since.unix_nanos())).collect(),
            asked_for: asked_for.map(Moment::unix_nanos),
            overload: Queue::of(overload.save()),
            slots: Number(*slots),
            memory: Remembered::of(memory),
            desired: status.desired,
            excess_burst_capacity: status.excess_burst_capacity,
            active: (activity.active().status().to_owned(), activity.active().reason().to_owned()),
            active_since: activity.since().unix_nanos(),
            initialized: activity.initialized(),
            ordered: *ordered,
            direct: *path == Path::Direct,
        }
    }

    /// Goes on with what another one held under the same view.
    ///
    /// # Errors
    /// One sentence that names what makes no sense; the decider is of no use then.
    pub(crate) fn hold(&mut self, held: Held) -> Result<(), String> {
        let spec = &self.view.spec;
        let [stable, panic, rps_stable, rps_panic] = held.windows.map(Buckets::window);
        let weighted = if held.weighted { Aggregation::WeightedExponential } else { Aggregation::Linear };
        let saved = SavedCollection { windows: [stable?, panic?, rps_stable?, rps_panic?], aggregation: weighted };
        let silence = super::silence(&self.view, self.silence);
        self.collection = Collection::restore(&spec.windows, silence, self.compat, &saved);
        let list: Result<Vec<_>, String> = held.reporters.into_iter().map(Reporter::saved).collect();
        let moment = Moment::from_unix_nanos;
        let gone = held.gone.into_iter().map(|(name, pushed, since)| (name, pushed.map(moment), moment(since)));
        self.reporters = Reporters::restore(SavedReporters { list: list?, gone: gone.collect() });
        self.asked_for = held.asked_for.map(Moment::from_unix_nanos);
        self.overload = Overload::restore(spec.windows.stable, spec.windows.panic, &held.overload.saved()?);
        self.slots = held.slots.0;
        self.memory = held.memory.memory(self.compat)?;
        self.status = Status { desired: held.desired, excess_burst_capacity: held.excess_burst_capacity };
        let active = Active::parse(&held.active.0, &held.active.1)
            .ok_or_else(|| format!("`active`: there is no `{}`", held.active.0))?;
        self.path = if held.direct { Path::Direct } else { Path::Activator };
        let since = Moment::from_unix_nanos(held.active_since);
        self.zero = ZeroState::restore(Activity::restore(active, since, held.initialized), self.path, self.compat);
        self.ordered = held.ordered;
        Ok(())
    }
}

/// A whole second that can be reckoned with.
fn second(name: &str, second: i64) -> Result<i64, String> {
    let sound = (-SECONDS_MAX..=SECONDS_MAX).contains(&second);
    sound.then_some(second).ok_or_else(|| format!("`{name}`: {second} is no second"))
}

fn candidates(name: &str, all: Vec<(i64, i32)>) -> Result<Vec<(i64, i32)>, String> {
    if all.len() > BUCKETS_MAX {
        return Err(format!("`{name}`: {} candidates are more than there can be", all.len()));
    }
    all.iter().try_for_each(|(at, _)| second(name, *at).map(drop))?;
    Ok(all)
}

impl Buckets {
    fn of(saved: SavedWindow) -> Buckets {
        let SavedWindow { first, last, total, buckets } = saved;
        Buckets { first, last, total: Number(total), buckets: buckets.into_iter().map(Number).collect() }
    }

    fn window(self) -> Result<SavedWindow, String> {
        let Buckets { first, last, total, buckets } = self;
        if buckets.len() > BUCKETS_MAX {
            return Err(format!("`buckets`: {} are more than there can be", buckets.len()));
        }
        let (first, last) = (first.map(|at| second("first", at)), last.map(|at| second("last", at)));
        let buckets = buckets.into_iter().map(|number| number.0).collect();
        Ok(SavedWindow { first: first.transpose()?, last: last.transpose()?, total: total.0, buckets })
    }
}

impl Reporter {
    fn of(saved: SavedReporter) -> Reporter {
        let SavedReporter { name, at, concurrency, rps, inside, pushed, announced, filled } = saved;
        Reporter {
            name,
            at: at.unix_nanos(),
            concurrency: Number(concurrency),
            requests: Number(rps),
            inside: Number(inside),
            pushed: pushed.map(Moment::unix_nanos),
            announced: (Number(announced.0), Number(announced.1)),
            filled: filled.map(|(until, concurrency, rps)| (until, Number(concurrency), Number(rps))),
        }
    }

    fn saved(self) -> Result<SavedReporter, String> {
        let at = Moment::from_unix_nanos(self.at);
        // What was filled up was so second by second.
        let until = self.filled.map(|(until, ..)| until.saturating_sub(at.unix_seconds()));
        if until.is_some_and(|seconds| !(0..=FILLED_MAX).contains(&seconds)) {
            return Err(format!("`filled` of the reporter `{}` does not follow on `at`", self.name));
        }
        Ok(SavedReporter {
            name: self.name,
            at,
            concurrency: self.concurrency.0,
            rps: self.requests.0,
            inside: self.inside.0,
            pushed: self.pushed.map(Moment::from_unix_nanos),
            announced: (self.announced.0.0, self.announced.1.0),
            filled: self.filled.map(|(until, concurrency, rps)| (until, concurrency.0, rps.0)),
        })
    }
}

impl Queue {
    fn of(saved: SavedOverload) -> Queue {
        let SavedOverload { last, served, ended, jump, stuck, left_out, stable, panic } = saved;
        let seen = |of: Option<overload::Second>| of.map(|of| (of.index, Number(of.inside), Number(of.arrived)));
        Queue {
            last: last.map(seen),
            served: Number(served),
            ended: Number(ended),
            jump: jump.map(|Jump { first, most }| (Number(first), Number(most))),
            stuck,
            left_out,
            stable,
            panic,
        }
    }

    fn saved(self) -> Result<SavedOverload, String> {
        let seen = |of: Option<(i64, Number, Number)>| {
            of.map(|(index, inside, arrived)| {
                second("last", index).map(|index| overload::Second { index, inside: inside.0, arrived: arrived.0 })
            })
            .transpose()
        };
        let [before, last] = self.last;
        Ok(SavedOverload {
            last: [seen(before)?, seen(last)?],
            served: self.served.0,
            ended: self.ended.0,
            jump: self.jump.map(|(first, most)| Jump { first: first.0, most: most.0 }),
            stuck: self.stuck.min(u32::MAX / 2),
            left_out: self.left_out.map(|at| second("left_out", at)).transpose()?,
            stable: candidates("stable", self.stable)?,
            panic: candidates("panic", self.panic)?,
        })
    }
}

impl Remembered {
    fn of(memory: &Memory) -> Remembered {
        let SavedMemory { panic_since, max_panic_pods, after_panic, steady, delay } = memory.save();
        let Steady { pods, credit, at, since } = steady;
        Remembered {
            panic_since: panic_since.map(Moment::unix_nanos),
            max_panic_pods,
            after_panic,
            steady: (pods, Number(credit), at.map(Moment::unix_nanos), since.map(Moment::unix_nanos)),
            delay,
            delay_nanos: u64::try_from(memory.delay().as_nanos()).unwrap_or(u64::MAX),
        }
    }

    fn memory(self, compat: policy::compat::Compat) -> Result<Memory, String> {
        let moment = Moment::from_unix_nanos;
        let (pods, credit, at, since) = self.steady;
        let saved = SavedMemory {
            panic_since: self.panic_since.map(moment),
            max_panic_pods: self.max_panic_pods,
            after_panic: self.after_panic,
            steady: Steady { pods, credit: credit.0, at: at.map(moment), since: since.map(moment) },
            delay: candidates("delay", self.delay)?,
        };
        Ok(Memory::restore(Duration::from_nanos(self.delay_nanos), &saved, compat))
    }
}
