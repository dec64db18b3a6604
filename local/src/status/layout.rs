//! Instances as text for people: a block a revision. Pure.

use crate::admin::report::{Instance, Revision};
use autoscaler::status::{DecisionStatus, PodStatus};
use std::fmt::Write;

/// Columns of the names at the left.
const INDENT: usize = 15;

pub(super) fn text(instances: &[Instance]) -> String {
    instances.iter().map(instance).collect::<Vec<_>>().join("\n")
}

fn instance(of: &Instance) -> String {
    let up = span(of.up_seconds);
    let mut text =
        format!("zeroscale {}, process {}, up {up}, listening on http://{}\n", of.version, of.pid, of.listen);
    for revision in &of.revisions {
        let _ = write!(text, "\n{}", block(revision));
    }
    text
}

fn block(revision: &Revision) -> String {
    let status = &revision.status;
    let mut text = format!("{} ({})\n", status.service, status.revision);
    let mut row = |name: &str, value: &str| {
        let _ = writeln!(text, "  {name:<width$}{value}", width = INDENT - 2);
    };
    row("pods", &revision.pods_in_words());
    status.pods.iter().for_each(|of| row("", &pod(of)));
    row("mode", &status.mode);
    row("path", &format!("{} (spare capacity {})", status.path, status.excess_burst_capacity));
    row(&status.metric, &revision.load_in_words());
    row("requests", &requests(revision));
    match status.decisions.first() {
        Some(made) => row("decided", &decision(made)),
        None => row("decided", "nothing yet"),
    }
    if let Some(trouble) = &status.trouble {
        row("trouble", trouble);
    }
    if status.dropped_stats > 0 {
        row("stats", &format!("{} dropped, as they made no sense", status.dropped_stats));
    }
    text
}

fn pod(of: &PodStatus) -> String {
    let took = of.start_took_seconds.map(|took| format!(", started in {}", span(took))).unwrap_or_default();
    format!("{} {} for {}{took}", of.name, of.phase, span(of.for_seconds))
}

fn requests(revision: &Revision) -> String {
    let oldest = revision.oldest_held_seconds.map(|age| format!(" (the oldest for {})", span(age)));
    format!("{} held{}, {} in flight", revision.held, oldest.unwrap_or_default(), revision.in_flight)
}

fn decision(made: &DecisionStatus) -> String {
    let wanted = made.wanted.map_or("no order".to_owned(), |wanted| format!("{wanted} wanted"));
    let again = match made.times {
        0 | 1 => String::new(),
        times => format!(" (the same {times} times in {})", span(made.since_seconds)),
    };
    format!("{} ago{again}: {wanted}, {}", span(made.last_seconds), made.why)
}

/// In the unit that people read.
fn span(seconds: f64) -> String {
    match seconds {
        s if s < 1.0 => format!("{:.0} ms", s * 1e3),
        s if s < 120.0 => format!("{s:.1} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s if s < 172_800.0 => format!("{:.1} h", s / 3600.0),
        s => format!("{:.1} days", s / 86400.0),
    }
}

/// An instance in the middle of things.
#[cfg(test)]
pub(super) fn sample() -> Instance {
    const JSON: &str = r#"{"version":"0.1.0","pid":17,"started_unix_seconds":1e9,"up_seconds":75.25,"listen":"127.0.0.1:8080",
        "revisions":[{"revision":"default/shop-00001","service":"shop","wanted":2,"ready":1,
        "pods":[{"name":"shop-00001-a","phase":"ready","address":"127.0.0.1:1","for_seconds":12.04,"start_took_seconds":0.2785},
                {"name":"shop-00001-b","phase":"starting","address":"127.0.0.1:0","for_seconds":0.1,"start_took_seconds":null}],
        "mode":"panic","path":"activator","metric":"concurrency","target":70.0,"stable":81.24,
        "stable_window_seconds":60.0,"panic":150.0,"panic_window_seconds":6.0,"excess_burst_capacity":-212,
        "trouble":null,"dropped_stats":0,
        "decisions":[{"since_seconds":8.0,"last_seconds":0.4,"times":4,"wanted":2,"desired":2,"ready":1,
            "stable":81.24,"panic":150.0,"panic_mode":true,"path":"activator","limits":[],"why":"because"}],
        "held":5,"oldest_held_seconds":0.1,"in_flight":8,"no_room":0}]}"#;
    serde_json::from_str(JSON).expect("the sample is a status")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_a_revision_says_what_and_why() {
        let expected = "\
zeroscale 0.1.0, process 17, up 75.2 s, listening on http://127.0.0.1:8080

shop (default/shop-00001)
  pods         2 wanted, 1 ready, 1 starting
               shop-00001-a ready for 12.0 s, started in 278 ms
               shop-00001-b starting for 100 ms
  mode         panic
  path         activator (spare capacity -212)
  concurrency  81.2 over 60 s, 150.0 over 6 s, target 70 a pod
  requests     5 held (the oldest for 100 ms), 8 in flight
  decided      400 ms ago (the same 4 times in 8.0 s): 2 wanted, because
";
        assert_eq!(text(&[sample()]), expected);
    }

    #[test]
    fn what_goes_wrong_is_shown() {
        let mut instance = sample();
        let revision = &mut instance.revisions[0];
        revision.status.no_room = 3;
        revision.status.trouble = Some("no such program".to_owned());
        revision.status.dropped_stats = 2;
        revision.status.decisions.clear();
        let text = text(&[instance]);
        for part in
            ["3 without room", "trouble      no such program", "stats        2 dropped", "decided      nothing yet"]
        {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
    }

    #[test]
    fn times_are_in_units_that_people_read() {
        let read: Vec<String> = [0.0, 0.25, 59.94, 600.0, 7200.0, 259_200.0].into_iter().map(span).collect();
        assert_eq!(read, ["0 ms", "250 ms", "59.9 s", "10 min", "2.0 h", "3.0 days"]);
    }
}
