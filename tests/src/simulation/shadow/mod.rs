//! What the state has to be, by a second and simpler book-keeping.
//!
//! The shadow is told what was asked of the core and what it answered. It
//! keeps its own idea of who waits and who is where, says what the answer had
//! to be, and compares ([`Shadow::settle`]). One thing it has to take from the
//! core, because nobody is told before the claim: at which pod the slot of a
//! waiter is who was woken and has not claimed yet ([`Place::unclaimed`]). All
//! of these together must be as many as there are such waiters.

mod compare;

use super::invariant::{Invariant, Violation};
use policy::admit::{Bounds, Claim, PodKey, Refused, Slot, Ticket, Verdict};
use policy::moment::Moment;
use std::collections::{BTreeMap, BTreeSet};

/// Numbers requests in the order of their arrival.
pub(super) type RequestId = u32;

/// Where a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// In the queue.
    Queued,
    /// Woken with a slot by that call; not claimed yet.
    Granted { by_call: u64 },
    /// Woken to be refused; not claimed yet.
    Refused(Refused),
    /// At a pod, through the limit.
    At(PodKey),
    /// At a pod, on the direct path.
    DirectAt(PodKey),
}

#[derive(Clone, Copy, Debug)]
struct Request {
    since: Moment,
    standing: Standing,
}

/// A pod, until it was let go of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// Its name in the trace.
    pub(super) number: u32,
    capacity: Option<u32>,
    limited: u32,
    direct: u32,
    unclaimed: u32,
    /// So many were there when the capacity was lowered, and may stay.
    allowance: u32,
    suspended: bool,
    removed: bool,
    /// The call that suspended or removed it.
    blocked_by_call: u64,
}

impl Place {
    fn within_limit(&self) -> u32 {
        self.limited + self.unclaimed
    }

    fn total(&self) -> u32 {
        self.within_limit() + self.direct
    }

    fn blocked(&self) -> bool {
        self.suspended || self.removed
    }

    fn free(&self) -> bool {
        !self.blocked() && self.capacity.is_none_or(|capacity| self.total() < capacity)
    }
}

/// What the answer to a request has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    Go,
    Wait,
    Refuse,
}

/// The second book-keeping.
pub(super) struct Shadow {
    bounds: Bounds,
    requests: BTreeMap<RequestId, Request>,
    /// Who waits; the order of arrival is that of the numbers.
    queue: BTreeSet<RequestId>,
    tickets: BTreeMap<Ticket, RequestId>,
    /// All tickets there ever were: none may come twice, or a spent one would
    /// name somebody else's place.
    given: BTreeSet<Ticket>,
    pods: BTreeMap<PodKey, Place>,
    granted: usize,
    /// Calls so far.
    calls: u64,
    /// What does not hold.
    pub(super) found: Vec<Violation>,
}

impl Shadow {
    pub(super) fn new(bounds: Bounds) -> Shadow {
        Shadow {
            bounds,
            requests: BTreeMap::new(),
            queue: BTreeSet::new(),
            tickets: BTreeMap::new(),
            given: BTreeSet::new(),
            pods: BTreeMap::new(),
            granted: 0,
            calls: 0,
            found: Vec::new(),
        }
    }

    pub(super) fn standing(&self, id: RequestId) -> Option<Standing> {
        self.requests.get(&id).map(|request| request.standing)
    }

    pub(super) fn request_of(&self, ticket: Ticket) -> Option<RequestId> {
        self.tickets.get(&ticket).copied()
    }

    pub(super) fn place(&self, pod: PodKey) -> Option<&Place> {
        self.pods.get(&pod)
    }

    pub(super) fn is_listed(&self, pod: PodKey) -> bool {
        self.place(pod).is_some_and(|place| !place.removed)
    }

    pub(super) fn is_suspended(&self, pod: PodKey) -> bool {
        self.place(pod).is_some_and(|place| place.suspended)
    }

    /// The answer to `ask`.
    pub(super) fn asked(&mut self, id: RequestId, since: Moment, verdict: Verdict) {
        let due = self.due();
        self.calls += 1;
        match verdict {
            Verdict::Go(slot) => {
                if due == Due::Refuse {
                    self.note(Invariant::Refusal, format!("r{id} went, beyond the bounds"));
                }
                self.goes(id, since, slot);
            }
            Verdict::Wait(ticket) => {
                match due {
                    Due::Wait => {}
                    Due::Go => self.note(Invariant::FreeSlot, format!("r{id} has to wait, though a slot is free")),
                    Due::Refuse => self.note(Invariant::Refusal, format!("r{id} may wait, beyond the bounds")),
                }
                self.waits(id, since, ticket);
            }
            Verdict::Refuse(why) => {
                if due != Due::Refuse || why != Refused::QueueFull {
                    self.note(Invariant::Refusal, format!("r{id} is refused as {why:?}, {due:?} is due"));
                }
            }
        }
    }

    /// The answer to `try_take`.
    pub(super) fn tried(&mut self, id: RequestId, since: Moment, slot: Option<Slot>) {
        let due = self.due();
        self.calls += 1;
        match slot {
            Some(_) if due == Due::Refuse => {
                self.note(Invariant::Refusal, format!("r{id} took a slot, beyond the bounds"))
            }
            None if due == Due::Go => self.note(Invariant::FreeSlot, format!("r{id} got no slot, though one is free")),
            _ => {}
        }
        if let Some(slot) = slot {
            self.goes(id, since, slot);
        }
    }

    /// The answer to `take_beyond_limit`.
    pub(super) fn went_direct(&mut self, id: RequestId, since: Moment, slot: Option<Slot>) {
        self.calls += 1;
        let Some(slot) = slot else {
            if self.pods.values().any(|place| !place.blocked()) {
                self.note(Invariant::FreeSlot, format!("r{id} got no pod on the direct path"));
            }
            return;
        };
        self.requests.insert(id, Request { since, standing: Standing::DirectAt(slot.pod) });
        match self.pods.get_mut(&slot.pod) {
            Some(place) if !place.blocked() => place.direct += 1,
            _ => self.note(Invariant::Blocked, format!("r{id} went direct to a pod that takes no work")),
        }
    }

    /// The answer to `claim` for a request of ours.
    pub(super) fn claimed(&mut self, id: RequestId, ticket: Ticket, claim: Claim) {
        self.calls += 1;
        let Some(&Request { standing, .. }) = self.requests.get(&id) else { return };
        match (standing, claim) {
            (Standing::Queued, Claim::Pending) => return,
            (Standing::Granted { by_call }, Claim::Go(slot)) => self.arrives(id, by_call, slot),
            (Standing::Refused(due), Claim::Refused(why)) if due == why => {
                self.requests.remove(&id);
            }
            _ => self.note(Invariant::Ticket, format!("r{id} is {standing:?}, but its ticket says {claim:?}")),
        }
        self.tickets.remove(&ticket);
    }

    /// A request left before it claimed, whatever had become of it.
    pub(super) fn abandoned(&mut self, id: RequestId, ticket: Ticket) {
        self.calls += 1;
        self.tickets.remove(&ticket);
        match self.requests.remove(&id).map(|request| request.standing) {
            Some(Standing::Queued) => {
                self.queue.remove(&id);
            }
            // Where its slot was shows when the books are compared.
            Some(Standing::Granted { .. }) => self.granted -= 1,
            _ => {}
        }
    }

    /// A request at a pod ended.
    pub(super) fn released(&mut self, id: RequestId) {
        self.calls += 1;
        self.leave_pod(id);
        self.requests.remove(&id);
    }

    /// A request at a pod went back to its place in the queue.
    pub(super) fn handed_back(&mut self, id: RequestId, ticket: Ticket) {
        self.calls += 1;
        self.leave_pod(id);
        if let Some(since) = self.requests.get(&id).map(|request| request.since) {
            self.waits(id, since, ticket);
        }
    }

    pub(super) fn pod_added(&mut self, pod: PodKey, number: u32, capacity: Option<u32>) {
        self.calls += 1;
        let place = Place {
            number,
            capacity,
            limited: 0,
            direct: 0,
            unclaimed: 0,
            allowance: 0,
            suspended: false,
            removed: false,
            blocked_by_call: 0,
        };
        if self.pods.insert(pod, place).is_some() {
            self.note(Invariant::Slots, format!("p{number} was given the key of a pod that is still there"));
        }
    }

    pub(super) fn pod_removed(&mut self, pod: PodKey) {
        self.calls += 1;
        if let Some(place) = self.pods.get_mut(&pod) {
            place.removed = true;
            place.blocked_by_call = self.calls;
        }
    }

    pub(super) fn pod_suspended(&mut self, pod: PodKey) {
        self.calls += 1;
        if let Some(place) = self.pods.get_mut(&pod) {
            place.suspended = true;
            place.blocked_by_call = self.calls;
        }
    }

    pub(super) fn pod_resumed(&mut self, pod: PodKey) {
        self.calls += 1;
        if let Some(place) = self.pods.get_mut(&pod) {
            place.suspended = false;
        }
    }

    pub(super) fn pod_resized(&mut self, pod: PodKey, capacity: Option<u32>) {
        self.calls += 1;
        if let Some(place) = self.pods.get_mut(&pod) {
            place.capacity = capacity;
            place.allowance = place.within_limit();
        }
    }

    /// Everybody who waited was refused; `woken` says in which order.
    pub(super) fn refused_all(&mut self, why: Refused, woken: &[Ticket]) {
        self.calls += 1;
        for ticket in woken {
            let id = self.next_in_line(*ticket, "is refused");
            if let Some(request) = id.and_then(|id| self.requests.get_mut(&id)) {
                request.standing = Standing::Refused(why);
            }
        }
        if let Some(id) = self.queue.first() {
            self.note(Invariant::Ticket, format!("all were refused, but not r{id}"));
        }
    }

    fn due(&self) -> Due {
        let inside =
            self.granted + self.pods.values().map(|place| (place.limited + place.direct) as usize).sum::<usize>();
        if inside + self.queue.len() >= self.bounds.places_max {
            Due::Refuse
        } else if self.queue.is_empty() && self.pods.values().any(Place::free) {
            Due::Go
        } else if self.queue.len() >= self.bounds.waiting_max {
            Due::Refuse
        } else {
            Due::Wait
        }
    }

    /// A newcomer goes: nobody may wait, and its pod must have had a free slot
    /// that was not promised to somebody.
    fn goes(&mut self, id: RequestId, since: Moment, slot: Slot) {
        if let Some(oldest) = self.queue.first() {
            self.note(Invariant::Order, format!("r{id} overtakes r{oldest}"));
        }
        self.requests.insert(id, Request { since, standing: Standing::At(slot.pod) });
        let Some(place) = self.pods.get_mut(&slot.pod) else {
            return self.note(Invariant::Blocked, format!("r{id} goes to a pod that was let go of"));
        };
        let before = *place;
        place.limited += 1;
        let number = before.number;
        if before.blocked() {
            self.note(Invariant::Blocked, format!("r{id} goes to p{number}, which takes no work"));
        } else if !before.free() && before.unclaimed > 0 {
            self.note(Invariant::Order, format!("r{id} takes a slot at p{number} that a waiter was granted"));
        } else if !before.free() {
            self.note(Invariant::Limit, format!("r{id} goes to p{number}, which is full"));
        }
    }

    fn waits(&mut self, id: RequestId, since: Moment, ticket: Ticket) {
        self.requests.insert(id, Request { since, standing: Standing::Queued });
        self.queue.insert(id);
        self.tickets.insert(ticket, id);
        if !self.given.insert(ticket) {
            self.note(Invariant::Ticket, format!("r{id} got a ticket that somebody had before"));
        }
    }

    /// A waiter claimed its slot.
    fn arrives(&mut self, id: RequestId, by_call: u64, slot: Slot) {
        self.granted -= 1;
        if let Some(request) = self.requests.get_mut(&id) {
            request.standing = Standing::At(slot.pod);
        }
        let Some(place) = self.pods.get_mut(&slot.pod) else {
            return self.note(Invariant::Blocked, format!("r{id} was granted a pod that was let go of"));
        };
        let number = place.number;
        let blocked_before = place.blocked() && place.blocked_by_call < by_call;
        place.limited += 1;
        if place.unclaimed == 0 {
            self.note(Invariant::Slots, format!("r{id} claims a slot at p{number} that nobody was granted"));
            return;
        }
        place.unclaimed -= 1;
        if blocked_before {
            self.note(Invariant::Blocked, format!("r{id} was granted p{number}, which took no work"));
        }
    }

    fn leave_pod(&mut self, id: RequestId) {
        let Some(request) = self.requests.get(&id) else { return };
        let (pod, direct) = match request.standing {
            Standing::At(pod) => (pod, false),
            Standing::DirectAt(pod) => (pod, true),
            _ => return,
        };
        if let Some(place) = self.pods.get_mut(&pod) {
            let count = if direct { &mut place.direct } else { &mut place.limited };
            *count -= 1;
        }
    }

    /// Takes the one who has waited longest out of the queue; it has to be the
    /// one with that ticket.
    fn next_in_line(&mut self, ticket: Ticket, what: &str) -> Option<RequestId> {
        let id = self.tickets.get(&ticket).copied();
        let oldest = self.queue.first().copied();
        if id.is_none() || !id.is_some_and(|id| self.queue.contains(&id)) {
            self.note(Invariant::Ticket, format!("{id:?} {what}, but does not wait"));
            return None;
        }
        if id != oldest {
            self.note(Invariant::Order, format!("{id:?} {what} before {oldest:?}"));
        }
        id.inspect(|id| {
            self.queue.remove(id);
        })
    }

    fn note(&mut self, invariant: Invariant, what: String) {
        self.found.push(Violation::new(invariant, what));
    }
}
