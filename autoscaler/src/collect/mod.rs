//! Asking all pods for their load, each second (autoscaler reference, section
//! 9.3).
//!
//! | job | module |
//! | --- | --- |
//! | one question | `ask` |
//! | what an answer is worth | [`answer`] |
//! | which questions are under way | `lanes` |
//! | how long rounds took | `durations` |
//!
//! Whom to ask, and what the answers say together, is `policy::scrape`'s. All
//! of it runs as one task with one pool of connections; so many questions are
//! under way at a time, whatever the number of revisions. In the better mode a
//! round is over before the next begins: who has not answered by then is taken
//! to be as loaded as the others, and holds up nobody.

pub mod answer;
mod ask;
pub(crate) mod durations;
mod lanes;

use crate::Autoscaler;
use answer::Fault;
pub use ask::question;

use ask::{Asker, Whom};
use lanes::{Kind, Lanes, Waiting};
use metrics::{Counter, Gauge, counter, gauge};
use plumbing::clock;
use plumbing::fds::Budget;
use plumbing::shutdown::Shutdown;
use plumbing::worker::Worker;
use policy::compat::Compat;
use policy::mesh::MeshMode;
use policy::names;
use policy::revision::RevisionId;
use policy::scrape::news::{News, Told};
use policy::scrape::way::Way;
use policy::scrape::{self, Ask, Candidate, Outcome, Scrape, ScrapeError};
use policy::stat::Stat as Observed;
use policy::world::{Pod, PodName, RevisionView};
use proto::stats::Stat;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

/// Rounds of one revision.
const EVERY: Duration = Duration::from_secs(1);
/// They begin so long after a second does: sidecars sum up as it begins, and
/// decisions come later in it.
const AFTER: Duration = Duration::from_millis(20);
/// A round has to be over so long after it began ([`Compat::Better`]).
const ROUND_MAX: Duration = Duration::from_millis(900);
/// Questions under way at most, where nothing else is said.
const UNDER_WAY: usize = 512;

/// Rounds, by outcome.
pub(crate) const ROUNDS: &str = "zeroscale_autoscaler_scrapes_total";
/// Questions that came to nothing, by reason.
pub(crate) const FAULTS: &str = "zeroscale_autoscaler_scrape_faults_total";
/// Questions under way.
pub(crate) const OPEN: &str = "zeroscale_autoscaler_scrape_questions";

/// How pods are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The port of their stats (9090).
    pub port: u16,
    /// Pod by pod, or through their service.
    pub mesh: MeshMode,
    /// Pods can be addressed in a mesh too.
    pub passthrough: bool,
    /// Questions under way at most.
    pub under_way: usize,
    /// Whose rules apply.
    pub compat: Compat,
}

impl Settings {
    /// The reference's port and mode.
    pub fn new(compat: Compat) -> Settings {
        Settings { port: 9090, mesh: MeshMode::Auto, passthrough: false, under_way: UNDER_WAY, compat }
    }
}

/// A revision whose pods are to be asked.
pub(crate) struct Target {
    pub(crate) revision: RevisionId,
    pub(crate) view: Arc<RevisionView>,
    /// Places of those pods that are ready and do not push.
    pub(crate) pods: Vec<usize>,
}

impl Target {
    fn pod(&self, place: usize) -> Option<&Pod> {
        self.pods.get(place).and_then(|place| self.view.pods.get(*place))
    }
}

/// What is known of a revision between rounds.
struct Known {
    way: Way,
    news: News,
    /// What each pod said last, and when.
    last: HashMap<PodName, (Observed, Instant)>,
    seen: u64,
}

/// A round that is not over.
struct Round {
    number: u64,
    target: Target,
    scrape: Scrape,
    since: Instant,
}

/// What came of a question.
struct Answered {
    waiting: Waiting,
    kind: Kind,
    answer: Result<Stat, Fault>,
}

struct Collector {
    autoscaler: Autoscaler,
    settings: Settings,
    asker: Asker,
    tell: mpsc::UnboundedSender<Answered>,
    lanes: Lanes,
    rounds: HashMap<RevisionId, Round>,
    known: HashMap<RevisionId, Known>,
    number: u64,
    counters: Counters,
}

struct Counters {
    faults: Vec<(Fault, Counter)>,
    good: Counter,
    partial: Counter,
    open: Gauge,
}

impl Counters {
    fn new() -> Counters {
        let fault = |fault: Fault| (fault, counter!(FAULTS, "why" => fault.as_str()));
        Counters {
            faults: Fault::ALL.map(fault).into(),
            good: counter!(ROUNDS, "outcome" => "good"),
            partial: counter!(ROUNDS, "outcome" => "partial"),
            open: gauge!(OPEN),
        }
    }

    fn fault(&self, fault: Fault, times: usize) {
        if let Some((_, counter)) = self.faults.iter().find(|(other, _)| *other == fault) {
            counter.increment(times as u64);
        }
    }

    fn round(&self, outcome: &Outcome) {
        match &outcome.stat {
            Ok(None) => {}
            Ok(Some(_)) if outcome.partial => self.partial.increment(1),
            Ok(Some(_)) => self.good.increment(1),
            Err(error) => counter!(ROUNDS, "outcome" => error.as_str()).increment(1),
        }
    }
}

/// Asks the pods of all revisions that `autoscaler` decides on, until
/// `shutdown` drains. Connections count against `fds`.
pub async fn run(autoscaler: Autoscaler, settings: Settings, fds: Budget, shutdown: Shutdown) {
    let worker = Worker::here(&shutdown, fds);
    let (tell, mut answers) = mpsc::unbounded_channel();
    let mut collector = Collector {
        autoscaler,
        settings,
        asker: Asker::new(worker, settings.compat),
        tell,
        lanes: Lanes::new(settings.under_way),
        rounds: HashMap::new(),
        known: HashMap::new(),
        number: 0,
        counters: Counters::new(),
    };
    let mut ticks = clock::ticks(EVERY, AFTER);
    let mut over = None;
    loop {
        tokio::select! {
            () = shutdown.draining() => return,
            _ = ticks.tick() => {
                collector.begin();
                over = (settings.compat == Compat::Better).then(|| Instant::now() + ROUND_MAX);
            }
            Some(answered) = answers.recv() => collector.take(answered),
            () = sleep_until(over.unwrap_or_else(Instant::now)), if over.is_some() => {
                over = None;
                collector.end_all();
            }
        }
        collector.ask();
    }
}

impl Collector {
    /// A round for each revision that has none open.
    fn begin(&mut self) {
        self.number += 1;
        let now = clock::now();
        for target in self.autoscaler.targets(now) {
            let known = self.known.entry(target.revision.clone()).or_insert_with(|| Known {
                way: Way::new(self.settings.mesh, self.settings.passthrough),
                news: News::default(),
                last: HashMap::new(),
                seen: 0,
            });
            known.seen = self.number;
            // In strict mode a round may take longer than a second.
            if self.rounds.contains_key(&target.revision) {
                continue;
            }
            let since = |place: &usize| target.view.pods.get(*place).map(|pod| Candidate { since: pod.since });
            let candidates: Vec<Candidate> = target.pods.iter().filter_map(since).collect();
            let window = target.view.spec.windows.stable;
            let mut draw = |below| fastrand::usize(..below);
            let scrape = Scrape::new(known.way, &candidates, window, now, self.settings.compat, &mut draw);
            let revision = target.revision.clone();
            let round = Round { number: self.number, target, scrape, since: Instant::now() };
            self.rounds.insert(revision.clone(), round);
            self.go_on(&revision);
        }
        self.known.retain(|_, known| known.seen == self.number);
        // Twice what strict rounds may take.
        self.lanes.forget_before(self.number.saturating_sub(10));
    }

    /// Puts the next questions of a round in line, or ends it.
    fn go_on(&mut self, revision: &RevisionId) {
        let Some(round) = self.rounds.get_mut(revision) else { return };
        while let Some(ask) = round.scrape.ask() {
            let pod = match ask {
                Ask::Pod(place) => {
                    round.target.pod(place).map(|pod| SocketAddr::new(pod.address.ip(), self.settings.port))
                }
                Ask::Service(_) => None,
            };
            let waiting = Waiting { revision: revision.clone(), round: round.number, ask, pod };
            if !self.lanes.put(waiting) {
                self.counters.fault(Fault::Hung, 1);
                round.scrape.answer(ask, Err(Fault::Hung.missed()));
            }
        }
        if round.scrape.is_over() {
            self.end(revision);
        }
    }

    /// Asks as many as may be.
    fn ask(&mut self) {
        let rounds = &self.rounds;
        let is_open = |waiting: &Waiting| rounds.get(&waiting.revision).is_some_and(|of| of.number == waiting.round);
        let mut late = 0;
        while let Some((kind, waiting)) = self.lanes.next(is_open, &mut late) {
            let whom = self.whom(&waiting);
            let (asker, tell) = (self.asker.clone(), self.tell.clone());
            self.asker.worker.spawn(async move {
                let answer = asker.ask(whom).await;
                let _ = tell.send(Answered { waiting, kind, answer });
            });
        }
        self.counters.fault(Fault::Late, late);
        self.counters.open.set(self.lanes.under_way() as f64);
    }

    fn whom(&self, waiting: &Waiting) -> Whom {
        let RevisionId { namespace, name } = &waiting.revision;
        match waiting.pod {
            Some(address) => {
                let host = self.settings.passthrough.then(|| names::passthrough_host(name, namespace));
                Whom::Pod(address, host)
            }
            None => Whom::Service(format!("{}.{namespace}:{}", names::private_service(name), self.settings.port)),
        }
    }

    fn take(&mut self, answered: Answered) {
        let Answered { waiting, kind, answer } = answered;
        let round = self.rounds.get_mut(&waiting.revision).filter(|round| round.number == waiting.round);
        let name = round.as_ref().and_then(|round| match waiting.ask {
            Ask::Pod(place) => round.target.pod(place).map(|pod| pod.name.clone()),
            Ask::Service(_) => None,
        });
        let said = answer.and_then(|stat| answer::judge(&stat, name.as_deref(), self.settings.compat));
        let fault = said.as_ref().err().copied();
        self.lanes.done(kind, &waiting, fault);
        if let Some(fault) = fault {
            self.counters.fault(fault, 1);
            tracing::debug!(revision = %waiting.revision, pod = ?waiting.pod, why = fault.as_str(), "no stat");
        }
        if let (Ok(said), Some(name), Some(known)) = (&said, name, self.known.get_mut(&waiting.revision)) {
            known.last.insert(name, (said.stat.clone(), Instant::now()));
        }
        if let Some(round) = round {
            round.scrape.answer(waiting.ask, said.map_err(Fault::missed));
            self.go_on(&waiting.revision);
        }
    }

    fn end_all(&mut self) {
        let open: Vec<RevisionId> = self.rounds.keys().cloned().collect();
        open.iter().for_each(|revision| self.end(revision));
    }

    /// Records what a round came to.
    fn end(&mut self, revision: &RevisionId) {
        let Some(round) = self.rounds.remove(revision) else { return };
        let Some(known) = self.known.get_mut(revision) else { return };
        let took = round.since.elapsed();
        let Known { way, last, .. } = known;
        let outcome = self.autoscaler.scraped(revision, clock::now(), took, |pushes| {
            let of = Beside { target: &round.target, last, pushes };
            round.scrape.conclude(way, &of)
        });
        let pods = &round.target.view.pods;
        if last.len() > pods.len() {
            last.retain(|name, _| pods.iter().any(|pod| pod.name == *name));
        }
        let Some(outcome) = outcome else { return };
        self.counters.round(&outcome);
        let told = outcome.stat.as_ref().err().map(|error| Told {
            error: *error,
            // What the reference makes anew each time.
            wrapped: *error == ScrapeError::DidNotReceiveStat,
        });
        if known.news.note(told, self.settings.compat) {
            match told {
                Some(told) => tracing::warn!(%revision, why = told.error.as_str(), "its pods' load is not known"),
                None => tracing::info!(%revision, "its pods' load is known again"),
            }
        }
    }
}

/// What is known of a round's pods beside their answers.
struct Beside<'a> {
    target: &'a Target,
    last: &'a HashMap<PodName, (Observed, Instant)>,
    pushes: &'a dyn Fn(&str) -> bool,
}

impl scrape::Known for Beside<'_> {
    fn pushes(&self, place: usize) -> bool {
        self.target.pod(place).is_some_and(|pod| (self.pushes)(&pod.name))
    }

    fn last(&self, place: usize) -> Option<Observed> {
        let (stat, when) = self.last.get(&self.target.pod(place)?.name)?;
        (when.elapsed() <= self.target.view.spec.windows.stable).then(|| stat.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::header::ACCEPT;

    #[test]
    fn a_pod_is_asked_for_what_it_is_to_answer() {
        let request = ask::question("10.0.0.1:9090").unwrap();
        assert_eq!(
            (request.uri().path(), &request.headers()[ACCEPT]),
            ("/metrics", &"application/protobuf".parse().unwrap())
        );
    }
}
