//! Who may go to which pod, and who waits: one state, first in first out.
//!
//! The sidecar uses it with a single pod of fixed capacity (its app), the
//! activator with all pods of a revision. A slot that frees is handed straight
//! to the oldest waiter together with its pod, so a newcomer cannot overtake
//! and nobody is woken for nothing. The shell keeps one waker for each ticket.
//!
//! What holds after every call (see [`Admission::check`]):
//! - a pod has at most its capacity in flight, but for requests that were
//!   there when the capacity was lowered;
//! - nobody waits while a pod that takes work has a free slot;
//! - each slot that was handed out comes back exactly once: through
//!   [`Admission::release`], or [`Admission::abandon`] when its waiter left
//!   before claiming it.

use crate::eject::{Sign, may_eject};
use crate::list::{Arena, Key, List};
use crate::moment::Moment;
use crate::pick::{Candidate, Rule, pick};
use std::collections::BTreeMap;

/// Bounds on how many may be inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Waiting at most (the activator's held requests).
    pub waiting_max: usize,
    /// Running and waiting together at most (the sidecar's 11 times its limit).
    pub places_max: usize,
}

/// Names a pod of an [`Admission`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodKey(Key);

/// The right to have one request at a pod. Give it back exactly once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The pod that the slot belongs to.
    pub pod: PodKey,
    /// Order and time of arrival, kept so that a request handed back finds its
    /// place again.
    seq: u64,
    since: Moment,
}

/// A place in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(Key);

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// As many are inside as may be.
    QueueFull,
    /// Pods of the revision cannot be started.
    StartFailed,
    /// Pods of the revision do not become ready in time.
    StartTimeout,
    /// The revision is gone.
    RevisionRemoved,
    /// Whoever admits ends, and nobody waits any longer.
    Draining,
}

/// Answer to [`Admission::ask`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Go to the slot's pod now.
    Go(Slot),
    /// Wait until the ticket is woken, then [`Admission::claim`].
    Wait(Ticket),
    /// Leave.
    Refuse(Refused),
}

/// What has become of a ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Still waiting.
    Pending,
    /// Go to the slot's pod now; the ticket is spent.
    Go(Slot),
    /// Leave; the ticket is spent.
    Refused(Refused),
}

#[derive(Debug)]
struct Pod {
    /// Requests at a time; `None` = no limit.
    capacity: Option<u32>,
    in_flight: u32,
    /// Requests of ours that it has room for, where others use it as well and
    /// it has turned out to be full; `None` = as many as its capacity.
    share: Option<u32>,
    /// Set while the pod is doubted: it gets no new work.
    suspended: bool,
    /// Set once it was removed; kept until its last request ended.
    gone: bool,
}

impl Pod {
    fn candidate(&self) -> Candidate {
        let room = self.capacity.is_none_or(|capacity| self.in_flight < capacity) && !self.is_full_by_others();
        Candidate { in_flight: self.in_flight, free: room && !self.suspended && !self.gone }
    }
}

impl Pod {
    fn is_full_by_others(&self) -> bool {
        self.share.is_some_and(|share| self.in_flight >= share)
    }
}

#[derive(Debug)]
struct Waiter {
    seq: u64,
    since: Moment,
    /// A pod had it and gave it back: it waits beyond the bounds, if need be.
    handed_back: bool,
    outcome: Outcome,
}

#[derive(Debug)]
enum Outcome {
    Waiting,
    Granted(PodKey),
    Refused(Refused),
}

/// The state of one limiter.
#[derive(Debug)]
pub struct Admission {
    bounds: Bounds,
    rule: Rule,
    pods: Arena<Pod>,
    /// Pods that were not removed, in the order in which they were added.
    order: Vec<PodKey>,
    waiters: Arena<Waiter>,
    queue: List,
    running: usize,
    next_seq: u64,
    cursor: usize,
    candidates: Vec<Candidate>,
}

impl Admission {
    /// Without pods: everybody waits.
    pub fn new(bounds: Bounds, rule: Rule) -> Admission {
        Admission {
            bounds,
            rule,
            pods: Arena::default(),
            order: Vec::new(),
            waiters: Arena::default(),
            queue: List::default(),
            running: 0,
            next_seq: 0,
            cursor: 0,
            candidates: Vec::new(),
        }
    }

    /// Adds a pod; `capacity` in requests at a time, `None` = no limit.
    /// Tickets that may go now are appended to `woken`, oldest first.
    pub fn add_pod(&mut self, capacity: Option<u32>, woken: &mut Vec<Ticket>) -> PodKey {
        let key = PodKey(self.pods.insert(Pod { capacity, in_flight: 0, share: None, suspended: false, gone: false }));
        self.order.push(key);
        self.hand_out(woken);
        key
    }

    /// Takes a pod out of the choice. Requests at it go on. Returns true when
    /// there are none, so that the pod is let go of already.
    pub fn remove_pod(&mut self, pod: PodKey) -> bool {
        self.order.retain(|&other| other != pod);
        match self.pods.get_mut(pod.0) {
            Some(state) if state.in_flight > 0 => {
                state.gone = true;
                false
            }
            Some(_) => self.pods.remove(pod.0).is_some(),
            None => true,
        }
    }

    /// Takes a removed pod into the choice again, with the requests that it
    /// still has and nothing held against it. False when it was let go of.
    pub fn restore_pod(&mut self, pod: PodKey, capacity: Option<u32>, woken: &mut Vec<Ticket>) -> bool {
        let Some(state) = self.pods.get_mut(pod.0).filter(|state| state.gone) else { return false };
        *state = Pod { capacity, in_flight: state.in_flight, share: None, suspended: false, gone: false };
        self.order.push(pod);
        self.hand_out(woken);
        true
    }

    /// Brings the pods into this order, in which they are chosen from; those
    /// that it does not name come after it.
    pub fn arrange(&mut self, first: &[PodKey]) {
        let places: BTreeMap<PodKey, usize> = first.iter().copied().zip(0..).collect();
        self.order.sort_by_key(|pod| places.get(pod).copied().unwrap_or(usize::MAX));
    }

    /// Changes a pod's capacity; requests beyond a lowered one go on.
    pub fn resize_pod(&mut self, pod: PodKey, capacity: Option<u32>, woken: &mut Vec<Ticket>) {
        if let Some(state) = self.pods.get_mut(pod.0) {
            state.capacity = capacity;
            state.share = None;
        }
        self.hand_out(woken);
    }

    /// Gives a pod no new work until [`Admission::resume_pod`].
    pub fn suspend_pod(&mut self, pod: PodKey) {
        if let Some(state) = self.pods.get_mut(pod.0) {
            state.suspended = true;
        }
    }

    /// Does [`Admission::suspend_pod`] where so many of the pods may be out on
    /// that sign. False where not; also for a pod that is out already.
    pub fn eject_pod(&mut self, pod: PodKey, sign: Sign) -> bool {
        let out = self.order.iter().filter_map(|key| self.pods.get(key.0)).filter(|pod| pod.suspended).count();
        let may = may_eject(sign, self.order.len(), out);
        match self.pods.get_mut(pod.0) {
            Some(state) if may && !state.suspended => {
                state.suspended = true;
                true
            }
            _ => false,
        }
    }

    /// True while a pod gets no new work.
    pub fn is_suspended(&self, pod: PodKey) -> bool {
        self.pods.get(pod.0).is_some_and(|pod| pod.suspended)
    }

    /// Ends [`Admission::suspend_pod`].
    pub fn resume_pod(&mut self, pod: PodKey, woken: &mut Vec<Ticket>) {
        if let Some(state) = self.pods.get_mut(pod.0) {
            state.suspended = false;
        }
        self.hand_out(woken);
    }

    /// The pod is full, though it has fewer requests of ours than it can take:
    /// others use it too. To be called before the request that has met it so is
    /// handed back. Until more is known, the pod has room for the others that it
    /// has of ours, so that the end of one of them lets the next go there.
    pub fn note_full(&mut self, pod: PodKey) {
        if let Some(state) = self.pods.get_mut(pod.0) {
            state.share = Some(state.in_flight.saturating_sub(1));
        }
    }

    /// A pod that was full has so many free slots now.
    pub fn note_free(&mut self, pod: PodKey, free: u32, woken: &mut Vec<Ticket>) {
        if let Some(state) = self.pods.get_mut(pod.0) {
            let share = state.in_flight.saturating_add(free);
            state.share = Some(share).filter(|share| state.capacity.is_some_and(|capacity| *share < capacity));
        }
        self.hand_out(woken);
    }

    /// True while requests wait and a pod is kept from them by nothing but
    /// what others have there.
    pub fn is_worth_asking(&self, pod: PodKey) -> bool {
        let full = |pod: &Pod| !pod.gone && !pod.suspended && pod.is_full_by_others();
        !self.queue.is_empty() && self.pods.get(pod.0).is_some_and(full)
    }

    /// Slots that a newcomer could have now; `None` = no limit.
    pub fn free(&self) -> Option<u64> {
        if !self.queue.is_empty() {
            return Some(0);
        }
        Some(self.capacity()?.saturating_sub(self.running as u64))
    }

    /// A request has come. `draw` is 64 random bits for the choice of pod.
    pub fn ask(&mut self, now: Moment, draw: u64) -> Verdict {
        if self.running + self.queue.len() >= self.bounds.places_max {
            return Verdict::Refuse(Refused::QueueFull);
        }
        let seq = self.next_seq;
        if let Some(pod) = self.free_pod(draw) {
            self.next_seq += 1;
            return Verdict::Go(self.take(pod, seq, now));
        }
        if self.queue.len() >= self.bounds.waiting_max {
            return Verdict::Refuse(Refused::QueueFull);
        }
        self.next_seq += 1;
        let key = self.waiters.insert(Waiter { seq, since: now, handed_back: false, outcome: Outcome::Waiting });
        self.queue.push_back(&mut self.waiters, key);
        Verdict::Wait(Ticket(key))
    }

    /// Takes a slot if one is free now and nobody waits; never queues.
    pub fn try_take(&mut self, now: Moment, draw: u64) -> Option<Slot> {
        if self.running + self.queue.len() >= self.bounds.places_max {
            return None;
        }
        let pod = self.free_pod(draw)?;
        let seq = self.next_seq;
        self.next_seq += 1;
        Some(self.take(pod, seq, now))
    }

    /// Takes a slot whatever the pods' capacities: the direct path, on which
    /// the pods keep their own limits. Still counted, so that nobody stops a
    /// pod under a request. `None` without a pod that takes work.
    pub fn take_beyond_limit(&mut self, now: Moment, draw: u64) -> Option<Slot> {
        self.note_candidates(|pod| Candidate { in_flight: pod.in_flight, free: !pod.suspended });
        let at = pick(Rule::LeastOfTwo, &self.candidates, &mut self.cursor, draw)?;
        let seq = self.next_seq;
        self.next_seq += 1;
        Some(self.take(self.order[at], seq, now))
    }

    /// What has become of a ticket. Anything but `Pending` spends it.
    pub fn claim(&mut self, ticket: Ticket) -> Claim {
        let claim = match self.waiters.get(ticket.0) {
            None => return Claim::Refused(Refused::RevisionRemoved),
            Some(Waiter { outcome: Outcome::Waiting, .. }) => return Claim::Pending,
            Some(&Waiter { seq, since, outcome: Outcome::Granted(pod), .. }) => Claim::Go(Slot { pod, seq, since }),
            Some(&Waiter { outcome: Outcome::Refused(why), .. }) => Claim::Refused(why),
        };
        self.waiters.remove(ticket.0);
        claim
    }

    /// The waiter has left, whatever had become of its ticket: its place is
    /// free, and a slot it had been granted goes to the next. Returns the pod
    /// that is let go of by it, if that slot was the last of a removed one.
    pub fn abandon(&mut self, ticket: Ticket, woken: &mut Vec<Ticket>) -> Option<PodKey> {
        if let Some(Waiter { outcome: Outcome::Waiting, .. }) = self.waiters.get(ticket.0) {
            self.queue.unlink(&mut self.waiters, ticket.0);
        }
        match self.waiters.remove(ticket.0) {
            Some(Waiter { seq, since, outcome: Outcome::Granted(pod), .. }) => {
                self.release(Slot { pod, seq, since }, woken).then_some(pod)
            }
            _ => None,
        }
    }

    /// The request at a slot has ended. Returns true when its pod had been
    /// removed and this was its last request: the pod is let go of.
    pub fn release(&mut self, slot: Slot, woken: &mut Vec<Ticket>) -> bool {
        let Some(pod) = self.pods.get_mut(slot.pod.0) else {
            debug_assert!(false, "a slot is given back once");
            return false;
        };
        debug_assert!(pod.in_flight > 0, "a slot is given back once");
        pod.in_flight = pod.in_flight.saturating_sub(1);
        let let_go = pod.gone && pod.in_flight == 0;
        self.running = self.running.saturating_sub(1);
        if let_go {
            self.pods.remove(slot.pod.0);
        }
        self.hand_out(woken);
        let_go
    }

    /// The pod gave the request back unserved: its slot is free again and the
    /// request waits at its old place. Suspend the pod first when it is the
    /// pod that failed, or the request may be granted the same slot. When the
    /// pod had been removed and this was its last request, it is let go of:
    /// [`Admission::holds`] is false then.
    pub fn hand_back(&mut self, slot: Slot, woken: &mut Vec<Ticket>) -> Ticket {
        let waiter = Waiter { seq: slot.seq, since: slot.since, handed_back: true, outcome: Outcome::Waiting };
        let key = self.waiters.insert(waiter);
        let mut before = self.queue.front(&self.waiters);
        while let Some(at) = before {
            if self.waiters.get(at).is_some_and(|waiter| waiter.seq > slot.seq) {
                break;
            }
            before = self.queue.after(&self.waiters, at);
        }
        self.queue.insert_before(&mut self.waiters, key, before);
        self.release(slot, woken);
        Ticket(key)
    }

    /// Refuses everybody who waits; their tickets are appended to `woken`.
    pub fn refuse_all(&mut self, why: Refused, woken: &mut Vec<Ticket>) {
        while let Some(key) = self.queue.pop_front(&mut self.waiters) {
            if let Some(waiter) = self.waiters.get_mut(key) {
                waiter.outcome = Outcome::Refused(why);
            }
            woken.push(Ticket(key));
        }
    }

    /// Requests that wait.
    pub fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// When the oldest of those who wait came.
    pub fn oldest_since(&self) -> Option<Moment> {
        self.queue.front(&self.waiters).and_then(|key| self.waiters.get(key)).map(|waiter| waiter.since)
    }

    /// Slots that are taken.
    pub fn running(&self) -> usize {
        self.running
    }

    /// False once a pod was let go of: removed, and its last request gone.
    pub fn holds(&self, pod: PodKey) -> bool {
        self.pods.get(pod.0).is_some()
    }

    /// Requests at one pod.
    pub fn in_flight(&self, pod: PodKey) -> u32 {
        self.pods.get(pod.0).map_or(0, |pod| pod.in_flight)
    }

    /// Slots of all pods that take work, taken ones included; `None` = no limit.
    pub fn capacity(&self) -> Option<u64> {
        let mut sum = 0u64;
        for pod in self.order.iter().filter_map(|key| self.pods.get(key.0)) {
            sum += u64::from(pod.capacity?);
        }
        Some(sum)
    }

    /// Pods that may be chosen, suspended ones included.
    pub fn pod_count(&self) -> usize {
        self.order.len()
    }

    /// Checks the invariants of the module's head; for tests and simulation.
    ///
    /// # Errors
    /// The invariant that does not hold, in words.
    pub fn check(&self) -> Result<(), String> {
        let held = self.order.iter().filter_map(|key| self.pods.get(key.0));
        if !self.queue.is_empty() && held.clone().any(|pod| pod.candidate().free) {
            return Err(format!("{} wait while a slot is free", self.queue.len()));
        }
        let newcomers = self.queued().filter(|waiter| !waiter.handed_back).count();
        if newcomers > self.bounds.waiting_max {
            return Err(format!("{newcomers} newcomers wait, {} may", self.bounds.waiting_max));
        }
        let on_listed: usize = held.map(|pod| pod.in_flight as usize).sum();
        if on_listed > self.running {
            return Err(format!("{on_listed} at listed pods, but {} run in all", self.running));
        }
        Ok(())
    }

    /// Those who wait, oldest first.
    fn queued(&self) -> impl Iterator<Item = &Waiter> {
        let first = self.queue.front(&self.waiters);
        let keys = std::iter::successors(first, |&key| self.queue.after(&self.waiters, key));
        keys.filter_map(|key| self.waiters.get(key))
    }

    fn take(&mut self, pod: PodKey, seq: u64, since: Moment) -> Slot {
        if let Some(state) = self.pods.get_mut(pod.0) {
            state.in_flight += 1;
        }
        self.running += 1;
        Slot { pod, seq, since }
    }

    /// A pod for a newcomer: none while anybody waits, so nobody overtakes.
    fn free_pod(&mut self, draw: u64) -> Option<PodKey> {
        if !self.queue.is_empty() { None } else { self.choose(draw) }
    }

    fn choose(&mut self, draw: u64) -> Option<PodKey> {
        // The sidecar's case, and the local floor's commonest.
        if let [only] = self.order[..] {
            return self.pods.get(only.0).filter(|pod| pod.candidate().free).map(|_| only);
        }
        self.note_candidates(Pod::candidate);
        let at = pick(self.rule, &self.candidates, &mut self.cursor, draw)?;
        Some(self.order[at])
    }

    fn note_candidates(&mut self, of: impl Fn(&Pod) -> Candidate) {
        self.candidates.clear();
        let none = Candidate { in_flight: 0, free: false };
        self.candidates.extend(self.order.iter().map(|key| self.pods.get(key.0).map_or(none, &of)));
    }

    fn hand_out(&mut self, woken: &mut Vec<Ticket>) {
        while !self.queue.is_empty() {
            // Waiters are handed out in a row: the sequence itself spreads them.
            let draw = self.next_seq.wrapping_add(woken.len() as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let Some(pod) = self.choose(draw) else { return };
            let Some(key) = self.queue.pop_front(&mut self.waiters) else { return };
            let Some(waiter) = self.waiters.get_mut(key) else { return };
            waiter.outcome = Outcome::Granted(pod);
            let (seq, since) = (waiter.seq, waiter.since);
            self.take(pod, seq, since);
            woken.push(Ticket(key));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Moment = Moment::from_unix_millis(1_000);
    const ROOMY: Bounds = Bounds { waiting_max: 100, places_max: usize::MAX };

    fn go(verdict: Verdict) -> Slot {
        match verdict {
            Verdict::Go(slot) => slot,
            other => panic!("expected a slot, got {other:?}"),
        }
    }

    fn wait(verdict: Verdict) -> Ticket {
        match verdict {
            Verdict::Wait(ticket) => ticket,
            other => panic!("expected a place in the queue, got {other:?}"),
        }
    }

    fn claimed(state: &mut Admission, ticket: Ticket) -> Slot {
        match state.claim(ticket) {
            Claim::Go(slot) => slot,
            other => panic!("expected a granted slot, got {other:?}"),
        }
    }

    fn with_pods(capacities: &[Option<u32>]) -> (Admission, Vec<PodKey>) {
        let mut state = Admission::new(ROOMY, Rule::FirstFree);
        let pods = capacities.iter().map(|&capacity| state.add_pod(capacity, &mut Vec::new())).collect();
        (state, pods)
    }

    #[test]
    fn a_freed_slot_goes_to_the_oldest_waiter_and_no_newcomer_overtakes() {
        let (mut state, _) = with_pods(&[Some(1)]);
        let slot = go(state.ask(NOW, 0));
        let (first, second) = (wait(state.ask(NOW, 0)), wait(state.ask(NOW, 0)));
        let mut woken = Vec::new();
        state.release(slot, &mut woken);
        assert_eq!(woken, [first]);
        // The slot is already the first waiter's, though it has not claimed it.
        let third = wait(state.ask(NOW, 0));
        assert!(state.try_take(NOW, 0).is_none());
        let slot = claimed(&mut state, first);
        woken.clear();
        state.release(slot, &mut woken);
        assert_eq!(woken, [second]);
        assert_eq!(state.claim(third), Claim::Pending);
        state.check().unwrap();
    }

    #[test]
    fn a_waiter_that_leaves_after_being_granted_passes_its_slot_on() {
        let (mut state, _) = with_pods(&[Some(1)]);
        let slot = go(state.ask(NOW, 0));
        let (first, second) = (wait(state.ask(NOW, 0)), wait(state.ask(NOW, 0)));
        let mut woken = Vec::new();
        state.release(slot, &mut woken);
        woken.clear();
        state.abandon(first, &mut woken);
        assert_eq!(woken, [second]);
        let slot = claimed(&mut state, second);
        state.release(slot, &mut Vec::new());
        assert_eq!((state.running(), state.waiting()), (0, 0));
    }

    #[test]
    fn a_new_pod_takes_as_many_waiters_as_it_has_slots() {
        let (mut state, _) = with_pods(&[]);
        let tickets: Vec<Ticket> = (0..5).map(|_| wait(state.ask(NOW, 0))).collect();
        let mut woken = Vec::new();
        state.add_pod(Some(3), &mut woken);
        assert_eq!(woken, tickets[..3]);
        assert_eq!((state.running(), state.waiting()), (3, 2));
        state.check().unwrap();
    }

    #[test]
    fn places_bound_those_who_run_and_wait_together() {
        let mut state = Admission::new(Bounds { waiting_max: 100, places_max: 11 }, Rule::FirstFree);
        state.add_pod(Some(1), &mut Vec::new());
        go(state.ask(NOW, 0));
        for _ in 0..10 {
            wait(state.ask(NOW, 0));
        }
        assert_eq!(state.ask(NOW, 0), Verdict::Refuse(Refused::QueueFull));
    }

    #[test]
    fn a_lowered_capacity_lets_running_requests_end_and_grants_nothing_before() {
        let (mut state, pods) = with_pods(&[Some(3)]);
        let slots: Vec<Slot> = (0..3).map(|_| go(state.ask(NOW, 0))).collect();
        let ticket = wait(state.ask(NOW, 0));
        let mut woken = Vec::new();
        state.resize_pod(pods[0], Some(1), &mut woken);
        state.release(slots[0], &mut woken);
        state.release(slots[1], &mut woken);
        assert!(woken.is_empty());
        state.release(slots[2], &mut woken);
        assert_eq!(woken, [ticket]);
    }

    #[test]
    fn a_request_handed_back_finds_its_old_place_and_not_the_suspended_pod() {
        let (mut state, pods) = with_pods(&[Some(1), Some(1)]);
        let oldest = go(state.ask(NOW, 0));
        let other = go(state.ask(NOW, 0));
        let late = wait(state.ask(NOW, 0));
        let mut woken = Vec::new();
        state.suspend_pod(pods[0]);
        let again = state.hand_back(oldest, &mut woken);
        assert!(woken.is_empty());
        state.release(other, &mut woken);
        assert_eq!(woken, [again]);
        assert_eq!(claimed(&mut state, again).pod, pods[1]);
        woken.clear();
        state.resume_pod(pods[0], &mut woken);
        assert_eq!(woken, [late]);
        state.check().unwrap();
    }

    #[test]
    fn a_pod_that_others_have_filled_gets_as_much_of_ours_as_it_says() {
        let (mut state, pods) = with_pods(&[Some(3)]);
        let (one, two) = (go(state.ask(NOW, 0)), go(state.ask(NOW, 0)));
        let mut woken = Vec::new();
        // It had room for one of them.
        state.note_full(pods[0]);
        let back = state.hand_back(two, &mut woken);
        assert!(woken.is_empty() && state.is_worth_asking(pods[0]));
        let later: Vec<Ticket> = (0..3).map(|_| wait(state.ask(NOW, 0))).collect();
        // The end of our own request there is room for the next.
        state.release(one, &mut woken);
        assert_eq!(woken, [back]);
        let two = claimed(&mut state, back);
        // The others have left one slot.
        woken.clear();
        state.note_free(pods[0], 1, &mut woken);
        assert_eq!(woken, [later[0]]);
        assert!(state.is_worth_asking(pods[0]));
        woken.clear();
        state.note_free(pods[0], 9, &mut woken);
        assert_eq!(woken, [later[1]], "never beyond its capacity");
        assert!(!state.is_worth_asking(pods[0]));
        woken.clear();
        state.release(two, &mut woken);
        assert_eq!(woken, [later[2]]);
        state.check().unwrap();
    }

    #[test]
    fn a_removed_pod_is_let_go_of_with_its_last_request() {
        let (mut state, pods) = with_pods(&[Some(2)]);
        let (one, two) = (go(state.ask(NOW, 0)), go(state.ask(NOW, 0)));
        let ticket = wait(state.ask(NOW, 0));
        assert!(!state.remove_pod(pods[0]));
        assert!(!state.release(one, &mut Vec::new()));
        assert!(state.release(two, &mut Vec::new()));
        assert_eq!(state.claim(ticket), Claim::Pending);
        assert_eq!((state.running(), state.pod_count()), (0, 0));
        let (mut idle, pods) = with_pods(&[Some(2)]);
        assert!(idle.remove_pod(pods[0]));
    }

    #[test]
    fn a_pod_that_comes_back_has_what_it_had() {
        let (mut state, pods) = with_pods(&[Some(2)]);
        let (one, two) = (go(state.ask(NOW, 0)), go(state.ask(NOW, 0)));
        let first = wait(state.ask(NOW, 0));
        state.suspend_pod(pods[0]);
        let mut woken = Vec::new();
        assert!(!state.restore_pod(pods[0], Some(2), &mut woken), "it is there");
        assert!(!state.remove_pod(pods[0]));
        assert!(state.restore_pod(pods[0], Some(2), &mut woken) && woken.is_empty(), "it is full");
        assert!(!state.release(one, &mut woken));
        assert_eq!(woken, [first]);
        let first = claimed(&mut state, first);
        assert!(!state.release(two, &mut Vec::new()) && !state.release(first, &mut Vec::new()));
        assert!(state.remove_pod(pods[0]) && !state.restore_pod(pods[0], Some(2), &mut woken), "it was let go of");
        state.check().unwrap();
    }

    #[test]
    fn pods_are_chosen_from_in_the_order_into_which_they_are_brought() {
        let (mut state, pods) = with_pods(&[Some(1), Some(1), Some(1)]);
        state.arrange(&[pods[2], pods[0]]);
        let chosen: Vec<PodKey> = (0..3).map(|_| go(state.ask(NOW, 0)).pod).collect();
        assert_eq!(chosen, [pods[2], pods[0], pods[1]]);
    }

    #[test]
    fn a_removed_pod_is_let_go_of_too_when_its_last_slot_was_never_claimed() {
        let (mut state, pods) = with_pods(&[Some(1)]);
        let slot = go(state.ask(NOW, 0));
        let granted = wait(state.ask(NOW, 0));
        assert!(!state.release(slot, &mut Vec::new()));
        assert!(!state.remove_pod(pods[0]) && state.holds(pods[0]));
        assert_eq!(state.abandon(granted, &mut Vec::new()), Some(pods[0]));
        assert!(!state.holds(pods[0]));
        assert_eq!(state.abandon(granted, &mut Vec::new()), None);
    }

    #[test]
    fn a_removed_pod_is_let_go_of_too_when_it_gives_its_last_request_back() {
        let (mut state, pods) = with_pods(&[Some(2)]);
        let (one, two) = (go(state.ask(NOW, 0)), go(state.ask(NOW, 0)));
        assert!(!state.remove_pod(pods[0]));
        state.hand_back(one, &mut Vec::new());
        assert!(state.holds(pods[0]));
        state.hand_back(two, &mut Vec::new());
        assert!(!state.holds(pods[0]));
    }

    #[test]
    fn requests_that_were_handed_back_wait_beyond_the_bounds() {
        let mut state = Admission::new(Bounds { waiting_max: 1, places_max: usize::MAX }, Rule::FirstFree);
        let pod = state.add_pod(Some(2), &mut Vec::new());
        let (one, two) = (go(state.ask(NOW, 0)), go(state.ask(NOW, 0)));
        wait(state.ask(NOW, 0));
        state.suspend_pod(pod);
        state.hand_back(one, &mut Vec::new());
        state.hand_back(two, &mut Vec::new());
        assert_eq!((state.running(), state.waiting()), (0, 3));
        state.check().unwrap();
        assert_eq!(state.ask(NOW, 0), Verdict::Refuse(Refused::QueueFull));
    }

    #[test]
    fn without_a_limit_all_go_and_the_direct_path_is_counted_too() {
        let mut state = Admission::new(ROOMY, Rule::LeastOfTwo);
        assert!(state.take_beyond_limit(NOW, 3).is_none());
        let pod = state.add_pod(None, &mut Vec::new());
        for draw in 0..50 {
            go(state.ask(NOW, draw));
        }
        assert!(state.take_beyond_limit(NOW, 3).is_some());
        assert_eq!(state.in_flight(pod), 51);
        assert_eq!(state.capacity(), None);
    }

    #[test]
    fn everybody_who_waits_can_be_refused_at_once() {
        let (mut state, _) = with_pods(&[]);
        let tickets: Vec<Ticket> = (0..3).map(|_| wait(state.ask(NOW, 0))).collect();
        let mut woken = Vec::new();
        state.refuse_all(Refused::StartFailed, &mut woken);
        assert_eq!(woken, tickets);
        assert_eq!(state.claim(tickets[1]), Claim::Refused(Refused::StartFailed));
        assert_eq!(state.waiting(), 0);
    }
}
