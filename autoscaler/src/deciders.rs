//! All revisions that are decided on, and which of them are due.
//!
//! Each has a place that stays its own, so that a round over all of them can
//! stop in between: it goes on where it was, whatever came or went meanwhile.

use crate::decider::{Decider, Taken};
use crate::history::History;
use crate::history::room::Room;
use policy::forecast::Beat;
use policy::moment::Moment;
use policy::revision::RevisionId;
use policy::world::Order;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

pub(crate) struct Deciders {
    /// What all histories may hold, those that follow included.
    room: Room,
    /// Histories of revisions that were not seen yet.
    pub(crate) earlier: BTreeMap<RevisionId, History>,
    places: HashMap<RevisionId, usize>,
    all: Vec<Option<Decider>>,
    free: Vec<usize>,
    /// Places of those to be decided on, the next one first.
    due: VecDeque<usize>,
    round: Round,
    /// Decisions on those that are gone.
    past: u64,
    /// How many there were so far.
    serials: u64,
}

/// The last round.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    /// It was begun, and nothing decided yet.
    begun: bool,
    /// When its first decision was.
    at: Option<Moment>,
}

/// Where a revision was found, to look there first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    place: usize,
    serial: u64,
}

impl Deciders {
    /// None, with room for so many bytes of history.
    pub(crate) fn new(history: usize) -> Deciders {
        Deciders {
            room: Room::new(history),
            earlier: BTreeMap::new(),
            places: HashMap::new(),
            all: Vec::new(),
            free: Vec::new(),
            due: VecDeque::new(),
            round: Round::default(),
            past: 0,
            serials: 0,
        }
    }

    /// Notes that it is decided `now`.
    pub(crate) fn goes_on(&mut self, now: Moment) {
        if std::mem::take(&mut self.round.begun) {
            self.round.at = Some(now);
        }
    }

    /// When the next round will begin.
    pub(crate) fn beat(&self, every: Duration, now: Moment) -> Beat {
        let every = every.max(Duration::from_millis(1));
        let mut next = self.round.at.unwrap_or(now) + every;
        if next <= now {
            let rounds = now.since(next).as_nanos() / every.as_nanos() + 1;
            next = next + every * u32::try_from(rounds).unwrap_or(u32::MAX);
        }
        Beat { next, every }
    }

    pub(crate) fn get(&self, id: &RevisionId) -> Option<&Decider> {
        self.all.get(*self.places.get(id)?)?.as_ref()
    }

    /// What came of an input: the order, if one is to be given. Its history may
    /// have grown.
    pub(crate) fn order(&mut self, taken: Taken) -> Option<Order> {
        let Taken::Decided(evaluated) = taken else { return None };
        let (before, after) = evaluated.history;
        if self.room.changed(before, after) {
            self.make_room();
        }
        evaluated.order
    }

    /// Counts all histories, and drops what is too much of them.
    pub(crate) fn make_room(&mut self) {
        let there = self.all.iter_mut().flatten().map(|decider| &mut decider.history);
        self.room.make(there.chain(self.earlier.values_mut()));
    }

    pub(crate) fn get_mut(&mut self, id: &RevisionId) -> Option<&mut Decider> {
        let place = *self.places.get(id)?;
        self.all.get_mut(place)?.as_mut()
    }

    /// The same, for whoever asks for it again and again.
    pub(crate) fn find(&mut self, id: &RevisionId, found: &mut Found) -> Option<&mut Decider> {
        let is_there = self.all.get(found.place).and_then(Option::as_ref).is_some_and(|of| of.serial == found.serial);
        if !is_there {
            let place = *self.places.get(id)?;
            *found = Found { place, serial: self.all.get(place)?.as_ref()?.serial };
        }
        self.all.get_mut(found.place)?.as_mut()
    }

    /// Looks at those found, one after the other. What is far apart in memory
    /// takes its time to come; asked for in one go it comes together, while work
    /// on one after the other would wait for each.
    pub(crate) fn touch(&self, found: impl Iterator<Item = Found> + Clone, look: impl Fn(usize, &Decider) -> u64) {
        let of = |found: Found| self.all.get(found.place).and_then(Option::as_ref);
        let first = found.clone().filter_map(of).fold(0, |sum, decider| sum ^ decider.serial);
        let rest =
            found.enumerate().filter_map(|(n, found)| Some(look(n, of(found)?))).fold(first, |sum, one| sum ^ one);
        std::hint::black_box(rest);
    }

    /// The same of the next ones that are due.
    pub(crate) fn touch_due(&self, count: usize, look: impl Fn(&Decider) -> u64) {
        let found = self.due.iter().take(count).map(|&place| Found { place, serial: 0 });
        self.touch(found, |_, decider| look(decider));
    }

    /// A revision that is not there yet; it is due before all others.
    pub(crate) fn insert(&mut self, id: RevisionId, mut decider: Decider) {
        // From 1 on: 0 is nobody's.
        self.serials += 1;
        decider.serial = self.serials;
        let place = self.free.pop().unwrap_or_else(|| {
            self.all.push(None);
            self.all.len() - 1
        });
        self.all[place] = Some(decider);
        self.places.insert(id, place);
        self.due.push_front(place);
    }

    pub(crate) fn retain(&mut self, stays: impl Fn(&RevisionId) -> bool) {
        let Deciders { places, all, free, past, .. } = self;
        places.retain(|id, place| {
            let stays = stays(id);
            if !stays {
                *past += all[*place].take().map_or(0, |decider| decider.decisions);
                free.push(*place);
            }
            stays
        });
    }

    /// Decisions made so far.
    pub(crate) fn decisions(&self) -> u64 {
        self.past + self.iter().map(|decider| decider.decisions).sum::<u64>()
    }

    /// All, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Decider> {
        self.all.iter().flatten()
    }

    /// All, by name.
    pub(crate) fn sorted(&self) -> Vec<(&RevisionId, &Decider)> {
        let found = |(id, place): (_, &usize)| Some((id, self.all.get(*place)?.as_ref()?));
        let mut all: Vec<_> = self.places.iter().filter_map(found).collect();
        all.sort_unstable_by_key(|(id, _)| *id);
        all
    }

    /// Makes all of them due. False when some still are: the last round is not
    /// over, and goes on.
    pub(crate) fn begin(&mut self) -> bool {
        let over = self.due.is_empty();
        if over {
            self.due.extend(0..self.all.len());
            self.round.begun = true;
        }
        over
    }

    /// One is to be decided on again, before all others.
    pub(crate) fn again(&mut self, id: &RevisionId) {
        if let Some(place) = self.places.get(id) {
            self.due.push_front(*place);
        }
    }

    pub(crate) fn are_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// Takes the next one that is due.
    pub(crate) fn next(&mut self) -> Option<&mut Decider> {
        loop {
            let place = self.due.pop_front()?;
            if self.all.get(place).is_some_and(Option::is_some) {
                return self.all[place].as_mut();
            }
        }
    }
}
