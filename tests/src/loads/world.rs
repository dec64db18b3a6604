//! One load through the autoscaler, step by step.

use super::pods::{Pods, Steps};
use super::traffic::Traffic;
use super::{Figures, Load, Setting};
use autoscaler::record::{Ask, Recording};
use autoscaler::{Autoscaler, Config};
use policy::compat::Compat;
use policy::moment::Moment;
use policy::revision::{RevisionId, RevisionSpec};
use policy::saved::Saved;
use policy::stat::{Stat, StatBatch};
use policy::world::{Network, Order, Path, RevisionView, Snapshot};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Seconds for which a restarted autoscaler is away.
pub const DOWNTIME: usize = 3;

/// Steps in a second.
const STEPS: Steps = 20;
/// Decisions come so many steps after the beginning of a second.
const DECIDE: Steps = 2;
/// Seconds between decisions.
const TICK: usize = 2;

/// When every load begins, in seconds since 1970.
const BEGINS: i64 = 1_700_000_000;

struct World<'a> {
    load: &'a Load,
    setting: &'a Setting,
    compat: Compat,
    spec: Arc<RevisionSpec>,
    id: RevisionId,
    autoscaler: Option<Autoscaler>,
    /// What the last one has left.
    saved: BTreeMap<RevisionId, Saved>,
    traffic: Traffic,
    pods: Pods,
    path: Path,
    path_since: Moment,
    /// The activator reports of the revision; and what it told beforehand.
    tracked: bool,
    told: f64,
    version: u64,
    wanted: u32,
    step: Steps,
    figures: Figures,
    /// For each number of pods: since when, and until when, so many are needed
    /// and not ready.
    missing: Vec<(Steps, Steps)>,
    /// What the autoscaler takes in and decides, where that is asked for.
    recording: Option<Recording>,
    recorded: Vec<u8>,
}

/// What the shipped decisions of one mode make of a load.
pub fn run(load: &Load, setting: &Setting, compat: Compat) -> Figures {
    World::new(load, setting, compat).run().figures
}

/// The same as a recording.
pub fn record(load: &Load, setting: &Setting, compat: Compat) -> Vec<u8> {
    let mut world = World::new(load, setting, compat);
    world.begin_recording();
    world.run().recorded
}

impl<'a> World<'a> {
    fn new(load: &'a Load, setting: &'a Setting, compat: Compat) -> World<'a> {
        let begins = Moment::from_unix_millis(BEGINS * 1000);
        World {
            load,
            setting,
            compat,
            spec: Arc::new(setting.revision()),
            id: RevisionId::new("default", "load"),
            autoscaler: Some(Autoscaler::new(Config { compat, ..Config::default() })),
            saved: BTreeMap::new(),
            traffic: Traffic::default(),
            pods: Pods::ready_from_the_start(setting.pods, begins),
            path: Path::Activator,
            path_since: begins,
            tracked: false,
            told: 0.0,
            version: 0,
            wanted: setting.pods,
            step: 0,
            figures: Figures {
                pod_seconds: 0.0,
                below_need: 0.0,
                to_needed: 0.0,
                peak: setting.pods,
                changes: 0,
                waiting: 0.0,
                wanted: Vec::new(),
                ready: Vec::new(),
            },
            missing: Vec::new(),
            recording: None,
            recorded: Vec::new(),
        }
    }

    fn run(mut self) -> World<'a> {
        self.publish();
        for second in 0..self.load.seconds.len() {
            self.second(second);
            self.recorded.extend(self.recording.iter_mut().flat_map(Recording::read));
        }
        self
    }

    fn begin_recording(&mut self) {
        self.recording = self.autoscaler.as_ref().and_then(|of| of.record_from(Ask::default(), self.now()).ok());
    }

    fn now(&self) -> Moment {
        Moment::from_unix_millis(BEGINS * 1000) + Duration::from_millis(self.step * 1000 / STEPS)
    }

    fn second(&mut self, second: usize) {
        self.restart(second);
        let offered = self.load.seconds[second].offered;
        if second > 0 {
            self.report();
        }
        for part in 0..STEPS {
            if self.pods.advance(self.step, self.now()) {
                self.publish();
            }
            if offered > 0.0 && self.path == Path::Activator && !self.tracked {
                self.announce();
            }
            if part == DECIDE && second.is_multiple_of(TICK) {
                self.autoscaler.iter().for_each(Autoscaler::tick);
                self.take(self.due());
            }
            self.flow(offered);
            self.step += 1;
        }
        let figures = &mut self.figures;
        figures.wanted.push(self.wanted);
        figures.ready.push(self.pods.serving() as u32);
        figures.waiting += (self.traffic.inside - self.traffic.served) / self.load.seconds.len() as f64;
    }

    /// Time passes for requests, and is counted.
    fn flow(&mut self, offered: f64) {
        let passed = 1.0 / STEPS as f64;
        let ready = self.pods.serving();
        let slots = ready as f64 * f64::from(self.setting.total);
        self.traffic.step(passed, offered, slots, self.setting.service, self.setting.clients);
        self.figures.pod_seconds += self.pods.count() as f64 * passed;
        let need = self.setting.need(offered) as usize;
        if ready < need {
            self.figures.below_need += passed;
        }
        if self.missing.len() < need {
            self.missing.resize(need, (0, 0));
        }
        // Step 0 would follow on "never".
        let step = self.step + 1;
        for (since, until) in self.missing.iter_mut().take(need).skip(ready) {
            if *until + 1 != step || *until == 0 {
                *since = step;
            }
            *until = step;
            let lasts = (step + 1 - *since) as f64 * passed;
            self.figures.to_needed = self.figures.to_needed.max(lasts);
        }
    }

    /// What each saw in the second that has just ended.
    fn report(&mut self) {
        let ready: Vec<Arc<str>> = self.pods.ready().cloned().collect();
        let Traffic { area, served_area, arrived, inside, .. } = self.traffic;
        self.traffic.begin();
        let through = self.path == Path::Activator;
        let mut stats = Vec::new();
        if self.tracked {
            let told = std::mem::take(&mut self.told);
            // On the direct path it has nothing any more, and says so once.
            let (area, arrived) = if through { (area, arrived) } else { (0.0, 0.0) };
            stats.push(stat("activator", (area - told).max(0.0), 0.0, arrived - told, 0.0));
            self.tracked = through && (area > 0.0 || inside > 0.0);
        }
        let each = 1.0 / ready.len().max(1) as f64;
        for name in &ready {
            let (load, count) = (if through { served_area } else { area } * each, arrived * each);
            let proxied = if through { (load, count) } else { (0.0, 0.0) };
            stats.push(stat(name, load, proxied.0, count, proxied.1));
        }
        self.send(stats, false);
    }

    /// The first request of an idle revision.
    fn announce(&mut self) {
        (self.tracked, self.told) = (true, 1.0);
        self.send(vec![stat("activator", 1.0, 0.0, 1.0, 0.0)], true);
    }

    fn send(&mut self, stats: Vec<Stat>, poke: bool) {
        let stats = stats.into_iter().map(|stat| (self.id.clone(), stat)).collect();
        let batch = StatBatch { at: self.now(), stats, poke };
        let orders = self.autoscaler.as_ref().map(|autoscaler| autoscaler.ingest(&batch, self.now()));
        self.take(orders.unwrap_or_default());
    }

    fn take(&mut self, orders: Vec<Order>) {
        let mut changed = false;
        for order in orders {
            if order.wanted != self.wanted {
                self.figures.changes += 1;
                self.figures.peak = self.figures.peak.max(order.wanted);
                self.wanted = order.wanted;
            }
            if order.path != self.path {
                changed = true;
                (self.path, self.path_since) = (order.path, self.now());
            }
            let second = (self.step / STEPS) as usize;
            let start = steps(self.load.seconds[second].start);
            let now = self.now();
            changed |= self.pods.follow(&order, self.step, start, steps(self.setting.drain), now);
        }
        if changed {
            self.publish();
        }
    }

    /// Tells the autoscaler what there is, and does what it answers.
    fn publish(&mut self) {
        self.version += 1;
        let view = RevisionView {
            spec: self.spec.clone(),
            pods: self.pods.seen(),
            path: self.path,
            path_since: self.path_since,
            trouble: None,
            without_room: 0,
            network: Network::default(),
        };
        let snapshot = Snapshot {
            version: self.version,
            revisions: BTreeMap::from([(self.id.clone(), Arc::new(view))]),
            ..Snapshot::default()
        };
        self.autoscaler.iter().for_each(|autoscaler| autoscaler.follow(&snapshot, self.now()));
        let orders = self.due();
        if !orders.is_empty() {
            self.take(orders);
        }
    }

    fn due(&self) -> Vec<Order> {
        self.autoscaler.as_ref().map(|autoscaler| super::due(autoscaler, self.now())).unwrap_or_default()
    }

    fn restart(&mut self, second: usize) {
        if self.load.restarts.contains(&second) {
            self.saved = self.autoscaler.take().map(|old| old.save(self.now())).unwrap_or_default();
        }
        if self.autoscaler.is_none() && self.load.restarts.iter().any(|at| at + DOWNTIME == second) {
            let new = Autoscaler::new(Config { compat: self.compat, ..Config::default() });
            new.restore(std::mem::take(&mut self.saved));
            self.autoscaler = Some(new);
            if self.recording.is_some() {
                self.begin_recording();
            }
            self.publish();
        }
    }
}

fn steps(seconds: f64) -> Steps {
    (seconds * STEPS as f64).round() as Steps
}

fn stat(name: &str, average: f64, proxied: f64, count: f64, proxied_count: f64) -> Stat {
    Stat {
        pod_name: name.into(),
        average_concurrency: average,
        average_proxied_concurrency: proxied,
        request_count: count,
        proxied_request_count: proxied_count,
    }
}
