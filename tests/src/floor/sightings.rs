//! What the test app wrote down, pod by pod (a pod is a process here).

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// One line of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// The process that wrote it.
    pub pid: i32,
    /// When, in nanoseconds of the clock of all processes.
    pub at: u64,
    /// `exec` (its process was made), `main`, `open`, `begin`, `end`, `cut`, `exit` or `daemon`.
    pub kind: String,
    /// Of the request, if it is about one.
    pub id: String,
}

/// All lines.
#[derive(Clone, Debug, Default)]
pub struct Sightings(pub Vec<Sighting>);

impl Sightings {
    /// Reads the journal.
    pub fn read(path: &Path) -> Sightings {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        Sightings(text.lines().filter_map(parse).collect())
    }

    /// Those of one kind.
    pub fn of<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Sighting> {
        self.0.iter().filter(move |sighting| sighting.kind == kind)
    }

    /// The most requests that were inside one pod at once.
    pub fn most_at_once(&self) -> usize {
        let pods = self.spans().into_values();
        pods.map(|spans| most_at_once(&spans)).max().unwrap_or(0)
    }

    /// The longest time that a pod with one slot stood idle, between its first
    /// request and the moment at which no client waited any more: all had come
    /// before the first began.
    pub fn longest_gap(&self) -> Duration {
        let pods = self.spans();
        let begins = pods.values().flatten().map(|span| span.0);
        let nobody_waits = begins.max().unwrap_or(0);
        let gaps = pods.into_values().map(|mut spans| {
            spans.sort_unstable();
            longest_gap(&spans, nobody_waits)
        });
        Duration::from_nanos(gaps.max().unwrap_or(0))
    }

    /// The longest time from a pod's open port to its first request, of pods
    /// that opened while clients waited.
    pub fn longest_first_wait(&self) -> Duration {
        let firsts = self.of("open").filter_map(|open| {
            let begins = self.of("begin").filter(|begin| begin.pid == open.pid);
            Some(begins.map(|begin| begin.at).min()?.saturating_sub(open.at))
        });
        Duration::from_nanos(firsts.max().unwrap_or(0))
    }

    /// Requests by pod: when each began and ended.
    fn spans(&self) -> BTreeMap<i32, Vec<(u64, u64)>> {
        let mut pods: BTreeMap<i32, Vec<(u64, u64)>> = BTreeMap::new();
        for begin in self.of("begin") {
            let same = |other: &&Sighting| other.pid == begin.pid && other.id == begin.id && other.at >= begin.at;
            let ended = self.0.iter().filter(|other| matches!(other.kind.as_str(), "end" | "cut")).find(same);
            pods.entry(begin.pid).or_default().push((begin.at, ended.map_or(u64::MAX, |end| end.at)));
        }
        pods
    }
}

fn parse(line: &str) -> Option<Sighting> {
    let mut words = line.split(' ');
    let (pid, at) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    Some(Sighting { pid, at, kind: words.next()?.to_owned(), id: words.next()?.to_owned() })
}

fn most_at_once(spans: &[(u64, u64)]) -> usize {
    // At the same instant the end comes first.
    let mut turns: Vec<(u64, i64)> = spans.iter().flat_map(|span| [(span.0, 1), (span.1, -1)]).collect();
    turns.sort_unstable();
    let inside = turns.iter().scan(0, |inside, turn| {
        *inside += turn.1;
        Some(*inside)
    });
    inside.max().and_then(|most| usize::try_from(most).ok()).unwrap_or(0)
}

/// Between one request's end and the next one's begin, up to a moment.
fn longest_gap(spans: &[(u64, u64)], until: u64) -> u64 {
    let ends = spans.iter().map(|span| span.1);
    let nexts = spans.iter().skip(1).map(|span| span.0).chain([until]);
    ends.zip(nexts).map(|(end, next)| next.min(until).saturating_sub(end)).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sightings(lines: &str) -> Sightings {
        Sightings(lines.lines().filter_map(parse).collect())
    }

    #[test]
    fn overlaps_and_gaps_are_found_by_pod() {
        let seen = sightings(
            "1 5 exec -\n1 10 open -\n1 11 begin a\n1 20 end a\n1 26 begin b\n1 40 end b\n\
             2 12 begin c\n2 30 begin d\n2 31 end c\n2 50 end d\n1 45 begin e\n1 60 end e",
        );
        assert_eq!(seen.most_at_once(), 2);
        assert_eq!(seen.longest_gap(), Duration::from_nanos(6));
        assert_eq!(seen.longest_first_wait(), Duration::from_nanos(1));
    }

    #[test]
    fn a_pod_that_is_left_idle_while_others_are_queued_for_shows() {
        let seen = sightings("1 0 begin a\n1 10 end a\n2 0 begin b\n2 90 end b\n2 91 begin c\n2 99 end c");
        assert_eq!((seen.most_at_once(), seen.longest_gap()), (1, Duration::from_nanos(81)));
    }
}
