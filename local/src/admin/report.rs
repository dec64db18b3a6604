//! What an instance tells of itself, and where it knows it from.

use crate::assemble::{Floor, Part};
use activator::{Activator, RevisionLoad};
use autoscaler::Autoscaler;
use autoscaler::status::RevisionStatus;
use metrics_exporter_prometheus::PrometheusHandle;
use plumbing::clock;
use policy::moment::Moment;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// One instance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Instance {
    /// Version of the program.
    pub(crate) version: String,
    /// Its process number.
    pub(crate) pid: u32,
    /// When it started, in seconds since the Unix epoch.
    pub(crate) started_unix_seconds: f64,
    /// How long ago that was.
    pub(crate) up_seconds: f64,
    /// Where it takes requests.
    pub(crate) listen: SocketAddr,
    /// Its revisions.
    pub(crate) revisions: Vec<Revision>,
}

/// One revision: what was decided, and what waits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Revision {
    #[serde(flatten)]
    pub(crate) status: RevisionStatus,
    /// Requests that wait for a pod.
    pub(crate) held: usize,
    /// How long the oldest of them has waited.
    pub(crate) oldest_held_seconds: Option<f64>,
    /// Requests that are at pods.
    pub(crate) in_flight: usize,
}

impl Revision {
    /// Pods wanted and there, by phase.
    pub(crate) fn pods_in_words(&self) -> String {
        let count = |phase: &str| self.status.pods.iter().filter(|pod| pod.phase == phase).count();
        let wanted = self.status.wanted.map_or("?".to_owned(), |wanted| wanted.to_string());
        let mut words = format!("{wanted} wanted, {} ready", self.status.ready);
        let others = [
            (count("starting"), "starting"),
            (count("terminating"), "ending"),
            (self.status.no_room as usize, "without room"),
        ];
        for (pods, phase) in others.into_iter().filter(|(pods, _)| *pods > 0) {
            words.push_str(&format!(", {pods} {phase}"));
        }
        words
    }

    /// Load over both windows, and what a pod should carry.
    pub(crate) fn load_in_words(&self) -> String {
        let status = &self.status;
        format!(
            "{:.1} over {:.0} s, {:.1} over {:.0} s, target {} a pod",
            status.stable, status.stable_window_seconds, status.panic, status.panic_window_seconds, status.target,
        )
    }
}

/// Whether all parts run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Health {
    pub(crate) ok: bool,
    /// What is wrong, if something is.
    pub(crate) wrong: Vec<String>,
}

/// Where an instance knows it from. Clones share it.
#[derive(Clone)]
pub(crate) struct Source {
    address: SocketAddr,
    started: Moment,
    activator: Activator,
    autoscaler: Autoscaler,
    recorder: PrometheusHandle,
    parts: Vec<Part>,
}

impl Source {
    /// The parts of a floor that know something.
    pub(crate) fn of(floor: &Floor) -> Source {
        Source {
            address: floor.address,
            started: clock::now(),
            activator: floor.activator.clone(),
            autoscaler: floor.autoscaler.clone(),
            recorder: floor.recorder.clone(),
            parts: floor.parts(),
        }
    }

    /// Everything as text for Prometheus.
    pub(super) fn metrics(&self) -> String {
        self.recorder.render() + &self.autoscaler.own_exposition()
    }

    pub(super) fn autoscaler(&self) -> &Autoscaler {
        &self.autoscaler
    }

    /// Everything, now.
    pub(crate) fn instance(&self) -> Instance {
        let now = clock::now();
        let loads: BTreeMap<String, RevisionLoad> =
            self.activator.load().into_iter().map(|load| (load.revision.to_string(), load)).collect();
        let revisions = self.autoscaler.status().into_iter().map(|status| {
            let load = loads.get(&status.revision);
            Revision {
                held: load.map_or(0, |load| load.held),
                oldest_held_seconds: load
                    .and_then(|load| load.oldest_held_since)
                    .map(|since| now.since(since).as_secs_f64()),
                in_flight: load.map_or(0, |load| load.in_flight),
                status,
            }
        });
        Instance {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            started_unix_seconds: self.started.unix_millis() as f64 / 1000.0,
            up_seconds: now.since(self.started).as_secs_f64(),
            listen: self.address,
            revisions: revisions.collect(),
        }
    }

    /// Decisions made so far.
    pub(crate) fn decisions(&self) -> u64 {
        self.autoscaler.decisions()
    }

    /// Names the parts that have ended.
    pub(crate) fn health(&self) -> Health {
        let ended = self.parts.iter().filter(|part| part.task.is_finished());
        let wrong: Vec<String> = ended.map(|part| format!("the {} has ended", part.name)).collect();
        Health { ok: wrong.is_empty(), wrong }
    }
}
