//! The conditions of a PodAutoscaler as the decisions see them, and back.

use super::{ACTIVE, SCALE_TARGET_INITIALIZED, SKS_READY};
use crate::knative::conditions::{Conditions, Truth};
use crate::knative::sks::ServerlessService;
use policy::active::{Active, Activity, Idle, Standing, Starting};
use policy::compat::Compat;
use policy::moment::Moment;

const QUEUED: &str = "Requests to the target are being buffered as resources are provisioned.";
const NO_TRAFFIC: &str = "The target is not receiving traffic.";
const TIMED_OUT: &str = "The target could not be activated.";

/// Whether it is starting, active or idle, and since when.
pub(super) fn activity(conditions: &Conditions, now: Moment) -> Activity {
    let initialized = conditions.holds(SCALE_TARGET_INITIALIZED);
    let Some(active) = conditions.get(ACTIVE) else {
        return Activity::restore(Active::Starting(Starting::New), now, initialized);
    };
    let state = match (active.truth, active.reason.as_str()) {
        (Truth::True, _) => Active::Yes,
        (Truth::Unknown, "Queued") => Active::Starting(Starting::Queued),
        (Truth::Unknown, _) => Active::Starting(Starting::New),
        (Truth::False, "NoTraffic") => Active::No(Idle::NoTraffic),
        (Truth::False, "TimedOut") => Active::No(Idle::TimedOut),
        (Truth::False, _) => Active::No(Idle::Unsaid),
    };
    Activity::restore(state, active.since, initialized)
}

/// Says what follows from what is wanted and what is there. A revision that
/// cannot be reached yet has not been started.
pub(super) fn tell(conditions: &mut Conditions, seen: &Standing, reached: bool, now: Moment, compat: Compat) {
    let mut activity = activity(conditions, now);
    let ready = i64::from(seen.ready) >= i64::from(activity.enough(seen));
    let stays = seen.want < 0 && ready && activity.enough(seen) > 0 && matches!(activity.active(), Active::No(_));
    activity.settle(seen, now, compat);
    if activity.initialized() && reached {
        conditions.mark_true(SCALE_TARGET_INITIALIZED, now);
    }
    // An idle revision with enough pods of which nothing is known is left alone.
    if stays {
        return;
    }
    let active = activity.active();
    match active {
        Active::Yes => conditions.mark_true(ACTIVE, now),
        Active::Starting(_) => conditions.mark_unknown(ACTIVE, active.reason(), QUEUED, now),
        Active::No(Idle::TimedOut) => conditions.mark_false(ACTIVE, active.reason(), TIMED_OUT, now),
        Active::No(_) => conditions.mark_false(ACTIVE, active.reason(), NO_TRAFFIC, now),
    }
}

/// Says whether its service is ready, and else why not.
pub(super) fn tell_of_service(conditions: &mut Conditions, sks: &ServerlessService, now: Moment) {
    if sks.is_ready() {
        conditions.mark_true(SKS_READY, now);
    } else {
        conditions.mark_unknown(SKS_READY, "NotReady", sks.why_not_ready(), now);
    }
}

/// Says that it has no service yet.
pub(super) fn tell_of_no_service(conditions: &mut Conditions, now: Moment) {
    conditions.mark_unknown(SKS_READY, "NotReady", "No Private Service Name", now);
}

/// Says that what belongs to it belongs to somebody else.
pub(in crate::knative) fn tell_of_owner(conditions: &mut Conditions, kind: &str, name: &str, now: Moment) {
    let message = format!("There is an existing {kind} {name:?} that we do not own.");
    conditions.mark_false(ACTIVE, "NotOwned", &message, now);
}
