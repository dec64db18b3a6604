//! Each second: what the app had to carry.

use crate::config::Config;
use crate::sidecar::Sidecar;
use plumbing::alarm::Alarm;
use plumbing::clock;
use plumbing::stats::StatSink;
use policy::compat::Compat;
use policy::moment::Moment;
use policy::stat::{Stat, StatBatch};
use policy::timeline::{REPORT_PERIOD, next_report};
use policy::world::PodName;
use proto::stats::Stat as WireStat;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, Interval};

/// The latest report, for whoever scrapes or follows.
pub(crate) struct Latest {
    began: Instant,
    /// The name alone while there is no report.
    report: watch::Sender<WireStat>,
}

impl Latest {
    pub(crate) fn new(pod: &PodName) -> Latest {
        Latest { began: Instant::now(), report: watch::Sender::new(WireStat::of_pod(pod)) }
    }

    /// The report, unchanged however often it is asked for.
    pub(crate) fn stat(&self) -> WireStat {
        self.report.borrow().clone()
    }

    /// Tells of each report from the next one on; of several that were not
    /// looked at, only the last.
    pub(crate) fn follow(&self) -> watch::Receiver<WireStat> {
        self.report.subscribe()
    }

    fn set(&self, stat: &Stat) {
        self.report.send_replace(WireStat::of(stat, self.began.elapsed()));
    }
}

/// Reports for ever: to `latest`, and to the sink if there is one.
pub(crate) async fn run(sidecar: Arc<Sidecar>, latest: Arc<Latest>, sink: Option<StatSink>) {
    let mut beat = Beat::of(&sidecar.config);
    loop {
        beat.tick().await;
        let report = sidecar.report();
        let stat = Stat {
            pod_name: sidecar.config.pod.clone(),
            average_concurrency: report.average_concurrency,
            average_proxied_concurrency: report.average_proxied_concurrency,
            request_count: report.request_count,
            proxied_request_count: report.proxied_request_count,
        };
        latest.set(&stat);
        if let Some(sink) = &sink {
            let stats = vec![(sidecar.config.revision.clone(), stat)];
            sink.send(StatBatch { at: clock::now(), stats, poke: false });
        }
    }
}

/// When reports are due.
enum Beat {
    /// With the wall clock's second: inside `zeroscale`, where all report to
    /// one autoscaler in the same process.
    Second(Interval),
    /// A whole second after the start and after the report at `previous`.
    InPod {
        previous: Moment,
        /// The report after one at a given moment.
        next: fn(Moment) -> Moment,
        alarm: Alarm,
    },
}

impl Beat {
    fn of(config: &Config) -> Beat {
        if config.in_pod {
            return Beat::in_pod(config.compat, Alarm::new());
        }
        Beat::Second(clock::ticks(REPORT_PERIOD, Duration::ZERO))
    }

    /// Little by little with the wall clock's second; strict: as the
    /// reference, each second from the start on.
    fn in_pod(compat: Compat, alarm: Alarm) -> Beat {
        let next = match compat {
            Compat::Better => next_report,
            Compat::Strict => |previous| previous + REPORT_PERIOD,
        };
        Beat::InPod { previous: clock::now(), next, alarm }
    }

    async fn tick(&mut self) {
        match self {
            Beat::Second(ticks) => drop(ticks.tick().await),
            Beat::InPod { previous, next, alarm } => {
                let (due, now) = (next(*previous), clock::now());
                alarm.after(due.since(now)).await;
                // After a standstill nothing is made up for.
                *previous = if now.since(due) > REPORT_PERIOD { now } else { due };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn before_the_first_report_the_name_is_told_and_then_the_latest_stays() {
        let latest = Latest::new(&"pod-1".into());
        assert_eq!(proto::encode(&latest.stat()), b"\x0a\x05pod-1");
        tokio::time::advance(Duration::from_millis(400)).await;
        let stat = Stat {
            pod_name: "pod-1".into(),
            average_concurrency: 1.0,
            average_proxied_concurrency: 0.0,
            request_count: 2.0,
            proxied_request_count: 0.0,
        };
        latest.set(&stat);
        for _ in 0..2 {
            let told = latest.stat();
            assert_eq!((told.request_count, told.process_uptime, told.timestamp), (2.0, 0.4, 0));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn in_a_pod_the_first_period_is_whole_and_reports_reach_the_second() {
        let mut beat = Beat::in_pod(Compat::Better, Alarm::of_the_runtime());
        let mut before = clock::now();
        for _ in 0..30 {
            beat.tick().await;
            let period = clock::now().since(before).as_millis();
            assert!((979..=1022).contains(&period), "{period} ms");
            before = clock::now();
        }
        let past = before.since(before.truncated_to_second());
        assert!(past < Duration::from_millis(3), "{past:?} into the second");
        tokio::time::advance(Duration::from_secs(60)).await;
        for _ in 0..2 {
            beat.tick().await;
        }
        assert!(clock::now().since(before) < Duration::from_secs(63), "a standstill is not made up for");
    }
}
