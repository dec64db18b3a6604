//! What a history is like, before it begins: limits, bounds, load, and how
//! much goes wrong in it.

use super::draw::Draw;
use policy::admit;
use policy::collect::Silence;
use policy::compat::Compat;
use policy::pick::Rule;
use policy::revision::{Aggregation, Bounds, Metric, ScaleSpec, WindowSpec};
use std::time::Duration;

/// Microseconds, of simulated time only.
pub(super) type Micros = u64;

pub(super) const MILLI: Micros = 1_000;
pub(super) const SECOND: Micros = 1_000_000;

/// A stretch of time with steady load.
#[derive(Clone, Copy, Debug)]
pub(super) struct Phase {
    pub(super) until: Micros,
    /// Between two arrivals, on average; `None` = quiet.
    pub(super) every: Option<Micros>,
}

/// All that is fixed for one history, but for what disturbances change.
#[derive(Debug)]
pub(super) struct Setup {
    /// Requests at one pod at a time; `None` = no limit.
    pub(super) capacity: Option<u32>,
    pub(super) rule: Rule,
    pub(super) places: admit::Bounds,
    pub(super) spec: ScaleSpec,
    pub(super) windows: WindowSpec,
    pub(super) limits: Bounds,
    pub(super) compat: Compat,
    pub(super) silence: Silence,
    pub(super) phases: Vec<Phase>,
    /// The longest start of a pod.
    pub(super) start_most: Micros,
    /// The longest service of a request.
    pub(super) service_most: Micros,
    /// One client in so many leaves early.
    pub(super) leaves_one_in: u64,
    /// One try in so many is handed back by its pod.
    pub(super) returned_one_in: u64,
    /// Between two disturbances, at most; `None` = a calm history.
    pub(super) disturbed_every: Option<Micros>,
    /// More than a thousand arrive in one moment: the queue's table grows, and
    /// is given back.
    pub(super) flood: bool,
}

impl Setup {
    pub(super) fn new(draw: &mut Draw) -> Setup {
        let capacity = limit(draw);
        let spec = scale_spec(draw, capacity);
        let panic_share = draw.of(&[2, 5, 10]) as u32;
        let windows = WindowSpec {
            stable: spec.stable_window,
            panic: (spec.stable_window / panic_share).max(Duration::from_secs(1)),
            aggregation: draw.of(&[Aggregation::Linear, Aggregation::WeightedExponential]),
        };
        let flood = draw.one_in(48);
        let compat = if draw.one_in(5) { Compat::Strict } else { Compat::Better };
        Setup {
            capacity,
            rule: rule(draw, capacity),
            places: places(draw, capacity, flood),
            limits: bounds(draw, &spec, compat),
            silence: if spec.target_burst_capacity == -1.0 { Silence::Idle } else { Silence::Unknown },
            spec,
            windows,
            compat,
            phases: phases(draw),
            start_most: draw.of(&[0, 50, 800, 5_000]) * MILLI,
            service_most: draw.of(&[2, 60, 900, 8_000]) * MILLI,
            leaves_one_in: draw.of(&[2, 6, 30]),
            returned_one_in: draw.of(&[4, 20, 100_000]),
            disturbed_every: draw.of(&[None, Some(SECOND), Some(4 * SECOND), Some(15 * SECOND)]),
            flood,
        }
    }

    /// When the last client arrives.
    pub(super) fn until(&self) -> Micros {
        self.phases.last().map_or(0, |phase| phase.until)
    }
}

/// None, one, few or many at a time.
pub(super) fn limit(draw: &mut Draw) -> Option<u32> {
    match draw.below(10) {
        0 | 1 => None,
        2..=4 => Some(1),
        5..=7 => Some(draw.between(2, 6) as u32),
        8 => Some(draw.between(7, 40) as u32),
        _ => Some(draw.between(41, 1_000) as u32),
    }
}

fn rule(draw: &mut Draw, capacity: Option<u32>) -> Rule {
    if draw.one_in(3) {
        draw.of(&[Rule::FirstFree, Rule::RoundRobin, Rule::LeastOfTwo])
    } else {
        Rule::for_limit(capacity.unwrap_or(0))
    }
}

fn places(draw: &mut Draw, capacity: Option<u32>, flood: bool) -> admit::Bounds {
    let waiting_max = if flood { 5_000 } else { draw.of(&[0, 1, 3, 10, 40, 10_000]) as usize };
    let sidecar = 11 * capacity.unwrap_or(100) as usize;
    let places_max = match draw.below(4) {
        0 if !flood => sidecar,
        1 if !flood => draw.between(1, 60) as usize,
        _ => usize::MAX,
    };
    admit::Bounds { waiting_max, places_max }
}

fn scale_spec(draw: &mut Draw, capacity: Option<u32>) -> ScaleSpec {
    let metric = draw.of(&[Metric::Concurrency, Metric::Concurrency, Metric::Rps]);
    let total = match metric {
        Metric::Concurrency => f64::from(capacity.unwrap_or(20)),
        Metric::Rps => draw.between(1, 40) as f64,
    };
    ScaleSpec {
        metric,
        target: total * draw.of(&[0.5, 0.7, 1.0]),
        total,
        target_burst_capacity: draw.of(&[-1.0, 0.0, 0.0, 3.0, 100.0]),
        activator_capacity: 100.0,
        panic_threshold: draw.of(&[1.1, 2.0, 10.0]),
        stable_window: Duration::from_secs(draw.of(&[6, 8, 15])),
        max_scale_up_rate: draw.of(&[1.5, 2.0, 1000.0]),
        max_scale_down_rate: draw.of(&[1.1, 2.0, 1000.0]),
        scale_down_delay: Duration::from_secs(draw.of(&[0, 0, 4, 11])),
        initial_scale: draw.of(&[0, 1, 1, 3]),
        activation_scale: draw.of(&[0, 0, 1, 4]),
        reachable: !draw.one_in(20),
    }
}

/// In strict mode only bounds that do not contradict each other: there the
/// reference's answer to those that do is nothing to hold on to.
fn bounds(draw: &mut Draw, spec: &ScaleSpec, compat: Compat) -> Bounds {
    let min_scale = draw.of(&[0, 0, 0, 1, 2]);
    let mut max_scale = draw.of(&[0, 1, 2, 5, 9]);
    if compat == Compat::Strict && max_scale > 0 {
        max_scale = max_scale.max(min_scale).max(spec.initial_scale);
    }
    Bounds {
        min_scale,
        max_scale,
        scale_to_zero: !draw.one_in(8),
        grace: Duration::from_secs(draw.of(&[0, 0, 4])),
        retention: Duration::from_secs(draw.of(&[0, 0, 5])),
        progress_deadline: Duration::from_secs(draw.of(&[0, 2, 60])),
    }
}

/// Bursts, trickles and silence; some silences are long enough to reach zero,
/// or for a start to be given up.
fn phases(draw: &mut Draw) -> Vec<Phase> {
    let mut until = 0;
    (0..draw.between(2, 5))
        .map(|_| {
            let (lasts, every) = match draw.below(6) {
                0 => (draw.between(20, 500) * MILLI, Some(2 * MILLI)),
                1 | 2 => (draw.between(500, 5_000) * MILLI, Some(draw.between(20, 200) * MILLI)),
                3 => (draw.between(2, 20) * SECOND, Some(draw.between(300, 2_000) * MILLI)),
                _ => (draw.of(&[3, 12, 25, 60]) * SECOND, None),
            };
            until += lasts;
            Phase { until, every }
        })
        .collect()
}
