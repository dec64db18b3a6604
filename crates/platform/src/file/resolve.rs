//! From the form of the snapshot file to the words of the platform seam. All
//! faults are found together, each with its revision.

use crate::file::schema;
use policy::duration;
use policy::revision::{Aggregation, Bounds, Metric, RevisionId, RevisionSpec, ScaleSpec, Timeouts, WindowSpec};
use policy::world::{Network, Path, PodPhase, Routes, TroubleKind};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Shortest and longest window (`stable-window`).
const WINDOW: (Duration, Duration) = (Duration::from_secs(6), Duration::from_secs(3600));
/// `requests-per-second-target-default`.
const TOTAL_RPS: f64 = 200.0;
/// The lowest target there may be.
const TARGET_MIN: f64 = 0.01;
/// Faults that are told of one file.
const FAULTS_MAX: usize = 5;

/// What the file says: all but since when things are as they are.
#[derive(Debug, PartialEq)]
pub(super) struct World {
    pub(super) revisions: BTreeMap<RevisionId, View>,
    pub(super) routes: Routes,
}

#[derive(Debug, PartialEq)]
pub(super) struct View {
    pub(super) spec: RevisionSpec,
    pub(super) pods: Vec<Pod>,
    pub(super) path: Path,
    pub(super) trouble: Option<(TroubleKind, Arc<str>)>,
    pub(super) without_room: u32,
    pub(super) network: Network,
}

#[derive(Debug, PartialEq)]
pub(super) struct Pod {
    pub(super) name: Arc<str>,
    pub(super) address: SocketAddr,
    pub(super) phase: PodPhase,
    pub(super) start_took: Option<Duration>,
}

/// Resolves a whole file.
///
/// # Errors
/// What makes no sense in it.
pub(super) fn world(file: schema::File) -> Result<World, String> {
    let mut faults = Faults::default();
    let mut world = World { revisions: BTreeMap::new(), routes: Routes::default() };
    let mut pods = BTreeSet::new();
    for revision in file.revisions {
        faults.at(&revision.name);
        let Some(id) = id(&revision.name) else {
            faults.add("the name is no `namespace/name`".to_owned());
            continue;
        };
        route(&revision, &id, &mut world.routes, &mut faults);
        for pod in &revision.pods {
            if pod.name.is_empty() || !pods.insert(pod.name.clone()) {
                faults.add(format!("pod `{}` is there twice, or has no name", pod.name));
            }
        }
        let view = view(revision, &id, &mut faults);
        if world.revisions.insert(id, view).is_some() {
            faults.add("it is there twice".to_owned());
        }
    }
    faults.unless(world)
}

fn id(name: &str) -> Option<RevisionId> {
    let (namespace, name) = name.split_once('/')?;
    let fits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/');
    (fits(namespace) && fits(name)).then(|| RevisionId::new(namespace, name))
}

fn route(revision: &schema::Revision, id: &RevisionId, routes: &mut Routes, faults: &mut Faults) {
    for host in &revision.hosts {
        if host.is_empty() || host.contains(char::is_whitespace) {
            faults.add(format!("`{host}` is no host"));
        } else if routes.hosts.insert(host.to_ascii_lowercase().into(), id.clone()).is_some() {
            faults.add(format!("host `{host}` is there twice"));
        }
    }
    if revision.fallback && routes.fallback.replace(id.clone()).is_some() {
        faults.add("there is another `fallback`".to_owned());
    }
}

fn view(revision: schema::Revision, id: &RevisionId, faults: &mut Faults) -> View {
    let network = network(&revision, faults);
    let pods = revision.pods.into_iter().map(|pod| Pod {
        start_took: faults.span("startTook", pod.start_took.as_deref()),
        name: pod.name.into(),
        address: pod.address,
        phase: match pod.phase {
            schema::Phase::Starting => PodPhase::Starting,
            schema::Phase::Ready => PodPhase::Ready,
            schema::Phase::Terminating => PodPhase::Terminating,
        },
    });
    let pods: Vec<Pod> = pods.collect();
    for pod in pods.iter().filter(|pod| pod.phase == PodPhase::Ready && pod.address.port() == 0) {
        faults.add(format!("pod `{}` is ready, at port 0", pod.name));
    }
    let limit = revision.container_concurrency;
    let configuration = revision.configuration.or_else(|| revision.service.clone());
    View {
        spec: RevisionSpec {
            service: revision.service.map_or(id.name.clone(), Arc::from),
            configuration: configuration.map_or(id.name.clone(), Arc::from),
            container_concurrency: limit,
            timeouts: timeouts(&revision.timeouts, faults),
            scale: scale(&revision.scale, limit, faults),
            windows: windows(&revision.scale, faults),
            bounds: bounds(&revision.scale, faults),
        },
        pods,
        path: match revision.path {
            schema::Path::Activator => Path::Activator,
            schema::Path::Direct => Path::Direct,
        },
        trouble: revision.trouble.map(|trouble| {
            let kind = match trouble.reason {
                schema::TroubleReason::StartFailed => TroubleKind::StartFailed,
                schema::TroubleReason::StartTimeout => TroubleKind::StartTimeout,
            };
            (kind, trouble.text.into())
        }),
        without_room: revision.without_room,
        network,
    }
}

fn network(revision: &schema::Revision, faults: &mut Faults) -> Network {
    let mut activators = BTreeSet::new();
    for address in &revision.activators {
        // Activators are told apart and put in order by the text.
        if !activators.insert(Arc::from(address.to_string())) {
            faults.add(format!("activators: {address} is there twice"));
        }
    }
    if revision.private_service.is_some_and(|address| address.port() == 0) {
        faults.add("privateService: its port is 0".to_owned());
    }
    let trust_probe = revision.trust_probe.unwrap_or(true);
    Network { private_service: revision.private_service, activators, trust_probe }
}

fn timeouts(given: &schema::Timeouts, faults: &mut Faults) -> Timeouts {
    let total = faults.span("timeouts.total", given.total.as_deref()).unwrap_or(Duration::from_secs(300));
    if total.is_zero() {
        faults.add("timeouts.total: no request can be served in no time".to_owned());
    }
    let upgrade = faults.span("timeouts.upgrade", given.upgrade.as_deref());
    Timeouts {
        total,
        response_start: faults.span("timeouts.responseStart", given.response_start.as_deref()),
        idle: faults.span("timeouts.idle", given.idle.as_deref()),
        upgrade: Some(upgrade.unwrap_or(total)).filter(|life| !life.is_zero()),
    }
}

fn scale(given: &schema::Scale, limit: u32, faults: &mut Faults) -> ScaleSpec {
    let limit = f64::from(limit);
    let wished = faults.number("scale.target", given.target, TARGET_MIN, 1e9);
    let (metric, total) = match (given.metric, wished) {
        (schema::Metric::Rps, target) => (Metric::Rps, target.unwrap_or(TOTAL_RPS)),
        (schema::Metric::Concurrency, target) => {
            let most = if limit > 0.0 { limit } else { f64::INFINITY };
            let default = if limit > 0.0 { limit } else { ScaleSpec::KNATIVE.total };
            if target.is_some_and(|target| target > most) {
                faults.add("scale.target: it is above containerConcurrency".to_owned());
            }
            (Metric::Concurrency, target.unwrap_or(default))
        }
    };
    let percent = "scale.targetUtilizationPercentage";
    let share = faults.number(percent, given.target_utilization_percentage, 1.0, 100.0).unwrap_or(70.0);
    let burst = faults.number("scale.targetBurstCapacity", given.target_burst_capacity, -1.0, 1e9);
    let panic = faults.number("scale.panicThresholdPercentage", given.panic_threshold_percentage, 110.0, 1000.0);
    ScaleSpec {
        metric,
        target: (total * share / 100.0).max(TARGET_MIN),
        total,
        target_burst_capacity: burst.unwrap_or(ScaleSpec::KNATIVE.target_burst_capacity),
        panic_threshold: panic.map_or(ScaleSpec::KNATIVE.panic_threshold, |percent| percent / 100.0),
        stable_window: windows(given, &mut Faults::default()).stable,
        scale_down_delay: faults.span("scale.scaleDownDelay", given.scale_down_delay.as_deref()).unwrap_or_default(),
        initial_scale: count(given.initial.or(given.min)),
        activation_scale: count(given.activation),
        ..ScaleSpec::KNATIVE
    }
}

fn windows(given: &schema::Scale, faults: &mut Faults) -> WindowSpec {
    let stable = faults.span("scale.window", given.window.as_deref()).unwrap_or(Duration::from_secs(60));
    if stable < WINDOW.0 || stable > WINDOW.1 {
        faults.add("scale.window: it lies between 6s and 1h".to_owned());
    }
    let percent = faults.number("scale.panicWindowPercentage", given.panic_window_percentage, 1.0, 100.0);
    let panic = stable.mul_f64(percent.unwrap_or(10.0) / 100.0).max(Duration::from_secs(1));
    WindowSpec { stable, panic, aggregation: Aggregation::Linear }
}

fn bounds(given: &schema::Scale, faults: &mut Faults) -> Bounds {
    let (min, max) = (count(given.min), count(given.max));
    if max > 0 && min > max {
        faults.add(format!("scale.min: {min} is above scale.max, {max}"));
    }
    let start = faults.span("scale.startTimeout", given.start_timeout.as_deref());
    Bounds {
        min_scale: min,
        max_scale: max,
        scale_to_zero: given.to_zero.unwrap_or(true),
        grace: faults.span("scale.grace", given.grace.as_deref()).unwrap_or(Duration::from_secs(30)),
        retention: faults.span("scale.retention", given.retention.as_deref()).unwrap_or_default(),
        progress_deadline: start.unwrap_or(Duration::from_secs(600)),
    }
}

fn count(given: Option<u32>) -> i32 {
    i32::try_from(given.unwrap_or(0)).unwrap_or(i32::MAX)
}

/// What makes no sense, and where.
#[derive(Default)]
struct Faults {
    revision: String,
    lines: Vec<String>,
}

impl Faults {
    fn at(&mut self, revision: &str) {
        self.revision = revision.to_owned();
    }

    fn add(&mut self, what: String) {
        self.lines.push(format!("{}: {what}", self.revision));
    }

    fn span(&mut self, name: &str, given: Option<&str>) -> Option<Duration> {
        duration::parse(given?).map_err(|fault| self.add(format!("{name}: {fault}"))).ok()
    }

    fn number(&mut self, name: &str, given: Option<f64>, least: f64, most: f64) -> Option<f64> {
        let given = given?;
        if given.is_finite() && given >= least && given <= most {
            return Some(given);
        }
        self.add(format!("{name}: {given} does not lie between {least} and {most}"));
        None
    }

    fn unless<T>(mut self, value: T) -> Result<T, String> {
        if self.lines.is_empty() {
            return Ok(value);
        }
        let more = self.lines.len().saturating_sub(FAULTS_MAX);
        self.lines.truncate(FAULTS_MAX);
        let mut text = self.lines.join("; ");
        if more > 0 {
            text.push_str(&format!("; and {more} more"));
        }
        Err(text)
    }
}
