//! An answer in words: a block a revision. Pure.

use super::time::clock;
use super::{Change, Changes, Decision, Inputs, Limit, Why, Window};
use jiff::tz::TimeZone;
use std::fmt::Write;

/// Columns of the names at the left.
const NAMES: usize = 11;
/// Columns of a line of samples.
const LINE: usize = 88;
/// Seconds that are shown of a window.
const SAMPLES: usize = 60;

/// Answers as text.
pub fn text(all: &[Why], zone: &TimeZone) -> String {
    let blocks: Vec<String> = all.iter().map(|why| Block { why, zone, text: String::new() }.write()).collect();
    blocks.join("\n")
}

struct Block<'a> {
    why: &'a Why,
    zone: &'a TimeZone,
    text: String,
}

impl Block<'_> {
    fn write(mut self) -> String {
        let why = self.why;
        let order = why.decision.as_ref().map_or("nothing was decided yet".to_owned(), order);
        let _ = writeln!(self.text, "{} ({}), {}: {order}", why.service, why.revision, self.clock(why.at));
        if let Some(decision) = &why.decision {
            self.decision(decision);
        }
        if let Some(changes) = &why.changes {
            self.changes(changes);
        }
        for (name, other) in [("before", &why.before), ("after", &why.after)] {
            if let Some(other) = other {
                let line = format!("{}: {}", self.span(other), in_short(other, &why.metric));
                self.row(name, &line);
            }
        }
        if let Some(since) = why.history_since {
            let since = format!("since {}", self.clock(since));
            self.row("history", &since);
        }
        self.text
    }

    fn decision(&mut self, of: &Decision) {
        let why = self.why;
        let mut line = self.span(of);
        if of.times > 1 {
            let _ = write!(line, ", {} times", of.times);
            if why.inputs.is_none() {
                line.push_str("; the numbers are those of the last");
            }
        }
        if why.undecided {
            line.push_str("; then nothing was decided until after this time: the autoscaler was away");
        }
        self.row("decided", &line);
        match (&of.load, &of.no_decision) {
            (Some(load), _) => {
                let mut line = format!("{}; a pod should carry {}", why.metric, number(load.target));
                if let Some(Inputs { total, target, .. }) = &why.inputs {
                    let _ = write!(line, " ({:.0} % of {})", target / total * 100.0, number(*total));
                }
                self.row("load", &line);
                let lasts = |range: (f32, f32)| match range {
                    (low, high) if of.times < 2 || low == high => String::new(),
                    (low, high) => format!(" (from {low:.2} to {high:.2} meanwhile)"),
                };
                let asks = |average: f64, seconds: Option<u64>, wish: f64, range: (f32, f32)| {
                    let over = seconds.map(|seconds| format!(" over {seconds} s")).unwrap_or_default();
                    format!("{average:.2}{over} / {} = {}{}", number(load.target), pods(wish as i64), lasts(range))
                };
                let inputs = why.inputs.as_ref();
                self.row(
                    " stable",
                    &asks(load.stable, inputs.map(|of| of.stable.seconds), load.wish_stable, load.stable_range),
                );
                inputs.iter().for_each(|of| self.samples(&of.stable));
                self.row(
                    " panic",
                    &asks(load.panic, inputs.map(|of| of.panic.seconds), load.wish_panic, load.panic_range),
                );
                inputs.iter().for_each(|of| self.samples(&of.panic));
                let line = self.mode(load.in_panic, load.ratio);
                self.row("mode", &line);
                let mut line = format!("{} ready, {} starting", load.ready, load.starting);
                if let Some(inputs) = inputs {
                    if (inputs.ready, inputs.starting) != (load.ready, load.starting) {
                        let _ = write!(line, "; by now {} and {}", inputs.ready, inputs.starting);
                    }
                    for (count, what) in [(inputs.terminating, "ending"), (inputs.no_room, "without room")] {
                        if count > 0 {
                            let _ = write!(line, ", {count} {what}");
                        }
                    }
                }
                self.row("pods", &line);
                let wish = if load.window == "panic" { load.wish_panic } else { load.wish_stable };
                self.row("wish", &format!("{}, of the {} window", pods(wish as i64), load.window));
            }
            (None, Some(reason)) => self.row("load", &format!("no decision ({reason}): the one before stands")),
            (None, None) => {}
        }
        if let Some(trouble) = why.inputs.as_ref().and_then(|inputs| inputs.trouble.as_ref()) {
            self.row("trouble", trouble);
        }
        match of.limits.as_slice() {
            [] => self.row("limits", "none acted"),
            limits => {
                for (place, limit) in limits.iter().enumerate() {
                    self.row(if place == 0 { "limits" } else { "" }, &acted(place + 1, limit));
                }
            }
        }
        let mut line = order(of);
        if let Some(spare) = of.excess_burst_capacity {
            let _ = write!(line, " (spare capacity {spare})");
        }
        self.row("order", &line);
    }

    fn mode(&self, in_panic: bool, ratio: f64) -> String {
        let Some(inputs) = &self.why.inputs else {
            let mode = if in_panic { "panic" } else { "calm" };
            return format!("{mode}; the panic window asks for {} times the ready pods", number(ratio));
        };
        let threshold = number(inputs.panic_threshold);
        match (inputs.panic_until, inputs.panic_pods) {
            (Some(until), Some(held)) => format!(
                "panic until {}, with {} at least; longer if the panic window asks for {threshold} times the ready pods \
                 (now {})",
                self.clock(until),
                pods(i64::from(held)),
                number(ratio),
            ),
            _ => format!(
                "calm: the panic window asks for {} times the ready pods, panic begins at {threshold}",
                number(ratio)
            ),
        }
    }

    fn changes(&mut self, of: &Changes) {
        let mut lines: Vec<String> = Vec::new();
        let now = format!("as it is now ({} {})", self.why.metric, number((of.as_now * 100.0).round() / 100.0));
        lines.push(match &of.then {
            None => format!("{now}: nothing changes"),
            Some(Change { seconds: 0, pods: then, .. }) => {
                format!("{now}, at the next decision: {}", pods(i64::from(*then)))
            }
            Some(Change { seconds, pods: then, .. }) => format!("{now} for {seconds} s: {}", pods(i64::from(*then))),
        });
        if let Some(limit) = &of.more_held {
            lines.push(format!("no load brings more: {limit}"));
        }
        lines.extend(of.list.iter().map(|change| change.words.clone()));
        if let Some(limit) = &of.fewer_held {
            lines.push(format!("no time without requests brings fewer: {limit}"));
        }
        if of.cut_short {
            lines.push("(that is not all: it would take too long to look)".to_owned());
        }
        for (place, line) in lines.iter().enumerate() {
            self.row(if place == 0 { "changes" } else { "" }, line);
        }
    }

    /// The samples of a window, equal ones in a row as one.
    fn samples(&mut self, of: &Window) {
        let shown = &of.samples[of.samples.len().saturating_sub(SAMPLES)..];
        let value =
            |sample: Option<f64>| sample.map_or("-".to_owned(), |sample| number((sample * 10.0).round() / 10.0));
        let mut runs: Vec<(String, usize)> = Vec::new();
        for sample in shown.iter().map(|sample| value(*sample)) {
            match runs.last_mut().filter(|(last, _)| *last == sample) {
                Some((_, times)) => *times += 1,
                None => runs.push((sample, 1)),
            }
        }
        let mut line = String::new();
        for (value, times) in runs {
            let word = match times {
                1 => value,
                2 => format!("{value} {value}"),
                times => format!("{value}x{times}"),
            };
            if line.len() + word.len() >= LINE {
                self.row("", line.trim_end());
                line.clear();
            }
            let _ = write!(line, "{word} ");
        }
        self.row("", line.trim_end());
    }

    fn row(&mut self, name: &str, value: &str) {
        let _ = writeln!(self.text, "  {name:<width$}{value}", width = NAMES - 2);
    }

    fn clock(&self, seconds: f64) -> String {
        clock(seconds, self.why.now, self.zone)
    }

    fn span(&self, of: &Decision) -> String {
        match (self.clock(of.from), self.clock(of.to)) {
            (from, to) if from == to => from,
            (from, to) => format!("{from} to {to}"),
        }
    }
}

/// `2 pods, through the activator`.
fn order(of: &Decision) -> String {
    let pods = of.wanted.map_or("nothing ordered".to_owned(), |wanted| pods(i64::from(wanted)));
    let path = if of.path == "direct" { "direct" } else { "through the activator" };
    format!("{pods}, {path}")
}

/// One line of another decision.
fn in_short(of: &Decision, metric: &str) -> String {
    let limits: String = of.limits.iter().map(|limit| format!(", {}", effect(limit))).collect();
    match &of.load {
        Some(load) => {
            let (window, average) = match load.window.as_str() {
                "panic" => ("panic", load.panic),
                _ => ("stable", load.stable),
            };
            let panic = if load.in_panic { ", in panic" } else { "" };
            format!("{}; {metric} {average:.2} ({window} window) / {}{panic}{limits}", order(of), number(load.target))
        }
        None => format!("{}; no decision ({}){limits}", order(of), of.no_decision.as_deref().unwrap_or("unknown")),
    }
}

fn effect(limit: &Limit) -> String {
    match (limit.from, limit.to) {
        (from, to) if from == to => format!("{} holds {to}", limit.limit),
        (from, -1) => format!("{} {from} -> as it is", limit.limit),
        (from, to) => format!("{} {from} -> {to}", limit.limit),
    }
}

fn acted(place: usize, limit: &Limit) -> String {
    let mut line = format!("{place}. {}: {}", effect(limit), limit.what);
    if let Some(setting) = &limit.setting {
        // The name stands there once.
        let brief = |place: &String| match place.split_once(' ') {
            Some((kind, name)) if name.rsplit('/').next() == Some(&setting.name) => kind.to_owned(),
            _ => place.clone(),
        };
        let places: Vec<String> = setting.places.iter().map(brief).collect();
        let _ = write!(line, " [{} = {}: {}]", setting.name, setting.value, places.join(", "));
    }
    line
}

fn pods(count: i64) -> String {
    match count {
        1 => "1 pod".to_owned(),
        count => format!("{count} pods"),
    }
}

/// With no more digits than it has, and two behind the point at most.
fn number(number: f64) -> String {
    let rounded = (number * 100.0).round() / 100.0;
    if rounded == 0.0 { "0".to_owned() } else { rounded.to_string() }
}

#[cfg(test)]
mod tests {
    use super::super::{Load, Setting};
    use super::*;

    fn decision() -> Decision {
        Decision {
            from: 1_000.0,
            to: 1_008.0,
            times: 5,
            no_decision: None,
            load: Some(Load {
                stable: 3.84,
                stable_range: (3.1, 4.0),
                panic: 0.76,
                panic_range: (0.76, 0.76),
                target: 7.0,
                wish_stable: 1.0,
                wish_panic: 1.0,
                ratio: 0.5,
                in_panic: true,
                window: "stable".to_owned(),
                ready: 1,
                starting: 1,
            }),
            limits: vec![Limit {
                limit: "panic-floor".to_owned(),
                from: 1,
                to: 2,
                what: "in panic the number never falls".to_owned(),
                setting: Some(Setting {
                    name: "panic-threshold-percentage".to_owned(),
                    value: "200".to_owned(),
                    places: vec![
                        "annotation autoscaling.knative.dev/panic-threshold-percentage".to_owned(),
                        "--panic-threshold-percentage".to_owned(),
                    ],
                }),
            }],
            desired: Some(2),
            wanted: Some(2),
            path: "activator".to_owned(),
            excess_burst_capacity: Some(-192),
        }
    }

    fn why() -> Why {
        let window = |seconds, samples: &[Option<f64>]| Window { seconds, average: 1.0, samples: samples.to_vec() };
        let samples = [None, None, None, Some(10.0), Some(0.0), Some(1.52), Some(0.0)];
        Why {
            revision: "default/shop-00001".to_owned(),
            service: "shop".to_owned(),
            at: 1_009.5,
            now: 1_009.5,
            history_since: Some(900.0),
            metric: "concurrency".to_owned(),
            inputs: Some(Inputs {
                target: 7.0,
                total: 10.0,
                stable: window(7, &samples),
                panic: window(2, &samples[5..]),
                panic_threshold: 2.0,
                panic_until: Some(1_030.0),
                panic_pods: Some(2),
                ready: 2,
                starting: 0,
                terminating: 1,
                no_room: 0,
                trouble: Some("no such command".to_owned()),
                activity: "active".to_owned(),
                activity_since: 1_000.0,
                floor: None,
            }),
            decision: Some(decision()),
            undecided: false,
            changes: Some(Changes {
                list: vec![Change {
                    when: "nothing".to_owned(),
                    does: None,
                    does_not: None,
                    seconds: 21,
                    pods: 0,
                    words: "no requests for 21 s: zero".to_owned(),
                }],
                more_held: Some("max-scale".to_owned()),
                fewer_held: None,
                as_now: 0.76,
                then: None,
                cut_short: false,
            }),
            before: Some(Decision { from: 900.0, to: 900.0, limits: Vec::new(), ..decision() }),
            after: None,
        }
    }

    #[test]
    fn every_input_and_every_limit_has_its_line() {
        let expected = "\
shop (default/shop-00001), 00:16:49: 2 pods, through the activator
  decided  00:16:40 to 00:16:48, 5 times
  load     concurrency; a pod should carry 7 (70 % of 10)
   stable  3.84 over 7 s / 7 = 1 pod (from 3.10 to 4.00 meanwhile)
           -x3 10 0 1.5 0
   panic   0.76 over 2 s / 7 = 1 pod
           1.5 0
  mode     panic until 00:17:10, with 2 pods at least; longer if the panic window asks for 2 times the ready pods (now 0.5)
  pods     1 ready, 1 starting; by now 2 and 0, 1 ending
  wish     1 pod, of the stable window
  trouble  no such command
  limits   1. panic-floor 1 -> 2: in panic the number never falls [panic-threshold-percentage = 200: annotation, --panic-threshold-percentage]
  order    2 pods, through the activator (spare capacity -192)
  changes  as it is now (concurrency 0.76): nothing changes
           no load brings more: max-scale
           no requests for 21 s: zero
  before   00:15:00: 2 pods, through the activator; concurrency 3.84 (stable window) / 7, in panic
  history  since 00:15:00
";
        assert_eq!(text(&[why()], &TimeZone::UTC), expected);
    }

    #[test]
    fn of_the_past_there_is_what_the_history_has() {
        let mut past = why();
        (past.at, past.inputs, past.changes, past.undecided) = (1_100.0, None, None, true);
        let no_decision = Some("no-data".to_owned());
        past.after =
            Some(Decision { from: 1_200.0, to: 1_300.0, load: None, no_decision, limits: Vec::new(), ..decision() });
        past.now = 90_000.0;
        let text = text(&[past.clone(), past], &TimeZone::UTC);
        for part in [
            "1970-01-01 00:18:20: 2 pods",
            "5 times; the numbers are those of the last; then nothing was decided until after this time: the autoscaler was away",
            "mode     panic; the panic window asks for 0.5 times the ready pods",
            " stable  3.84 / 7 = 1 pod",
            "after    1970-01-01 00:20:00 to 1970-01-01 00:21:40: 2 pods, through the activator; no decision (no-data)",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
        assert_eq!(text.matches("\n\nshop (").count(), 1);
    }

    #[test]
    fn samples_are_bounded_and_equal_ones_are_one() {
        let mut long = why();
        let samples: Vec<Option<f64>> = (0..3600).map(|at| Some(f64::from(at) / 3.0)).collect();
        let inputs = long.inputs.as_mut().unwrap();
        inputs.stable.samples = samples;
        let text = text(&[long], &TimeZone::UTC);
        assert!(text.lines().all(|line| line.len() < 220), "{text}");
        assert!(text.contains(" 1199.7\n") && !text.contains("1179.3"), "{text}");
    }
}
