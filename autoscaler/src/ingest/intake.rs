//! Where stats of our own stream go.

use super::rows::Row;
use crate::Autoscaler;
use plumbing::clock;
use plumbing::stats::StatSink;
use policy::moment::Moment;
use policy::stat::StatBatch;
use policy::world::Order;
use tokio::sync::mpsc;

/// Where to.
pub enum Intake {
    /// Onto a link: to whoever owns them, among several replicas.
    Link(StatSink),
    /// Straight into the decisions of this process; what they order at once
    /// goes there.
    Decisions(Autoscaler, mpsc::Sender<Order>),
}

impl From<StatSink> for Intake {
    fn from(sink: StatSink) -> Intake {
        Intake::Link(sink)
    }
}

impl Intake {
    /// False when they are not taken: the decisions stand still.
    pub(super) fn take(&self, batch: StatBatch) -> bool {
        match self {
            Intake::Link(sink) => sink.send(batch),
            Intake::Decisions(autoscaler, orders) => {
                autoscaler.give(autoscaler.ingest(&batch, clock::now()), orders);
                true
            }
        }
    }

    /// The same of what a stream has sent in its usual order.
    pub(super) fn take_rows(&self, at: Moment, rows: &mut [Row]) -> bool {
        match self {
            Intake::Link(sink) => {
                let stats = rows.iter().map(|row| (row.revision.clone(), row.stat.clone())).collect();
                sink.send(StatBatch { at, stats, poke: false })
            }
            Intake::Decisions(autoscaler, orders) => {
                autoscaler.give(autoscaler.ingest_rows(at, rows, clock::now()), orders);
                true
            }
        }
    }
}
