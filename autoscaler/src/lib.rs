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
pub mod explain;
mod exposition;
pub mod forward;
mod history;
pub mod ingest;
pub mod knative;
mod metrics;
mod pace;
mod rate;
pub mod record;
pub mod schedule;
pub mod stat_server;
pub mod state;
pub mod status;
pub mod why;

use collect::Target;
use decider::{Decider, Input};
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
use record::tap::Tap;
use record::{Ask, Recording, Refused};
use schedule::Schedule;
use status::RevisionStatus;
use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Notify, mpsc, watch};
use why::Why;

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

/// So many revisions are copied at a stretch; decisions go on in between.
const COPIED: usize = 16;
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
    /// Bytes of the histories of all revisions together; each has 64 KiB at
    /// most, and its newest decision is always kept.
    pub history_bytes_max: usize,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            compat: Compat::Better,
            tick: Duration::from_secs(2),
            silence: Silence::Unknown,
            after_reports: AFTER_REPORTS,
            schedules: Arc::default(),
            history_bytes_max: history::room::BYTES_MAX,
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
    tap: Arc<Tap>,
    /// Held by whoever is being told why.
    asking: Arc<Mutex<()>>,
    some_are_due: Arc<Notify>,
}

impl Autoscaler {
    /// Without revisions; [`run`] feeds it.
    pub fn new(config: Config) -> Autoscaler {
        let deciders = Arc::new(Mutex::new(Deciders::new(config.history_bytes_max)));
        Autoscaler {
            config,
            deciders,
            pace: Arc::default(),
            owners: None,
            saved: Arc::default(),
            tap: Arc::default(),
            asking: Arc::default(),
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
        let ids: Vec<RevisionId> = self.deciders.lock().iter().map(Decider::id).collect();
        for few in ids.chunks(COPIED) {
            let mut deciders = self.deciders.lock();
            let saved = few.iter().filter_map(|id| Some((id.clone(), deciders.get_mut(id)?.save(now))));
            all.extend(saved);
        }
        all
    }

    /// Records what the decisions take in from now on, and what they are, until
    /// the recording is dropped.
    ///
    /// # Errors
    /// When there are too many recordings already, or none is to come any more.
    pub fn record(&self, ask: Ask) -> Result<Recording, Refused> {
        self.record_from(ask, clock::now())
    }

    /// The same at a time of the caller's own.
    ///
    /// # Errors
    /// As [`Autoscaler::record`].
    pub fn record_from(&self, ask: Ask, now: Moment) -> Result<Recording, Refused> {
        self.tap.attach(&self.config, ask, now)
    }

    /// Ends all recordings: whoever reads gets the rest. None begins after that.
    pub fn end_recordings(&self) {
        self.tap.end(clock::now());
    }

    /// Writes the histories of all revisions, a few at a time.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write_history(&self, to: &mut impl Write) -> io::Result<()> {
        history::kept::begin(to)?;
        let ids: Vec<RevisionId> = {
            let deciders = self.deciders.lock();
            deciders.iter().map(Decider::id).chain(deciders.earlier.keys().cloned()).collect()
        };
        for few in ids.chunks(COPIED) {
            let few: Vec<_> = {
                let deciders = self.deciders.lock();
                let of = |id| deciders.get(id).map(|decider| &decider.history).or_else(|| deciders.earlier.get(id));
                few.iter().filter_map(|id| Some((id, of(id)?.clone()))).collect()
            };
            few.iter().try_for_each(|(id, history)| history::kept::put(to, id, history))?;
        }
        Ok(())
    }

    /// Takes up the histories that an earlier one has written: of how many
    /// revisions. They change nothing in what is decided.
    ///
    /// # Errors
    /// When there is nothing to read, or it makes no sense as a whole.
    pub fn read_history(&self, from: impl BufRead, now: Moment) -> io::Result<usize> {
        let read = history::kept::read(from, now, self.config.history_bytes_max)?;
        let (mut deciders, count) = (self.deciders.lock(), read.len());
        deciders.earlier = read;
        deciders.make_room();
        Ok(count)
    }

    /// What was decided for each revision, and why.
    pub fn status(&self) -> Vec<RevisionStatus> {
        let now = clock::now();
        self.deciders.lock().sorted().into_iter().map(|(id, decider)| decider.status(id, now)).collect()
    }

    /// Why a service or a revision has the pods that it has, or had `at` a
    /// time. Decisions are held up only while what is needed is copied; the rest
    /// may take some milliseconds.
    ///
    /// # Errors
    /// When there is none of that name, or nothing is known of that time.
    pub fn why(&self, name: &str, at: Option<Moment>, now: Moment) -> Result<Vec<Why>, why::Refused> {
        if at.is_some_and(|at| at > now) {
            return Err(why::Refused::Future);
        }
        // One question at a time: whoever asks much does not take the machine.
        let _turn = self.asking.lock();
        let (mut answers, mut refused) = (Vec::new(), None);
        for id in self.named(name)? {
            let (inquiry, beat) = {
                let deciders = self.deciders.lock();
                (deciders.get(&id).map(Decider::inquire), deciders.beat(self.config.tick, now))
            };
            match (inquiry, at) {
                (None, _) => {}
                (Some(inquiry), None) => answers.push(inquiry.now(beat, now)),
                (Some(inquiry), Some(at)) => match inquiry.at(at, beat, now) {
                    Ok(answer) => answers.push(answer),
                    Err(why) => refused = Some(why),
                },
            }
        }
        match refused {
            Some(refused) if answers.is_empty() => Err(refused),
            _ => Ok(answers),
        }
    }

    /// The revisions of a service, of `namespace/name`, or of a name.
    fn named(&self, name: &str) -> Result<Vec<RevisionId>, why::Refused> {
        let deciders = self.deciders.lock();
        if let Some((namespace, short)) = name.split_once('/') {
            let id = RevisionId::new(namespace, short);
            if deciders.get(&id).is_some() {
                return Ok(vec![id]);
            }
        }
        let is_meant = |decider: &&Decider| decider.is_called(name);
        let mut found: Vec<RevisionId> = deciders.iter().filter(is_meant).map(Decider::id).collect();
        if found.is_empty() {
            let names: Vec<_> = deciders.iter().flat_map(Decider::names).collect();
            drop(deciders);
            return Err(why::Refused::Unknown(why::near(name, names.iter().map(|name| &**name))));
        }
        drop(deciders);
        found.sort_unstable();
        // The newest are the last by name, as a rule.
        found.drain(..found.len().saturating_sub(why::REVISIONS_MAX));
        Ok(found)
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

    /// Takes in what a revision's pods answered, as [`collect::run`] does.
    /// `conclude` is told which of
    /// them push their stats, and says what it came to; `None` when the
    /// revision is gone.
    pub fn scraped(
        &self,
        revision: &RevisionId,
        now: Moment,
        took: Duration,
        conclude: impl FnOnce(&dyn Fn(&str) -> bool) -> Outcome,
    ) -> Option<Outcome> {
        let mut deciders = self.deciders.lock();
        let decider = deciders.get_mut(revision)?;
        let outcome = conclude(&|pod| decider.is_pushed_by(pod, now));
        self.tap.pass(decider, &Input::Scraped { outcome: &outcome, took }, now);
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
        deciders.retain(|id| {
            let stays = snapshot.revisions.contains_key(id) && is_here(id);
            if !stays {
                self.tap.gone(id, now);
            }
            stays
        });
        for (id, view) in snapshot.revisions.iter().filter(|(id, _)| is_here(id)) {
            if let Some(decider) = deciders.get_mut(id) {
                if !Arc::ptr_eq(view, &decider.view) {
                    self.tap.pass(decider, &Input::View(view), now);
                }
                continue;
            }
            let mut decider = Decider::new(id.clone(), view.clone(), &self.config, now);
            match self.saved.lock().remove(id) {
                Some(saved) => decider.restore(&saved, now),
                None => self.tap.begun(&decider, now),
            }
            if let Some(earlier) = deciders.earlier.remove(id) {
                decider.history = earlier;
            }
            deciders.insert(id.clone(), decider);
        }
        deciders.make_room();
    }

    /// Takes stats in; decides at once where they ask for it.
    pub fn ingest(&self, batch: &StatBatch, now: Moment) -> Vec<Order> {
        let mut deciders = self.deciders.lock();
        let mut orders = Vec::new();
        for (id, stat) in &batch.stats {
            let Some(decider) = deciders.get_mut(id) else { continue };
            let taken = self.tap.pass(decider, &Input::Stat { at: batch.at, stat, urgent: batch.poke }, now);
            orders.extend(deciders.order(taken));
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
                let taken = if self.tap.is_on() {
                    self.tap.pass(decider, &Input::Stat { at, stat: &row.stat, urgent: false }, now)
                } else {
                    decider.take_row(at, row, now)
                };
                orders.extend(deciders.order(taken));
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
        deciders.goes_on(now);
        let mut revisions = 0;
        while revisions < most {
            if revisions % TOGETHER == 0 {
                deciders.touch_due(TOGETHER.min(most - revisions), |decider| decider.touch_all(now));
            }
            let Some(decider) = deciders.next() else { break };
            revisions += 1;
            let taken = self.tap.pass(decider, &Input::Due, now);
            if let Some(order) = deciders.order(taken) {
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
    go_on(&autoscaler, links, shutdown).await;
    autoscaler.end_recordings();
}

async fn go_on(autoscaler: &Autoscaler, links: Links, shutdown: Shutdown) {
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
