//! Asks the pods of one revision whether they are ready, as
//! [`policy::probing`] says, and keeps the choice of pods to what answers and
//! to the own share of it. Where the platform knows the readiness itself (the
//! local floor) there is no prober.
//!
//! All that happens (a snapshot, an answer, a doubt, time) goes through
//! [`Prober::change`], so the choice follows at once; a task a revision sends
//! the questions and minds the time ([`run`]). Locks are taken in this order:
//! the prober's, the pods', the limiter's; none is held while waiting.

use crate::condition::Condition;
use crate::crowd::{Crowd, Leave, Member};
use crate::metrics::Metrics;
use crate::pods::Pod;
use crate::question::{self, Heard};
use crate::revision::Revision;
use crate::share::{self, Known, Share};
use crate::{Cluster, suspect};
use parking_lot::Mutex;
use plumbing::clock;
use plumbing::worker::Worker;
use policy::admit::PodKey;
use policy::backends::{Backends, Destination};
use policy::compat::Compat;
use policy::eject::{self, Sign};
use policy::endpoints::{Listed, Place, Seat};
use policy::mesh::MeshMode;
use policy::moment::Moment;
use policy::names::private_service;
use policy::probing::{Answer, Probe, Settings, Subject, Watch};
use policy::revision::RevisionId;
use policy::world::{PodName, PodPhase, RevisionView};
use std::collections::BTreeSet;
use std::future::pending;
use std::sync::Arc;
use tokio::sync::Notify;

pub(crate) struct Prober {
    settings: Settings,
    compat: Compat,
    /// What stands for all pods behind one address.
    service: PodName,
    crowd: Member,
    metrics: Arc<Metrics>,
    state: Mutex<State>,
    changed: Notify,
}

struct State {
    watch: Watch,
    seat: Seat,
    view: Option<Arc<RevisionView>>,
    listed: Listed,
    known: Known,
    backends: Backends,
    place: Place,
    /// Something beside `backends` and `place` has changed.
    stale: bool,
    /// Pods that get requests unasked and have been asked whose they are.
    met: BTreeSet<Destination>,
    ended: bool,
}

/// What is to be done now, and when to look again.
#[derive(Default)]
struct Turn {
    probes: Vec<(Probe, Leave)>,
    meet: Vec<(Pod, Leave)>,
    next: Option<Moment>,
    /// There are more questions than may be out.
    starved: bool,
    over: bool,
}

impl Prober {
    pub(crate) fn new(
        cluster: &Cluster,
        compat: Compat,
        id: &RevisionId,
        crowd: &Arc<Crowd>,
        metrics: &Arc<Metrics>,
    ) -> Prober {
        let now = clock::now();
        let state = State {
            watch: Watch::new(cluster.probing, compat, fastrand::u64(..), now),
            seat: Seat::new(cluster.address.clone(), compat),
            view: None,
            listed: Listed::default(),
            known: Known::new(),
            backends: Backends::default(),
            place: Place::default(),
            stale: false,
            met: BTreeSet::new(),
            ended: false,
        };
        Prober {
            settings: cluster.probing,
            compat,
            service: format!("{}/{}", id.namespace, private_service(&id.name)).into(),
            crowd: crowd.member(),
            metrics: metrics.clone(),
            state: Mutex::new(state),
            changed: Notify::new(),
        }
    }

    /// Pods are asked for by name, of a mesh that routes to single ones.
    pub(crate) fn passes_through(&self) -> bool {
        self.settings.passthrough
    }

    /// What the platform says now.
    pub(crate) fn listed(&self, revision: &Revision, view: &Arc<RevisionView>) {
        self.change(revision, |state, now| {
            let before = state.view.replace(view.clone());
            if before.is_some_and(|before| Arc::ptr_eq(&before, view)) {
                return;
            }
            state.stale = true;
            state.seat.listed(view.network.activators.iter().map(|address| &**address), now);
            state.watch.set_trust_probe(view.network.trust_probe);
            let service = view.network.private_service.map(|address| Destination::from(address.to_string()));
            state.watch.service(service, now);
            let (listed, known) = read(view, &state.known);
            // Another pod at the same address has shown nothing yet.
            let replaced = |pod: &Destination| {
                let names = state.known.get(pod).zip(known.get(pod));
                self.compat == Compat::Better && names.is_some_and(|(before, now)| before.name != now.name)
            };
            let replaced: BTreeSet<Destination> = known.keys().filter(|pod| replaced(pod)).cloned().collect();
            if !replaced.is_empty() {
                let of = |pods: &BTreeSet<Destination>| pods.difference(&replaced).cloned().collect();
                state.watch.endpoints(Listed { ready: of(&listed.ready), not_ready: of(&listed.not_ready) }, now);
            }
            if !replaced.is_empty() || listed != state.listed {
                state.watch.endpoints(listed.clone(), now);
            }
            state.met.retain(|pod| known.contains_key(pod) && !replaced.contains(pod));
            (state.listed, state.known) = (listed, known);
        });
    }

    /// A request could not be sent to that pod: it is out of the choice until
    /// it has passed again.
    pub(crate) fn doubt(&self, revision: &Revision, key: PodKey) {
        let Some(pod) = revision.pods.get(key) else { return };
        let rest = eject::rest(Sign::Unreachable, pod.condition.failed());
        tracing::debug!(revision = %revision.id, pod = %pod.name, ?rest, "a pod is doubted");
        let destination = Destination::from(pod.address.to_string());
        self.change(revision, |state, now| state.watch.doubt(&destination, rest, now));
    }

    /// Ends the task, and what it asks.
    pub(crate) fn end(&self) {
        let mut state = self.state.lock();
        state.ended = true;
        state.watch.end();
        self.crowd.asks(0);
        drop(state);
        self.changed.notify_one();
    }

    fn answered(&self, revision: &Revision, probe: &Probe, heard: &Heard) {
        self.change(revision, |state, now| {
            if probe.subject == Subject::Pod && heard.answer == Answer::Passed {
                state.hear(&probe.to, heard);
            }
            state.watch.answered(probe.id, heard.answer, now);
        });
    }

    fn change(&self, revision: &Revision, with: impl FnOnce(&mut State, Moment)) {
        let mut state = self.state.lock();
        if state.ended {
            return;
        }
        let now = clock::now();
        with(&mut state, now);
        self.settle(revision, &mut state, now);
        drop(state);
        self.changed.notify_one();
    }

    /// The choice of pods follows what is known.
    fn settle(&self, revision: &Revision, state: &mut State, now: Moment) {
        let (news, place) = (state.watch.update(), state.seat.place(now));
        if news.is_none() && place == state.place && !state.stale {
            return;
        }
        if place != state.place {
            let Place { activators, index, left } = place;
            tracing::debug!(revision = %revision.id, activators, index, left, "a new place among the activators");
        }
        state.backends = news.unwrap_or_else(|| std::mem::take(&mut state.backends));
        (state.place, state.stale) = (place, false);
        let Some(view) = &state.view else { return };
        let limit = view.spec.container_concurrency;
        let Share { pods, limit } = share::of(limit, &state.backends, place, self.compat, &state.known, &self.service);
        revision.pods.choose(pods, limit);
        revision.settle(view, &self.metrics);
    }

    /// `spare` is leave for the first question, if there is one.
    fn turn(&self, revision: &Revision, mut spare: Option<Leave>) -> Turn {
        let mut state = self.state.lock();
        let mut turn = Turn { over: state.ended, ..Turn::default() };
        if state.ended {
            return turn;
        }
        let now = clock::now();
        let crowd = self.crowd.asks(state.watch.asked());
        state.watch.set_crowd(crowd);
        state.watch.wake(now);
        self.settle(revision, &mut state, now);
        while state.watch.has_probe() {
            let Some(leave) = spare.take().or_else(|| self.crowd.leave()) else {
                turn.starved = true;
                break;
            };
            turn.probes.extend(state.watch.next_probe(now).map(|probe| (probe, leave)));
        }
        if self.compat == Compat::Better && self.settings.mesh == MeshMode::Disabled {
            self.meet(&mut state, &mut turn, spare);
        }
        let leaves = state.seat.leaves_at().filter(|at| *at > now);
        turn.next = [state.watch.wake_at(), leaves].into_iter().flatten().min();
        turn
    }

    /// Without a mesh pods that the platform holds for ready get requests
    /// unasked; whose their sidecars are is asked all the same, once.
    fn meet(&self, state: &mut State, turn: &mut Turn, mut spare: Option<Leave>) {
        let Backends::Pods(pods) = &state.backends else { return };
        let strangers: Vec<Destination> = pods.difference(&state.met).cloned().collect();
        for pod in strangers {
            let Some(known) = state.known.get(&pod) else { continue };
            let Some(leave) = spare.take().or_else(|| self.crowd.leave()) else {
                turn.starved = true;
                return;
            };
            state.met.insert(pod);
            turn.meet.push((known.clone(), leave));
        }
    }
}

impl State {
    /// What a pod's answer says of its sidecar counts for the share.
    fn hear(&mut self, pod: &Destination, heard: &Heard) {
        self.met.insert(pod.clone());
        self.stale |= self.known.get(pod).is_some_and(|pod| pod.condition.heard(&heard.fields));
    }
}

/// The pods that may be asked, and what is known of each.
fn read(view: &RevisionView, before: &Known) -> (Listed, Known) {
    let (mut listed, mut known) = (Listed::default(), Known::new());
    let asked = view.pods.iter().filter(|pod| pod.phase != PodPhase::Terminating && pod.address.port() != 0);
    for pod in asked {
        let destination = Destination::from(pod.address.to_string());
        let same = before.get(&destination).filter(|before| before.name == pod.name);
        let new = || Pod::new(pod.name.clone(), pod.address, Arc::new(Condition::new(false)));
        known.insert(destination.clone(), same.cloned().unwrap_or_else(new));
        if pod.phase == PodPhase::Ready {
            listed.not_ready.remove(&destination);
            listed.ready.insert(destination);
        } else if !listed.ready.contains(&destination) {
            listed.not_ready.insert(destination);
        }
    }
    (listed, known)
}

/// Sends the questions of a revision, until its prober is ended.
pub(crate) async fn run(revision: Arc<Revision>, prober: Arc<Prober>, worker: Worker) {
    let mut spare = None;
    loop {
        let Turn { probes, meet, next, starved, over } = prober.turn(&revision, spare.take());
        if over {
            return;
        }
        for (probe, leave) in probes {
            worker.spawn(ask(revision.clone(), prober.clone(), probe, leave, worker.clone()));
        }
        for (pod, leave) in meet {
            worker.spawn(self::meet(revision.clone(), prober.clone(), pod, leave, worker.clone()));
        }
        let time = async {
            match next {
                Some(at) => worker.wheel().sleep(at.since(clock::now())).await,
                None => pending().await,
            }
        };
        let leave = async { if starved { prober.crowd.next_leave().await } else { pending().await } };
        tokio::select! {
            () = prober.changed.notified() => {}
            () = time => {}
            leave = leave => spare = leave,
        }
    }
}

async fn ask(revision: Arc<Revision>, prober: Arc<Prober>, probe: Probe, leave: Leave, worker: Worker) {
    let heard = match probe.to.parse() {
        Ok(address) => question::ask(&revision, address, prober.settings.answer_max, &worker).await,
        Err(_) => Heard::nothing(),
    };
    drop(leave);
    prober.answered(&revision, &probe, &heard);
}

async fn meet(revision: Arc<Revision>, prober: Arc<Prober>, pod: Pod, leave: Leave, worker: Worker) {
    let heard = question::ask(&revision, pod.address, suspect::ATTEMPT_MAX, &worker).await;
    drop(leave);
    if heard.answer == Answer::Passed {
        let destination = Destination::from(pod.address.to_string());
        prober.change(&revision, |state, _| state.hear(&destination, &heard));
    }
}
