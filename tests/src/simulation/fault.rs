//! Where faults are planted: between the core and those who use it.
//!
//! [`Seam`] passes every call on to the [`Admission`]. With a fault planted, it
//! now and then does what a limiter with that fault would do; the checks have
//! to notice.

use super::draw::Draw;
use policy::admit::{Admission, Claim, PodKey, Slot, Ticket, Verdict};
use policy::moment::Moment;
use std::collections::{BTreeMap, BTreeSet};

/// A fault on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// None.
    None,
    /// A newcomer takes the slot of a waiter who was woken and has not claimed.
    Barging,
    /// A woken waiter who leaves keeps its slot for ever.
    LostPermit,
    /// A slot comes back twice.
    DoubleRelease,
}

impl Fault {
    /// All that can be planted.
    pub const PLANTED: [Fault; 3] = [Fault::Barging, Fault::LostPermit, Fault::DoubleRelease];

    /// The word for it on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Fault::None => "none",
            Fault::Barging => "barging",
            Fault::LostPermit => "lost-permit",
            Fault::DoubleRelease => "double-release",
        }
    }
}

/// A planted fault shows at one in so many chances, so that histories get
/// somewhere before it does.
const SHOWS_ONE_IN: u64 = 8;

/// The core, and the fault planted before it.
pub(super) struct Seam {
    core: Admission,
    fault: Fault,
    /// Apart from the history's own, which goes the same way until the fault shows.
    draw: Draw,
    /// Tickets that were woken with a slot and not claimed yet.
    granted: BTreeSet<Ticket>,
    /// Where a waiter that was overtaken really stands.
    overtaken: BTreeMap<Ticket, Ticket>,
}

impl Seam {
    pub(super) fn new(core: Admission, fault: Fault, seed: u64) -> Seam {
        let draw = Draw::new(!seed);
        Seam { core, fault, draw, granted: BTreeSet::new(), overtaken: BTreeMap::new() }
    }

    /// The core, to look at.
    pub(super) fn core(&self) -> &Admission {
        &self.core
    }

    /// The core, for calls that no fault concerns; tickets woken with a slot
    /// have to be told to [`Seam::note`].
    pub(super) fn core_mut(&mut self) -> &mut Admission {
        &mut self.core
    }

    /// These were woken with a slot.
    pub(super) fn note(&mut self, woken: &[Ticket]) {
        if self.fault != Fault::None {
            self.granted.extend(woken);
        }
    }

    pub(super) fn ask(&mut self, now: Moment, draw: u64) -> Verdict {
        let verdict = self.core.ask(now, draw);
        let (Verdict::Wait(place), Some(&victim)) = (verdict, self.granted.first()) else { return verdict };
        if !self.shows(Fault::Barging) {
            return verdict;
        }
        let Claim::Go(slot) = self.core.claim(victim) else { return verdict };
        self.granted.remove(&victim);
        self.overtaken.insert(victim, place);
        Verdict::Go(slot)
    }

    pub(super) fn claim(&mut self, ticket: Ticket) -> Claim {
        let ticket = self.overtaken.get(&ticket).copied().unwrap_or(ticket);
        self.granted.remove(&ticket);
        self.core.claim(ticket)
    }

    pub(super) fn abandon(&mut self, ticket: Ticket, woken: &mut Vec<Ticket>) -> Option<PodKey> {
        if self.granted.remove(&ticket) && self.shows(Fault::LostPermit) {
            // Taken, and never given back.
            self.core.claim(ticket);
            return None;
        }
        self.core.abandon(ticket, woken)
    }

    pub(super) fn release(&mut self, slot: Slot, woken: &mut Vec<Ticket>) -> bool {
        let let_go = self.core.release(slot, woken);
        if self.shows(Fault::DoubleRelease) {
            self.core.release(slot, woken);
        }
        let_go
    }

    fn shows(&mut self, fault: Fault) -> bool {
        self.fault == fault && self.draw.one_in(SHOWS_ONE_IN)
    }
}
