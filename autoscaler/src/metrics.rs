//! Counts of what concerns no revision alone. What is said of each comes from
//! its state when it is asked for ([`crate::exposition`]): so it costs decisions
//! nothing, and one that is gone leaves no series.

use metrics::counter;
use policy::collect::Dropped;

/// Stats that were dropped because their numbers made no sense, by reason.
pub(crate) const DROPPED: &str = "zeroscale_autoscaler_stat_drops_total";

/// Counts one.
pub(crate) fn dropped(why: Dropped) {
    counter!(DROPPED, "why" => why.as_str()).increment(1);
}
