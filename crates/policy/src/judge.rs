//! One evaluation of a revision, from its windows to its order: what runs every
//! two seconds, and what [`crate::forecast`] runs ahead of time.

use crate::collect::{Collection, Load};
use crate::compat::Compat;
use crate::decider::Status;
use crate::limit::Overrides;
use crate::moment::Moment;
use crate::overload::{Capacity, Overload, Second, WishBounds};
use crate::revision::{Metric, RevisionSpec};
use crate::scale::{self, Decision, Memory, Observed, Ready, Undecided};
use crate::zero::{ZeroInput, ZeroState, ZeroVerdict};
use std::time::Duration;

/// Steps of one evaluation: idle is a step of its own before zero.
const STEPS_MAX: usize = 4;

/// Seconds that are looked back at, if nobody asked for so long.
const SECONDS_BACK_MAX: i64 = 10;

/// What is seen of a revision beside its load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sight {
    /// Pods that take new requests.
    pub ready: u32,
    /// Pods that start.
    pub starting: u32,
    /// False when there is no pod at all, not even one that ends.
    pub pods: bool,
    /// At least so many pods, by a schedule.
    pub floor: Option<i32>,
    /// Since how long requests go through the activator; `None` = they don't.
    pub in_path_for: Option<Duration>,
}

/// What one revision's evaluations are made from, and what they remember.
#[derive(Debug)]
pub struct Mind<'a> {
    /// The windows.
    pub collection: &'a mut Collection,
    /// Arrivals and queues.
    pub overload: &'a mut Overload,
    /// Requests that the ready pods took at the last evaluation.
    pub slots: &'a mut f64,
    /// Panic, the delay window, and what holds a number.
    pub memory: &'a mut Memory,
    /// The last decision.
    pub status: &'a mut Status,
    /// The way to zero and back.
    pub zero: &'a mut ZeroState,
}

/// What one evaluation comes to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judged {
    /// The pods wished for.
    pub decision: Result<Decision, Undecided>,
    /// What to order.
    pub verdict: ZeroVerdict,
}

/// Evaluates. Whoever is late with a report is counted before.
pub fn judge(spec: &RevisionSpec, sight: &Sight, mind: Mind<'_>, compat: Compat, now: Moment) -> Judged {
    let Mind { collection, overload, slots, memory, status, zero } = mind;
    let (starting, bounds) = match compat {
        Compat::Strict => (0, None),
        Compat::Better => (sight.starting, without_queue(spec, sight, collection, overload, slots, now)),
    };
    collection.release(now);
    overload.release(now);
    let load = match collection.load(spec.scale.metric, now) {
        // There is nobody who could report; that is no reason to stay cold.
        Load::NoData if sight.floor.is_some() && !sight.pods => Load::Average { stable: 0.0, panic: 0.0 },
        load => load,
    };
    let seen = Observed { load, ready: Ready::Pods(sight.ready), starting, bounds };
    let overrides = Overrides { floor: sight.floor, ceiling: None };
    let decision = scale::decide(&spec.scale, &seen, &overrides, memory, now);
    status.inform(decision.as_ref().ok().map(Status::from));
    let input = ZeroInput {
        desired: status.desired,
        excess_burst_capacity: status.excess_burst_capacity,
        ready: sight.ready,
        bounds: &spec.bounds,
        spec: &spec.scale,
        path_through_activator_for: sight.in_path_for,
        probe_ok: true,
    };
    let mut verdict = zero.step(&input, now);
    for _ in 1..STEPS_MAX {
        if verdict.recheck_after != Some(Duration::ZERO) {
            break;
        }
        verdict = zero.step(&input, now);
    }
    Judged { decision, verdict }
}

/// Takes in the seconds that are over, and says what is to be asked for at most
/// while requests wait for pods that start.
fn without_queue(
    spec: &RevisionSpec,
    sight: &Sight,
    collection: &mut Collection,
    overload: &mut Overload,
    before: &mut f64,
    now: Moment,
) -> Option<WishBounds> {
    let limit = spec.container_concurrency;
    if spec.scale.metric != Metric::Concurrency || limit == 0 {
        return None;
    }
    let ready = f64::from(sight.ready);
    let slots = ready * f64::from(limit);
    let mut capacity = Capacity {
        slots: slots.min(std::mem::replace(before, slots)),
        carried: ready * spec.scale.target,
        starting: sight.starting,
        target: spec.scale.target,
    };
    let index = now.unix_seconds();
    let first = overload.next().unwrap_or(index - 1).max(index - SECONDS_BACK_MAX);
    for index in first..index {
        if let Some((inside, arrived)) = collection.second(index) {
            overload.see(Second { index, inside, arrived }, &capacity);
        }
    }
    capacity.slots = slots;
    let (inside, _) = collection.second(index).unwrap_or_default();
    overload.bounds(index, inside, &capacity)
}
