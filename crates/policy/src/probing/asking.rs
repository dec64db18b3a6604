//! Probes under way.

use super::{Probe, ProbeId, Subject};
use crate::backends::Destination;
use crate::moment::Moment;
use std::collections::{BTreeMap, VecDeque};

/// Questions that are out, or about to be sent.
#[derive(Debug, Default)]
pub(super) struct Asking {
    next_id: u64,
    open: BTreeMap<ProbeId, Open>,
    to_send: VecDeque<ProbeId>,
}

/// A question, and until when it may be answered; it has no time of its own
/// before it is sent.
#[derive(Debug)]
struct Open {
    to: Destination,
    subject: Subject,
    deadline: Option<Moment>,
}

impl Asking {
    pub(super) fn ask(&mut self, to: Destination, subject: Subject) -> ProbeId {
        let id = ProbeId(self.next_id);
        self.next_id += 1;
        self.open.insert(id, Open { to, subject, deadline: None });
        self.to_send.push_back(id);
        id
    }

    /// The next one to send, to be answered by `deadline`; one that was let go
    /// of meanwhile is not.
    pub(super) fn next(&mut self, deadline: Moment) -> Option<Probe> {
        while let Some(id) = self.to_send.pop_front() {
            if let Some(open) = self.open.get_mut(&id) {
                open.deadline = Some(deadline);
                return Some(Probe { id, to: open.to.clone(), subject: open.subject, deadline });
            }
        }
        None
    }

    /// True while one is to be sent.
    pub(super) fn has_next(&self) -> bool {
        self.to_send.iter().any(|id| self.open.contains_key(id))
    }

    /// Whom the probe of that name asked, which is over now.
    pub(super) fn take(&mut self, id: ProbeId) -> Option<(Destination, Subject)> {
        self.open.remove(&id).map(|open| (open.to, open.subject))
    }

    /// Lets go of all: what is answered to them does not count.
    pub(super) fn clear(&mut self) {
        self.open.clear();
        self.to_send.clear();
    }

    /// Those whose time is over.
    pub(super) fn expired(&self, now: Moment) -> Vec<ProbeId> {
        let late = self.open.iter().filter(|(_, open)| open.deadline.is_some_and(|deadline| deadline <= now));
        late.map(|(id, _)| *id).collect()
    }

    pub(super) fn first_deadline(&self) -> Option<Moment> {
        self.open.values().filter_map(|open| open.deadline).min()
    }

    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }
}
