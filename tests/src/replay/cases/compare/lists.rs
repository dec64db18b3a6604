//! Requests that the app saw, answers over HTTP/2, figures.

use super::{Slack, is_yes, part, same_value, told, window};
use crate::replay::row::{Miss, Verdict, differs, located};
use serde_json::Value;

/// Exactly these requests reached the app.
pub(super) fn requests(want: &Value, got: &Value, in_order: bool) -> Verdict {
    let one = |want: &Value, got: &Value| {
        if want.get("body").is_some() && want.get("incomplete").is_none() && is_yes(&got["incomplete"]) {
            return differs(format!("incomplete: not expected; {}", told(got)));
        }
        parts(want, got, Slack::default())
    };
    each("request", want, got, in_order, one)
}

/// Exactly these answers came.
pub(super) fn responses(want: &Value, got: &Value, in_order: bool, slack: Slack) -> Verdict {
    let one = |want: &Value, got: &Value| {
        for key in ["reset", "cancelled", "unfinished", "informational"] {
            if want.get(key).is_none() && is_yes(&got[key]) {
                return differs(format!("{key}: not expected; {}", told(got)));
            }
        }
        parts(want, got, slack)
    };
    each("response", want, got, in_order, one)
}

/// The figures of a Stat.
pub(super) fn stat(want: &Value, got: &Value, slack: Slack) -> Verdict {
    // From then on the first report may be there.
    const REPORTS_AFTER_MS: u64 = 900;
    for (key, want) in want.as_object().into_iter().flatten() {
        let there = &got["stat"][key];
        let may_be_there = got["age_ms"].as_u64().is_some_and(|age| age >= REPORTS_AFTER_MS);
        match key.as_str() {
            "process_uptime_present" if want == &Value::Bool(false) && may_be_there => {}
            _ if want.is_array() => {
                let share = slack.0.as_secs_f64() * want[1].as_f64().unwrap_or_default().max(1.0);
                window(key, want, there, share)?;
            }
            _ => same_value(key, want, there)?,
        }
    }
    Ok(())
}

/// Each recorded series is there, with at least the recorded labels.
pub(super) fn series(want: &Value, got: &Value) -> Verdict {
    for want in want.as_array().into_iter().flatten() {
        let fits = |got: &&Value| {
            let labels = want["labels"].as_object().into_iter().flatten();
            got["name"] == want["name"] && labels.into_iter().all(|(label, value)| &got["labels"][label] == value)
        };
        let Some(found) = got.as_array().into_iter().flatten().find(fits) else {
            return differs(format!("no series {} with the labels {}", want["name"], want["labels"]));
        };
        same_value(&format!("series {} {}", want["name"], want["labels"]), &want["value"], &found["value"])?;
    }
    Ok(())
}

/// Each recorded name has the recorded value.
pub(super) fn named(what: &str, want: &Value, got: &Value) -> Verdict {
    let mut all = want.as_object().into_iter().flatten();
    all.try_for_each(|(name, want)| same_value(&format!("{what} of {name}"), want, &got[name]))
}

fn parts(want: &Value, got: &Value, slack: Slack) -> Verdict {
    let Some(expect) = want.as_object() else {
        return differs(format!("malformed row: {want}"));
    };
    expect.iter().try_for_each(|(key, want)| part(key, want, expect, got, slack))
}

fn each(what: &str, want: &Value, got: &Value, in_order: bool, one: impl Fn(&Value, &Value) -> Verdict) -> Verdict {
    let (Some(want), Some(got)) = (want.as_array(), got.as_array()) else {
        return differs(format!("no list of {what}s: {}", told(got)));
    };
    if want.len() != got.len() {
        let got = Value::from(got.clone());
        return differs(format!("expected {} {what}s, got {}", want.len(), told(&got)));
    }
    let mut left: Vec<&Value> = got.iter().collect();
    for (number, want) in want.iter().enumerate() {
        let place = match in_order {
            true => Some(0),
            false => left.iter().position(|got| one(want, got).is_ok()),
        };
        let Some(place) = place else {
            return Err(Miss::Differs(format!("no {what} is as recorded in number {number}")));
        };
        let got = left.remove(place);
        located(|| format!("{what} {number}"), one(want, got))?;
    }
    Ok(())
}
