//! The pods of a revision, counted by their state.

/// `status.phase` of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It has no node, or its containers do not run yet.
    Pending,
    /// It runs.
    Running,
    /// It has ended, or nobody knows.
    Other,
}

/// What counts of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pod {
    /// Its phase.
    pub phase: Phase,
    /// It is being deleted.
    pub deleting: bool,
    /// Its condition `Ready` holds.
    pub ready: bool,
}

/// How many there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Take requests.
    pub ready: u32,
    /// Do not, for whatever reason.
    pub not_ready: u32,
    /// Of those, have not begun to run.
    pub pending: u32,
    /// Of those, are being deleted.
    pub terminating: u32,
}

impl Counts {
    /// Of these pods.
    pub fn of(pods: impl IntoIterator<Item = Pod>) -> Counts {
        let mut counts = Counts::default();
        for pod in pods {
            match pod.phase {
                Phase::Other => continue,
                Phase::Pending => counts.pending += 1,
                Phase::Running if pod.deleting => counts.terminating += 1,
                Phase::Running if pod.ready => {
                    counts.ready += 1;
                    continue;
                }
                Phase::Running => {}
            }
            counts.not_ready += 1;
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_count_once_as_ready_or_not() {
        let pod = |phase, deleting, ready| Pod { phase, deleting, ready };
        let counts = Counts::of([
            pod(Phase::Running, false, true),
            pod(Phase::Running, false, false),
            pod(Phase::Running, true, true),
            pod(Phase::Pending, false, false),
            pod(Phase::Pending, true, false),
            pod(Phase::Other, false, true),
        ]);
        assert_eq!(counts, Counts { ready: 1, not_ready: 4, pending: 2, terminating: 1 });
    }
}
