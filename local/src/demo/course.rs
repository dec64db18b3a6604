//! What the pods did over the demo, from the platform's own snapshots.

use policy::world::{Path, PodPhase, Snapshot};
use std::time::Instant;

/// The course so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Course {
    /// Most pods that were ready at a time.
    pub(crate) peak: usize,
    /// How often requests began to go straight to the pods.
    pub(crate) turned_direct: u32,
    /// Since when there is no process.
    pub(crate) zero_since: Option<Instant>,
    direct: bool,
}

impl Course {
    /// Takes the next snapshot in.
    pub(crate) fn see(&mut self, snapshot: &Snapshot, now: Instant) {
        let pods = || snapshot.revisions.values().flat_map(|view| &view.pods);
        self.peak = self.peak.max(pods().filter(|pod| pod.phase == PodPhase::Ready).count());
        self.zero_since = if pods().next().is_none() { self.zero_since.or(Some(now)) } else { None };
        let direct = snapshot.revisions.values().any(|view| view.path == Path::Direct);
        self.turned_direct += u32::from(direct && !self.direct);
        self.direct = direct;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use policy::moment::Moment;
    use policy::revision::{Aggregation, Bounds, Metric, RevisionId, RevisionSpec, ScaleSpec, Timeouts, WindowSpec};
    use policy::world::{Pod, RevisionView};
    use std::sync::Arc;
    use std::time::Duration;
}
