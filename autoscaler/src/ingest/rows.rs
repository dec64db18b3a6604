//! What one stream reports, in the order in which it does: a batch mostly names
//! the same revisions and reporters in the same places as the one before. So a
//! stat is known by its place, and what belongs to it need not be looked for.

use super::names::Words;
use crate::deciders::Found;
use policy::revision::RevisionId;
use policy::stat::Stat;
use proto::borrowed::Entry;

/// Where another place differs, so many further ones are looked at: those
/// between are gone.
const AHEAD: usize = 8;
/// So many new ones of a batch get a place between others; then the batch is
/// another one altogether.
const BETWEEN: usize = 32;

/// One entry of a batch.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) revision: RevisionId,
    /// As reported last.
    pub(crate) stat: Stat,
    pub(crate) found: Found,
    /// The reporter's place among those of the revision.
    pub(crate) reporter: Option<u32>,
}

/// Rows of the last batch, to read the next one into.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    rows: Vec<Row>,
    read: usize,
    between: usize,
}

impl Rows {
    /// Those of the last batch, in its order.
    pub(crate) fn new(rows: Vec<Row>) -> Rows {
        Rows { rows, read: 0, between: 0 }
    }

    /// Reads the next entry; one that says nothing is left out.
    pub(crate) fn read(&mut self, entry: &Entry<'_>, words: &mut Words) {
        let Some(numbers) = entry.stat else { return };
        self.find(entry, words);
        let stat = &mut self.rows[self.read].stat;
        stat.average_concurrency = numbers.average_concurrency;
        stat.average_proxied_concurrency = numbers.average_proxied_concurrency;
        stat.request_count = numbers.request_count;
        stat.proxied_request_count = numbers.proxied_request_count;
        self.read += 1;
    }

    /// Those of this batch.
    pub(crate) fn finish(mut self) -> Vec<Row> {
        self.rows.truncate(self.read);
        if self.rows.capacity() > 4 * self.rows.len() {
            self.rows.shrink_to(2 * self.rows.len());
        }
        self.rows
    }

    /// Puts the row of an entry in the place that is read next.
    fn find(&mut self, entry: &Entry<'_>, words: &mut Words) {
        let ahead = self.rows.iter().skip(self.read).take(AHEAD).position(|row| row.is_of(entry));
        match ahead {
            Some(0) => {}
            Some(gone) => _ = self.rows.drain(self.read..self.read + gone),
            None => {
                let Some((revision, stat)) = words.observed(entry) else { return };
                let row = Row { revision, stat, found: Found::default(), reporter: None };
                self.between += 1;
                match self.rows.get_mut(self.read) {
                    Some(other) if self.between > BETWEEN => *other = row,
                    _ => self.rows.insert(self.read, row),
                }
            }
        }
    }
}

impl Row {
    fn is_of(&self, entry: &Entry<'_>) -> bool {
        // The most telling first.
        *entry.pod_name == *self.stat.pod_name.as_bytes()
            && *entry.name == *self.revision.name.as_bytes()
            && *entry.namespace == *self.revision.namespace.as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::borrowed::Numbers;

    /// Reads a batch of these pods; the number of each is its place.
    fn read(rows: Vec<Row>, pods: &[u32], words: &mut Words) -> Vec<Row> {
        let names: Vec<[String; 2]> =
            pods.iter().map(|pod| [format!("rev-{}", pod / 3), format!("pod-{pod}")]).collect();
        let mut reading = Rows::new(rows);
        for (place, [revision, pod]) in names.iter().enumerate() {
            let numbers = Numbers { average_concurrency: place as f64, ..Numbers::default() };
            let (name, pod_name) = (revision.as_bytes(), pod.as_bytes());
            reading.read(&Entry { namespace: b"ns", name, pod_name, stat: None }, words);
            reading.read(&Entry { namespace: b"ns", name, pod_name, stat: Some(numbers) }, words);
        }
        let rows = reading.finish();
        assert_eq!(rows.len(), pods.len());
        for (place, (row, [revision, pod])) in rows.iter().zip(&names).enumerate() {
            assert_eq!(
                (&*row.revision.namespace, &*row.revision.name, &*row.stat.pod_name),
                ("ns", &**revision, &**pod)
            );
            assert_eq!(row.stat.average_concurrency, place as f64);
        }
        rows
    }

    #[test]
    fn any_batch_is_read_right_after_any_other() {
        let (mut words, mut rows) = (Words::default(), Vec::new());
        let mut pods: Vec<u32> = (0..200).collect();
        let mut seed = 0x2545_f491_u32;
        let mut random = |below: usize| {
            seed ^= seed << 13;
            seed ^= seed >> 17;
            seed ^= seed << 5;
            seed as usize % below
        };
        for _ in 0..500 {
            for _ in 0..random(40) {
                match random(4) {
                    0 if pods.len() > 20 => _ = pods.remove(random(pods.len())),
                    1 => pods.insert(random(pods.len()), random(300) as u32),
                    2 => pods.rotate_left(random(12)),
                    _ => {
                        let (one, other) = (random(pods.len()), random(pods.len()));
                        pods.swap(one, other);
                    }
                }
            }
            rows = read(rows, &pods, &mut words);
        }
        rows = read(rows, &[7], &mut words);
        assert!(rows.capacity() < 8);
        assert!(read(rows, &[], &mut words).is_empty());
    }

    #[test]
    fn what_is_known_of_a_place_stays_while_others_come_and_go() {
        let (mut words, mut rows) = (Words::default(), Vec::new());
        rows = read(rows, &(0..100).collect::<Vec<_>>(), &mut words);
        rows.iter_mut().zip(0..).for_each(|(row, n)| row.reporter = Some(n));
        // Some are gone, some are new.
        let pods: Vec<u32> = (0..200).filter(|pod| !(40..45).contains(pod) && (*pod < 100 || pod % 9 == 0)).collect();
        let mixed: Vec<u32> = pods
            .iter()
            .filter(|pod| **pod < 50)
            .chain(&[500, 501])
            .chain(pods.iter().filter(|pod| **pod >= 50))
            .copied()
            .collect();
        for (row, pod) in read(rows, &mixed, &mut words).iter().zip(&mixed) {
            assert_eq!(row.reporter, Some(*pod).filter(|pod| *pod < 100));
        }
    }
}
