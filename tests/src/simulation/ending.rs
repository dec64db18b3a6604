//! How a history ends: everybody leaves, and then every slot is there again.

use super::invariant::{Invariant, Violation};
use super::setup::{MILLI, SECOND};
use super::shadow::RequestId;
use super::world::{Event, World};
use policy::admit::Refused;

/// As many requests at most to try all slots at the end.
const TRIED_AT_END: u64 = 200;

impl World {
    /// No client comes any more. Those inside leave at once, or are served for
    /// a while first, or the revision is removed under them.
    pub(super) fn close(&mut self) {
        self.closed = true;
        self.log(format_args!("no client comes any more"));
        match self.draw.below(3) {
            0 => self.all_leave_soon(),
            1 => {}
            _ => self.remove_revision(),
        }
        let end = SECOND + self.draw.below(self.longest_wait() + 8 * SECOND);
        self.after(end, Event::End);
    }

    fn all_leave_soon(&mut self) {
        for id in self.inside() {
            let soon = self.draw.below(400 * MILLI);
            self.after(soon, Event::Leave(id));
        }
    }

    fn remove_revision(&mut self) {
        self.saw("revision removed");
        self.trouble = true;
        for key in self.ready_keys() {
            if let Some(pod) = self.pods.values_mut().find(|pod| pod.ready() == Some(key)) {
                pod.phase = super::platform::Phase::Terminating;
            }
            self.take_out(key);
        }
        self.refuse_all(Refused::RevisionRemoved);
    }

    /// Whoever is still there leaves, in any order; nothing may be left. Then
    /// all slots are taken once more, and given back.
    pub(super) fn end(&mut self) {
        self.empty();
        for key in self.ready_keys() {
            self.trust(key);
        }
        let slots = self.seam.core().capacity().unwrap_or(TRIED_AT_END).min(TRIED_AT_END);
        for _ in 0..slots + 3 {
            let id = self.next_request;
            self.next_request += 1;
            self.ask(id);
        }
        for _ in 0..8 {
            self.try_spent();
        }
        self.empty();
        self.ended = true;
    }

    fn empty(&mut self) {
        let mut inside = self.inside();
        while !inside.is_empty() {
            let at = self.draw.below(inside.len() as u64) as usize;
            self.leave(inside.swap_remove(at));
        }
        let core = self.seam.core();
        let left = (core.running(), core.waiting(), self.meter.in_progress());
        self.log(format_args!("everybody has left"));
        if left != (0, 0, 0) {
            let what = format!("all have left, but (running, waiting, counted) are {left:?}");
            self.shadow.found.push(Violation::new(Invariant::Slots, what));
        }
    }

    fn inside(&self) -> Vec<RequestId> {
        self.clients.keys().copied().collect()
    }
}
