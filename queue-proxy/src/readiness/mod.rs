//! Is the app ready? Asked by kubelet and activators, through us.

mod attempt;
mod get;
mod grpc;
mod share;
mod spec;

pub use spec::{Check, HttpGet, Probe, Readiness, Target};

pub(crate) use attempt::connect;
use attempt::{Terms, attempt};
use parking_lot::Mutex;
use plumbing::clock;
use plumbing::shutdown::Shutdown;
use plumbing::wheel::Wheel;
use plumbing::worker::Worker;
use policy::compat::Compat;
use policy::probe::{EAGER_ATTEMPT_MAX, Eager, Manner, Streak};
use share::Share;
use std::future::Future;
use std::io::Write;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::Poll;
use std::time::Duration;

/// Asks the app. Clones share what is known of it.
#[derive(Clone)]
pub(crate) struct Prober {
    containers: Arc<[Container]>,
    detect_http2: bool,
    compat: Compat,
    /// True in a pod of its own: a failure is worth a line in the log. Inside
    /// `zeroscale` the platform asks each millisecond until the app is up.
    in_pod: bool,
    share: Share,
}

struct Container {
    probe: Probe,
    streak: Mutex<Streak>,
    http1_only: AtomicBool,
    /// Why it was not ready when it was asked last.
    trouble: Mutex<Option<String>>,
}

impl Prober {
    pub(crate) fn new(readiness: &Readiness, compat: Compat, in_pod: bool) -> Prober {
        let container = |probe: &Probe| Container {
            probe: probe.clone(),
            streak: Mutex::default(),
            http1_only: AtomicBool::new(false),
            trouble: Mutex::default(),
        };
        let containers = readiness.probes.iter().map(container).collect();
        Prober { containers, detect_http2: readiness.detect_http2, compat, in_pod, share: Share::default() }
    }

    /// True when all containers are ready.
    pub(crate) async fn ask(&self, worker: &Worker, end: &Shutdown) -> bool {
        if self.containers.is_empty() {
            return true;
        }
        let check = || {
            let (prober, wheel) = (self.clone(), worker.wheel().clone());
            async move { prober.check(&wheel).await }
        };
        self.share.ask(worker, end, check).await
    }

    /// All containers at once; waits for all, so that each failure is told.
    async fn check(&self, wheel: &Wheel) -> bool {
        let mut running: Vec<Pin<Box<dyn Future<Output = bool> + Send + '_>>> = Vec::new();
        for container in self.containers.iter() {
            running.push(Box::pin(self.check_one(container, wheel)));
        }
        let mut passed = true;
        std::future::poll_fn(|cx| {
            running.retain_mut(|check| match check.as_mut().poll(cx) {
                Poll::Ready(one) => {
                    passed &= one;
                    false
                }
                Poll::Pending => true,
            });
            if running.is_empty() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        passed
    }

    async fn check_one(&self, container: &Container, wheel: &Wheel) -> bool {
        let manner = match container.probe.check {
            // Asking again does not help.
            Check::Exec | Check::Nothing => Manner::Once { limit: EAGER_ATTEMPT_MAX },
            _ => container.probe.manner,
        };
        match manner {
            Manner::Once { limit } => match self.attempt(container, limit, wheel).await {
                Ok(()) => self.recovered(container),
                Err(reason) => self.failed(container, &reason, &reason),
            },
            Manner::Eager { threshold } => self.eagerly(container, threshold, wheel).await,
        }
    }

    async fn eagerly(&self, container: &Container, threshold: u32, wheel: &Wheel) -> bool {
        let mut check = Eager::new(clock::now());
        let mut reason = "not enough attempts passed".to_owned();
        loop {
            let began = clock::now();
            let outcome = self.attempt(container, EAGER_ATTEMPT_MAX, wheel).await;
            if container.streak.lock().note(outcome.is_ok(), threshold) {
                return self.recovered(container);
            }
            if let Err(error) = outcome {
                check.failed();
                reason = error;
            }
            let now = clock::now();
            let Some(next) = check.next(began, now) else {
                let told = format!("aggressive probe error (failed {} times): {reason}", check.failures());
                return self.failed(container, &reason, &told);
            };
            if next > now {
                wheel.sleep(next.since(now)).await;
            }
        }
    }

    async fn attempt(&self, container: &Container, limit: Duration, wheel: &Wheel) -> Result<(), String> {
        let Container { probe, http1_only, .. } = container;
        let terms = Terms { compat: self.compat, detect_http2: self.detect_http2, http1_only, limit };
        tokio::select! {
            outcome = attempt(&probe.check, &terms) => outcome,
            () = wheel.sleep(limit) => Err(format!("no answer within {}", plumbing::duration::text(limit))),
        }
    }

    /// Told once, not each time: it is asked every second or so.
    fn failed(&self, container: &Container, reason: &str, told: &str) -> bool {
        let new = container.trouble.lock().replace(reason.to_owned()).is_none_or(|before| before != reason);
        match (self.in_pod, self.compat) {
            // As the reference: a bare line each time, also where lines are JSON.
            (true, Compat::Strict) => drop(writeln!(std::io::stderr(), "{told}")),
            (true, Compat::Better) if new => tracing::warn!(error = told, "the app is not ready"),
            (true, Compat::Better) => {}
            (false, _) => tracing::debug!(error = told, "the app is not ready"),
        }
        false
    }

    fn recovered(&self, container: &Container) -> bool {
        if container.trouble.lock().take().is_some() && self.in_pod && self.compat == Compat::Better {
            tracing::info!("the app is ready again");
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumbing::fds::Budget;
    use tokio::net::TcpListener;
    use tokio::time::Instant;

    fn eager(app: std::net::SocketAddr, threshold: u32) -> Readiness {
        let probe = Probe { check: Check::Tcp(app.into()), manner: Manner::Eager { threshold } };
        Readiness { probes: vec![probe], detect_http2: false }
    }

    async fn asked(readiness: &Readiness) -> (bool, Duration) {
        let end = Shutdown::new();
        let worker = Worker::here(&end, Budget::unlimited());
        let began = Instant::now();
        let ready = Prober::new(readiness, Compat::Strict, false).ask(&worker, &end).await;
        (ready, began.elapsed())
    }

    async fn nobody() -> std::net::SocketAddr {
        TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
    }

    #[tokio::test]
    async fn an_eager_check_fails_after_ten_seconds_and_a_plain_one_at_once() {
        tokio::time::pause();
        let app = nobody().await;
        let (ready, took) = asked(&eager(app, 1)).await;
        assert!(!ready && took >= Duration::from_millis(9_900) && took <= Duration::from_secs(12), "{took:?}");
        let (ready, took) = asked(&Readiness::tcp(app)).await;
        assert!(!ready && took < Duration::from_secs(1), "{took:?}");
    }

    #[tokio::test]
    async fn an_eager_check_waits_for_enough_successes_in_a_row() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (ready, took) = asked(&eager(listener.local_addr().unwrap(), 3)).await;
        assert!(ready && took >= Duration::from_millis(100), "{took:?}");
    }

    #[tokio::test]
    async fn nothing_configured_is_ready_and_nothing_to_ask_is_not() {
        assert!(asked(&Readiness::none()).await.0);
        for check in [Check::Exec, Check::Nothing] {
            let probe = Probe { check, manner: Manner::Eager { threshold: 1 } };
            let (ready, took) = asked(&Readiness { probes: vec![probe], detect_http2: false }).await;
            assert!(!ready && took < Duration::from_secs(5));
        }
    }

    #[tokio::test]
    async fn all_containers_must_pass() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut both = Readiness::tcp(listener.local_addr().unwrap());
        assert!(asked(&both).await.0);
        both.probes.extend(Readiness::tcp(nobody().await).probes);
        assert!(!asked(&both).await.0);
    }
}
