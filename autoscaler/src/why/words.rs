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
        let _ = write!(line, " [{} = {}: {}]", setting.name, setting.value, setting.places.join(", "));
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
