//! Schedules for a warm floor: at least so many pods from one time of a
//! calendar to another, written as cron expressions in a time zone.
//!
//! The decision itself only sees a floor ([`policy::limit::Overrides`]).

use cronexpr::Crontab;
use policy::moment::Moment;
use policy::revision::RevisionId;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;

/// Schedules of one file.
const MOST: usize = 10_000;
/// Bytes of a file.
const BYTES_MAX: usize = 4 << 20;

/// At least so many pods, at certain times.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// Of which revision.
    pub revision: RevisionId,
    from: Crontab,
    to: Crontab,
    pods: i32,
    written: Arc<Entry>,
    /// What holds, and until when (milliseconds since 1970).
    known: Option<(bool, i64)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    schedules: Vec<Entry>,
}

/// A schedule as it is written down.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    revision: String,
    from: String,
    to: String,
    zone: String,
    pods: u32,
}

impl Schedule {
    /// From cron expressions of five fields and the name of a time zone.
    ///
    /// # Errors
    /// One sentence, naming what makes no sense.
    pub fn new(revision: RevisionId, from: &str, to: &str, zone: &str, pods: u32) -> Result<Schedule, String> {
        let parse = |name: &str, text: &str| {
            cronexpr::parse_crontab(&format!("{text} {zone}"))
                .map_err(|error| format!("`{name}: {text}` in the zone `{zone}` makes no sense: {error}"))
        };
        let written = Entry {
            revision: revision.to_string(),
            from: from.to_owned(),
            to: to.to_owned(),
            zone: zone.to_owned(),
            pods,
        };
        let pods = i32::try_from(pods).map_err(|_| format!("{pods} pods are too many"))?;
        let (from, to) = (parse("from", from)?, parse("to", to)?);
        Ok(Schedule { revision, from, to, pods, written: written.into(), known: None })
    }

    /// The floor at `now`; `None` outside of the schedule's times. It is
    /// inside when its next end comes before its next beginning.
    pub fn floor(&mut self, now: Moment) -> Option<i32> {
        let millis = now.unix_millis();
        let known = match self.known.filter(|&(_, until)| millis < until) {
            Some(known) => known,
            None => self.at(millis),
        };
        self.known = Some(known);
        known.0.then_some(self.pods)
    }

    fn at(&self, millis: i64) -> (bool, i64) {
        let next = |of: &Crontab| {
            let after = cronexpr::MakeTimestamp::from_millisecond(millis).ok()?;
            of.find_next(after).ok().map(|time| time.timestamp().as_millisecond())
        };
        match (next(&self.from), next(&self.to)) {
            (Some(from), Some(to)) => (to < from, from.min(to)),
            // It never comes again; ask anew in an hour.
            _ => (false, millis.saturating_add(3_600_000)),
        }
    }
}

/// Reads a file of schedules (JSON).
///
/// # Errors
/// When it cannot be read, or one of them makes no sense.
pub fn read(path: &Path) -> Result<Vec<Schedule>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    parse(&text).map_err(|why| format!("{}: {why}", path.display()))
}

fn parse(text: &str) -> Result<Vec<Schedule>, String> {
    if text.len() > BYTES_MAX {
        return Err(format!("it is longer than {BYTES_MAX} bytes"));
    }
    let File { schedules } = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if schedules.len() > MOST {
        return Err(format!("there are more than {MOST} schedules"));
    }
    let schedule =
        |(number, entry): (usize, &Entry)| entry.schedule().map_err(|why| format!("schedules[{number}]: {why}"));
    schedules.iter().enumerate().map(schedule).collect()
}

impl Entry {
    pub(crate) fn schedule(&self) -> Result<Schedule, String> {
        let Entry { revision, from, to, zone, pods } = self;
        let (namespace, name) = revision
            .split_once('/')
            .ok_or_else(|| format!("`revision: {revision}` is not of the form namespace/name"))?;
        Schedule::new(RevisionId::new(namespace, name), from, to, zone, *pods)
    }
}

impl From<&Schedule> for Entry {
    fn from(schedule: &Schedule) -> Entry {
        (*schedule.written).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Milliseconds since 1970 of a time in UTC.
    fn at(text: &str) -> Moment {
        Moment::from_unix_millis(text.parse::<i64>().unwrap() * 1000)
    }

    fn office() -> Schedule {
        let id = RevisionId::new("default", "shop");
        Schedule::new(id, "0 8 * * MON-FRI", "0 18 * * MON-FRI", "Europe/Berlin", 3).unwrap()
    }

    #[test]
    fn the_floor_holds_in_its_times_of_its_zone_also_over_a_change_of_clocks() {
        let mut office = office();
        // Friday 27 March 2026: winter time, 08:00 is 07:00 UTC.
        for (seconds, floor) in [
            ("1774594799", None),    // 06:59:59
            ("1774594800", Some(3)), // 07:00:00
            ("1774630799", Some(3)), // 16:59:59
            ("1774630800", None),    // 17:00:00
            ("1774684800", None),    // Saturday
            // Monday 30 March: summer time, 08:00 is 06:00 UTC.
            ("1774850399", None),
            ("1774850400", Some(3)),
        ] {
            assert_eq!(office.floor(at(seconds)), floor, "{seconds}");
        }
    }

    #[test]
    fn nonsense_is_told_by_its_place() {
        let with = |revision: &str, from: &str, zone: &str| {
            let entry =
                format!(r#"{{"revision":"{revision}","from":"{from}","to":"0 18 * * *","zone":"{zone}","pods":1}}"#);
            parse(&format!(r#"{{"schedules":[{entry}]}}"#))
        };
        assert!(with("a/b", "0 8 * * *", "UTC").is_ok());
        for bad in
            [with("b", "0 8 * * *", "UTC"), with("a/b", "0 25 * * *", "UTC"), with("a/b", "0 8 * * *", "Mars/Base")]
        {
            assert!(bad.unwrap_err().starts_with("schedules[0]: "));
        }
        assert!(parse("{}").is_err());
    }
}
