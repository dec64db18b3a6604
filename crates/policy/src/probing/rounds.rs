//! The reference's way: all pods that are missing are asked at the same time,
//! and nothing comes of it before the last has answered (activator reference,
//! section 6.3). Its flaws are kept: what happens meanwhile waits, the cluster
//! IP once used is used for ever, and pods that went not ready are asked and
//! told of again with each tick.

use super::asking::Asking;
use super::{Answer, ProbeId, Settings, Subject};
use crate::backends::{Backends, Destination};
use crate::endpoints::Listed;
use crate::mesh::MeshMode;
use crate::moment::Moment;
use std::collections::BTreeSet;
use std::time::Duration;

#[derive(Debug)]
pub(super) struct Rounds {
    pub(super) settings: Settings,
    pub(super) asking: Asking,
    pub(super) service: Option<Destination>,
    previous: Listed,
    current: Listed,
    /// What was listed during a check: looked at when that has ended.
    next: Option<Listed>,
    pub(super) healthy: BTreeSet<Destination>,
    pub(super) cluster_ip_healthy: bool,
    pub(super) pods_addressable: bool,
    stage: Stage,
    pub(super) update: Option<Backends>,
    /// The ticker runs from the beginning, listened to or not.
    began: Moment,
    listened: Moment,
}

/// How far a check is.
#[derive(Debug)]
enum Stage {
    Idle,
    Pods(Round),
    ClusterIp,
}

#[derive(Debug)]
struct Round {
    /// What was healthy before, and what has passed.
    healthy: BTreeSet<Destination>,
    /// Some answer cannot have been a mesh's.
    not_mesh: bool,
    /// A healthy pod went not ready: told of whatever comes of it.
    lost_some: bool,
}

impl Rounds {
    pub(super) fn new(settings: Settings, now: Moment) -> Rounds {
        Rounds {
            settings,
            asking: Asking::default(),
            service: None,
            previous: Listed::default(),
            current: Listed::default(),
            next: None,
            healthy: BTreeSet::new(),
            cluster_ip_healthy: false,
            pods_addressable: true,
            stage: Stage::Idle,
            update: None,
            began: now,
            listened: now,
        }
    }

    pub(super) fn endpoints(&mut self, listed: Listed, now: Moment) {
        if !self.is_idle() {
            self.next = Some(listed);
            return;
        }
        self.previous = std::mem::replace(&mut self.current, listed);
        self.check(now);
    }

    pub(super) fn end(&mut self) {
        self.asking.clear();
        self.stage = Stage::Idle;
        self.next = None;
        self.current = Listed::default();
    }

    pub(super) fn wake(&mut self, now: Moment) {
        for probe in self.asking.expired(now) {
            self.answered(probe, Answer::Failed, now);
        }
        if self.is_idle() && self.is_armed() && self.next_tick() <= now {
            self.listened = now;
            self.check(now);
        }
    }

    pub(super) fn wake_at(&self) -> Option<Moment> {
        if self.is_idle() { self.is_armed().then(|| self.next_tick()) } else { self.asking.first_deadline() }
    }

    /// Pods that are listed and not healthy.
    pub(super) fn missing(&self) -> usize {
        self.current.all().difference(&self.healthy).count()
    }

    /// Looks at all pods, unless that is under way.
    pub(super) fn check(&mut self, now: Moment) {
        if !self.is_idle() {
            return;
        }
        if self.current.is_empty() {
            self.cluster_ip_healthy = false;
            self.healthy.clear();
            self.update = Some(Backends::default());
        } else if self.pods_addressable && self.settings.mesh != MeshMode::Enabled {
            self.ask_pods(now);
        } else {
            self.try_cluster_ip(now);
        }
    }

    pub(super) fn answered(&mut self, probe: ProbeId, answer: Answer, now: Moment) {
        let Some((to, _)) = self.asking.take(probe) else { return };
        match &mut self.stage {
            Stage::Idle => {}
            Stage::Pods(round) => {
                round.not_mesh |= matches!(answer, Answer::Passed | Answer::Odd);
                let counts = self.settings.trust_probe || self.current.ready.contains(&to);
                if answer == Answer::Passed && counts {
                    round.healthy.insert(to);
                }
                if self.asking.is_empty() {
                    self.end_round(now);
                }
            }
            Stage::ClusterIp => {
                if answer == Answer::Passed {
                    self.pods_addressable = false;
                    self.cluster_ip_healthy = true;
                    self.healthy.clear();
                    self.tell_cluster_ip(to);
                }
                self.end_check(now);
            }
        }
    }

    fn ask_pods(&mut self, now: Moment) {
        let lost: Vec<&Destination> = self.previous.ready.intersection(&self.current.not_ready).collect();
        self.healthy.retain(|pod| !lost.contains(&pod));
        let mut round = Round { healthy: self.healthy.clone(), not_mesh: false, lost_some: !lost.is_empty() };
        let all = self.current.all();
        if self.healthy != all {
            if self.settings.mesh == MeshMode::Disabled {
                round.healthy.extend(self.current.ready.iter().cloned());
            }
            for pod in all.difference(&round.healthy) {
                self.asking.ask(pod.clone(), Subject::Pod);
            }
        }
        self.stage = Stage::Pods(round);
        if self.asking.is_empty() {
            self.end_round(now);
        }
    }

    fn end_round(&mut self, now: Moment) {
        let Stage::Pods(mut round) = std::mem::replace(&mut self.stage, Stage::Idle) else { return };
        let all = self.current.all();
        round.healthy.retain(|pod| all.contains(pod));
        if round.lost_some || round.healthy != self.healthy {
            self.healthy = round.healthy;
            self.update = Some(Backends::Pods(self.healthy.clone()));
            self.end_check(now);
        } else if !self.healthy.is_empty() || round.not_mesh {
            self.end_check(now);
        } else {
            self.try_cluster_ip(now);
        }
    }

    fn try_cluster_ip(&mut self, now: Moment) {
        let never = self.settings.passthrough || self.settings.mesh == MeshMode::Disabled;
        match self.service.clone() {
            Some(address) if !never && self.cluster_ip_healthy => {
                self.tell_cluster_ip(address);
                self.end_check(now);
            }
            Some(address) if !never => {
                self.stage = Stage::ClusterIp;
                self.asking.ask(address, Subject::ClusterIp);
            }
            _ => self.end_check(now),
        }
    }

    fn tell_cluster_ip(&mut self, address: Destination) {
        self.update = Some(Backends::ClusterIp { address, ready: self.current.ready.clone() });
    }

    fn end_check(&mut self, now: Moment) {
        self.stage = Stage::Idle;
        if let Some(listed) = self.next.take() {
            self.endpoints(listed, now);
        }
    }

    fn is_idle(&self) -> bool {
        matches!(self.stage, Stage::Idle)
    }

    /// The ticker is listened to.
    fn is_armed(&self) -> bool {
        !self.current.is_empty() && !self.cluster_ip_healthy && self.current.all() != self.healthy
    }

    /// The first tick after the last one listened to: it waits if it has
    /// passed, and those after it are dropped.
    fn next_tick(&self) -> Moment {
        let every = self.settings.every.max(Duration::from_millis(1));
        let ticks = self.listened.since(self.began).as_nanos() / every.as_nanos() + 1;
        self.began + every.saturating_mul(u32::try_from(ticks).unwrap_or(u32::MAX))
    }
}
