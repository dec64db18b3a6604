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
mod deciders;
mod exposition;
pub mod forward;
mod history;
pub mod ingest;
pub mod knative;
mod metrics;
mod pace;
mod rate;
pub mod schedule;
pub mod stat_server;
pub mod state;
pub mod status;

use collect::Target;
use decider::Decider;
use deciders::Deciders;
use forward::Owners;
use ingest::rows::Row;
use pace::Pace;
pub use pace::Tick;
use parking_lot::Mutex;
use plumbing::clock;
use plumbing::shutdown::Shutdown;
use plumbing::stats::StatSource;
use policy::collect::Silence;
use policy::compat::Compat;
use policy::moment::Moment;
use policy::revision::RevisionId;
use policy::saved::{self, Saved};
use policy::scrape::Outcome;
use policy::stat::StatBatch;
use policy::world::{Order, Snapshot};
use schedule::Schedule;
use status::RevisionStatus;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Notify, mpsc, watch};

/// Decisions come so long after the beginning of a second where all report as
/// it begins.
const AFTER_REPORTS: Duration = Duration::from_millis(100);
/// The same where pods are asked: a second that is decided on before they have
/// answered looks as if they carried nothing, which a panic window of one or
/// two seconds takes for the whole truth.
pub const AFTER_ANSWERS: Duration = Duration::from_millis(500);

/// So many revisions are decided on at a stretch; then stats and pokes that
/// came meanwhile have their turn.
const SLICE: usize = 256;

/// The memory of so many is looked at before they are worked with.
const TOGETHER: usize = 16;

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
    /// At least so many pods at certain times; not in strict mode.
    pub schedules: Arc<[Schedule]>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            compat: Compat::Better,
            tick: Duration::from_secs(2),
            silence: Silence::Unknown,
            after_reports: AFTER_REPORTS,
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
    deciders: Arc<Mutex<Deciders>>,
    pace: Arc<Mutex<Pace>>,
    /// Which revisions are decided on here; all without it.
    owners: Option<watch::Receiver<Arc<Owners>>>,
    /// What an earlier one knew of revisions that were not seen yet.
    saved: Arc<Mutex<BTreeMap<RevisionId, Saved>>>,
    some_are_due: Arc<Notify>,
}

impl Autoscaler {
    /// Without revisions; [`run`] feeds it.
    pub fn new(config: Config) -> Autoscaler {
        Autoscaler {
            config,
            deciders: Arc::default(),
            pace: Arc::default(),
            owners: None,
            saved: Arc::default(),
            some_are_due: Arc::default(),
        }
    }

    /// One of several replicas: decides on the revisions of its own buckets.
    pub fn among(mut self, owners: watch::Receiver<Arc<Owners>>) -> Autoscaler {
        self.owners = Some(owners);
        self
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
        let mut deciders = self.deciders.lock();
        all.extend(deciders.iter_mut().map(|decider| (decider.id().clone(), decider.save(now))));
        all
    }

    /// What was decided for each revision, and why.
    pub fn status(&self) -> Vec<RevisionStatus> {
        let now = clock::now();
        self.deciders.lock().sorted().into_iter().map(|(id, decider)| decider.status(id, now)).collect()
    }

    /// The reference's metrics of all revisions, as text for Prometheus: long
    /// where there are many, so it is made on a thread that may be held up.
    pub fn exposition(&self) -> String {
        exposition::text(&self.rows())
    }

    /// Our own metrics of all revisions, likewise.
    pub fn own_exposition(&self) -> String {
        exposition::own(&self.rows())
    }

    fn rows(&self) -> Vec<exposition::Row> {
        let row = |(id, decider): (&RevisionId, &Decider)| exposition::Row::of(id, decider);
        self.deciders.lock().sorted().into_iter().map(row).collect()
    }

    /// Decisions made so far.
    pub fn decisions(&self) -> u64 {
        self.deciders.lock().decisions()
    }

    /// The last round of decisions over all revisions.
    pub fn last_tick(&self) -> Tick {
        self.pace.lock().last()
    }

    /// Bytes that are held of all revisions together, without what the
    /// platform knows of them: of their histories, and of everything else.
    pub fn bytes(&self) -> (usize, usize) {
        let sum = |(history, rest), decider: &Decider| (history + decider.history.bytes(), rest + decider.bytes());
        self.deciders.lock().iter().fold((0, 0), sum)
    }

    /// Whose pods are to be asked for their load.
    fn targets(&self, now: Moment) -> Vec<Target> {
        self.deciders.lock().iter().filter_map(|decider| decider.target(now)).collect()
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
    /// New ones are due at once: until the first decision nothing is wanted.
    ///
    /// [`run`] calls this and what follows; so does whoever has a clock of
    /// their own, as a simulation does.
    pub fn follow(&self, snapshot: &Snapshot, now: Moment) {
        let owners = self.owners.as_ref().map(|owners| owners.borrow().clone());
        let is_here = |id: &RevisionId| owners.as_ref().is_none_or(|owners| owners.are_here(id));
        let mut deciders = self.deciders.lock();
        deciders.retain(|id| snapshot.revisions.contains_key(id) && is_here(id));
        for (id, view) in snapshot.revisions.iter().filter(|(id, _)| is_here(id)) {
            if let Some(decider) = deciders.get_mut(id) {
                decider.follow(view, now);
                continue;
            }
            let mut decider = Decider::new(id.clone(), view.clone(), &self.config, now);
            if let Some(saved) = self.saved.lock().remove(id) {
                decider.restore(&saved, now);
            }
            deciders.insert(id.clone(), decider);
        }
    }

    /// Takes stats in; decides at once where they ask for it.
    pub fn ingest(&self, batch: &StatBatch, now: Moment) -> Vec<Order> {
        let mut deciders = self.deciders.lock();
        let mut orders = Vec::new();
        for (id, stat) in &batch.stats {
            let Some(decider) = deciders.get_mut(id) else { continue };
            decider.record(batch.at, stat, batch.poke, now);
            if decider.is_poked_by(stat.average_concurrency, batch.poke) {
                orders.extend(decider.evaluate(now));
            }
        }
        orders
    }

    /// The same of stats that a stream sends each second in the same places; it
    /// remembers there where they belong.
    fn ingest_rows(&self, at: Moment, rows: &mut [Row], now: Moment) -> Vec<Order> {
        let mut deciders = self.deciders.lock();
        let mut orders = Vec::new();
        for rows in rows.chunks_mut(TOGETHER) {
            let look = |place: usize, decider: &Decider| decider.touch(at, rows[place].reporter);
            deciders.touch(rows.iter().map(|row| row.found), look);
            for row in rows {
                let Some(decider) = deciders.find(&row.revision, &mut row.found) else { continue };
                decider.record_row(at, row, now);
                if decider.is_poked_by(row.stat.average_concurrency, false) {
                    orders.extend(decider.evaluate(now));
                }
            }
        }
        orders
    }

    /// All are due. If the last round is not over yet it goes on instead.
    pub fn tick(&self) {
        if self.deciders.lock().begin() {
            self.pace.lock().begin();
        }
    }

    fn are_due(&self) -> bool {
        self.deciders.lock().are_due()
    }

    /// Gives orders that cannot wait. Where one finds no room, its revision is
    /// decided on again when there is.
    fn give(&self, orders: Vec<Order>, to: &mpsc::Sender<Order>) {
        for order in orders {
            if let Err(error) = to.try_send(order) {
                let (mpsc::error::TrySendError::Full(order) | mpsc::error::TrySendError::Closed(order)) = error;
                self.deciders.lock().again(&order.revision);
                self.some_are_due.notify_one();
            }
        }
    }

    /// Decides on the next ones that are due, `most` of them.
    pub fn decide(&self, most: usize, now: Moment, mut give: impl FnMut(Order)) {
        let began = Instant::now();
        let mut deciders = self.deciders.lock();
        let mut revisions = 0;
        while revisions < most {
            if revisions % TOGETHER == 0 {
                deciders.touch_due(TOGETHER.min(most - revisions), |decider| decider.touch_all(now));
            }
            let Some(decider) = deciders.next() else { break };
            revisions += 1;
            if let Some(order) = decider.evaluate(now) {
                give(order);
            }
        }
        let over = !deciders.are_due();
        drop(deciders);
        let mut pace = self.pace.lock();
        pace.slice(revisions, began.elapsed());
        if over {
            pace.end();
        }
    }
}

/// Decides until `shutdown` stops.
pub async fn run(autoscaler: Autoscaler, links: Links, shutdown: Shutdown) {
    let Links { mut world, orders, mut stats } = links;
    let mut owners = autoscaler.owners.clone();
    let mut ticks = clock::ticks(autoscaler.config.tick, autoscaler.config.after_reports);
    let slice = SLICE.min(orders.max_capacity());
    world.mark_changed();
    loop {
        tokio::select! {
            changed = world.changed() => {
                if changed.is_err() {
                    return;
                }
                let snapshot = world.borrow_and_update().clone();
                autoscaler.follow(&snapshot, clock::now());
            }
            () = changed(&mut owners) => {
                let snapshot = world.borrow().clone();
                autoscaler.follow(&snapshot, clock::now());
            }
            batch = stats.next() => {
                let Some(batch) = batch else { return };
                autoscaler.give(autoscaler.ingest(&batch, clock::now()), &orders);
            }
            () = autoscaler.some_are_due.notified() => {}
            _ = ticks.tick() => autoscaler.tick(),
            // While the platform takes no orders there is no use in deciding;
            // stats are taken in all the same.
            room = orders.reserve_many(slice), if autoscaler.are_due() => {
                let Ok(mut room) = room else { return };
                autoscaler.decide(slice, clock::now(), |order| {
                    if let Some(place) = room.next() {
                        place.send(order);
                    }
                });
            }
            () = shutdown.stopping() => return,
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
