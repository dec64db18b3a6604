//! From flags to the settings of all parts; all faults are reported together.

use crate::cli::{CompatFlag, MetricFlag, RunFlags};
use autoscaler::knative::config::{TARGET_LOWEST, WINDOW_LONGEST, WINDOW_SHORTEST};
use platform::process::{Readiness, Service};
use plumbing::trust::{Ranges, Trust};
use policy::compat::Compat;
use policy::revision::{Aggregation, Bounds, Metric, RevisionId, RevisionSpec, ScaleSpec, Timeouts, WindowSpec};
use policy::world::Routes;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Knative's defaults that have no flag here.
mod knative {
    /// `requests-per-second-target-default`.
    pub(super) const TOTAL_RPS: f64 = 200.0;
}

/// Settings of one instance of `zeroscale`.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) services: Vec<Service>,
    pub(crate) routes: Routes,
    pub(crate) max_pods: u32,
    pub(crate) compat: Compat,
    pub(crate) trust: Trust,
    pub(crate) wait_limit: Duration,
    pub(crate) held_max: usize,
    pub(crate) held_all_max: usize,
    pub(crate) held_mib_max: usize,
    pub(crate) held_mib_all_max: usize,
    pub(crate) charge_wait: bool,
    pub(crate) wakes_per_caller: Option<u32>,
    pub(crate) shutdown_timeout: Duration,
    pub(crate) workers: usize,
}

/// A flag and what is wrong with it.
pub(crate) type Fault = String;

/// Resolves `run`'s flags.
///
/// # Errors
/// Every fault, each naming its flag.
pub(crate) fn of_run(flags: &RunFlags) -> Result<Settings, Vec<Fault>> {
    let mut faults = Vec::new();
    check_scale(flags, &mut faults);
    check_times(flags, &mut faults);
    let proxies = match flags.trusted_proxies.as_deref().unwrap_or("").parse::<Ranges>() {
        Ok(ranges) => ranges,
        Err(fault) => {
            faults.push(format!("--trusted-proxies: {fault}"));
            Ranges::nobody()
        }
    };
    let name = service_name(flags, &mut faults);
    if !faults.is_empty() {
        return Err(faults);
    }
    let service = service(flags, &name);
    let routes = Routes { hosts: BTreeMap::new(), fallback: Some(service.revision.clone()) };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Ok(Settings {
        services: vec![service],
        routes,
        max_pods: flags.max_pods,
        compat: compat(flags.compat),
        trust: Trust { proxies, ..Trust::nobody() },
        wait_limit: flags.wait_limit,
        held_max: flags.held_max,
        held_all_max: flags.held_all_max,
        held_mib_max: flags.held_mib_max,
        held_mib_all_max: flags.held_mib_all_max,
        charge_wait: flags.charge_wait,
        wakes_per_caller: flags.wakes_per_caller,
        shutdown_timeout: flags.shutdown_timeout,
        workers: flags.workers.unwrap_or(cores.min(4)),
    })
}

fn service(flags: &RunFlags, name: &str) -> Service {
    let spec = Arc::new(RevisionSpec {
        service: name.into(),
        configuration: name.into(),
        container_concurrency: flags.container_concurrency,
        timeouts: timeouts(flags),
        scale: scale(flags),
        windows: windows(flags),
        bounds: bounds(flags),
    });
    let revision = RevisionId::new("default", format!("{name}-00001"));
    Service {
        readiness: flags.readiness_path.clone().map_or(Readiness::Tcp, Readiness::Http),
        start_timeout: flags.start_timeout,
        stop_timeout: flags.stop_timeout,
        initial: flags.min_scale,
        ..Service::new(revision, spec, flags.command.clone())
    }
}

fn timeouts(flags: &RunFlags) -> Timeouts {
    Timeouts {
        total: flags.timeout,
        response_start: flags.response_start_timeout,
        idle: flags.idle_timeout,
        upgrade: Some(flags.upgrade_timeout.unwrap_or(flags.timeout)).filter(|life| !life.is_zero()),
    }
}

fn scale(flags: &RunFlags) -> ScaleSpec {
    let total = total(flags);
    ScaleSpec {
        metric: match flags.metric {
            MetricFlag::Concurrency => Metric::Concurrency,
            MetricFlag::Rps => Metric::Rps,
        },
        target: (total * flags.target_utilization_percentage / 100.0).max(TARGET_LOWEST),
        total,
        target_burst_capacity: flags.target_burst_capacity,
        panic_threshold: flags.panic_threshold_percentage / 100.0,
        stable_window: flags.window,
        scale_down_delay: flags.scale_down_delay,
        initial_scale: count(flags.min_scale),
        activation_scale: count(flags.activation_scale),
        ..ScaleSpec::KNATIVE
    }
}

/// What one instance can carry.
fn total(flags: &RunFlags) -> f64 {
    let limit = f64::from(flags.container_concurrency);
    match (flags.metric, flags.target) {
        (MetricFlag::Rps, target) => target.unwrap_or(knative::TOTAL_RPS),
        (MetricFlag::Concurrency, Some(target)) if flags.container_concurrency > 0 => target.min(limit),
        (MetricFlag::Concurrency, Some(target)) => target,
        (MetricFlag::Concurrency, None) if flags.container_concurrency > 0 => limit,
        (MetricFlag::Concurrency, None) => ScaleSpec::KNATIVE.total,
    }
}

fn windows(flags: &RunFlags) -> WindowSpec {
    let panic = WindowSpec::panic_of(flags.window, flags.panic_window_percentage);
    WindowSpec { stable: flags.window, panic, aggregation: Aggregation::Linear }
}

fn bounds(flags: &RunFlags) -> Bounds {
    Bounds {
        min_scale: count(flags.min_scale),
        max_scale: count(flags.max_scale),
        scale_to_zero: true,
        grace: flags.grace,
        retention: flags.retention,
        progress_deadline: flags.start_timeout,
    }
}

fn count(pods: u32) -> i32 {
    i32::try_from(pods).unwrap_or(i32::MAX)
}

fn compat(flag: CompatFlag) -> Compat {
    match flag {
        CompatFlag::Better => Compat::Better,
        CompatFlag::Strict => Compat::Strict,
    }
}

fn check_scale(flags: &RunFlags, faults: &mut Vec<Fault>) {
    let strict = flags.compat == CompatFlag::Strict;
    let mut range = |flag: &str, value: f64, low: f64, high: f64| {
        if !(low..=high).contains(&value) {
            faults.push(format!("--{flag}: {value} is not between {low} and {high}"));
        }
    };
    range("target-utilization-percentage", flags.target_utilization_percentage, 1.0, 100.0);
    range("panic-window-percentage", flags.panic_window_percentage, 1.0, 100.0);
    range("panic-threshold-percentage", flags.panic_threshold_percentage, 110.0, 1000.0);
    if let Some(target) = flags.target {
        range("target", target, TARGET_LOWEST, f64::from(i32::MAX));
        let limit = f64::from(flags.container_concurrency);
        // The reference lowers it to the limit without a word.
        if !strict && limit > 0.0 && target > limit && flags.metric == MetricFlag::Concurrency {
            faults.push(format!("--target: {target} is above --container-concurrency {limit}"));
        }
    }
    let burst = flags.target_burst_capacity;
    if !(burst == -1.0 || (0.0..=f64::from(i32::MAX)).contains(&burst)) {
        faults.push(format!("--target-burst-capacity: {burst} is neither -1 nor 0 or more"));
    }
    if !strict && flags.max_scale > 0 && flags.min_scale > flags.max_scale {
        faults.push(format!("--min-scale: {} is above --max-scale {}", flags.min_scale, flags.max_scale));
    }
    if flags.max_scale > 0 && flags.activation_scale > flags.max_scale {
        faults.push(format!("--activation-scale: {} is above --max-scale {}", flags.activation_scale, flags.max_scale));
    }
    if flags.max_pods > 0 && flags.min_scale > flags.max_pods {
        faults.push(format!("--min-scale: {} is above --max-pods {}", flags.min_scale, flags.max_pods));
    }
}

fn check_times(flags: &RunFlags, faults: &mut Vec<Fault>) {
    if flags.window < WINDOW_SHORTEST || flags.window > WINDOW_LONGEST || flags.window.subsec_nanos() != 0 {
        faults.push(format!("--window: {:?} is not a whole number of seconds from 6s to 1h", flags.window));
    }
    let positive =
        [("timeout", flags.timeout), ("start-timeout", flags.start_timeout), ("wait-limit", flags.wait_limit)];
    for (flag, span) in positive {
        if span.is_zero() {
            faults.push(format!("--{flag}: must be more than 0"));
        }
    }
    for (flag, span) in [("response-start-timeout", flags.response_start_timeout), ("idle-timeout", flags.idle_timeout)]
    {
        if span.is_some_and(|span| span.is_zero()) {
            faults.push(format!("--{flag}: must be more than 0; leave it out to turn it off"));
        }
    }
    if flags.readiness_path.as_deref().is_some_and(|path| !path.starts_with('/')) {
        faults.push("--readiness-path: must begin with /".to_owned());
    }
    if flags.wakes_per_caller == Some(0) {
        faults.push("--wakes-per-caller: must be at least 1; leave it out for no bound".to_owned());
    }
    if flags.workers == Some(0) {
        faults.push("--workers: must be at least 1".to_owned());
    }
}

fn service_name(flags: &RunFlags, faults: &mut Vec<Fault>) -> String {
    let given = flags.name.clone().unwrap_or_else(|| {
        let program = flags.command.first().map(Path::new).and_then(Path::file_name);
        let base = program.map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
        let legal: String = base.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let trimmed = legal.trim_matches('-').chars().take(NAME_MAX).collect::<String>();
        if trimmed.is_empty() { "app".to_owned() } else { trimmed }
    });
    let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if given.is_empty() || given.len() > NAME_MAX || !given.chars().all(legal) || given.starts_with('-') {
        faults.push(format!("--name: `{given}` is no name of up to {NAME_MAX} small letters, digits and `-`"));
    }
    given
}

/// Longest service name: a revision's and a pod's are made from it and must
/// stay within the 63 bytes of a DNS label.
const NAME_MAX: usize = 48;
