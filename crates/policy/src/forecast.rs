//! What would change a decision: constant loads, held for some time, under
//! which another number of pods would be ordered.
//!
//! Nothing is estimated. The evaluation itself ([`crate::judge`]) runs ahead on
//! a copy of the windows and memories, fed with a load that does not change,
//! and the load at the edge is searched for. So whatever it says is what the
//! decisions do, provided that:
//!
//! - each second is reported as it begins, as by an activator or a sidecar;
//! - requests take as long as they did of late;
//! - pods stay as they are until the change: those that start do not become
//!   ready, and on the way to zero those that are not wanted are gone by the
//!   next decision.
//!
//! | job | module |
//! | --- | --- |
//! | a revision that is some time ahead | `ahead` |
//! | which load, and how long | `search` |
//! | loads that are told apart | `steps` |

mod ahead;
mod search;
mod steps;
#[cfg(test)]
mod tests;

use crate::collect::Collection;
use crate::compat::Compat;
use crate::decider::Status;
use crate::limit::LimitKind;
use crate::moment::Moment;
use crate::overload::Overload;
use crate::revision::{Metric, RevisionSpec};
use crate::scale::Memory;
use crate::zero::ZeroState;
use search::{Search, Way};
use std::time::Duration;

/// A revision as it stands.
#[derive(Clone, Debug)]
pub struct Course<'a> {
    /// Its limits.
    pub spec: &'a RevisionSpec,
    /// Whose rules apply.
    pub compat: Compat,
    /// The windows.
    pub collection: Collection,
    /// Arrivals and queues.
    pub overload: Overload,
    /// Requests that the ready pods took at the last evaluation.
    pub slots: f64,
    /// Panic, the delay window, and what holds a number.
    pub memory: Memory,
    /// The last decision.
    pub status: Status,
    /// The way to zero and back.
    pub zero: ZeroState,
    /// Pods ordered last.
    pub ordered: u32,
    /// Pods that take new requests.
    pub ready: u32,
    /// Pods that start.
    pub starting: u32,
    /// True when there is any pod, also one that ends.
    pub pods: bool,
    /// Since when requests go through the activator; `None` = they don't.
    pub in_path_since: Option<Moment>,
}

/// When evaluations come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beat {
    /// The next one.
    pub next: Moment,
    /// From one to the next.
    pub every: Duration,
}

/// A load that changes nothing, and the nearest that does: four digits of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Edge {
    /// This load leads to the change.
    pub does: f64,
    /// This one does not, within the same time.
    pub does_not: f64,
}

/// The load that a change takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum When {
    /// None: it comes with any load.
    Any,
    /// One request, at zero pods: it is told and decided on at once.
    FirstRequest,
    /// More than this.
    Above(Edge),
    /// Less than this.
    Below(Edge),
    /// No request at all.
    Nothing,
}

/// Another number of pods.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// With which load.
    pub when: When,
    /// How many seconds of it.
    pub seconds: u32,
    /// Pods ordered then.
    pub pods: u32,
}

/// What would change a decision.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Forecast {
    /// More pods, the quickest way first.
    pub more: Vec<Change>,
    /// What keeps the number from rising, when no load makes it rise.
    pub more_held: Option<LimitKind>,
    /// Fewer pods, zero last.
    pub fewer: Vec<Change>,
    /// What keeps the number from falling, when no time without load makes it
    /// fall.
    pub fewer_held: Option<LimitKind>,
    /// The load over the panic window, and what comes if it stays.
    pub as_now: Option<(f64, Option<Change>)>,
    /// True when it would have taken too long to look at all.
    pub cut_short: bool,
}

/// Looks ahead from `now`. `floor` is what schedules ask for at a time.
pub fn forecast<F>(course: &Course<'_>, beat: Beat, floor: F, now: Moment) -> Forecast
where
    F: FnMut(Moment) -> Option<i32> + Clone,
{
    let mut search = Search::new(course, beat, floor, service(course, now), now);
    let mut found = Forecast::default();
    if course.ordered == 0 {
        found.more.extend(search.first_request());
    } else {
        search.more(&mut found);
        search.fewer(&mut found);
    }
    let panic = course.collection.windows_of(course.spec.scale.metric).1.average(now).max(0.0);
    let settled = search.settled(Duration::ZERO);
    found.as_now = Some((panic, search.run(panic, settled, Way::Either).change(When::Any)));
    found.cut_short = search.is_spent();
    found
}

/// Seconds that a request takes, as seen in the windows.
fn service(course: &Course<'_>, now: Moment) -> f64 {
    let sum = |metric| course.collection.windows_of(metric).0.seconds(now).into_iter().flatten().sum::<f64>();
    let (inside, arrived) = (sum(Metric::Concurrency), sum(Metric::Rps));
    let known = inside / arrived;
    if known.is_finite() && known > 0.0 { known } else { 1.0 }
}
