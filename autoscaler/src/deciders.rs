//! All revisions that are decided on, and which of them are due.
//!
//! Each has a place that stays its own, so that a round over all of them can
//! stop in between: it goes on where it was, whatever came or went meanwhile.

use crate::decider::Decider;
use policy::revision::RevisionId;
use std::collections::{HashMap, VecDeque};

#[derive(Default)]
pub(crate) struct Deciders {
    places: HashMap<RevisionId, usize>,
    all: Vec<Option<Decider>>,
    free: Vec<usize>,
    /// Places of those to be decided on, the next one first.
    due: VecDeque<usize>,
}

impl Deciders {
    pub(crate) fn get_mut(&mut self, id: &RevisionId) -> Option<&mut Decider> {
        let place = *self.places.get(id)?;
        self.all.get_mut(place)?.as_mut()
    }

    /// A revision that is not there yet; it is due before all others.
    pub(crate) fn insert(&mut self, id: RevisionId, decider: Decider) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.all.push(None);
            self.all.len() - 1
        });
        self.all[place] = Some(decider);
        self.places.insert(id, place);
        self.due.push_front(place);
    }

    pub(crate) fn retain(&mut self, stays: impl Fn(&RevisionId) -> bool) {
        let Deciders { places, all, free, .. } = self;
        places.retain(|id, place| {
            let stays = stays(id);
            if !stays {
                all[*place] = None;
                free.push(*place);
            }
            stays
        });
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
