//! Stats as the reference's package `metrics` puts them on the wire.
//!
//! Strings are read as bytes: the reference's decoder does not check UTF-8,
//! and a batch must not be lost for one odd name. They become text with
//! [`String::from_utf8_lossy`].

use policy::moment::Moment;
use policy::revision::RevisionId;
use policy::stat::{Stat as Observed, StatBatch};
use std::time::Duration;

/// What one pod saw in its last second: the body of `:9090/metrics`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Stat {
    /// Who reports.
    #[prost(bytes = "vec", tag = "1")]
    pub pod_name: Vec<u8>,
    /// Requests in progress, on average.
    #[prost(double, tag = "2")]
    pub average_concurrent_requests: f64,
    /// The part of them that came through an activator.
    #[prost(double, tag = "3")]
    pub average_proxied_concurrent_requests: f64,
    /// Requests that arrived, per second.
    #[prost(double, tag = "4")]
    pub request_count: f64,
    /// The part of them that came through an activator.
    #[prost(double, tag = "5")]
    pub proxied_request_count: f64,
    /// Seconds since the reporter began.
    #[prost(double, tag = "6")]
    pub process_uptime: f64,
    /// Unix seconds; 0 = not said, the receiver takes its own.
    #[prost(int64, tag = "7")]
    pub timestamp: i64,
}

/// A stat with the revision that it is of.
#[derive(Clone, PartialEq, prost::Message)]
pub struct WireStatMessage {
    /// Namespace of the revision.
    #[prost(bytes = "vec", tag = "1")]
    pub namespace: Vec<u8>,
    /// Its name.
    #[prost(bytes = "vec", tag = "2")]
    pub name: Vec<u8>,
    /// The stat; an entry without one says nothing.
    #[prost(message, optional, tag = "3")]
    pub stat: Option<Stat>,
}

/// Stats that travel together.
#[derive(Clone, PartialEq, prost::Message)]
pub struct WireStatMessages {
    /// The entries.
    #[prost(message, repeated, tag = "1")]
    pub messages: Vec<WireStatMessage>,
}

impl Stat {
    /// Before anything was measured: only the name.
    pub fn of_pod(pod_name: &str) -> Stat {
        Stat { pod_name: pod_name.as_bytes().to_vec(), ..Stat::default() }
    }

    /// A report, from a process that has been up for `uptime`. The timestamp
    /// is not set: sidecars do not.
    pub fn of(stat: &Observed, uptime: Duration) -> Stat {
        Stat {
            average_concurrent_requests: stat.average_concurrency,
            average_proxied_concurrent_requests: stat.average_proxied_concurrency,
            request_count: stat.request_count,
            proxied_request_count: stat.proxied_request_count,
            process_uptime: uptime.as_secs_f64(),
            ..Stat::of_pod(&stat.pod_name)
        }
    }

    /// What it means to the decisions.
    pub fn observed(&self) -> Observed {
        Observed {
            pod_name: text(&self.pod_name).into(),
            average_concurrency: self.average_concurrent_requests,
            average_proxied_concurrency: self.average_proxied_concurrent_requests,
            request_count: self.request_count,
            proxied_request_count: self.proxied_request_count,
        }
    }

    /// When it was taken; `received` where it does not say.
    pub fn at(&self, received: Moment) -> Moment {
        match self.timestamp {
            0 => received.truncated_to_second(),
            seconds => Moment::from_unix_millis(seconds.saturating_mul(1000)),
        }
    }
}

impl WireStatMessage {
    /// Of which revision.
    pub fn revision(&self) -> RevisionId {
        RevisionId::new(text(&self.namespace), text(&self.name))
    }
}

impl From<&StatBatch> for WireStatMessages {
    /// Neither uptimes nor times travel: the reference's senders leave them out.
    fn from(batch: &StatBatch) -> WireStatMessages {
        let message = |(revision, stat): &(RevisionId, Observed)| WireStatMessage {
            namespace: revision.namespace.as_bytes().to_vec(),
            name: revision.name.as_bytes().to_vec(),
            stat: Some(Stat::of(stat, Duration::ZERO)),
        };
        WireStatMessages { messages: batch.stats.iter().map(message).collect() }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Malformed, decode, encode};

    #[test]
    fn before_the_first_report_only_the_name_is_sent() {
        assert_eq!(encode(&Stat::of_pod("pod-1")), [0x0a, 0x05, 0x70, 0x6f, 0x64, 0x2d, 0x31]);
    }

    #[test]
    fn a_batch_comes_back_as_it_was_sent() {
        let stat = Observed {
            pod_name: "pod-1".into(),
            average_concurrency: 1.5,
            average_proxied_concurrency: 0.5,
            request_count: 7.0,
            proxied_request_count: 3.0,
        };
        let revision = RevisionId::new("ns", "rev");
        let batch = StatBatch { at: Moment::default(), stats: vec![(revision.clone(), stat.clone())], poke: false };
        let read: WireStatMessages = decode(&encode(&WireStatMessages::from(&batch)), 1 << 10).unwrap();
        assert_eq!(read.messages[0].revision(), revision);
        assert_eq!(read.messages[0].stat.as_ref().unwrap().observed(), stat);
    }

    #[test]
    fn odd_names_are_no_reason_to_lose_a_batch() {
        let message: WireStatMessage = decode(b"\x12\x01\xff\x1a\x00", 64).unwrap();
        assert_eq!(&*message.revision().name, "\u{fffd}");
    }

    #[test]
    fn what_is_longer_than_taken_or_malformed_is_refused() {
        assert_eq!(decode::<Stat>(&[0; 337], 336), Err(Malformed::TooLong { bytes: 337, most: 336 }));
        for bad in [&b"\x02\x00"[..], b"\x08\x01", b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", b"\x0a\x4e\x0a"] {
            assert!(matches!(decode::<WireStatMessages>(bad, 64), Err(Malformed::Format(_))), "{bad:?}");
        }
    }

    #[test]
    fn a_time_that_is_not_said_is_the_receivers_second() {
        let received = Moment::from_unix_millis(12_345);
        assert_eq!(Stat::of_pod("p").at(received), Moment::from_unix_millis(12_000));
        let told = Stat { timestamp: 7, ..Stat::of_pod("p") };
        assert_eq!(told.at(received), Moment::from_unix_millis(7_000));
        let absurd = Stat { timestamp: i64::MIN, ..Stat::of_pod("p") };
        assert!(absurd.at(received) < received);
    }
}
