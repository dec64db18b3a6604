//! The better way: each pod is asked at its own pace, and what it answers
//! counts at once.
//!
//! What differs from the reference's rounds:
//! - a pod that passes gets requests without waiting for the others, and one
//!   that is listed no longer is gone at once;
//! - questions begin in quick succession and slow down, each pod by itself,
//!   and only so many are out at a time;
//! - a change to not ready is looked at once; what is already known is not
//!   told again;
//! - the cluster IP is a way out only if a pod that Kubernetes holds for ready
//!   cannot be reached, and none answers as only a pod of ours does; now and
//!   then a pod is tried again, and the way back taken when it can be;
//! - with a mesh that routes to single pods they are asked, also where the
//!   mode says that there is a mesh: there would be no way to them otherwise.

use super::asking::Asking;
use super::pace::step_in_crowd;
use super::{Answer, ProbeId, Settings, Subject};
use crate::backends::{Backends, Destination};
use crate::endpoints::Listed;
use crate::mesh::MeshMode;
use crate::moment::Moment;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Questions out at a time, for one revision.
pub(super) const PROBES_MAX: usize = 64;
/// Time between two tries of a pod while the cluster IP is used.
pub(super) const RETRY_PODS_EVERY: Duration = Duration::from_secs(5);

#[derive(Debug)]
struct Pod {
    /// Kubernetes holds it for ready.
    ready: bool,
    /// It may get requests.
    healthy: bool,
    /// When it is asked next.
    ask: Option<Moment>,
    /// The question that is out.
    open: Option<ProbeId>,
    /// Since when it is asked, without a pass.
    asked_since: Option<Moment>,
    last: Option<Answer>,
}

#[derive(Debug, Default)]
struct ClusterIp {
    address: Option<Destination>,
    in_use: bool,
    open: Option<ProbeId>,
    /// Not asked before.
    ask: Option<Moment>,
    /// Since when it is asked, without a pass.
    asked_since: Option<Moment>,
    /// While in use: when a pod is tried.
    try_pod: Option<Moment>,
    tries: usize,
    /// A pod was reached: once these have answered too, pods are used again.
    leaving: BTreeSet<Destination>,
}

#[derive(Debug)]
pub(super) struct Singly {
    pub(super) settings: Settings,
    pub(super) asking: Asking,
    pods: BTreeMap<Destination, Pod>,
    cluster_ip: ClusterIp,
    told: Backends,
    random: u64,
    /// Pods that are asked by the whole process.
    pub(super) crowd: usize,
}

impl Singly {
    pub(super) fn new(settings: Settings, seed: u64) -> Singly {
        Singly {
            settings,
            asking: Asking::default(),
            pods: BTreeMap::new(),
            cluster_ip: ClusterIp::default(),
            told: Backends::default(),
            random: seed,
            crowd: 0,
        }
    }

    pub(super) fn set_service(&mut self, address: Option<Destination>, now: Moment) {
        if self.cluster_ip.address != address {
            self.cluster_ip.address = address;
            self.stop_cluster_ip(now);
        }
        self.settle(now);
    }

    pub(super) fn endpoints(&mut self, listed: &Listed, now: Moment) {
        let all = listed.all();
        self.pods.retain(|name, _| all.contains(name));
        self.cluster_ip.leaving.retain(|name| all.contains(name));
        let trusted = self.settings.mesh == MeshMode::Disabled;
        let asks = self.asks_pods();
        for name in all {
            let ready = listed.ready.contains(&name);
            let awaited = self.cluster_ip.leaving.contains(&name);
            let new = Pod { ready, healthy: false, ask: None, open: None, asked_since: None, last: None };
            let is_new = !self.pods.contains_key(&name);
            let pod = self.pods.entry(name).or_insert(new);
            if pod.ready && !ready {
                // An answer that is under way may be from before the change.
                pod.open = None;
                pod.ask = Some(now);
                pod.healthy &= self.settings.trust_probe && asks;
            } else if ready && (is_new || !pod.ready) {
                pod.asked_since = None;
                if trusted {
                    (pod.healthy, pod.ask, pod.open) = (true, None, None);
                }
            }
            pod.ready = ready;
            if !pod.healthy {
                pod.ask = Some(now);
            }
            if !asks && !awaited {
                pod.ask = None;
            }
        }
        if self.pods.is_empty() {
            self.stop_cluster_ip(now);
        }
        self.leave_cluster_ip(now);
        self.settle(now);
    }

    pub(super) fn end(&mut self) {
        self.asking.clear();
        self.pods.clear();
        self.cluster_ip = ClusterIp { address: self.cluster_ip.address.take(), ..ClusterIp::default() };
    }

    pub(super) fn check_now(&mut self, now: Moment) {
        if self.asks_pods() {
            for pod in self.pods.values_mut().filter(|pod| !pod.healthy) {
                pod.ask = Some(now);
            }
        }
        self.cluster_ip.ask = None;
        self.settle(now);
    }

    pub(super) fn doubt(&mut self, destination: &Destination, rest: Duration, now: Moment) {
        if let Some(pod) = self.pods.get_mut(destination).filter(|pod| pod.healthy) {
            (pod.healthy, pod.asked_since, pod.open) = (false, None, None);
            pod.ask = Some(now + rest);
        } else if self.cluster_ip.in_use && self.cluster_ip.address.as_ref() == Some(destination) {
            self.stop_cluster_ip(now);
        }
        self.settle(now);
    }

    pub(super) fn wake(&mut self, now: Moment) {
        for probe in self.asking.expired(now) {
            self.answered(probe, Answer::Failed, now);
        }
        if self.cluster_ip.try_pod.is_some_and(|at| at <= now) {
            self.try_pod(now);
        }
        self.settle(now);
    }

    pub(super) fn wake_at(&self) -> Option<Moment> {
        let asks = self.pods.values().filter(|pod| pod.open.is_none()).filter_map(|pod| pod.ask);
        // With all questions out the next one waits for an answer.
        let next_pod = asks.min().filter(|_| self.asking.len() < PROBES_MAX);
        let cluster_ip = if self.wants_cluster_ip() { self.cluster_ip.ask } else { None };
        [self.asking.first_deadline(), next_pod, cluster_ip, self.cluster_ip.try_pod].into_iter().flatten().min()
    }

    pub(super) fn answered(&mut self, id: ProbeId, answer: Answer, now: Moment) {
        let Some((to, subject)) = self.asking.take(id) else { return };
        match subject {
            Subject::Pod => self.pod_answered(&to, id, answer, now),
            Subject::ClusterIp if self.cluster_ip.open == Some(id) => self.cluster_ip_answered(answer, now),
            Subject::ClusterIp => {}
        }
        self.settle(now);
    }

    /// What may get requests, unless it was told already.
    pub(super) fn update(&mut self) -> Option<Backends> {
        // By far the commonest answer, found without a copy.
        if let (Backends::Pods(told), false) = (&self.told, self.cluster_ip.in_use)
            && told.iter().eq(self.pods.iter().filter(|(_, pod)| pod.healthy).map(|(name, _)| name))
        {
            return None;
        }
        let backends = match &self.cluster_ip.address {
            Some(address) if self.cluster_ip.in_use => {
                let ready = self.pods.iter().filter(|(_, pod)| pod.ready).map(|(name, _)| name.clone()).collect();
                Backends::ClusterIp { address: address.clone(), ready }
            }
            _ => Backends::Pods(self.healthy()),
        };
        if backends == self.told {
            return None;
        }
        self.told = backends.clone();
        Some(backends)
    }

    pub(super) fn healthy(&self) -> BTreeSet<Destination> {
        if self.cluster_ip.in_use {
            return BTreeSet::new();
        }
        self.pods.iter().filter(|(_, pod)| pod.healthy).map(|(name, _)| name.clone()).collect()
    }

    pub(super) fn by_cluster_ip(&self) -> bool {
        self.cluster_ip.in_use
    }

    fn pod_answered(&mut self, name: &Destination, id: ProbeId, answer: Answer, now: Moment) {
        let (by_cluster_ip, trust_probe) = (self.cluster_ip.in_use, self.settings.trust_probe);
        let Some(pod) = self.pods.get_mut(name).filter(|pod| pod.open == Some(id)) else { return };
        (pod.open, pod.ask, pod.last) = (None, None, Some(answer));
        pod.healthy = answer == Answer::Passed && (pod.ready || trust_probe);
        pod.asked_since = if pod.healthy { None } else { pod.asked_since.or(Some(now)) };
        if by_cluster_ip {
            let awaited = self.cluster_ip.leaving.remove(name);
            if pod.healthy && !awaited && self.cluster_ip.leaving.is_empty() {
                self.ask_the_others(now);
            }
            self.leave_cluster_ip(now);
        } else if !pod.healthy {
            let asked_since = pod.asked_since;
            let again = now + self.pause(asked_since, now);
            if let Some(pod) = self.pods.get_mut(name) {
                pod.ask = Some(again);
            }
        }
    }

    fn cluster_ip_answered(&mut self, answer: Answer, now: Moment) {
        self.cluster_ip.open = None;
        if answer != Answer::Passed {
            self.cluster_ip.asked_since = self.cluster_ip.asked_since.or(Some(now));
            self.cluster_ip.ask = Some(now + self.pause(self.cluster_ip.asked_since, now));
            return;
        }
        // A pod may have passed meanwhile: that is the better way.
        if !self.wants_cluster_ip() {
            return;
        }
        self.cluster_ip.in_use = true;
        self.cluster_ip.asked_since = None;
        self.cluster_ip.try_pod = self.may_ask_pods().then(|| now + RETRY_PODS_EVERY);
        for pod in self.pods.values_mut() {
            (pod.healthy, pod.ask) = (false, None);
        }
    }

    /// While the cluster IP is used: one pod is asked, each time another.
    fn try_pod(&mut self, now: Moment) {
        self.cluster_ip.try_pod = Some(now + RETRY_PODS_EVERY);
        let ready = self.pods.values().filter(|pod| pod.ready).count();
        let turn = self.cluster_ip.tries % ready.max(1);
        self.cluster_ip.tries = turn + 1;
        if let Some(pod) = self.pods.values_mut().filter(|pod| pod.ready).nth(turn) {
            pod.ask = Some(now);
        }
    }

    /// A pod was reached beside the cluster IP: are the others?
    fn ask_the_others(&mut self, now: Moment) {
        for (name, pod) in self.pods.iter_mut().filter(|(_, pod)| pod.ready && !pod.healthy) {
            pod.ask = Some(now);
            self.cluster_ip.leaving.insert(name.clone());
        }
    }

    /// Back to pods, if one was reached and all others have answered.
    fn leave_cluster_ip(&mut self, now: Moment) {
        let reached = self.pods.values().any(|pod| pod.healthy);
        if self.cluster_ip.in_use && reached && self.cluster_ip.leaving.is_empty() {
            self.stop_cluster_ip(now);
        }
    }

    fn stop_cluster_ip(&mut self, now: Moment) {
        self.cluster_ip = ClusterIp { address: self.cluster_ip.address.take(), ..ClusterIp::default() };
        if self.may_ask_pods() {
            for pod in self.pods.values_mut().filter(|pod| !pod.healthy) {
                // What was seen of it before the change says nothing of now.
                (pod.ask, pod.last) = (Some(now), None);
            }
        }
    }

    /// Pods that are asked, or are to be.
    pub(super) fn missing(&self) -> usize {
        self.pods.values().filter(|pod| pod.open.is_some() || pod.ask.is_some()).count()
    }

    /// Asks whom it is time to ask.
    fn settle(&mut self, now: Moment) {
        let mut due: Vec<(Moment, Destination)> = self
            .pods
            .iter()
            .filter(|(_, pod)| pod.open.is_none())
            .filter_map(|(name, pod)| Some((pod.ask.filter(|&at| at <= now)?, name.clone())))
            .collect();
        // Whoever waits longest is first, so that dead pods do not keep others waiting.
        due.sort();
        for (_, name) in due.into_iter().take(PROBES_MAX.saturating_sub(self.asking.len())) {
            let id = self.asking.ask(name.clone(), Subject::Pod);
            if let Some(pod) = self.pods.get_mut(&name) {
                pod.open = Some(id);
            }
        }
        let time = self.cluster_ip.ask.is_none_or(|at| at <= now);
        if time
            && self.cluster_ip.open.is_none()
            && self.wants_cluster_ip()
            && let Some(address) = self.cluster_ip.address.clone()
        {
            self.cluster_ip.open = Some(self.asking.ask(address, Subject::ClusterIp));
            self.cluster_ip.ask = None;
        }
    }

    /// Pods can be asked one by one.
    fn may_ask_pods(&self) -> bool {
        self.settings.mesh != MeshMode::Enabled || self.settings.passthrough
    }

    /// Pods are asked one by one, each of them.
    fn asks_pods(&self) -> bool {
        self.may_ask_pods() && !self.cluster_ip.in_use
    }

    fn wants_cluster_ip(&self) -> bool {
        let ip = &self.cluster_ip;
        if ip.in_use || ip.address.is_none() || self.settings.passthrough || self.pods.is_empty() {
            return false;
        }
        match self.settings.mesh {
            MeshMode::Enabled => true,
            MeshMode::Disabled => false,
            MeshMode::Auto => {
                let direct = |pod: &Pod| matches!(pod.last, Some(Answer::Passed | Answer::Unready | Answer::Odd));
                // All that Kubernetes holds for ready have been asked.
                let ready = || self.pods.values().filter(|pod| pod.ready);
                self.pods.values().all(|pod| !pod.healthy && !direct(pod))
                    && ready().count() > 0
                    && ready().all(|pod| pod.last.is_some())
            }
        }
    }

    /// Time to the next question: up to a quarter shorter than its step, so
    /// that activators move apart.
    fn pause(&mut self, asked_since: Option<Moment>, now: Moment) -> Duration {
        let crowd = self.crowd.max(self.missing());
        let step = step_in_crowd(now.since(asked_since.unwrap_or(now)), crowd, self.settings.every);
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let quarter = step / 4;
        step - quarter.mul_f64((self.random >> 40) as f64 / f64::from(1 << 24))
    }
}
