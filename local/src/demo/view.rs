//! What the demo shows of one moment, as lines of text. Pure.

use super::tally::Counts;
use crate::admin::report::Revision;
use autoscaler::status::DecisionStatus;
use std::time::Duration;

/// Which part of the demo it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Nothing runs, nobody asks.
    Asleep,
    /// Requests come.
    Load,
    /// All have been answered; the pods go.
    Back,
}

/// One moment.
pub(crate) struct Frame<'a> {
    pub(crate) stage: Stage,
    pub(crate) elapsed: Duration,
    pub(crate) rates: Rates,
    /// The way here, oldest first.
    pub(crate) trail: &'a [Step],
    /// The top of the trail's scale.
    pub(crate) peak: f64,
    pub(crate) counts: &'a Counts,
    pub(crate) revision: Option<&'a Revision>,
}

/// Requests per second over the last second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Rates {
    pub(crate) offered: f64,
    pub(crate) answered: f64,
}

/// A point of the trail.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Step {
    pub(crate) offered: f64,
    pub(crate) ready: u32,
}

/// Decisions that are shown.
const DECISIONS_SHOWN: usize = 4;
/// A single pod is no full bar.
const PODS_SCALE_MIN: u32 = 4;
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Columns of the names at the left.
const INDENT: usize = 11;

/// The whole view, each line within `columns`.
pub(crate) fn lines(frame: &Frame, columns: usize) -> Vec<String> {
    let mut lines = vec![title(frame), String::new()];
    let trail = newest(frame.trail, columns.saturating_sub(INDENT));
    let most = trail.iter().map(|step| step.ready).max().unwrap_or(0).max(PODS_SCALE_MIN);
    lines.push(row("", &bars(trail.iter().map(|step| step.offered / frame.peak))));
    lines.push(row("load", &load(frame)));
    lines.push(row("", &bars(trail.iter().map(|step| f64::from(step.ready) / f64::from(most)))));
    lines.push(row("pods", &pods(frame.revision)));
    lines.push(row("", &pod_words(frame.revision)));
    lines.push(row("requests", &requests(frame)));
    lines.push(row("latency", &latency(frame.counts)));
    lines.push(row("path", &path(frame.revision)));
    lines.push(row("in work", &windows(frame.revision)));
    lines.push(row("decisions", &trouble(frame.revision)));
    let decided = frame.revision.map_or(&[][..], |revision| &revision.status.decisions);
    let shown = decided.iter().map(decision).chain(std::iter::repeat(String::new())).take(DECISIONS_SHOWN);
    // Always as many lines, or the view would jump.
    lines.extend(shown);
    lines.into_iter().map(|line| cut(&line, columns)).collect()
}

/// The same moment in one line.
pub(crate) fn plain(frame: &Frame) -> String {
    let counts = frame.counts;
    let head = format!(
        "{:5.1} s  {}: {:.0}/s offered, {:.0}/s answered, {} answered, {} lost",
        frame.elapsed.as_secs_f64(),
        stage(frame.stage),
        frame.rates.offered,
        frame.rates.answered,
        counts.answered,
        counts.losses(),
    );
    let Some(revision) = frame.revision else { return head };
    let why = revision.status.decisions.first().map_or("nothing decided", |decision| &decision.why);
    format!(
        "{head}; {} held, {} in flight; {}; path {}; {}; {why}",
        revision.held,
        revision.in_flight,
        pod_words(Some(revision)),
        revision.status.path,
        windows(Some(revision)),
    )
}

fn title(frame: &Frame) -> String {
    let told = match frame.stage {
        Stage::Asleep => "no process runs, and nobody asks",
        Stage::Load => "requests come, whether they are answered or not",
        Stage::Back => "all is answered; the pods go when the window is empty",
    };
    format!("zeroscale demo {:5.1} s   {told}", frame.elapsed.as_secs_f64())
}

fn stage(stage: Stage) -> &'static str {
    match stage {
        Stage::Asleep => "asleep",
        Stage::Load => "load",
        Stage::Back => "back to zero",
    }
}

fn load(frame: &Frame) -> String {
    format!("{:.0} requests/s offered, {:.0} answered", frame.rates.offered, frame.rates.answered)
}

fn requests(frame: &Frame) -> String {
    let (held, in_flight) = frame.revision.map_or((0, 0), |revision| (revision.held, revision.in_flight));
    let counts = frame.counts;
    format!("{held} held, {in_flight} in flight; {} answered, {} lost", counts.answered, counts.losses())
}

fn latency(counts: &Counts) -> String {
    if counts.answered == 0 {
        return "no answer yet".to_owned();
    }
    let of = counts.latency();
    let cold = counts.cold_start.map(|took| format!("; first wake {}", millis(took))).unwrap_or_default();
    format!("half within {}, 99 % within {}, worst {}{cold}", millis(of.half), millis(of.most), millis(of.worst))
}

/// A block a pod: full = ready, light = starting, small = ending.
fn pods(revision: Option<&Revision>) -> String {
    let pods = revision.map_or(&[][..], |revision| &revision.status.pods);
    let of = |phase: &str, block: char| {
        let count = pods.iter().filter(|pod| pod.phase == phase).count();
        std::iter::repeat_n(block, count).collect::<String>()
    };
    format!("{}{}{}", of("ready", '■'), of("starting", '□'), of("terminating", '·'))
}

fn pod_words(revision: Option<&Revision>) -> String {
    revision.map_or("none".to_owned(), Revision::pods_in_words)
}

fn path(revision: Option<&Revision>) -> String {
    let Some(Revision { status, .. }) = revision else { return String::new() };
    let told = match status.path.as_str() {
        "direct" => "direct: straight to the pods",
        _ => "activator: holds requests until a pod has a free slot",
    };
    format!("{told} (spare capacity {})", status.excess_burst_capacity)
}

fn windows(revision: Option<&Revision>) -> String {
    revision.map(|of| format!("{}, mode {}", of.load_in_words(), of.status.mode)).unwrap_or_default()
}

fn trouble(revision: Option<&Revision>) -> String {
    revision.and_then(|revision| revision.status.trouble.clone()).unwrap_or_default()
}

fn decision(made: &DecisionStatus) -> String {
    let wanted = made.wanted.map_or("no order".to_owned(), |wanted| format!("{wanted} wanted"));
    let age = format!("{:.1} s ago", made.since_seconds);
    format!("{age:>12}  {wanted}: {}", made.why)
}

fn bars(shares: impl Iterator<Item = f64>) -> String {
    let bar = |share: f64| {
        let steps = (share * BARS.len() as f64).ceil().clamp(0.0, BARS.len() as f64) as usize;
        steps.checked_sub(1).map_or(' ', |index| BARS[index])
    };
    shares.map(bar).collect()
}

fn newest(trail: &[Step], most: usize) -> &[Step] {
    &trail[trail.len().saturating_sub(most)..]
}

fn row(name: &str, text: &str) -> String {
    format!("{name:<INDENT$}{text}")
}

/// Every character of ours is one column wide.
fn cut(line: &str, columns: usize) -> String {
    line.trim_end().chars().take(columns).collect()
}

/// In the unit that people read.
pub(crate) fn millis(span: Duration) -> String {
    format!("{:.0} ms", span.as_secs_f64() * 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::report;
    use crate::demo::tally::Tally;

    const STATUS: &str = r#"{"revision":"default/sample-00001","service":"sample","wanted":4,"ready":2,
        "pods":[{"name":"a","phase":"ready","address":"127.0.0.1:1","for_seconds":1.0,"start_took_seconds":0.2},
                {"name":"b","phase":"ready","address":"127.0.0.1:2","for_seconds":1.0,"start_took_seconds":0.2},
                {"name":"c","phase":"starting","address":"127.0.0.1:3","for_seconds":0.1,"start_took_seconds":null},
                {"name":"d","phase":"terminating","address":"127.0.0.1:4","for_seconds":0.1,"start_took_seconds":0.2}],
        "mode":"panic","path":"activator","metric":"concurrency","target":2.8,"stable":3.24,
        "stable_window_seconds":6.0,"panic":8.1,"panic_window_seconds":1.0,"excess_burst_capacity":-12,
        "trouble":null,"dropped_stats":0,
        "decisions":[{"since_seconds":0.42,"last_seconds":0.42,"times":1,"wanted":4,"desired":4,"ready":2,
            "stable":3.24,"panic":8.1,"panic_mode":true,"path":"activator","limits":[],"why":"because"}],
        "held":5,"oldest_held_seconds":0.1,"in_flight":8,"no_room":1}"#;

    fn check(with: impl Fn(&Frame)) {
        let revision: report::Revision = serde_json::from_str(STATUS).unwrap();
        let tally = Tally::new().unwrap();
        tally.offer();
        tally.answer(std::time::Instant::now(), Some(Duration::from_millis(171)));
        let trail =
            [Step { offered: 0.0, ready: 0 }, Step { offered: 150.0, ready: 1 }, Step { offered: 300.0, ready: 2 }];
        with(&Frame {
            stage: Stage::Load,
            elapsed: Duration::from_millis(4200),
            rates: Rates { offered: 150.4, answered: 149.0 },
            trail: &trail,
            peak: 300.0,
            counts: &tally.read(),
            revision: Some(&revision),
        });
    }

    #[test]
    fn the_view_shows_load_pods_path_and_why() {
        check(|frame| {
            let shown = lines(frame, 100);
            let text = shown.join("\n");
            for part in [
                "zeroscale demo   4.2 s",
                "            ▄█",
                "load       150 requests/s offered, 149 answered",
                "pods       ■■□·",
                "4 wanted, 2 ready, 1 starting, 1 ending, 1 without room",
                "requests   5 held, 8 in flight; 1 answered, 0 lost",
                "first wake 171 ms",
                "path       activator",
                "3.2 over 6 s, 8.1 over 1 s, target 2.8 a pod, mode panic",
                "   0.4 s ago  4 wanted: because",
            ] {
                assert!(text.contains(part), "{part:?} is not in\n{text}");
            }
        });
    }

    #[test]
    fn the_view_keeps_its_height_and_stays_within_the_width() {
        check(|frame| {
            let asleep = Frame { revision: None, trail: &[], ..*frame };
            assert_eq!(lines(frame, 100).len(), lines(&asleep, 100).len());
            for columns in [0, 1, 11, 40] {
                assert!(lines(frame, columns).iter().all(|line| line.chars().count() <= columns), "{columns}");
            }
        });
    }

    #[test]
    fn one_line_says_the_same() {
        check(|frame| {
            let line = plain(frame);
            assert!(!line.contains('\n'));
            for part in ["4.2 s  load: 150/s offered", "5 held", "4 wanted, 2 ready", "path activator", "because"] {
                assert!(line.contains(part), "{part:?} is not in {line}");
            }
        });
    }
}
