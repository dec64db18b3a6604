//! One revision's answer, from a copy of what its decisions know.

use super::settings::{of as setting_of, what};
use super::{Change, Changes, Decision, Inputs, Limit, Load, Refused, Setting, Why, Window};
use crate::decider::{ready, starting};
use crate::history::{History, Record};
use crate::schedule::Schedule;
use crate::status::{metric, path, tidy};
use policy::active::Active;
use policy::collect::Collection;
use policy::compat::Compat;
use policy::decider::Status;
use policy::forecast::{self, Beat, Course, Edge, When, forecast};
use policy::limit::Step;
use policy::moment::Moment;
use policy::overload::Overload;
use policy::revision::{RevisionId, RevisionSpec};
use policy::scale::Memory;
use policy::world::{Path, PodPhase, RevisionView};
use policy::zero::ZeroState;
use std::sync::Arc;
use std::time::Duration;

/// A decision is missing when none was made for so long, or for so many beats.
const AWAY: Duration = Duration::from_secs(10);
const BEATS_AWAY: u32 = 3;

/// What an answer is made from.
#[derive(Clone, Debug)]
pub(crate) struct Inquiry {
    pub(crate) id: RevisionId,
    pub(crate) view: Arc<RevisionView>,
    pub(crate) compat: Compat,
    pub(crate) collection: Collection,
    pub(crate) overload: Overload,
    pub(crate) slots: f64,
    pub(crate) memory: Memory,
    pub(crate) status: Status,
    pub(crate) zero: ZeroState,
    pub(crate) ordered: Option<u32>,
    pub(crate) schedules: Vec<Schedule>,
    pub(crate) history: History,
}

impl Inquiry {
    /// What stands now, and what would change it.
    pub(crate) fn now(&self, beat: Beat, now: Moment) -> Why {
        let mut records = self.history.newest_first();
        let (newest, before) = (records.next(), records.next());
        let gone = newest.is_some_and(|newest| now.since(newest.last) > away(beat));
        Why {
            inputs: Some(self.inputs(now)),
            decision: newest.map(|record| self.decision(record)),
            undecided: gone,
            changes: self.changes(beat, now),
            before: before.map(|record| self.decision(record)),
            ..self.head(now, now)
        }
    }

    /// What stood at a time.
    ///
    /// # Errors
    /// When nothing is known of it.
    pub(crate) fn at(&self, at: Moment, beat: Beat, now: Moment) -> Result<Why, Refused> {
        let Some((before, stood, after)) = self.history.at(at) else {
            return Err(Refused::TooEarly { revision: self.id.to_string(), since: self.history.since() });
        };
        Ok(Why {
            decision: Some(self.decision(stood)),
            undecided: at.since(stood.last) > away(beat),
            before: before.map(|record| self.decision(record)),
            after: after.map(|record| self.decision(record)),
            ..self.head(at, now)
        })
    }

    fn head(&self, at: Moment, now: Moment) -> Why {
        Why {
            revision: self.id.to_string(),
            service: self.view.spec.service.to_string(),
            at: seconds(at),
            now: seconds(now),
            history_since: self.history.since().map(seconds),
            metric: metric(self.view.spec.scale.metric).to_owned(),
            inputs: None,
            decision: None,
            undecided: false,
            changes: None,
            before: None,
            after: None,
        }
    }

    fn floor(&self) -> impl FnMut(Moment) -> Option<i32> + Clone {
        let mut schedules = self.schedules.clone();
        move |at| schedules.iter_mut().filter_map(|schedule| schedule.floor(at)).max()
    }

    fn inputs(&self, now: Moment) -> Inputs {
        let (view, scale) = (&self.view, &self.view.spec.scale);
        let (stable, panic) = self.collection.windows_of(scale.metric);
        let window = |of: &policy::window::Window, length: Duration| Window {
            seconds: length.as_secs(),
            average: tidy(of.average(now)),
            samples: of.seconds(now),
        };
        let since = self.memory.panic_since();
        let activity = self.zero.activity();
        Inputs {
            target: scale.target,
            total: scale.total,
            stable: window(stable, view.spec.windows.stable),
            panic: window(panic, view.spec.windows.panic),
            panic_threshold: scale.panic_threshold,
            panic_until: since.map(|since| seconds(since + scale.stable_window)),
            panic_pods: since.map(|_| self.memory.max_panic_pods()),
            ready: ready(view),
            starting: starting(view),
            terminating: count(view.pods.iter().filter(|pod| pod.phase == PodPhase::Terminating)),
            no_room: view.without_room,
            trouble: view.trouble.as_ref().map(|trouble| trouble.text.to_string()),
            activity: match activity.active() {
                Active::Starting(_) => "starting",
                Active::Yes => "active",
                Active::No(_) => "idle",
            }
            .to_owned(),
            activity_since: seconds(activity.since()),
            floor: (self.floor())(now),
        }
    }

    fn changes(&self, beat: Beat, now: Moment) -> Option<Changes> {
        let view = &self.view;
        let course = Course {
            spec: &view.spec,
            compat: self.compat,
            collection: self.collection.clone(),
            overload: self.overload.clone(),
            slots: self.slots,
            memory: self.memory.clone(),
            status: self.status,
            zero: self.zero,
            ordered: self.ordered?,
            ready: ready(view),
            starting: starting(view),
            pods: !view.pods.is_empty(),
            in_path_since: (view.path == Path::Activator).then_some(view.path_since),
        };
        let told = forecast(&course, beat, self.floor(), now);
        let unit = metric(view.spec.scale.metric);
        let (as_now, then) = told.as_now.unwrap_or_default();
        Some(Changes {
            list: told.more.iter().chain(&told.fewer).map(|change| change_of(change, unit)).collect(),
            more_held: told.more_held.map(|limit| limit.as_str().to_owned()),
            fewer_held: told.fewer_held.map(|limit| limit.as_str().to_owned()),
            as_now: tidy(as_now),
            then: then.map(|change| change_of(&change, unit)),
            cut_short: told.cut_short,
        })
    }

    fn decision(&self, record: &Record) -> Decision {
        let made = record.made.as_ref();
        Decision {
            from: seconds(record.at),
            to: seconds(record.last),
            times: record.times,
            no_decision: made.err().map(|why| why.as_str().to_owned()),
            load: made.ok().map(|made| Load {
                stable: tidy(made.stable),
                stable_range: made.stable_range,
                panic: tidy(made.panic),
                panic_range: made.panic_range,
                target: made.target,
                wish_stable: made.wish(made.stable),
                wish_panic: made.wish(made.panic),
                ratio: made.ratio,
                in_panic: made.in_panic,
                window: if made.by_panic_window { "panic" } else { "stable" }.to_owned(),
                ready: made.ready,
                starting: made.starting,
            }),
            limits: record.steps.iter().map(|step| limit_of(step, &self.view.spec)).collect(),
            desired: made.ok().map(|made| made.desired),
            wanted: record.ordered,
            path: path(record.path).to_owned(),
            excess_burst_capacity: made.ok().map(|made| made.excess_burst_capacity),
        }
    }
}

fn limit_of(step: &Step, spec: &RevisionSpec) -> Limit {
    let setting: Option<Setting> = setting_of(step.limit, spec);
    Limit {
        limit: step.limit.as_str().to_owned(),
        from: step.from,
        to: step.to,
        what: what(step.limit).to_owned(),
        setting,
    }
}

fn change_of(change: &forecast::Change, unit: &str) -> Change {
    let pods = match change.pods {
        0 => "zero".to_owned(),
        1 => "1 pod".to_owned(),
        pods => format!("{pods} pods"),
    };
    let seconds = change.seconds;
    let (when, edge, words) = match change.when {
        When::Any if seconds == 0 => ("any", None, "whatever comes, at the next decision".to_owned()),
        When::Any => ("any", None, format!("whatever comes, in {seconds} s")),
        When::FirstRequest => ("request", None, "the first request, at once".to_owned()),
        When::Above(edge) if edge.does_not == 0.0 => ("above", Some(edge), format!("any {unit} for {seconds} s")),
        When::Above(edge) => ("above", Some(edge), format!("{unit} {} for {seconds} s", above(edge))),
        When::Below(edge) => ("below", Some(edge), format!("{unit} {} for {seconds} s", below(edge))),
        When::Nothing => ("nothing", None, format!("no requests for {seconds} s")),
    };
    Change {
        when: when.to_owned(),
        does: edge.map(|edge| edge.does),
        does_not: edge.map(|edge| edge.does_not),
        seconds,
        pods: change.pods,
        words: format!("{words}: {pods}"),
    }
}

/// By the one of both loads that is shorter to say.
fn above(edge: Edge) -> String {
    let (does, does_not) = (short(edge.does), short(edge.does_not));
    if does.len() < does_not.len() { format!("of {does} or more") } else { format!("above {does_not}") }
}

fn below(edge: Edge) -> String {
    let (does, does_not) = (short(edge.does), short(edge.does_not));
    if does.len() < does_not.len() { format!("of {does} or less") } else { format!("below {does_not}") }
}

/// At least one digit behind the point.
fn short(number: f64) -> String {
    if number.fract() == 0.0 { format!("{number:.1}") } else { number.to_string() }
}

fn count<T>(of: impl Iterator<Item = T>) -> u32 {
    u32::try_from(of.count()).unwrap_or(u32::MAX)
}

fn away(beat: Beat) -> Duration {
    AWAY.max(beat.every * BEATS_AWAY)
}

fn seconds(at: Moment) -> f64 {
    at.unix_millis() as f64 / 1000.0
}
