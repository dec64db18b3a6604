//! Says how many pods each revision should have and how requests reach them,
//! and keeps why.
//!
//! Stats come in over a link (`ingest`), every two seconds and on a poke a
//! revision is decided on (`decider`), and the result leaves as an
//! [`policy::world::Order`]. All numbers come from `policy`; here are only the
//! clock, the channels and the memory.

mod decider;
mod history;
pub mod ingest;
pub mod knative;
mod metrics;
pub mod schedule;
pub mod state;
pub mod status;

use decider::Decider;
use parking_lot::Mutex;
use plumbing::clock;
use plumbing::shutdown::Shutdown;
use plumbing::stats::StatSource;
use policy::collect::Silence;
use policy::compat::Compat;
use policy::moment::Moment;
use policy::revision::RevisionId;
use policy::saved::{self, Saved};
use policy::stat::StatBatch;
use policy::world::{Order, Snapshot};
use schedule::Schedule;
use status::RevisionStatus;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// Decisions come so long after the beginning of a second, at which all report.
const AFTER_REPORTS: Duration = Duration::from_millis(100);

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
    /// At least so many pods at certain times; not in strict mode.
    pub schedules: Arc<[Schedule]>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            compat: Compat::Better,
            tick: Duration::from_secs(2),
            silence: Silence::Unknown,
            schedules: Arc::default(),
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
    /// What an earlier one knew of revisions that were not seen yet.
    saved: Arc<Mutex<BTreeMap<RevisionId, Saved>>>,
}

impl Autoscaler {
    /// Without revisions; [`run`] feeds it.
    pub fn new(config: Config) -> Autoscaler {
        Autoscaler { config, deciders: Arc::default(), saved: Arc::default() }
    }

    /// Goes on with what an earlier one has [`Autoscaler::save`]d. In strict
    /// mode it means nothing, as the reference begins anew each time.
    pub fn restore(&self, saved: BTreeMap<RevisionId, Saved>) {
        if self.config.compat == Compat::Better {
            *self.saved.lock() = saved;
        }
    }

    /// What the next one should know: of revisions that are there, and of those
    /// that this one was told of and has not seen yet.
    pub fn save(&self, now: Moment) -> BTreeMap<RevisionId, Saved> {
        let mut all = self.saved.lock().clone();
        all.retain(|_, saved| now.since(saved.at) <= saved::AGE_MAX);
        let deciders = self.deciders.lock();
        all.extend(deciders.iter().map(|(id, decider)| (id.clone(), decider.save(now))));
        all
    }

    /// What was decided for each revision, and why.
    pub fn status(&self) -> Vec<RevisionStatus> {
        let now = clock::now();
        self.deciders.lock().iter().map(|(id, decider)| decider.status(id, now)).collect()
    }

    /// Follows the platform: deciders for what is there, none for what is gone.
    /// [`run`] calls it; so does whoever has a clock of their own, as a
    /// simulation does.
    pub fn follow(&self, snapshot: &Snapshot, now: Moment) -> Vec<Order> {
        let mut deciders = self.deciders.lock();
        deciders.retain(|id, _| snapshot.revisions.contains_key(id));
        let mut orders = Vec::new();
        for (id, view) in &snapshot.revisions {
            if let Some(decider) = deciders.get_mut(id) {
                decider.follow(view.clone(), now);
                continue;
            }
            let mut decider = Decider::new(id.clone(), view.clone(), &self.config, now);
            if let Some(saved) = self.saved.lock().remove(id) {
                decider.restore(&saved, now);
            }
            // Not at the next tick: until the first decision nothing is wanted.
            orders.extend(decider.evaluate(now));
            deciders.insert(id.clone(), decider);
        }
        orders
    }

    /// Takes stats in; decides at once where they ask for it.
    pub fn ingest(&self, batch: &StatBatch, now: Moment) -> Vec<Order> {
        let mut deciders = self.deciders.lock();
        let mut orders = Vec::new();
        for (id, stat) in &batch.stats {
            let Some(decider) = deciders.get_mut(id) else { continue };
            decider.record(batch.at, stat);
            if decider.is_poked_by(stat.average_concurrency, batch.poke) {
                orders.extend(decider.evaluate(now));
            }
        }
        orders
    }

    /// Decides on every revision.
    pub fn tick(&self, now: Moment) -> Vec<Order> {
        self.deciders.lock().values_mut().filter_map(|decider| decider.evaluate(now)).collect()
    }
}

/// Decides until `shutdown` stops.
pub async fn run(autoscaler: Autoscaler, links: Links, shutdown: Shutdown) {
    let Links { mut world, orders, mut stats } = links;
    let mut ticks = clock::ticks(autoscaler.config.tick, AFTER_REPORTS);
    world.mark_changed();
    loop {
        let decided = tokio::select! {
            changed = world.changed() => {
                if changed.is_err() {
                    return;
                }
                let snapshot = world.borrow_and_update().clone();
                autoscaler.follow(&snapshot, clock::now())
            }
            batch = stats.next() => match batch {
                Some(batch) => autoscaler.ingest(&batch, clock::now()),
                None => return,
            },
            _ = ticks.tick() => autoscaler.tick(clock::now()),
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
