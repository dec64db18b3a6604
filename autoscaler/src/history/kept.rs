//! Histories as a file: a line of JSON for each revision, beside the state's
//! file. Lines that make no sense are passed over.

use super::{AGE_MAX, BYTES_MAX, History, Made, Record};
use policy::limit::{LimitKind, Step};
use policy::moment::Moment;
use policy::revision::RevisionId;
use policy::scale::Undecided;
use policy::world::Path;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, BufRead, Read, Write};

/// The format of the file.
const VERSION: u32 = 1;
/// Bytes of one line: the records of one revision, as text.
const LINE_MAX: u64 = 1 << 20;

#[derive(Serialize, Deserialize)]
struct Head {
    zeroscale_history: u32,
}

#[derive(Serialize, Deserialize)]
struct Line {
    revision: String,
    /// The oldest first.
    records: Vec<Row>,
}

/// First and last time (milliseconds since 1970), times, ordered, direct,
/// wanted; what was made, or why not; limits.
#[derive(Serialize, Deserialize)]
struct Row(i64, i64, u32, Option<u32>, bool, i32, Result<MadeRow, String>, Vec<(String, i32, i32)>);

/// Desired, spare capacity, ready, starting, target, both averages, the ratio,
/// their ranges; in panic, by the panic window.
#[derive(Serialize, Deserialize)]
struct MadeRow(i32, i32, u32, u32, f64, f64, f64, f64, (f32, f32), (f32, f32), bool, bool);

impl Row {
    fn of(record: &Record) -> Row {
        let Record { at, last, times, ordered, path, want, made, steps } = record;
        let made = made.as_ref().map_err(|why| why.as_str().to_owned()).map(|made| {
            let (stable, panic) = (made.stable_range, made.panic_range);
            MadeRow(
                made.desired,
                made.excess_burst_capacity,
                made.ready,
                made.starting,
                made.target,
                made.stable,
                made.panic,
                made.ratio,
                stable,
                panic,
                made.in_panic,
                made.by_panic_window,
            )
        });
        let steps = steps.iter().map(|step| (step.limit.as_str().to_owned(), step.from, step.to)).collect();
        let direct = *path == Path::Direct;
        Row(at.unix_millis(), last.unix_millis(), *times, *ordered, direct, *want, made, steps)
    }

    /// `None` when it makes no sense.
    fn record(self) -> Option<Record> {
        let Row(at, last, times, ordered, direct, want, made, steps) = self;
        let made = match made {
            Ok(row) => Ok(row.made()?),
            Err(why) => Err(Undecided::parse(&why)?),
        };
        let step = |(limit, from, to): (String, i32, i32)| Some(Step { limit: LimitKind::parse(&limit)?, from, to });
        (at <= last).then_some(())?;
        Some(Record {
            at: Moment::from_unix_millis(at),
            last: Moment::from_unix_millis(last),
            times,
            ordered,
            path: if direct { Path::Direct } else { Path::Activator },
            want,
            made,
            steps: steps.into_iter().map(step).collect::<Option<_>>()?,
        })
    }
}

impl MadeRow {
    fn made(self) -> Option<Made> {
        let MadeRow(desired, spare, ready, starting, target, stable, panic, ratio, low, high, in_panic, by_panic) =
            self;
        let made = Made {
            desired,
            excess_burst_capacity: spare,
            ready,
            starting,
            target,
            stable,
            panic,
            ratio,
            stable_range: low,
            panic_range: high,
            in_panic,
            by_panic_window: by_panic,
        };
        made.is_finite().then_some(made)
    }
}

/// Begins a file.
///
/// # Errors
/// Those of the writer.
pub(crate) fn begin(to: &mut impl Write) -> io::Result<()> {
    serde_json::to_writer(&mut *to, &Head { zeroscale_history: VERSION })?;
    to.write_all(b"\n")
}

/// Writes one revision's line.
///
/// # Errors
/// Those of the writer.
pub(crate) fn put(to: &mut impl Write, revision: &RevisionId, history: &History) -> io::Result<()> {
    // JSON has no word for what is no number, which strict mode may average.
    let sound = |record: &&Record| record.made.as_ref().map_or(true, Made::is_finite);
    let records = history.newest_first().rev().filter(sound).map(Row::of).collect();
    serde_json::to_writer(&mut *to, &Line { revision: revision.to_string(), records })?;
    to.write_all(b"\n")
}

/// Reads a file: what is young enough `now`, and no more than fits.
///
/// # Errors
/// When it cannot be read, or makes no sense as a whole.
pub(crate) fn read(mut from: impl BufRead, now: Moment, most: usize) -> io::Result<BTreeMap<RevisionId, History>> {
    let mut line = Vec::new();
    let mut next = |line: &mut Vec<u8>| -> io::Result<bool> {
        line.clear();
        from.by_ref().take(LINE_MAX).read_until(b'\n', line)?;
        if line.len() as u64 == LINE_MAX {
            return Err(io::Error::other("it has a line that is too long"));
        }
        Ok(!line.is_empty())
    };
    let head: Option<Head> = if next(&mut line)? { serde_json::from_slice(&line).ok() } else { None };
    match head {
        Some(Head { zeroscale_history: VERSION }) => {}
        Some(Head { zeroscale_history: other }) => {
            return Err(io::Error::other(format!("it has the format {other}, and {VERSION} is known")));
        }
        None => return Err(io::Error::other("it is no history of ours")),
    }
    let (mut all, mut taken) = (BTreeMap::new(), 0);
    while taken <= most && next(&mut line)? {
        let Ok(Line { revision, records }) = serde_json::from_slice(&line) else { continue };
        let Some((namespace, name)) = revision.split_once('/') else { continue };
        let mut history = History::default();
        let mut newest = Moment::MIN;
        for record in records.into_iter().filter_map(Row::record) {
            let sound = record.at >= newest && record.last <= now + std::time::Duration::from_secs(1);
            if sound && now.since(record.last) <= AGE_MAX {
                newest = record.last;
                history.push(record);
            }
        }
        history.shrink_to(BYTES_MAX);
        if history.since().is_some() {
            taken += history.bytes();
            all.insert(RevisionId::new(namespace, name), history);
        }
    }
    Ok(all)
}
