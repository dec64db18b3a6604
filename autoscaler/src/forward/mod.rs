//! Stats between replicas: what is of this replica's buckets goes to its
//! decisions, the rest to whoever owns it, over the websocket that activators
//! use too (autoscaler reference, section 11).
//!
//! | job | module |
//! | --- | --- |
//! | who owns what | `owners` |
//! | what waits for one owner, and is tried again | `lane`, by `policy::forward` |
//! | a connection to one | `link` |
//!
//! Unlike in the reference, owners do not wait for each other, and what cannot
//! be delivered is given up after as many attempts as it means to.

mod lane;
mod link;
mod owners;

pub use owners::{Owner, Owners};

use lane::{Item, Lane, given_up};
use plumbing::clock;
use plumbing::shutdown::Shutdown;
use plumbing::stats::{StatSink, StatSource};
use policy::forward::AGE_MAX;
use policy::stat::StatBatch;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// Where our stat server is told of stats that have been forwarded already.
/// Others do not care for the path.
pub(crate) const PATH: &str = "/forwarded";
/// How often to look whether the decisions take stats again.
const FULL_PAUSE: Duration = Duration::from_millis(10);
/// Groups of stats on their way to one lane.
const GROUPS_MAX: usize = 256;

/// Where stats come from and go to.
pub struct Links {
    /// Stats of sidecars and activators.
    pub direct: StatSource,
    /// Stats that another replica has sent here. They go no further at once:
    /// replicas that disagree would pass them in circles.
    pub forwarded: StatSource,
    /// The decisions of this replica.
    pub local: StatSink,
}

/// Stats of one bucket.
struct Stats {
    items: Vec<Item>,
    at_once: bool,
}

/// Sends every stat to its owner, until `shutdown` drains or the links end.
pub async fn run(links: Links, owners: watch::Receiver<Arc<Owners>>, shutdown: Shutdown) {
    let Links { mut direct, mut forwarded, local } = links;
    let mut lanes: BTreeMap<Arc<str>, mpsc::Sender<Stats>> = BTreeMap::new();
    loop {
        // Whoever sends is held back while the decisions stand still.
        while !local.has_room() && !shutdown.is_draining() {
            tokio::time::sleep(FULL_PAUSE).await;
        }
        let (batch, at_once) = tokio::select! {
            biased;
            batch = direct.next() => (batch, true),
            batch = forwarded.next() => (batch, false),
            () = shutdown.draining() => return,
        };
        let Some(batch) = batch else { return };
        let table = owners.borrow().clone();
        let elsewhere = keep_own(batch, &table, &local);
        for (bucket, mut items) in elsewhere {
            if !at_once {
                let (all, now) = (items.len(), clock::now());
                items.retain(|item| now.since(item.at) <= AGE_MAX);
                given_up("age", all - items.len());
            }
            let lane = lanes.entry(bucket).or_insert_with_key(|bucket| {
                let (into, stats) = mpsc::channel(GROUPS_MAX);
                let lane = Lane { bucket: bucket.clone(), owners: owners.clone(), local: local.clone() };
                shutdown.spawn(lane.run(stats, shutdown.clone()));
                into
            });
            if let Err(full) = lane.try_send(Stats { items, at_once }) {
                given_up("full", full.into_inner().items.len());
            }
        }
    }
}

/// Gives to the decisions what is theirs; returns the rest, by bucket.
fn keep_own(mut batch: StatBatch, owners: &Owners, local: &StatSink) -> BTreeMap<Arc<str>, Vec<Item>> {
    let mut elsewhere: BTreeMap<Arc<str>, Vec<Item>> = BTreeMap::new();
    let at = batch.at;
    let all = std::mem::take(&mut batch.stats);
    for (revision, stat) in all {
        match owners.bucket_of(&revision) {
            Some(bucket) if owners.of(bucket) != Some(&Owner::Here) => {
                elsewhere.entry(bucket.clone()).or_default().push(Item { revision, stat, at });
            }
            _ => batch.stats.push((revision, stat)),
        }
    }
    if !batch.stats.is_empty() {
        local.send(batch);
    }
    elsewhere
}
