//! Clients: they come, wait, are served, and leave, in any state.

use super::invariant::{Invariant, Violation};
use super::setup::{MILLI, Micros};
use super::shadow::{RequestId, Standing};
use super::world::{Event, Turn, World};
use policy::admit::{Claim, PodKey, Refused, Slot, Ticket, Verdict};
use policy::timeline::{Kind, MeterReport};
use policy::world::Path;

/// A request is sent to a pod at most so many times.
const TRIES: u32 = 3;

/// Arrivals of a flood: more than an arena keeps of its table when it is empty.
const FLOOD: u64 = 1_100;

/// Spent tickets that are kept to be tried again.
const SPENT_KEPT: usize = 64;

/// A request that is inside.
#[derive(Clone, Copy, Debug)]
pub(super) struct Client {
    held: Held,
    turn: Turn,
    tries: u32,
    /// Counted by the activator; the direct path leaves that to the pods.
    counted: bool,
}

/// What a client has in its hands.
#[derive(Clone, Copy, Debug)]
enum Held {
    Ticket(Ticket),
    Slot(Slot),
}

impl Client {
    /// The pod that it is at.
    pub(super) fn pod(&self) -> Option<PodKey> {
        match self.held {
            Held::Ticket(_) => None,
            Held::Slot(slot) => Some(slot.pod),
        }
    }

    pub(super) fn counted(&self) -> bool {
        self.counted
    }

    pub(super) fn turn(&self) -> Turn {
        self.turn
    }
}

impl World {
    pub(super) fn arrive(&mut self) {
        if self.closed {
            return;
        }
        let Some(&phase) = self.setup.phases.iter().find(|phase| self.now < phase.until) else { return };
        let Some(every) = phase.every else {
            return self.after(phase.until - self.now, Event::Arrive);
        };
        let next = self.draw.below(2 * every);
        self.after(next, Event::Arrive);
        self.come();
    }

    pub(super) fn flood(&mut self) {
        for _ in 0..FLOOD {
            self.come();
        }
        self.saw("flood");
    }

    /// One client comes, by whichever way is open.
    fn come(&mut self) {
        let id = self.next_request;
        self.next_request += 1;
        if self.path == Path::Direct {
            return self.go_direct(id);
        }
        if self.trouble && self.seam.core().pod_count() == 0 {
            self.saw("refused in trouble");
            return self.log(format_args!("r{id} comes, pods cannot be started"));
        }
        if self.draw.one_in(24) { self.try_take(id) } else { self.ask(id) }
    }

    /// Through the limit.
    pub(super) fn ask(&mut self, id: RequestId) {
        self.enter_meter();
        let (now, draw) = (self.moment(), self.draw.bits());
        let verdict = self.seam.ask(now, draw);
        self.shadow.asked(id, now, verdict);
        match verdict {
            Verdict::Go(slot) => {
                self.log(format_args!("r{id} asks: goes to {}", self.name(slot.pod)));
                self.settle(None);
                self.run_at(id, slot, Client { held: Held::Slot(slot), turn: 0, tries: 0, counted: true });
            }
            Verdict::Wait(ticket) => {
                self.saw("queued");
                self.log(format_args!("r{id} asks: waits"));
                self.clients.insert(id, Client { held: Held::Ticket(ticket), turn: 0, tries: 0, counted: true });
                self.settle(None);
                if self.draw.one_in(self.setup.leaves_one_in) {
                    let patience = self.draw.below(2 * self.setup.service_most);
                    self.after(patience, Event::Leave(id));
                }
            }
            Verdict::Refuse(why) => {
                self.saw("refused by bounds");
                self.log(format_args!("r{id} asks: refused, {why:?}"));
                self.settle(None);
                self.leave_meter();
            }
        }
    }

    fn try_take(&mut self, id: RequestId) {
        let (now, draw) = (self.moment(), self.draw.bits());
        let slot = self.seam.core_mut().try_take(now, draw);
        self.shadow.tried(id, now, slot);
        match slot {
            Some(slot) => {
                self.enter_meter();
                self.log(format_args!("r{id} tries: goes to {}", self.name(slot.pod)));
                self.settle(None);
                self.run_at(id, slot, Client { held: Held::Slot(slot), turn: 0, tries: 0, counted: true });
            }
            None => {
                self.log(format_args!("r{id} tries: nothing free"));
                self.settle(None);
            }
        }
    }

    fn go_direct(&mut self, id: RequestId) {
        let (now, draw) = (self.moment(), self.draw.bits());
        let slot = self.seam.core_mut().take_beyond_limit(now, draw);
        self.shadow.went_direct(id, now, slot);
        let Some(slot) = slot else {
            self.log(format_args!("r{id} finds no pod on the direct path"));
            self.settle(None);
            return self.ask(id);
        };
        self.saw("direct");
        self.log(format_args!("r{id} goes direct to {}", self.name(slot.pod)));
        self.settle(None);
        self.run_at(id, slot, Client { held: Held::Slot(slot), turn: 0, tries: 0, counted: false });
    }

    /// A ticket was woken: its client claims soon, or leaves just before.
    pub(super) fn wake(&mut self, ticket: Ticket) {
        let Some(id) = self.shadow.request_of(ticket) else { return };
        let Some(turn) = self.clients.get(&id).map(Client::turn) else { return };
        let delay = if self.draw.one_in(3) { self.draw.below(20 * MILLI) } else { 0 };
        if self.draw.one_in(4 * self.setup.leaves_one_in) {
            let sooner = self.draw.below(delay + 1);
            self.after(sooner, Event::Leave(id));
        }
        self.after(delay, Event::Claim(id, turn));
    }

    pub(super) fn claim(&mut self, id: RequestId, turn: Turn) {
        let Some((client, Held::Ticket(ticket))) = self.in_turn(id, turn) else { return };
        let claim = self.seam.claim(ticket);
        self.shadow.claimed(id, ticket, claim);
        self.note_spent(ticket);
        match claim {
            Claim::Go(slot) => {
                self.saw("claimed");
                self.log(format_args!("r{id} claims: goes to {}", self.name(slot.pod)));
                self.settle(None);
                self.run_at(id, slot, client);
            }
            Claim::Refused(why) => {
                self.saw("claimed a refusal");
                self.log(format_args!("r{id} claims: refused, {why:?}"));
                self.settle(None);
                self.go_away(id);
            }
            Claim::Pending => {
                self.log(format_args!("r{id} claims: was woken for nothing"));
                let what = format!("r{id} was woken, and its ticket says that it has to wait");
                self.shadow.found.push(Violation::new(Invariant::Ticket, what));
            }
        }
    }

    /// A request is at a pod: it will be served, or given back, or its client
    /// leaves before.
    fn run_at(&mut self, id: RequestId, slot: Slot, client: Client) {
        let client = Client { held: Held::Slot(slot), turn: client.turn + 1, tries: client.tries + 1, ..client };
        self.clients.insert(id, client);
        self.enter_pod(slot.pod, client.counted);
        let service = self.draw.between(1, self.setup.service_most);
        let taken_out = !self.shadow.is_listed(slot.pod);
        if taken_out && self.draw.one_in(2) {
            // Its pod was removed between the grant and the claim.
            self.after(0, Event::Return(id, client.turn));
        } else if self.draw.one_in(self.setup.returned_one_in) {
            let soon = self.draw.below(5 * MILLI);
            self.after(soon, Event::Return(id, client.turn));
        } else {
            self.after(service, Event::Finish(id, client.turn));
        }
        if self.draw.one_in(2 * self.setup.leaves_one_in) {
            let soon = self.draw.below(service);
            self.after(soon, Event::Leave(id));
        }
    }

    pub(super) fn finish(&mut self, id: RequestId, turn: Turn) {
        if let Some((_, Held::Slot(slot))) = self.in_turn(id, turn) {
            self.release(id, slot, "is served");
        }
    }

    pub(super) fn leave(&mut self, id: RequestId) {
        let Some(client) = self.clients.get(&id).copied() else { return };
        match client.held {
            Held::Slot(slot) => {
                self.saw("left while running");
                self.release(id, slot, "leaves its pod");
            }
            Held::Ticket(ticket) => self.abandon(id, ticket),
        }
    }

    fn abandon(&mut self, id: RequestId, ticket: Ticket) {
        let standing = self.shadow.standing(id);
        let state = match standing {
            Some(Standing::Granted { .. }) => "left when granted",
            Some(Standing::Refused(_)) => "left when refused",
            _ => "left while queued",
        };
        self.saw(state);
        let let_go = self.seam.abandon(ticket, &mut self.woken);
        self.shadow.abandoned(id, ticket);
        self.log(format_args!("r{id} {state}"));
        self.settle(let_go);
        self.note_spent(ticket);
        self.go_away(id);
    }

    fn release(&mut self, id: RequestId, slot: Slot, what: &str) {
        let let_go = self.seam.release(slot, &mut self.woken).then_some(slot.pod);
        self.shadow.released(id);
        self.log(format_args!("r{id} {what}, {}", self.name(slot.pod)));
        self.leave_pod(slot.pod, id);
        self.settle(let_go);
        self.go_away(id);
    }

    /// A pod gives a request back: to its old place, unless it was tried often.
    pub(super) fn hand_back(&mut self, id: RequestId, turn: Turn) {
        let Some((client, Held::Slot(slot))) = self.in_turn(id, turn) else { return };
        if client.tries >= TRIES {
            return self.release(id, slot, "was tried often enough");
        }
        if !client.counted {
            self.enter_meter();
        }
        if self.shadow.is_listed(slot.pod) && !self.shadow.is_suspended(slot.pod) && !self.draw.one_in(3) {
            self.doubt(slot.pod);
        }
        self.leave_pod(slot.pod, id);
        let ticket = self.seam.core_mut().hand_back(slot, &mut self.woken);
        let let_go = (!self.seam.core().holds(slot.pod)).then_some(slot.pod);
        self.shadow.handed_back(id, ticket);
        let client = Client { held: Held::Ticket(ticket), turn: client.turn + 1, counted: true, ..client };
        self.clients.insert(id, client);
        self.saw("handed back");
        self.log(format_args!("r{id} is handed back by {}", self.name(slot.pod)));
        self.settle(let_go);
    }

    /// Everybody who waits is refused.
    pub(super) fn refuse_all(&mut self, why: Refused) {
        self.seam.core_mut().refuse_all(why, &mut self.woken);
        let woken = std::mem::take(&mut self.woken);
        self.shadow.refused_all(why, &woken);
        self.log(format_args!("all {} who wait are refused, {why:?}", woken.len()));
        for ticket in woken {
            self.wake(ticket);
        }
        self.settle(None);
    }

    /// A spent ticket is tried once more: it must not name anybody else's place.
    pub(super) fn try_spent(&mut self) {
        if self.spent.is_empty() {
            return;
        }
        let ticket = self.draw.of(&self.spent);
        let claim = self.seam.claim(ticket);
        self.log(format_args!("a spent ticket is claimed: {claim:?}"));
        if !matches!(claim, Claim::Refused(_)) {
            self.shadow.found.push(Violation::new(Invariant::Ticket, format!("a spent ticket says {claim:?}")));
        }
        let let_go = self.seam.abandon(ticket, &mut self.woken);
        self.settle(let_go);
    }

    fn note_spent(&mut self, ticket: Ticket) {
        if self.spent.len() < SPENT_KEPT {
            self.spent.push(ticket);
        } else if self.draw.one_in(4) {
            // The first ones stay: theirs are the places that are taken again.
            let at = self.draw.between(SPENT_KEPT as u64 / 2, SPENT_KEPT as u64 - 1) as usize;
            self.spent[at] = ticket;
        }
    }

    fn in_turn(&self, id: RequestId, turn: Turn) -> Option<(Client, Held)> {
        self.clients.get(&id).filter(|client| client.turn == turn).map(|client| (*client, client.held))
    }

    fn go_away(&mut self, id: RequestId) {
        if self.clients.remove(&id).is_some_and(|client| client.counted) {
            self.leave_meter();
        }
    }

    fn enter_meter(&mut self) {
        if self.meter.enter(self.moment()) {
            self.announce(MeterReport::ANNOUNCEMENT);
        }
    }

    fn leave_meter(&mut self) {
        self.meter.leave(self.moment());
    }

    fn enter_pod(&mut self, key: PodKey, counted: bool) {
        let now = self.moment();
        if let Some(pod) = self.pod_of(key) {
            pod.timeline.enter(now, kind(counted));
        }
    }

    fn leave_pod(&mut self, key: PodKey, id: RequestId) {
        let now = self.moment();
        let counted = self.clients.get(&id).is_some_and(Client::counted);
        if let Some(pod) = self.pod_of(key) {
            pod.timeline.leave(now, kind(counted));
        }
    }

    /// So that a wait is never longer than it takes everybody to give up.
    pub(super) fn longest_wait(&self) -> Micros {
        2 * self.setup.service_most
    }
}

fn kind(counted: bool) -> Kind {
    if counted { Kind::Proxied } else { Kind::Direct }
}
