//! Names that come again each second, kept once: taking in a stat whose names
//! are known allocates nothing.

use parking_lot::Mutex;
use policy::revision::RevisionId;
use policy::stat::Stat;
use proto::borrowed::Entry;
use std::collections::HashSet;
use std::sync::Arc;

/// So many are kept, whether they are in use or not.
const UNUSED_MAX: usize = 8192;

/// See the module. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Names(Arc<Mutex<Words>>);

pub(crate) struct Words {
    known: HashSet<Arc<str>>,
    /// When there are so many, those that are not in use go.
    most: usize,
}

impl Default for Words {
    fn default() -> Words {
        Words { known: HashSet::new(), most: UNUSED_MAX }
    }
}

impl Names {
    /// Does something with them; one batch is one such time.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut Words) -> T) -> T {
        work(&mut self.0.lock())
    }
}

impl Words {
    /// What an entry means to the decisions; `None` when it says nothing.
    pub(crate) fn observed(&mut self, entry: &Entry<'_>) -> Option<(RevisionId, Stat)> {
        let numbers = entry.stat?;
        let revision = RevisionId { namespace: self.word(entry.namespace), name: self.word(entry.name) };
        let stat = Stat {
            pod_name: self.word(entry.pod_name),
            average_concurrency: numbers.average_concurrency,
            average_proxied_concurrency: numbers.average_proxied_concurrency,
            request_count: numbers.request_count,
            proxied_request_count: numbers.proxied_request_count,
        };
        Some((revision, stat))
    }

    fn word(&mut self, bytes: &[u8]) -> Arc<str> {
        let text = String::from_utf8_lossy(bytes);
        if let Some(known) = self.known.get(&*text) {
            return known.clone();
        }
        if self.known.len() >= self.most {
            self.known.retain(|word| Arc::strong_count(word) > 1);
            self.known.shrink_to(2 * self.known.len());
            self.most = 2 * self.known.len() + UNUSED_MAX;
        }
        let word: Arc<str> = text.into();
        self.known.insert(word.clone());
        word
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_kept_once_and_nameless_crowds_are_forgotten() {
        let mut words = Words::default();
        let used = words.word(b"used");
        for n in 0..10 * UNUSED_MAX {
            words.word(format!("unused-{n}").as_bytes());
            assert!(words.known.len() <= UNUSED_MAX + 2);
        }
        assert!(Arc::ptr_eq(&used, &words.word(b"used")));
        assert_eq!(&*words.word(b"\xff"), "\u{fffd}");
    }
}
