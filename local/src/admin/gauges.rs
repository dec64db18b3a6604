//! Gauges that nobody keeps up to date, because they are only read here.

use super::report::Instance;
use metrics::gauge;

/// Pods by phase.
const PODS: &str = "zeroscale_pods";
/// Age of the request that has waited longest, in seconds; 0 = none waits.
const OLDEST_HELD: &str = "zeroscale_oldest_held_age_seconds";
/// Pods that are wanted and not made, because all the room is taken.
const NO_ROOM: &str = "zeroscale_no_room_pods";

/// The phases, as `autoscaler::status` names them.
const PHASES: [&str; 3] = ["starting", "ready", "terminating"];

pub(super) fn set(instance: &Instance) {
    for revision in &instance.revisions {
        let id = &revision.status.revision;
        for phase in PHASES {
            let pods = revision.status.pods.iter().filter(|pod| pod.phase == phase).count();
            gauge!(PODS, "revision" => id.clone(), "phase" => phase).set(pods as f64);
        }
        gauge!(OLDEST_HELD, "revision" => id.clone()).set(revision.oldest_held_seconds.unwrap_or(0.0));
        gauge!(NO_ROOM, "revision" => id.clone()).set(f64::from(revision.status.no_room));
    }
}
