//! The shadow's books against the core's, after each call.

use super::{Shadow, Standing};
use crate::simulation::invariant::{Invariant, Violation};
use policy::admit::{Admission, PodKey, Ticket};
use std::fmt::Arguments;

impl Shadow {
    /// Takes in who was woken with a slot, and which pod was let go of, by the
    /// last call; then compares the books.
    pub(in crate::simulation) fn settle(&mut self, core: &Admission, woken: &[Ticket], let_go: Option<PodKey>) {
        for ticket in woken {
            let by_call = self.calls;
            let id = self.next_in_line(*ticket, "is woken with a slot");
            if let Some(request) = id.and_then(|id| self.requests.get_mut(&id)) {
                request.standing = Standing::Granted { by_call };
                self.granted += 1;
            }
        }
        self.compare_pods(core, woken.len());
        self.compare_totals(core);
        self.compare_let_go(let_go);
        self.compare_queue();
        if let Err(what) = core.check() {
            self.note(Invariant::SelfCheck, what);
        }
    }

    fn compare_queue(&mut self) {
        if let Some(oldest) = self.queue.first()
            && let Some(free) = self.pods.values().find(|place| place.free())
        {
            let what = format!("r{oldest} waits, though p{} has a free slot", free.number);
            self.note(Invariant::FreeSlot, what);
        }
    }

    fn compare_pods(&mut self, core: &Admission, grants: usize) {
        let mut granted_where_free = 0;
        let mut found = Vec::new();
        for (&pod, place) in &mut self.pods {
            let (told, known) = (core.in_flight(pod), place.limited + place.direct);
            let number = place.number;
            if told < known {
                found.push(Violation::new(Invariant::Slots, format!("{known} are at p{number}, {told} are counted")));
            }
            let before = place.unclaimed;
            place.unclaimed = told.saturating_sub(known);
            if place.unclaimed > before && place.blocked() {
                let what = format!("p{number} takes no work, but was granted to a waiter");
                found.push(Violation::new(Invariant::Blocked, what));
            }
            if place.unclaimed > before && place.capacity.is_some_and(|capacity| place.total() > capacity) {
                let what = format!("p{number} was granted to a waiter, and now has {}", place.total());
                found.push(Violation::new(Invariant::Limit, what));
            }
            let most = place.capacity.map_or(u32::MAX, |capacity| capacity.max(place.allowance));
            if place.within_limit() > most {
                let what = format!("{} are at p{number}, {most} may be", place.within_limit());
                found.push(Violation::new(Invariant::Limit, what));
            }
            place.allowance = place.allowance.min(place.within_limit());
            if !place.blocked() {
                granted_where_free += place.unclaimed as usize;
            }
        }
        self.found.append(&mut found);
        if grants > granted_where_free {
            let what = format!("{grants} were granted, {granted_where_free} of them at pods that take work");
            self.note(Invariant::Blocked, what);
        }
    }

    fn compare_totals(&mut self, core: &Admission) {
        let unclaimed: usize = self.pods.values().map(|place| place.unclaimed as usize).sum();
        let at_pods: usize = self.pods.values().map(|place| (place.limited + place.direct) as usize).sum();
        let listed = || self.pods.values().filter(|place| !place.removed);
        let capacity = listed().map(|place| place.capacity.map(u64::from)).sum::<Option<u64>>();
        let since = self.queue.first().and_then(|id| self.requests.get(id)).map(|request| request.since);
        let (running, taken) = (core.running(), at_pods + self.granted);
        let (waiting, due) = (core.waiting(), self.queue.len());
        let mut wrong = Vec::new();
        let mut same = |holds: bool, what: Arguments<'_>| {
            if !holds {
                wrong.push(Violation::new(Invariant::Slots, what.to_string()));
            }
        };
        same(unclaimed == self.granted, format_args!("{} were woken, {unclaimed} slots wait for them", self.granted));
        same(running == taken, format_args!("{running} slots are taken, {taken} requests have one"));
        same(waiting == due, format_args!("{waiting} wait, {due} have to"));
        same(core.pod_count() == listed().count(), format_args!("{} pods are listed", core.pod_count()));
        same(core.capacity() == capacity, format_args!("{:?} slots in all, not {capacity:?}", core.capacity()));
        same(core.oldest_since() == since, format_args!("the oldest came {:?}, not {since:?}", core.oldest_since()));
        self.found.append(&mut wrong);
    }

    fn compare_let_go(&mut self, let_go: Option<PodKey>) {
        let over: Vec<PodKey> =
            self.pods.iter().filter(|(_, place)| place.removed && place.total() == 0).map(|(&pod, _)| pod).collect();
        if let Some(pod) = let_go.filter(|pod| !over.contains(pod)) {
            let number = self.place(pod).map(|place| place.number);
            self.note(Invariant::LetGo, format!("p{number:?} is let go of, with requests or for the second time"));
        }
        for pod in over {
            let Some(place) = self.pods.remove(&pod) else { continue };
            if let_go != Some(pod) {
                let what = format!("the last request at p{}, which was removed, is gone; nobody is told", place.number);
                self.note(Invariant::LetGo, what);
            }
        }
    }
}
