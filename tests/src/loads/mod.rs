//! Load over time, and what the shipped decisions make of it.
//!
//! A [`Load`] says for each second how much concurrency is offered and how
//! long a pod takes to start. [`run`] drives the autoscaler itself with it
//! (`autoscaler::Autoscaler`: collection, windows, decisions, the way to
//! zero), in simulated time and without a socket, against a model of requests
//! (`traffic`) and of pods (`pods`). The same load and settings always give
//! the same [`Figures`].
//!
//! What the model does, for each twentieth of a second:
//!
//! * Requests arrive at `offered / service` a second and need `service`
//!   seconds at a pod each, so that `offered` is the concurrency that is there
//!   when nobody has to wait. A pod serves `total` at a time. What is beyond
//!   that waits, at the activator or, on the direct path, in the sidecars, and
//!   counts. With [`Clients::Closed`] there are `offered` clients instead,
//!   each of which sends its next request when the last one was answered.
//! * An order takes effect at once: missing pods start and are ready after the
//!   second's start time; of too many those named in the order go first, then
//!   those that start, then the youngest. They go at once, or stay for `drain` seconds without new work.
//! * With the beginning of each second the activator and every ready pod
//!   report the second before; 0.1 s later, every other second, the autoscaler
//!   decides. The first request of an idle revision is told at once.
//! * A restart takes the autoscaler away for [`DOWNTIME`] seconds: nothing is
//!   decided, reports are lost. Then a new one begins, in the better mode with
//!   what the old one had saved.

mod file;
mod pods;
mod shapes;
mod traffic;
mod world;

pub use file::read;
pub use shapes::{Shape, all as shapes};
pub use world::{DOWNTIME, record, run};

use autoscaler::Autoscaler;
use policy::compat::Compat;
use policy::moment::Moment;
use policy::revision::{Aggregation, Bounds, Metric, RevisionSpec, ScaleSpec, Timeouts, WindowSpec};
use policy::world::Order;
use std::time::Duration;

/// Decides on all that is due.
pub fn due(autoscaler: &Autoscaler, now: Moment) -> Vec<Order> {
    let mut orders = Vec::new();
    autoscaler.decide(usize::MAX, now, |order| orders.push(order));
    orders
}

/// Start time of pods where a load does not say.
pub const START: f64 = 2.0;

/// One second of a load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Second {
    /// Concurrency that is offered.
    pub offered: f64,
    /// How long a pod takes to start that is ordered now, in seconds.
    pub start: f64,
}

/// A load over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// For people.
    pub name: String,
    /// One entry a second.
    pub seconds: Vec<Second>,
    /// The autoscaler is killed at the beginning of these seconds.
    pub restarts: Vec<usize>,
}

/// Who sends the requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clients {
    /// A great many, who do not wait for each other: what is not served is
    /// left over, and adds up.
    Open,
    /// So many as concurrency is offered, each with one request at a time.
    Closed,
}

/// The revision, and the model's own settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setting {
    /// Load that one pod should carry.
    pub target: f64,
    /// Requests that a pod serves at a time.
    pub total: u32,
    /// What load is measured in; `target` is then requests a second for `Rps`.
    pub metric: Metric,
    /// The stable window.
    pub window: Duration,
    /// `scale-down-delay`.
    pub delay: Duration,
    /// Pods that are there, ready, at the beginning.
    pub pods: u32,
    /// Seconds that a request takes at a pod.
    pub service: f64,
    /// Who sends the requests.
    pub clients: Clients,
    /// Seconds for which a removed pod stays.
    pub drain: f64,
}

impl Default for Setting {
    /// Knative's defaults, with the total as a hard limit.
    fn default() -> Setting {
        Setting {
            target: 70.0,
            total: 100,
            metric: Metric::Concurrency,
            window: Duration::from_secs(60),
            delay: Duration::ZERO,
            pods: 0,
            service: 1.0,
            clients: Clients::Open,
            drain: 0.0,
        }
    }
}

impl Setting {
    /// Pods that so much load needs.
    pub fn need(&self, offered: f64) -> u32 {
        let load = if self.metric == Metric::Rps { offered / self.service } else { offered };
        // `as` takes the nearest that fits. Less than a thousandth of a pod
        // over is a fault of arithmetic.
        (load / self.target - 1e-3).ceil().max(0.0) as u32
    }

    fn revision(&self) -> RevisionSpec {
        let stable = self.window;
        RevisionSpec {
            service: "load".into(),
            configuration: "load".into(),
            container_concurrency: self.total,
            timeouts: Timeouts { total: Duration::from_secs(300), response_start: None, idle: None, upgrade: None },
            scale: ScaleSpec {
                metric: self.metric,
                target: self.target,
                total: f64::from(self.total),
                stable_window: stable,
                scale_down_delay: self.delay,
                initial_scale: 0,
                ..ScaleSpec::KNATIVE
            },
            windows: WindowSpec { stable, panic: WindowSpec::panic_of(stable, 10.0), aggregation: Aggregation::Linear },
            bounds: Bounds {
                min_scale: 0,
                max_scale: 0,
                scale_to_zero: true,
                grace: Duration::ZERO,
                retention: Duration::ZERO,
                progress_deadline: Duration::from_secs(600),
            },
        }
    }
}

/// What came of a load.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// Seconds times pods that exist, those that start or leave included.
    pub pod_seconds: f64,
    /// Seconds with fewer ready pods than the offered load needs.
    pub below_need: f64,
    /// How long it took at most from when the load needed a number of pods
    /// until so many were ready, or no longer needed.
    pub to_needed: f64,
    /// The most pods that were wanted at a time.
    pub peak: u32,
    /// Changes of the number of pods that are wanted.
    pub changes: u32,
    /// Requests that waited at the end of a second, on average.
    pub waiting: f64,
    /// Pods wanted at the end of each second.
    pub wanted: Vec<u32>,
    /// Ready pods at the end of each second.
    pub ready: Vec<u32>,
}

/// Both modes over one load.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// As the reference decides.
    pub strict: Figures,
    /// As the default mode decides.
    pub better: Figures,
    /// As the reference decides when nobody restarts it.
    pub undisturbed: Figures,
}

/// How many more pod-seconds than the strict mode the default may take.
pub const COST_MAX: f64 = 1.05;

impl Pair {
    /// One load in both modes.
    pub fn of(load: &Load, setting: &Setting) -> Pair {
        let strict = run(load, setting, Compat::Strict);
        let undisturbed = match load.restarts.is_empty() {
            true => strict.clone(),
            false => run(&Load { restarts: Vec::new(), ..load.clone() }, setting, Compat::Strict),
        };
        Pair { strict, better: run(load, setting, Compat::Better), undisturbed }
    }

    /// What does not hold of the better decisions: their cost, and how soon
    /// there are enough pods. Empty = all does.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let ratio = self.better.pod_seconds / self.strict.pod_seconds.max(1e-9);
        if ratio > COST_MAX && self.better.pod_seconds > 0.0 {
            faults.push(format!("takes {ratio:.3} of strict's pod-seconds"));
        }
        // The reference panics when it is restarted, and may be sooner by that.
        let (better, strict) = (self.better.to_needed, self.strict.to_needed.max(self.undisturbed.to_needed));
        if better > strict + 1e-9 {
            faults.push(format!("{better:.2} s to the needed count, {strict:.2} s in strict mode"));
        }
        faults
    }
}
