//! Stats of one bucket, on their way to whoever owns it.

use super::link::{self, Link};
use super::{Owner, Owners, Stats};
use metrics::counter;
use plumbing::clock;
use plumbing::shutdown::Shutdown;
use plumbing::stats::StatSink;
use policy::forward::{GivenUp, Outbox, Parcel};
use policy::moment::Moment;
use policy::revision::RevisionId;
use policy::stat::{Stat, StatBatch};
use proto::stats::{WireStatMessage, WireStatMessages};
use std::sync::Arc;
use tokio::sync::{mpsc, watch};
use tokio::time::{Duration, sleep};

/// Stats that wait for one owner: a minute of 1,000 revisions.
const WAITING_MAX: usize = 65_536;
/// Stats of one message.
const MESSAGE_STATS_MAX: usize = 4096;

/// Stats that went to another replica.
pub(crate) const FORWARDED: &str = "zeroscale_autoscaler_forwarded_stats_total";
/// Stats that could not, by reason.
pub(crate) const GIVEN_UP: &str = "zeroscale_autoscaler_forward_drops_total";

/// One stat, and when it was taken.
pub(super) struct Item {
    pub(super) revision: RevisionId,
    pub(super) stat: Stat,
    pub(super) at: Moment,
}

pub(super) struct Lane {
    pub(super) bucket: Arc<str>,
    pub(super) owners: watch::Receiver<Arc<Owners>>,
    pub(super) local: StatSink,
}

pub(super) fn given_up(why: &'static str, stats: usize) {
    counter!(GIVEN_UP, "why" => why).increment(stats as u64);
}

impl Lane {
    /// Until nobody puts anything in, or `shutdown` drains.
    pub(super) async fn run(mut self, mut stats: mpsc::Receiver<Stats>, shutdown: Shutdown) {
        let mut outbox = Outbox::new(WAITING_MAX);
        let mut link: Option<Link> = None;
        // Who owns it, as far as `link` goes.
        let mut owner = self.owner();
        loop {
            let due = take_due(&mut outbox, clock::now());
            if !due.is_empty() {
                if let Err(why) = self.deliver(&due, owner.as_ref(), &mut link).await {
                    tracing::debug!(bucket = %self.bucket, why, stats = due.len(), "stats could not be forwarded");
                    link = None;
                    due.into_iter().for_each(|parcel| note(outbox.failed(parcel, clock::now())));
                }
                if !shutdown.is_draining() {
                    continue;
                }
            }
            let pause = outbox.due().map(|due| due.since(clock::now()));
            tokio::select! {
                // What has come goes before the end.
                biased;
                came = stats.recv() => match came {
                    Some(Stats { items, at_once }) => for item in items {
                        let now = clock::now();
                        note(if at_once { outbox.put(item, now) } else { outbox.put_later(item, now) });
                    },
                    None => break,
                },
                () = sleep(pause.unwrap_or_default()), if pause.is_some() => {}
                why = link::tend(&mut link) => {
                    tracing::info!(bucket = %self.bucket, why, "the owner of a bucket is lost");
                    link = None;
                }
                Ok(()) = self.owners.changed() => {
                    let now = self.owner();
                    if now != owner {
                        tracing::info!(bucket = %self.bucket, owner = ?now, "a bucket has another owner");
                        (owner, link) = (now, None);
                    }
                }
                () = shutdown.draining() => break,
            }
        }
        given_up("end", outbox.len());
        if let Some(link) = link {
            link.close();
        }
    }

    fn owner(&mut self) -> Option<Owner> {
        self.owners.borrow_and_update().of(&self.bucket).cloned()
    }

    async fn deliver(
        &self,
        parcels: &[Parcel<Item>],
        owner: Option<&Owner>,
        link: &mut Option<Link>,
    ) -> Result<(), String> {
        let addresses = match owner {
            None => return Err("nobody owns it".to_owned()),
            Some(Owner::Here) => {
                let own = parcels.iter().map(|parcel| &parcel.load);
                own.for_each(|Item { revision, stat, at }| {
                    let stats = vec![(revision.clone(), stat.clone())];
                    self.local.send(StatBatch { at: *at, stats, poke: false });
                });
                return Ok(());
            }
            Some(Owner::At(addresses)) => addresses,
        };
        let link = match link {
            Some(link) => link,
            None => link.insert(Link::open(addresses).await?),
        };
        let messages = parcels.iter().map(|parcel| message(&parcel.load)).collect();
        link.send(&proto::encode(&WireStatMessages { messages })).await?;
        counter!(FORWARDED).increment(parcels.len() as u64);
        Ok(())
    }
}

fn take_due(outbox: &mut Outbox<Item>, now: Moment) -> Vec<Parcel<Item>> {
    std::iter::from_fn(|| outbox.next(now)).take(MESSAGE_STATS_MAX).collect()
}

fn note(outcome: Result<(), GivenUp>) {
    if let Err(why) = outcome {
        given_up(why.as_str(), 1);
    }
}

fn message(item: &Item) -> WireStatMessage {
    let mut stat = proto::stats::Stat::of(&item.stat, Duration::ZERO);
    // The receiver would take it for its own second otherwise.
    stat.timestamp = item.at.unix_seconds();
    let RevisionId { namespace, name } = &item.revision;
    WireStatMessage { namespace: namespace.as_bytes().to_vec(), name: name.as_bytes().to_vec(), stat: Some(stat) }
}
