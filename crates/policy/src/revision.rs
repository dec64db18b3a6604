//! A revision: its name, its limits, and how it wants to be scaled.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// `namespace/name` of a revision.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RevisionId {
    /// Namespace; `default` on the local floor.
    pub namespace: Arc<str>,
    /// Name of the revision, equal to that of its pod autoscaler.
    pub name: Arc<str>,
}

/// Stands for "no limit" where a limit must be given: 100 years, which can be
/// added to any time without an overflow.
pub const NO_LIMIT: Duration = Duration::from_secs(100 * 365 * 86_400);

impl RevisionId {
    /// From its two parts.
    pub fn new(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> RevisionId {
        RevisionId { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for RevisionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Everything the components need to know of a revision.
#[derive(Clone, Debug, PartialEq)]
pub struct RevisionSpec {
    /// Name of the service that owns the revision.
    pub service: Arc<str>,
    /// Name of the configuration that made it.
    pub configuration: Arc<str>,
    /// Requests at one pod at a time (`containerConcurrency`); 0 = no limit.
    pub container_concurrency: u32,
    /// The app's limits for one request.
    pub timeouts: Timeouts,
    /// How the wished number of pods is computed.
    pub scale: ScaleSpec,
    /// Windows over which load is averaged.
    pub windows: WindowSpec,
    /// Bounds and rules of the way to zero.
    pub bounds: Bounds,
}

/// Limits of one request, counted from when a pod has it; waiting at the
/// activator is apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Longest time for the whole request (`timeoutSeconds`, default 300 s);
    /// [`NO_LIMIT`] = none.
    pub total: Duration,
    /// Longest time to the head of the answer (`responseStartTimeoutSeconds`); `None` = off.
    pub response_start: Option<Duration>,
    /// Longest silence towards the client (`idleTimeoutSeconds`); `None` = off.
    pub idle: Option<Duration>,
    /// Longest life of an upgraded connection; `None` = no limit. Default: `total`.
    pub upgrade: Option<Duration>,
}

/// What load is measured in (`autoscaling.knative.dev/metric`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Requests in progress, waiting ones included.
    Concurrency,
    /// Requests per second.
    Rps,
}

/// Input of the scale decision, resolved from settings and annotations
/// (the reference's decider spec).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScaleSpec {
    /// What load is measured in.
    pub metric: Metric,
    /// Load that one pod should carry: `total` times the wished utilisation.
    pub target: f64,
    /// Load that one pod can carry.
    pub total: f64,
    /// Spare load to keep before the activator leaves the path; -1 = it never
    /// leaves, 0 = only in the path at zero (`target-burst-capacity`).
    pub target_burst_capacity: f64,
    /// Load that one activator can carry (`activator-capacity`).
    pub activator_capacity: f64,
    /// Panic when the wish over the panic window is this many times the ready
    /// pods (2.0 = 200 %; `panic-threshold-percentage`).
    pub panic_threshold: f64,
    /// Longest window; also how long panic lasts after the last excess.
    pub stable_window: Duration,
    /// At most this many times the ready pods in one decision (`max-scale-up-rate`).
    pub max_scale_up_rate: f64,
    /// At least the ready pods divided by this (`max-scale-down-rate`).
    pub max_scale_down_rate: f64,
    /// A lower wish must have held this long (`scale-down-delay`); zero = off.
    pub scale_down_delay: Duration,
    /// Pods to reach once before the revision counts as started (`initial-scale`).
    pub initial_scale: i32,
    /// Pods to start when any is wanted (`activation-scale`); 0 or 1 = no floor.
    pub activation_scale: i32,
    /// False once no route leads to the revision.
    pub reachable: bool,
}

impl ScaleSpec {
    /// Knative's defaults for the concurrency metric, where neither a limit nor
    /// an annotation says otherwise (`config-autoscaler`).
    pub const KNATIVE: ScaleSpec = ScaleSpec {
        metric: Metric::Concurrency,
        target: 70.0,
        total: 100.0,
        target_burst_capacity: 211.0,
        activator_capacity: 100.0,
        panic_threshold: 2.0,
        stable_window: Duration::from_secs(60),
        max_scale_up_rate: 1000.0,
        max_scale_down_rate: 2.0,
        scale_down_delay: Duration::ZERO,
        initial_scale: 1,
        activation_scale: 0,
        reachable: true,
    };
}

/// How a window weighs its seconds (`metric-aggregation-algorithm`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregation {
    /// All seconds count the same.
    Linear,
    /// Newer seconds count more.
    WeightedExponential,
}

/// The two windows over which load is averaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowSpec {
    /// Length of the stable window (`stable-window`, 6 s to 1 h).
    pub stable: Duration,
    /// Length of the panic window: a share of the stable one, at least 1 s.
    pub panic: Duration,
    /// How seconds are weighed; fixed when the windows are made.
    pub aggregation: Aggregation,
}

impl WindowSpec {
    /// Length of the panic window: that share of the stable one, rounded to the
    /// nearest second (a half of one is rounded up), at least 1 s
    /// (`panic-window-percentage`).
    pub fn panic_of(stable: Duration, percentage: f64) -> Duration {
        // `as` cuts off parts of nanoseconds; no number becomes none.
        let nanos = (stable.as_nanos() as f64 * percentage / 100.0) as u64;
        let seconds = Duration::from_nanos(nanos).saturating_add(Duration::from_millis(500)).as_secs();
        Duration::from_secs(seconds.max(1))
    }
}

/// Bounds on the number of pods, and the rules of the way to zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Lower bound (`min-scale`).
    pub min_scale: i32,
    /// Upper bound (`max-scale`); 0 = none.
    pub max_scale: i32,
    /// False: a verdict of 0 becomes 1 (`enable-scale-to-zero`).
    pub scale_to_zero: bool,
    /// Longest wait for the activator to be in the path
    /// (`scale-to-zero-grace-period`; 0 s on the local floor).
    pub grace: Duration,
    /// The last pod stays at least this long after traffic ended
    /// (`scale-to-zero-pod-retention-period`).
    pub retention: Duration,
    /// A start that takes longer has failed (`progress-deadline`).
    pub progress_deadline: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_panic_window_is_rounded_to_seconds() {
        let window = |seconds, share| WindowSpec::panic_of(Duration::from_secs(seconds), share).as_secs();
        assert_eq!((window(25, 10.0), window(24, 10.0), window(6, 10.0), window(60, f64::NAN)), (3, 2, 1, 1));
        assert_eq!(window(3600, 100.0), 3600);
    }
}
