//! Says how many pods each revision should have and how requests reach them,
//! and keeps why.
//!
//! Stats come in over links, every two seconds and on a poke a revision is
//! decided on (`decider`), and the result leaves as an
//! [`policy::world::Order`]. All numbers come from `policy`; here are only the
//! clock, the channels and the memory.
//!
//! | stats | module |
//! | --- | --- |
//! | of our activators and sidecars, over gRPC | [`ingest`] |
//! | of the reference's activators, over websockets | [`stat_server`] |
//! | asked of pods, each second | [`collect`] |
//! | of another replica's revisions, sent on to it | [`forward`] |

pub mod collect;
mod decider;
mod exposition;
pub mod forward;
mod history;
pub mod ingest;
pub mod knative;
mod metrics;
mod rate;
pub mod stat_server;
pub mod status;

use collect::Target;
use decider::Decider;
use forward::Owners;
use parking_lot::Mutex;
use plumbing::clock;
use plumbing::shutdown::Shutdown;
use plumbing::stats::StatSource;
use policy::collect::Silence;
use policy::compat::Compat;
use policy::moment::Moment;
use policy::revision::RevisionId;
use policy::scrape::Outcome;
use policy::stat::StatBatch;
use policy::world::{Order, Snapshot};
use status::RevisionStatus;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// Decisions come so long after the beginning of a second where all report as
/// it begins.
const AFTER_REPORTS: Duration = Duration::from_millis(100);
/// The same where pods are asked: a second that is decided on before they have
/// answered looks as if they carried nothing, which a panic window of one or
/// two seconds takes for the whole truth.
pub const AFTER_ANSWERS: Duration = Duration::from_millis(500);

/// An autoscaler's settings.
#[derive(Clone, Debug)]
pub struct Config {
    /// Whose rules apply where the reference's have known flaws.
    pub compat: Compat,
    /// How often each revision is decided on; the reference's 2 s.
    pub tick: Duration,
    /// What an empty window means: nothing is known, or nothing is there. On
    /// the local floor the link cannot fail, so silence is zero load.
    pub silence: Silence,
    /// How long after the beginning of a second decisions come, so that what
    /// is known of it is whole.
    pub after_reports: Duration,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            compat: Compat::Better,
            tick: Duration::from_secs(2),
            silence: Silence::Unknown,
            after_reports: AFTER_REPORTS,
        }
    }
}

/// What an autoscaler is joined to.
pub struct Links {
    /// What the platform knows.
    pub world: watch::Receiver<Arc<Snapshot>>,
    /// Where its orders go.
    pub orders: mpsc::Sender<Order>,
    /// Stats of sidecars and activators.
    pub stats: StatSource,
}

/// An autoscaler. Clones share it.
#[derive(Clone)]
pub struct Autoscaler {
    config: Config,
    deciders: Arc<Mutex<BTreeMap<RevisionId, Decider>>>,
    /// Which revisions are decided on here; all without it.
    owners: Option<watch::Receiver<Arc<Owners>>>,
}

impl Autoscaler {
    /// Without revisions; [`run`] feeds it.
    pub fn new(config: Config) -> Autoscaler {
        Autoscaler { config, deciders: Arc::default(), owners: None }
    }

    /// One of several replicas: decides on the revisions of its own buckets.
    pub fn among(mut self, owners: watch::Receiver<Arc<Owners>>) -> Autoscaler {
        self.owners = Some(owners);
        self
    }

    /// What was decided for each revision, and why.
    pub fn status(&self) -> Vec<RevisionStatus> {
        let now = clock::now();
        self.deciders.lock().iter().map(|(id, decider)| decider.status(id, now)).collect()
    }

    /// The reference's metrics of all revisions, as text for Prometheus: long
    /// where there are many, so it is made on a thread that may be held up.
    pub fn exposition(&self) -> String {
        let rows: Vec<_> = self.deciders.lock().iter().map(|(id, decider)| exposition::Row::of(id, decider)).collect();
        exposition::text(&rows)
    }

    /// Whose pods are to be asked for their load.
    fn targets(&self, now: Moment) -> Vec<Target> {
        self.deciders.lock().values().filter_map(|decider| decider.target(now)).collect()
    }

    /// Takes in what a revision's pods answered. `conclude` is told which of
    /// them push their stats, and says what it came to; `None` when the
    /// revision is gone.
    fn scraped(
        &self,
        revision: &RevisionId,
        now: Moment,
        took: Duration,
        conclude: impl FnOnce(&dyn Fn(&str) -> bool) -> Outcome,
    ) -> Option<Outcome> {
        let mut deciders = self.deciders.lock();
        let decider = deciders.get_mut(revision)?;
        let outcome = conclude(&|pod| decider.is_pushed_by(pod, now));
        decider.scraped(&outcome, now, took);
        Some(outcome)
    }

    /// Follows the platform: deciders for what is there, none for what is gone.
    fn follow(&self, snapshot: &Snapshot) -> Vec<Order> {
        let now = clock::now();
        let owners = self.owners.as_ref().map(|owners| owners.borrow().clone());
        let is_here = |id: &RevisionId| owners.as_ref().is_none_or(|owners| owners.are_here(id));
        let mut deciders = self.deciders.lock();
        deciders.retain(|id, _| snapshot.revisions.contains_key(id) && is_here(id));
        let mut orders = Vec::new();
        for (id, view) in snapshot.revisions.iter().filter(|(id, _)| is_here(id)) {
            if let Some(decider) = deciders.get_mut(id) {
                decider.follow(view.clone(), now);
                continue;
            }
            let mut decider = Decider::new(id.clone(), view.clone(), &self.config, now);
            // Not at the next tick: until the first decision nothing is wanted.
            orders.extend(decider.evaluate(now));
            deciders.insert(id.clone(), decider);
        }
        orders
    }

    /// Takes stats in; decides at once where they ask for it.
    fn ingest(&self, batch: &StatBatch) -> Vec<Order> {
        let now = clock::now();
        let mut deciders = self.deciders.lock();
        let mut orders = Vec::new();
        for (id, stat) in &batch.stats {
            let Some(decider) = deciders.get_mut(id) else { continue };
            decider.record(batch.at, stat, now);
            if decider.is_poked_by(stat.average_concurrency, batch.poke) {
                orders.extend(decider.evaluate(now));
            }
        }
        orders
    }

    fn tick(&self) -> Vec<Order> {
        let now = clock::now();
        self.deciders.lock().values_mut().filter_map(|decider| decider.evaluate(now)).collect()
    }
}

/// Decides until `shutdown` stops.
pub async fn run(autoscaler: Autoscaler, links: Links, shutdown: Shutdown) {
    let Links { mut world, orders, mut stats } = links;
    let mut owners = autoscaler.owners.clone();
    let mut ticks = clock::ticks(autoscaler.config.tick, autoscaler.config.after_reports);
    world.mark_changed();
    loop {
        let decided = tokio::select! {
            changed = world.changed() => {
                if changed.is_err() {
                    return;
                }
                let snapshot = world.borrow_and_update().clone();
                autoscaler.follow(&snapshot)
            }
            () = changed(&mut owners) => {
                let snapshot = world.borrow().clone();
                autoscaler.follow(&snapshot)
            }
            batch = stats.next() => match batch {
                Some(batch) => autoscaler.ingest(&batch),
                None => return,
            },
            _ = ticks.tick() => autoscaler.tick(),
            () = shutdown.stopping() => return,
        };
        for order in decided {
            // A full channel means a platform that stands still; the same
            // order comes again with the next tick.
            if let Err(error) = orders.try_send(order) {
                tracing::warn!(%error, "an order could not be given");
            }
        }
    }
}

/// Ready once a bucket has another owner.
async fn changed(owners: &mut Option<watch::Receiver<Arc<Owners>>>) {
    let changed = match owners {
        Some(owners) => owners.changed().await.is_ok(),
        None => false,
    };
    if !changed {
        std::future::pending::<()>().await;
    }
}
