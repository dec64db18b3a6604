//! What is shown of a recording: changes, differences, and a sum.

use autoscaler::explain::{Difference, Outcome, Step, Told};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{BufWriter, Stdout, Write};
use std::time::Duration;

/// The longest time between two decisions for which the first one counts.
const APART_MAX: Duration = Duration::from_secs(60);

pub(super) struct Show {
    json: bool,
    /// The settings are those of the recording.
    as_recorded: bool,
    to: BufWriter<Stdout>,
    revisions: BTreeMap<String, Last>,
    sum: Sum,
}

/// What was shown of a revision last.
#[derive(Default)]
struct Last {
    shown: Option<(Option<Outcome>, Option<Outcome>, bool)>,
    step: Option<(policy::moment::Moment, u32, u32)>,
}

#[derive(Debug, Default, Serialize)]
struct Sum {
    revisions: usize,
    decisions: u64,
    differ: u64,
    /// Inputs that are missing.
    lost: u64,
    /// Pods ordered, times seconds.
    pod_seconds_recorded: f64,
    pod_seconds_now: f64,
}

impl Show {
    pub(super) fn new(json: bool, as_recorded: bool) -> Show {
        let to = BufWriter::new(std::io::stdout());
        Show { json, as_recorded, to, revisions: BTreeMap::new(), sum: Sum::default() }
    }

    pub(super) fn tell(&mut self, told: &Told) {
        match told {
            Told::Nothing => return,
            Told::Decision(step) => self.count(step),
            Told::Gap { lost, .. } => self.sum.lost += lost,
            Told::Head { .. } => {}
        }
        if self.json {
            let text = serde_json::to_string(told).unwrap_or_default();
            return self.put(&text);
        }
        match told {
            Told::Head { version, mode, at } => self.put(&format!("{at}  a file by zeroscale {version}, {mode} mode")),
            Told::Gap { at, lost } => self.put(&format!("{at}  {lost} inputs are missing here")),
            Told::Decision(step) => self.step(step),
            Told::Nothing => {}
        }
    }

    fn count(&mut self, step: &Step) {
        self.sum.decisions += 1;
        self.sum.differ += u64::from(step.differs.is_some());
        let pods = |decided: &Option<autoscaler::explain::Decided>, before: u32| {
            decided.as_ref().map_or(before, |decided| decided.ordered().unwrap_or(0))
        };
        let last = self.revisions.entry(step.revision.clone()).or_default();
        let (at, recorded, now) = last.step.unwrap_or((step.moment, 0, 0));
        let apart = step.moment.since(at).min(APART_MAX).as_secs_f64();
        self.sum.pod_seconds_recorded += f64::from(recorded) * apart;
        self.sum.pod_seconds_now += f64::from(now) * apart;
        last.step = Some((step.moment, pods(&step.recorded, recorded), pods(&step.now, now)));
    }

    /// What differs from what was shown last.
    fn step(&mut self, step: &Step) {
        let outcome = |decided: &Option<autoscaler::explain::Decided>| decided.as_ref().map(|made| made.outcome());
        let shown = (outcome(&step.recorded), outcome(&step.now), step.differs.is_some());
        let last = self.revisions.entry(step.revision.clone()).or_default();
        if last.shown.as_ref() == Some(&shown) {
            return;
        }
        last.shown = Some(shown);
        let (recorded, now) = step.in_words();
        let head = format!("{}  {}", step.at, step.revision);
        match &step.differs {
            None => self.put(&format!("{head}  {recorded}")),
            Some(Difference { what, recorded: then, now: instead }) => {
                self.put(&format!("{head}  differs in {what}: recorded {then}, now {instead}"));
                self.put(&format!("    recorded  {recorded}"));
                self.put(&format!("    now       {now}"));
            }
        }
    }

    /// The sum; true when nothing differs.
    pub(super) fn end(&mut self) -> bool {
        self.sum.revisions = self.revisions.len();
        let Sum { revisions, decisions, differ, lost, pod_seconds_recorded, pod_seconds_now } = self.sum;
        if self.json {
            let text = serde_json::to_string(&BTreeMap::from([("sum", &self.sum)])).unwrap_or_default();
            self.put(&text);
        } else {
            let lost = if lost > 0 { format!(", {lost} inputs missing") } else { String::new() };
            let differ = if differ == 0 { "none differs".to_owned() } else { format!("{differ} differ") };
            let each = if revisions == 1 { "revision" } else { "revisions" };
            self.put(&format!("{decisions} decisions on {revisions} {each}, {differ}{lost}"));
            if !self.as_recorded {
                let (then, now) = (pod_seconds_recorded.round(), pod_seconds_now.round());
                self.put(&format!("pods ordered: {then} pod-seconds recorded, {now} now"));
            }
        }
        self.flush();
        differ == 0
    }

    fn put(&mut self, line: &str) {
        // Whoever reads may have seen enough: `explain | head`.
        let _ = writeln!(self.to, "{line}");
    }

    pub(super) fn flush(&mut self) {
        let _ = self.to.flush();
    }
}
