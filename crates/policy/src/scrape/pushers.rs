//! Pods that push their stats: these are not asked for them as well, or their
//! load would be counted twice.

use crate::moment::Moment;
use crate::world::PodName;
use std::collections::BTreeMap;
use std::time::Duration;

/// Who has pushed within so long is not asked: a report a second, and half of
/// one for its delay. One that is later than that finds its pod asked, and is
/// not counted for that second.
pub const FRESH: Duration = Duration::from_millis(1500);

/// Somebody who has pushed within so long may be a pod that is gone.
const GONE: Duration = Duration::from_secs(60);

/// The pods of one revision that push.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pushers {
    last: BTreeMap<PodName, Moment>,
}

impl FromIterator<(PodName, Moment)> for Pushers {
    fn from_iter<T: IntoIterator<Item = (PodName, Moment)>>(all: T) -> Pushers {
        Pushers { last: all.into_iter().collect() }
    }
}

impl Pushers {
    /// A pod has pushed.
    pub fn note(&mut self, pod: &PodName, now: Moment) {
        match self.last.get_mut(pod) {
            Some(last) => *last = (*last).max(now),
            None => _ = self.last.insert(pod.clone(), now),
        }
    }

    /// Whether it pushes still.
    pub fn push(&self, pod: &str, now: Moment) -> bool {
        self.last.get(pod).is_some_and(|last| now.since(*last) < FRESH)
    }

    /// Who has pushed, and when last.
    pub fn iter(&self) -> impl Iterator<Item = (&PodName, Moment)> {
        self.last.iter().map(|(pod, last)| (pod, *last))
    }

    /// Bytes held beside its own size, nearly: names are shared.
    pub fn heap_bytes(&self) -> usize {
        self.last.len() * size_of::<(PodName, Moment)>() * 2
    }

    /// Whether it is known for a pod because it has pushed.
    pub fn know(&self, pod: &str) -> bool {
        self.last.contains_key(pod)
    }

    /// Forgets pods that are gone, once the last of what they pushed must have
    /// come.
    pub fn retain(&mut self, now: Moment, is_there: impl Fn(&str) -> bool) {
        self.last.retain(|pod, last| is_there(pod) || now.since(*last) < GONE);
    }
}
