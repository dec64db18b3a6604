//! What the pods did over the demo, from the platform's own snapshots.

use policy::world::{Path, PodPhase, Snapshot};
use std::time::{Duration, Instant};

/// The course so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Course {
    /// Most pods that were ready at a time.
    pub(crate) peak: usize,
    /// How long the app of the first ready pod took to start.
    pub(crate) first_start: Option<Duration>,
    /// How often requests began to go straight to the pods.
    pub(crate) turned_direct: u32,
    /// Since when there is no process.
    pub(crate) zero_since: Option<Instant>,
    /// True while they do.
    pub(crate) direct: bool,
}

impl Course {
    /// Takes the next snapshot in.
    pub(crate) fn see(&mut self, snapshot: &Snapshot, now: Instant) {
        let pods = || snapshot.revisions.values().flat_map(|view| &view.pods);
        self.peak = self.peak.max(pods().filter(|pod| pod.phase == PodPhase::Ready).count());
        self.first_start = self.first_start.or_else(|| pods().find_map(|pod| pod.start_took));
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
    use policy::world::{Network, Pod, RevisionView};
    use std::sync::Arc;

    fn snapshot(phases: &[PodPhase], path: Path) -> Snapshot {
        let service = crate::demo::settings().unwrap().services.remove(0);
        let pod = |phase: &PodPhase| Pod {
            name: "pod".into(),
            address: ([127, 0, 0, 1], 0).into(),
            phase: *phase,
            since: Moment::MIN,
            start_took: (*phase != PodPhase::Starting).then_some(Duration::from_millis(157)),
        };
        let pods = phases.iter().map(pod).collect();
        let view = RevisionView {
            spec: service.spec,
            pods,
            path,
            path_since: Moment::MIN,
            trouble: None,
            without_room: 0,
            network: Network::default(),
        };
        Snapshot { revisions: [(service.revision, Arc::new(view))].into(), ..Snapshot::default() }
    }

    #[test]
    fn the_peak_counts_ready_pods_and_zero_counts_all() {
        use PodPhase::{Ready, Starting, Terminating};
        let begin = Instant::now();
        let mut course = Course::default();
        let steps: [(&[PodPhase], Path, bool); 6] = [
            (&[], Path::Activator, true),
            (&[Ready, Starting], Path::Activator, false),
            (&[Ready, Ready], Path::Direct, false),
            (&[Ready], Path::Direct, false),
            (&[Terminating], Path::Activator, false),
            (&[], Path::Activator, true),
        ];
        for (seconds, (pods, path, zero)) in (0..).zip(steps) {
            course.see(&snapshot(pods, path), begin + Duration::from_secs(seconds));
            assert_eq!(course.zero_since.is_some(), zero, "{pods:?}");
        }
        course.see(&snapshot(&[], Path::Activator), begin + Duration::from_secs(9));
        assert_eq!(course.zero_since, Some(begin + Duration::from_secs(5)), "the first moment at zero");
        assert_eq!((course.peak, course.turned_direct), (2, 1));
        assert_eq!(course.first_start, Some(Duration::from_millis(157)));
    }
}
