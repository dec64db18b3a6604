//! More requests than the pods that are made can carry: told before the next
//! report, so that a burst from zero starts all the pods it needs and not only
//! the first.

use crate::revision::Revision;
use crate::{Activator, report};
use parking_lot::Mutex;
use plumbing::worker::Worker;
use policy::revision::{Metric, RevisionSpec};
use std::sync::Arc;
use std::time::Duration;

/// A burst arrives within this time: what comes then is told together.
const GATHER: Duration = Duration::from_millis(5);
/// From one telling to the next, at least.
const TELL_EVERY: Duration = Duration::from_millis(100);

/// What has been told of one revision.
#[derive(Debug, Default)]
pub(crate) struct Burst(Mutex<Told>);

#[derive(Debug, Default)]
struct Told {
    /// Requests in progress at the last telling.
    level: u32,
    /// A task is about to tell, or has just told.
    pending: bool,
}

impl Burst {
    /// Is it time to tell? Then the caller does so, and ends with [`Burst::rest`].
    pub(crate) fn begins(&self, inside: u32, made: u32, spec: &RevisionSpec) -> bool {
        if !outgrows(inside, made, spec) {
            return false;
        }
        let mut told = self.0.lock();
        let begins = !told.pending && inside > told.level;
        told.pending |= begins;
        begins
    }

    fn telling(&self, inside: u32) {
        self.0.lock().level = inside;
    }

    fn rest(&self) {
        self.0.lock().pending = false;
    }

    /// The report of a second is given: what is in progress then is known.
    pub(crate) fn reported(&self, inside: u32) {
        let mut told = self.0.lock();
        told.level = told.level.min(inside);
    }
}

/// Do they want more pods than are made, where more may be made?
fn outgrows(inside: u32, made: u32, spec: &RevisionSpec) -> bool {
    let bound = u32::try_from(spec.bounds.max_scale).unwrap_or(0);
    let more_may_be = bound == 0 || made < bound;
    let carried = f64::from(made.max(1)) * spec.scale.target.max(1.0);
    spec.scale.metric == Metric::Concurrency && more_may_be && f64::from(inside) > carried
}

/// Tells of a burst that has begun, and of its growth until it has ended.
pub(crate) fn follow(activator: &Activator, revision: &Arc<Revision>, worker: &Worker) {
    let (activator, revision, wheel) = (activator.clone(), revision.clone(), worker.wheel().clone());
    worker.spawn(async move {
        loop {
            wheel.sleep(GATHER).await;
            // Some may have been served meanwhile.
            if let Some((announcement, inside)) = revision.announce() {
                revision.burst.telling(inside);
                report::announce(&activator, &revision, &announcement);
            }
            wheel.sleep(TELL_EVERY).await;
            revision.burst.rest();
            if !revision.burst_begins() {
                return;
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use policy::revision::{Bounds, ScaleSpec, Timeouts, WindowSpec};

    fn spec(target: f64, max_scale: i32) -> RevisionSpec {
        let span = Duration::from_secs(60);
        RevisionSpec {
            service: "svc".into(),
            configuration: "svc".into(),
            container_concurrency: 1,
            timeouts: Timeouts { total: span, response_start: None, idle: None, upgrade: None },
            scale: ScaleSpec { target, ..ScaleSpec::KNATIVE },
            windows: WindowSpec { stable: span, panic: span, aggregation: policy::revision::Aggregation::Linear },
            bounds: Bounds {
                min_scale: 0,
                max_scale,
                scale_to_zero: true,
                grace: span,
                retention: span,
                progress_deadline: span,
            },
        }
    }

    #[test]
    fn a_crowd_is_told_when_it_grows_beyond_what_is_made_and_may_be_made() {
        let one_each = spec(0.7, 3);
        let begins = |inside, made| Burst::default().begins(inside, made, &one_each);
        assert!(!begins(1, 0) && begins(2, 1) && begins(9, 2) && !begins(2, 2));
        assert!(!begins(9, 3), "no more may be made");
        assert!(Burst::default().begins(9, 3, &spec(1.0, 0)), "there is no bound");
        let rps = RevisionSpec { scale: ScaleSpec { metric: Metric::Rps, ..one_each.scale }, ..one_each.clone() };
        assert!(!Burst::default().begins(9, 1, &rps));
    }

    #[test]
    fn it_is_told_once_for_each_height_it_reaches() {
        let (burst, spec) = (Burst::default(), spec(1.0, 0));
        assert!(burst.begins(5, 1, &spec) && !burst.begins(6, 1, &spec), "one task at a time");
        burst.telling(6);
        burst.rest();
        assert!(!burst.begins(6, 1, &spec) && burst.begins(7, 1, &spec));
        burst.rest();
        burst.reported(2);
        assert!(burst.begins(5, 1, &spec), "it was lower in between");
    }
}
