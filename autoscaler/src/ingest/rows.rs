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
    /// Where its names begin.
    names: usize,
}

/// A stream's last batch.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    rows: Vec<Row>,
    /// The rows' names, in their order: read through in one go, which names of
    /// their own, each somewhere else in memory, are not.
    names: Vec<u8>,
}

/// Reads the next batch into the last one's rows.
pub(crate) struct Reading {
    rows: Rows,
    read: usize,
    between: usize,
    changed: bool,
}

impl Rows {
    pub(crate) fn all(&mut self) -> &mut [Row] {
        &mut self.rows
    }

    /// Forgets names that are no row's.
    fn tidy(&mut self) {
        if self.rows.capacity() > 4 * self.rows.len() {
            self.rows.shrink_to(2 * self.rows.len());
        }
        let used: usize = self.rows.iter().map(Row::names_length).sum();
        if self.names.len() <= 2 * used {
            return;
        }
        self.names = Vec::with_capacity(used);
        for row in &mut self.rows {
            row.names = self.names.len();
            let RevisionId { namespace, name } = &row.revision;
            [namespace, name, &row.stat.pod_name]
                .into_iter()
                .for_each(|of| self.names.extend_from_slice(of.as_bytes()));
        }
    }
}

impl Reading {
    pub(crate) fn new(rows: Rows) -> Reading {
        Reading { rows, read: 0, between: 0, changed: false }
    }

    /// Reads the next entry; one that says nothing is left out.
    pub(crate) fn read(&mut self, entry: &Entry<'_>, words: &mut Words) {
        let Some(numbers) = entry.stat else { return };
        self.find(entry, words);
        let stat = &mut self.rows.rows[self.read].stat;
        stat.average_concurrency = numbers.average_concurrency;
        stat.average_proxied_concurrency = numbers.average_proxied_concurrency;
        stat.request_count = numbers.request_count;
        stat.proxied_request_count = numbers.proxied_request_count;
        self.read += 1;
    }

    /// Those of this batch.
    pub(crate) fn finish(self) -> Rows {
        let Reading { mut rows, read, changed, .. } = self;
        if changed || rows.rows.len() > read {
            rows.rows.truncate(read);
            rows.tidy();
        }
        rows
    }

    /// Puts the row of an entry in the place that is read next.
    fn find(&mut self, entry: &Entry<'_>, words: &mut Words) {
        let Rows { rows, names } = &mut self.rows;
        let ahead = rows[self.read..].iter().take(AHEAD).position(|row| row.is_of(entry, names));
        self.changed |= ahead != Some(0);
        match ahead {
            Some(0) => {}
            Some(gone) => _ = rows.drain(self.read..self.read + gone),
            None => {
                let Some((revision, stat)) = words.observed(entry) else { return };
                let row = Row { revision, stat, found: Found::default(), reporter: None, names: names.len() };
                [entry.namespace, entry.name, entry.pod_name].into_iter().for_each(|of| names.extend_from_slice(of));
                self.between += 1;
                match rows.get_mut(self.read) {
                    Some(other) if self.between > BETWEEN => *other = row,
                    _ => rows.insert(self.read, row),
                }
            }
        }
    }
}

impl Row {
    fn names_length(&self) -> usize {
        self.revision.namespace.len() + self.revision.name.len() + self.stat.pod_name.len()
    }

    fn is_of(&self, entry: &Entry<'_>, names: &[u8]) -> bool {
        let [namespace, name, pod] = [entry.namespace, entry.name, entry.pod_name];
        let RevisionId { namespace: its_namespace, name: its_name } = &self.revision;
        let long = (its_namespace.len(), its_name.len(), self.stat.pod_name.len());
        if long != (namespace.len(), name.len(), pod.len()) {
            return false;
        }
        let Some(names) = names.get(self.names..self.names + self.names_length()) else { return false };
        let (first, rest) = names.split_at(namespace.len());
        let (second, third) = rest.split_at(name.len());
        third == pod && second == name && first == namespace
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::borrowed::Numbers;

    /// Reads a batch of these pods; the number of each is its place.
    fn read(rows: Rows, pods: &[u32], words: &mut Words) -> Rows {
        let names: Vec<[String; 2]> =
            pods.iter().map(|pod| [format!("rev-{}", pod / 3), format!("pod-{pod}")]).collect();
        let mut reading = Reading::new(rows);
        for (place, [revision, pod]) in names.iter().enumerate() {
            let numbers = Numbers { average_concurrency: place as f64, ..Numbers::default() };
            let (name, pod_name) = (revision.as_bytes(), pod.as_bytes());
            reading.read(&Entry { namespace: b"ns", name, pod_name, stat: None }, words);
            reading.read(&Entry { namespace: b"ns", name, pod_name, stat: Some(numbers) }, words);
        }
        let rows = reading.finish();
        assert_eq!(rows.rows.len(), pods.len());
        assert!(rows.names.len() <= 2 * rows.rows.iter().map(Row::names_length).sum::<usize>());
        for (place, (row, [revision, pod])) in rows.rows.iter().zip(&names).enumerate() {
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
        let (mut words, mut rows) = (Words::default(), Rows::default());
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
        assert!(rows.rows.capacity() < 8);
        assert!(read(rows, &[], &mut words).rows.is_empty());
    }

    #[test]
    fn what_is_known_of_a_place_stays_while_others_come_and_go() {
        let (mut words, mut rows) = (Words::default(), Rows::default());
        rows = read(rows, &(0..100).collect::<Vec<_>>(), &mut words);
        rows.rows.iter_mut().zip(0..).for_each(|(row, n)| row.reporter = Some(n));
        // Some are gone, some are new.
        let pods: Vec<u32> = (0..200).filter(|pod| !(40..45).contains(pod) && (*pod < 100 || pod % 9 == 0)).collect();
        let mixed: Vec<u32> = pods
            .iter()
            .filter(|pod| **pod < 50)
            .chain(&[500, 501])
            .chain(pods.iter().filter(|pod| **pod >= 50))
            .copied()
            .collect();
        for (row, pod) in read(rows, &mixed, &mut words).rows.iter().zip(&mixed) {
            assert_eq!(row.reporter, Some(*pod).filter(|pod| *pod < 100));
        }
    }
}
