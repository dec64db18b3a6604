//! `activator/reporter`: what an activator reports of its revisions.

use super::row::{Verdict, differs, list, located, part, same, time, within};
use policy::compat::Compat;
use policy::timeline::{Meter, MeterReport};
use serde_json::Value;
use std::collections::BTreeMap;

/// All rows but those of the wire format compare with this tolerance.
const TOLERANCE: f64 = 1e-9;

type Message = Vec<(String, MeterReport)>;

pub(super) fn judge(row: &Value, _mode: Compat) -> Verdict {
    let mut meters = BTreeMap::new();
    for (number, event) in list(&row["events"])?.iter().enumerate() {
        let emitted = apply(&mut meters, event)?;
        let tracked: Vec<&String> = meters.keys().collect();
        let expected: Vec<String> = part(&event["tracked_after"])?;
        let verdict = same_messages(&event["emitted"], &emitted)
            .and_then(|()| same("tracked", expected.iter().collect(), tracked));
        located(|| format!("event {number}"), verdict)?;
    }
    Ok(())
}

/// At most one message comes of an event.
fn apply(meters: &mut BTreeMap<String, Meter>, event: &Value) -> Verdict<Option<Message>> {
    let now = time(&event["t_ms"])?;
    match event["op"].as_str() {
        Some("in") => {
            let revision: String = part(&event["revision"])?;
            let first = meters.entry(revision.clone()).or_default().enter(now);
            Ok(first.then(|| vec![(revision, MeterReport::ANNOUNCEMENT)]))
        }
        Some("out") => {
            let revision: String = part(&event["revision"])?;
            match meters.get_mut(&revision) {
                Some(meter) => meter.leave(now),
                None => return differs("a request left a revision that is not tracked"),
            }
            Ok(None)
        }
        Some("tick") => {
            let reports: Message =
                meters.iter_mut().filter_map(|(name, meter)| Some((name.clone(), meter.tick(now)?))).collect();
            for (name, _) in reports.iter().filter(|(_, report)| report.drop) {
                meters.remove(name);
            }
            Ok((!reports.is_empty()).then_some(reports))
        }
        _ => differs("malformed row: unknown op"),
    }
}

fn same_messages(expected: &Value, got: &Option<Message>) -> Verdict {
    let expected = list(expected)?;
    same("number of messages", expected.len(), usize::from(got.is_some()))?;
    for (message, got) in expected.iter().zip(got) {
        let message = list(message)?;
        same("revisions in the message", message.len(), got.len())?;
        for (stat, (name, report)) in message.iter().zip(got) {
            same("revision", stat["revision"].as_str(), Some(name.as_str()))?;
            let average = &stat["average_concurrent_requests"];
            within("average", average, report.average_concurrency, TOLERANCE)?;
            within("count", &stat["request_count"], report.request_count, TOLERANCE)?;
        }
    }
    Ok(())
}
