//! Our load generator, one thread. Closed: the next request follows the answer.
//! Open: requests are due at drawn moments, whether the ones before have been
//! answered or not, and latency counts from the moment at which one was due;
//! so a proxy that stands still cannot hide who came meanwhile.

pub(crate) mod http1;
pub(crate) mod http2;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// What is asked for, and how.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) to: SocketAddr,
    pub(crate) request: Request,
    pub(crate) connections: usize,
    /// Streams of a connection (HTTP/2).
    pub(crate) streams: usize,
    pub(crate) pace: Pace,
    pub(crate) time: Duration,
    /// Beyond 0: requests are for `r0.example` and so on, so many hosts, the
    /// n-th asked for in proportion to 1/n (HTTP/1).
    pub(crate) hosts: usize,
    /// Each of them once before that.
    pub(crate) each_once: bool,
}

/// One request.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Request {
    pub(crate) path: String,
    /// Beside the host.
    pub(crate) headers: Vec<(String, String)>,
    /// Bytes that are posted; `None` is a GET.
    pub(crate) body: Option<usize>,
    /// What an answer's body must have, in bytes.
    pub(crate) expected: usize,
    /// The body is a gRPC message, and the answer must end with status 0.
    pub(crate) grpc: bool,
}

/// When requests leave.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Pace {
    /// As soon as a connection or stream is free.
    Closed,
    /// So many a second, at drawn moments: the same ones for everybody who is
    /// given the same seed.
    Open { rate: f64, seed: u64 },
}

/// How it went.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Outcome {
    pub(crate) completed: u64,
    /// Answers that were wrong, and connections that were lost.
    pub(crate) errors: u64,
    pub(crate) seconds: f64,
    /// Requests that were due and never left (open).
    pub(crate) left_over: u64,
    /// In microseconds.
    pub(crate) p50: f64,
    pub(crate) p90: f64,
    pub(crate) p99: f64,
    pub(crate) max: f64,
}

impl Outcome {
    pub(crate) fn rate(&self) -> f64 {
        if self.seconds > 0.0 { self.completed as f64 / self.seconds } else { 0.0 }
    }
}

/// Counts.
pub(crate) struct Recorder {
    latencies: Histogram<u64>,
    began: Instant,
    /// Latencies of what was due before are not told: pools fill up then.
    warm: Instant,
    completed: u64,
    pub(crate) errors: u64,
}

impl Recorder {
    pub(crate) fn new(time: Duration) -> anyhow::Result<Recorder> {
        let began = Instant::now();
        let latencies = Histogram::new_with_bounds(1, 120_000_000_000, 3)?;
        Ok(Recorder { latencies, began, warm: began + time / 10, completed: 0, errors: 0 })
    }

    pub(crate) fn answered(&mut self, due: Instant, now: Instant) {
        self.completed += 1;
        if due >= self.warm {
            let taken = u64::try_from(now.saturating_duration_since(due).as_nanos()).unwrap_or(u64::MAX);
            self.latencies.saturating_record(taken.max(1));
        }
    }

    pub(crate) fn outcome(&self, left_over: u64) -> Outcome {
        let at = |quantile| self.latencies.value_at_quantile(quantile) as f64 / 1000.0;
        Outcome {
            completed: self.completed,
            errors: self.errors,
            seconds: self.began.elapsed().as_secs_f64(),
            left_over,
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            max: self.latencies.max() as f64 / 1000.0,
        }
    }
}

/// The moments at which requests are due.
pub(crate) struct Schedule {
    draw: fastrand::Rng,
    mean: f64,
    next: Instant,
}

impl Schedule {
    pub(crate) fn new(rate: f64, seed: u64, from: Instant) -> Schedule {
        let mut schedule = Schedule { draw: fastrand::Rng::with_seed(seed), mean: 1.0 / rate.max(0.001), next: from };
        schedule.advance();
        schedule
    }

    /// The next one.
    pub(crate) fn next(&self) -> Instant {
        self.next
    }

    /// Takes it; exponential gaps, as independent clients make them.
    pub(crate) fn advance(&mut self) -> Instant {
        let due = self.next;
        let gap = -(1.0 - self.draw.f64()).ln() * self.mean;
        self.next += Duration::from_secs_f64(gap);
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{direct, floor};
    use std::net::TcpListener;
    use std::thread;

    fn listener() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    }

    /// The app, and the floor in front of it, until the tests end.
    fn app_and_floor() -> (SocketAddr, SocketAddr) {
        let ((app, app_at), (front, front_at)) = (listener(), listener());
        thread::spawn(move || direct::http1::serve(&app));
        thread::spawn(move || floor::serve(&front, app_at));
        (app_at, front_at)
    }

    fn plan(to: SocketAddr, path: &str, body: Option<usize>, expected: usize) -> Plan {
        let request =
            Request { path: path.into(), headers: vec![("A".into(), "b".into())], body, expected, grpc: false };
        let time = Duration::from_millis(300);
        Plan { to, request, connections: 8, streams: 4, pace: Pace::Closed, time, hosts: 0, each_once: false }
    }

    #[test]
    fn the_floor_passes_on_what_the_app_answers() {
        let (app, floor) = app_and_floor();
        for to in [app, floor] {
            let cases = [
                ("/0", None, 0),
                ("/1k", None, 1 << 10),
                ("/1m", None, 1 << 20),
                ("/5ms", None, 1 << 10),
                ("/sink", Some(10 << 10), 0),
                ("/sink", Some(3 << 20), 0),
            ];
            for (path, body, expected) in cases {
                let outcome = http1::run(&plan(to, path, body, expected)).unwrap();
                assert!(outcome.completed > 0 && outcome.errors == 0, "{path} {body:?}: {outcome:?}");
            }
        }
    }

    #[test]
    fn wrong_answers_are_errors() {
        let (_, floor) = app_and_floor();
        let unknown = http1::run(&plan(floor, "/unknown", None, 0)).unwrap();
        let another = http1::run(&plan(floor, "/1k", None, 1 << 9)).unwrap();
        assert!(unknown.errors > 0 && another.errors > 0, "{unknown:?} {another:?}");
    }

    #[test]
    fn latency_counts_from_when_a_request_was_due() {
        let (app, _) = app_and_floor();
        // One connection can do 200 a second at most.
        let pace = Pace::Open { rate: 1000.0, seed: 1 };
        let outcome = http1::run(&Plan { connections: 1, pace, ..plan(app, "/5ms", None, 1 << 10) }).unwrap();
        assert!(outcome.completed < 100 && outcome.left_over > 100, "{outcome:?}");
        assert!(outcome.p50 > 50_000.0, "{outcome:?}");
    }

    #[test]
    fn an_open_loop_keeps_its_rate() {
        let (app, _) = app_and_floor();
        let pace = Pace::Open { rate: 500.0, seed: 1 };
        let outcome = http1::run(&Plan { pace, ..plan(app, "/0", None, 0) }).unwrap();
        assert!(outcome.errors == 0 && outcome.completed + outcome.left_over <= 300, "{outcome:?}");
        assert!(outcome.completed >= 50, "{outcome:?}");
    }

    #[test]
    fn http2_and_grpc() {
        let (unused, at) = listener();
        drop(unused);
        thread::spawn(move || direct::http2::run(at));
        let began = Instant::now();
        while std::net::TcpStream::connect(at).is_err() && began.elapsed() < Duration::from_secs(10) {
            thread::sleep(Duration::from_millis(2));
        }
        let cases = [
            ("/64k", None, 64 << 10, false),
            ("/1k", Some(128), 1 << 10, false),
            ("/bench/Unary", Some(128), 5 + (1 << 10), true),
            ("/bench/Stream", Some(128), 100 * (5 + 128), true),
        ];
        for (path, body, expected, grpc) in cases {
            let mut plan = plan(at, path, body, expected);
            plan.request.grpc = grpc;
            for pace in [Pace::Closed, Pace::Open { rate: 200.0, seed: 1 }] {
                let outcome = http2::run(&Plan { pace, ..plan.clone() }).unwrap();
                assert!(outcome.completed > 0 && outcome.errors == 0, "{path}: {outcome:?}");
            }
        }
        let wrong = http2::run(&plan(at, "/1k", None, 5)).unwrap();
        assert!(wrong.errors > 0, "{wrong:?}");
    }
}
