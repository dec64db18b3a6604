//! What the platform knows of a revision, as far as decisions look at it, and
//! what of it has changed.

use super::number::Number;
use policy::moment::Moment;
use policy::revision::{Aggregation, Bounds, Metric, NO_LIMIT, RevisionSpec, ScaleSpec, Timeouts, WindowSpec};
use policy::world::{Network, Path, Pod, PodPhase, RevisionView};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// What is not there is as it was.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct View {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    spec: Option<Spec>,
    /// Pods that are no more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    gone: Vec<Arc<str>>,
    /// Pods that are new (in the order in which they were made) or changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pods: Vec<PodSeen>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path: Option<PathSeen>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Spec {
    service: Arc<str>,
    configuration: Arc<str>,
    container_concurrency: u32,
    metric: Measure,
    target: Number,
    total: Number,
    target_burst_capacity: Number,
    activator_capacity: Number,
    panic_threshold: Number,
    stable_window: Nanos,
    max_scale_up_rate: Number,
    max_scale_down_rate: Number,
    scale_down_delay: Nanos,
    initial_scale: i32,
    activation_scale: i32,
    reachable: bool,
    /// Lengths of the stable and of the panic window.
    windows: (Nanos, Nanos),
    weighted: bool,
    min_scale: i32,
    max_scale: i32,
    scale_to_zero: bool,
    grace: Nanos,
    retention: Nanos,
    progress_deadline: Nanos,
}

/// A span of time in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
struct Nanos(u64);

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Measure {
    Concurrency,
    Rps,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PodSeen {
    name: Arc<str>,
    phase: Phase,
    since: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    start_took: Option<Nanos>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Phase {
    Starting,
    Ready,
    Terminating,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PathSeen {
    direct: bool,
    since: i64,
}

impl View {
    pub(crate) fn whole(view: &RevisionView) -> View {
        View {
            spec: Some(Spec::of(&view.spec)),
            gone: Vec::new(),
            pods: view.pods.iter().map(PodSeen::of).collect(),
            path: Some(PathSeen::of(view)),
        }
    }

    /// What has changed.
    pub(crate) fn change(old: &RevisionView, new: &RevisionView) -> View {
        let (spec, path) = (Spec::of(&new.spec), PathSeen::of(new));
        let (gone, pods) = pods_changed(old, new);
        View {
            spec: (spec != Spec::of(&old.spec)).then_some(spec),
            gone,
            pods,
            path: (path != PathSeen::of(old)).then_some(path),
        }
    }

    /// The view after the change.
    pub(crate) fn after(self, old: &RevisionView) -> RevisionView {
        let mut view = RevisionView { pods: self.pods_after(&old.pods), ..old.clone() };
        if let Some(spec) = self.spec {
            view.spec = Arc::new(spec.spec());
        }
        if let Some(path) = self.path {
            path.put_into(&mut view);
        }
        view
    }

    /// A view from nothing.
    ///
    /// # Errors
    /// The name of what is missing.
    pub(crate) fn view(self) -> Result<RevisionView, String> {
        let pods = self.pods_after(&[]);
        let spec = self.spec.ok_or("`spec` is missing in `view`")?;
        let path = self.path.ok_or("`path` is missing in `view`")?;
        let mut view = RevisionView {
            spec: Arc::new(spec.spec()),
            pods,
            path: Path::Activator,
            path_since: Moment::default(),
            trouble: None,
            without_room: 0,
            network: Network::default(),
        };
        path.put_into(&mut view);
        Ok(view)
    }

    fn pods_after(&self, old: &[Pod]) -> Vec<Pod> {
        let gone: HashSet<&Arc<str>> = self.gone.iter().collect();
        let mut pods: Vec<Pod> = old.iter().filter(|pod| !gone.contains(&pod.name)).cloned().collect();
        let places: HashMap<Arc<str>, usize> =
            pods.iter().enumerate().map(|(place, pod)| (pod.name.clone(), place)).collect();
        for pod in self.pods.iter().map(PodSeen::pod) {
            match places.get(&pod.name) {
                Some(place) => pods[*place] = pod,
                None => pods.push(pod),
            }
        }
        pods
    }
}

/// Names of those that are gone, and those that are new or changed. Where the
/// rest has another order, all are.
fn pods_changed(old: &RevisionView, new: &RevisionView) -> (Vec<Arc<str>>, Vec<PodSeen>) {
    let before: HashMap<&Arc<str>, &Pod> = old.pods.iter().map(|pod| (&pod.name, pod)).collect();
    let there: HashSet<&Arc<str>> = new.pods.iter().map(|pod| &pod.name).collect();
    let stay = old.pods.iter().map(|pod| &pod.name).filter(|name| there.contains(name));
    let same_order = stay.clone().eq(new.pods.iter().map(|pod| &pod.name).take(stay.count()));
    if !same_order {
        return (old.pods.iter().map(|pod| pod.name.clone()).collect(), new.pods.iter().map(PodSeen::of).collect());
    }
    let gone = old.pods.iter().filter(|pod| !there.contains(&pod.name)).map(|pod| pod.name.clone()).collect();
    let seen = |pod: &&Pod| before.get(&pod.name).is_none_or(|before| PodSeen::of(before) != PodSeen::of(pod));
    (gone, new.pods.iter().filter(seen).map(PodSeen::of).collect())
}

impl Spec {
    fn of(spec: &RevisionSpec) -> Spec {
        let RevisionSpec { service, configuration, container_concurrency, timeouts: _, scale, windows, bounds } = spec;
        Spec {
            service: service.clone(),
            configuration: configuration.clone(),
            container_concurrency: *container_concurrency,
            metric: match scale.metric {
                Metric::Concurrency => Measure::Concurrency,
                Metric::Rps => Measure::Rps,
            },
            target: Number(scale.target),
            total: Number(scale.total),
            target_burst_capacity: Number(scale.target_burst_capacity),
            activator_capacity: Number(scale.activator_capacity),
            panic_threshold: Number(scale.panic_threshold),
            stable_window: scale.stable_window.into(),
            max_scale_up_rate: Number(scale.max_scale_up_rate),
            max_scale_down_rate: Number(scale.max_scale_down_rate),
            scale_down_delay: scale.scale_down_delay.into(),
            initial_scale: scale.initial_scale,
            activation_scale: scale.activation_scale,
            reachable: scale.reachable,
            windows: (windows.stable.into(), windows.panic.into()),
            weighted: windows.aggregation == Aggregation::WeightedExponential,
            min_scale: bounds.min_scale,
            max_scale: bounds.max_scale,
            scale_to_zero: bounds.scale_to_zero,
            grace: bounds.grace.into(),
            retention: bounds.retention.into(),
            progress_deadline: bounds.progress_deadline.into(),
        }
    }

    fn spec(self) -> RevisionSpec {
        RevisionSpec {
            service: self.service,
            configuration: self.configuration,
            container_concurrency: self.container_concurrency,
            // No decision looks at them.
            timeouts: Timeouts { total: NO_LIMIT, response_start: None, idle: None, upgrade: None },
            scale: ScaleSpec {
                metric: match self.metric {
                    Measure::Concurrency => Metric::Concurrency,
                    Measure::Rps => Metric::Rps,
                },
                target: self.target.0,
                total: self.total.0,
                target_burst_capacity: self.target_burst_capacity.0,
                activator_capacity: self.activator_capacity.0,
                panic_threshold: self.panic_threshold.0,
                stable_window: self.stable_window.into(),
                max_scale_up_rate: self.max_scale_up_rate.0,
                max_scale_down_rate: self.max_scale_down_rate.0,
                scale_down_delay: self.scale_down_delay.into(),
                initial_scale: self.initial_scale,
                activation_scale: self.activation_scale,
                reachable: self.reachable,
            },
            windows: WindowSpec {
                stable: self.windows.0.into(),
                panic: self.windows.1.into(),
                aggregation: if self.weighted { Aggregation::WeightedExponential } else { Aggregation::Linear },
            },
            bounds: Bounds {
                min_scale: self.min_scale,
                max_scale: self.max_scale,
                scale_to_zero: self.scale_to_zero,
                grace: self.grace.into(),
                retention: self.retention.into(),
                progress_deadline: self.progress_deadline.into(),
            },
        }
    }
}

impl From<Duration> for Nanos {
    fn from(span: Duration) -> Nanos {
        Nanos(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Nanos> for Duration {
    fn from(Nanos(nanos): Nanos) -> Duration {
        Duration::from_nanos(nanos)
    }
}

impl PodSeen {
    fn of(pod: &Pod) -> PodSeen {
        PodSeen {
            name: pod.name.clone(),
            phase: match pod.phase {
                PodPhase::Starting => Phase::Starting,
                PodPhase::Ready => Phase::Ready,
                PodPhase::Terminating => Phase::Terminating,
            },
            since: pod.since.unix_nanos(),
            start_took: pod.start_took.map(Nanos::from),
        }
    }

    fn pod(&self) -> Pod {
        Pod {
            name: self.name.clone(),
            // Nobody is to be found by a recording.
            address: SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            phase: match self.phase {
                Phase::Starting => PodPhase::Starting,
                Phase::Ready => PodPhase::Ready,
                Phase::Terminating => PodPhase::Terminating,
            },
            since: Moment::from_unix_nanos(self.since),
            start_took: self.start_took.map(Duration::from),
        }
    }
}

impl PathSeen {
    fn of(view: &RevisionView) -> PathSeen {
        PathSeen { direct: view.path == Path::Direct, since: view.path_since.unix_nanos() }
    }

    fn put_into(self, view: &mut RevisionView) {
        view.path = if self.direct { Path::Direct } else { Path::Activator };
        view.path_since = Moment::from_unix_nanos(self.since);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(name: &str, phase: PodPhase) -> Pod {
        PodSeen { name: name.into(), phase: Phase::Ready, since: 5, start_took: None }.pod().with(phase)
    }

    trait With {
        fn with(self, phase: PodPhase) -> Pod;
    }

    impl With for Pod {
        fn with(mut self, phase: PodPhase) -> Pod {
            self.phase = phase;
            self
        }
    }

    fn view(pods: Vec<Pod>) -> RevisionView {
        let second = Nanos(1_000_000_000);
        let spec = Spec {
            service: "shop".into(),
            configuration: "shop".into(),
            container_concurrency: 10,
            metric: Measure::Rps,
            target: Number(7.0),
            total: Number(10.0),
            target_burst_capacity: Number(-1.0),
            activator_capacity: Number(100.0),
            panic_threshold: Number(f64::NAN),
            stable_window: second,
            max_scale_up_rate: Number(f64::INFINITY),
            max_scale_down_rate: Number(2.0),
            scale_down_delay: Nanos(0),
            initial_scale: -1,
            activation_scale: 3,
            reachable: false,
            windows: (second, second),
            weighted: true,
            min_scale: 1,
            max_scale: 2,
            scale_to_zero: false,
            grace: second,
            retention: Nanos(u64::MAX),
            progress_deadline: second,
        };
        let path = Some(PathSeen { direct: true, since: 7 });
        let mut view = View { spec: Some(spec), path, ..View::default() }.view().unwrap();
        view.pods = pods;
        view
    }

    fn read(change: &View) -> View {
        serde_json::from_str(&serde_json::to_string(change).unwrap()).unwrap()
    }

    #[test]
    fn every_change_leads_from_the_old_view_to_the_new_one() {
        use PodPhase::{Ready, Starting, Terminating};
        let lists: [&[(&str, PodPhase)]; 7] = [
            &[],
            &[("a", Starting)],
            &[("a", Ready), ("b", Starting)],
            &[("b", Ready), ("a", Ready)],
            &[("b", Terminating), ("c", Starting), ("a", Ready)],
            &[("c", Ready)],
            &[("d", Starting), ("c", Ready)],
        ];
        let views = lists.map(|list| view(list.iter().map(|(name, phase)| pod(name, *phase)).collect()));
        for old in &views {
            assert_eq!(View::whole(&read(&View::whole(old)).view().unwrap()), View::whole(old));
            for new in &views {
                let change = View::change(old, new);
                assert_eq!(read(&change).after(old).pods, new.pods);
                assert!(change.spec.is_none() && change.path.is_none());
            }
        }
        let mut other = views[2].clone();
        other.path = Path::Activator;
        assert_eq!(View::change(&views[2], &other).pods, []);
        assert_eq!(View::whole(&View::change(&views[2], &other).after(&views[2])), View::whole(&other));
        assert!(View::change(&views[1], &views[1]).view().unwrap_err().contains("spec"));
    }
}
