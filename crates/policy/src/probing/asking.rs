//! Probes under way.

use super::{Probe, ProbeId, Subject};
use crate::backends::Destination;
use crate::moment::Moment;
use std::collections::{BTreeMap, VecDeque};

/// Questions that are out, or about to be sent.
#[derive(Debug, Default)]
pub(super) struct Asking {
    next_id: u64,
    open: BTreeMap<ProbeId, Probe>,
    to_send: VecDeque<Probe>,
}

impl Asking {
    pub(super) fn ask(&mut self, to: Destination, subject: Subject, deadline: Moment) -> ProbeId {
        let id = ProbeId(self.next_id);
        self.next_id += 1;
        let probe = Probe { id, to, subject, deadline };
        self.open.insert(id, probe.clone());
        self.to_send.push_back(probe);
        id
    }

    /// The next one to send; one that was let go of meanwhile is not.
    pub(super) fn next(&mut self) -> Option<Probe> {
        let open = &self.open;
        std::iter::from_fn(|| self.to_send.pop_front()).find(|probe| open.contains_key(&probe.id))
    }

    /// The probe of that name, which is over now.
    pub(super) fn take(&mut self, id: ProbeId) -> Option<Probe> {
        self.open.remove(&id)
    }

    /// Lets go of all: what is answered to them does not count.
    pub(super) fn clear(&mut self) {
        self.open.clear();
        self.to_send.clear();
    }

    /// Those whose time is over.
    pub(super) fn expired(&self, now: Moment) -> Vec<ProbeId> {
        self.open.values().filter(|probe| probe.deadline <= now).map(|probe| probe.id).collect()
    }

    pub(super) fn first_deadline(&self) -> Option<Moment> {
        self.open.values().map(|probe| probe.deadline).min()
    }

    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }
}
