//! One pod's life, as a task: started, ready, crashed and started again,
//! stopped. It tells the reconciler what happens and is told when to stop.

use super::Shared;
use super::config::{Seat, SeatRequest, Service};
use super::drain::{self, Wish};
use super::guard::{End, Exit};
use super::launch::Launched;
use super::readiness::{Miss, Probe};
use super::words;
use parking_lot::Mutex;
use policy::revision::RevisionId;
use policy::world::{PodName, TroubleKind};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep, timeout};
use tracing::{info, warn};

/// What a pod tells the reconciler.
#[derive(Debug)]
pub(super) enum Note {
    /// Its readiness probe passes, again or for the first time since its
    /// process was started; the sidecar listens there.
    Ready { address: SocketAddr, start_took: Duration },
    /// Its readiness probe fails, its process runs on.
    Unready,
    /// Its process is gone, and its sidecar is of no use.
    Lost,
    /// It could not be started, and that is worth telling.
    Failed(Failure),
}

/// A note and its sender.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) revision: RevisionId,
    pub(super) pod: PodName,
    pub(super) note: Note,
}

/// A failed start, in words for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) kind: TroubleKind,
    pub(super) text: String,
}

/// The task of one pod.
pub(super) struct PodTask {
    pub(super) name: PodName,
    pub(super) service: Arc<Service>,
    pub(super) shared: Arc<Shared>,
    pub(super) wish: watch::Receiver<Wish>,
    pub(super) notes: mpsc::Sender<Told>,
    /// Processes in a row that failed, ready for a while or not: the next one
    /// waits the longer for it.
    pub(super) failures: u32,
    /// Those in a row that were not ready, or only for a moment.
    pub(super) failed_starts: u32,
}

/// So many crashes in a row at the start are trouble worth telling. An app that
/// was ready for longer than a moment can be started: requests wait for it.
const CRASHES: u32 = 3;
const MOMENT: Duration = Duration::from_millis(500);

/// Why a process does not run on.
enum Cut {
    /// The pod is not wanted any more.
    Stop,
    /// The process ended, or could not be started.
    Ended(End),
    /// Neither, and it is no use: to be stopped and started again.
    Useless(Failure),
}

impl PodTask {
    /// Runs until the pod is stopped and nothing is left of it.
    pub(super) async fn run(mut self) {
        while !self.one_process().await {
            let wait = self.shared.backoff.wait(self.failures);
            tokio::select! {
                () = drain::wished(&mut self.wish) => break,
                () = sleep(wait) => {}
            }
        }
        info!(pod = %self.name, "pod ended");
    }

    /// From the start of a process to its end; true when the pod was stopped.
    async fn one_process(&mut self) -> bool {
        let mut launched = match Launched::start(&self.shared, &self.name, &self.service).await {
            Ok(launched) => launched,
            Err(error) => {
                let text = format!("cannot start pod {}: {error}", self.name);
                self.failed(Failure { kind: TroubleKind::StartFailed, text }).await;
                return false;
            }
        };
        let mut seat = None;
        let mut was_ready = false;
        let cut = match self.start_up(&mut launched).await {
            Err(cut) => cut,
            Ok((start_took, given)) => {
                let ready_since = Instant::now();
                let cut = self.while_ready(&mut launched, seat.insert(given), start_took).await;
                was_ready = ready_since.elapsed() >= MOMENT;
                if ready_since.elapsed() >= self.shared.backoff.reset_after {
                    self.failures = 0;
                }
                cut
            }
        };
        match cut {
            Cut::Stop => {
                drain::stop(self, &mut launched, seat).await;
                return true;
            }
            Cut::Ended(end) => {
                self.note(Note::Lost).await;
                drop(seat);
                self.crashed(launched, end, was_ready).await;
            }
            Cut::Useless(failure) => {
                self.note(Note::Lost).await;
                drop(seat);
                self.failed(failure).await;
                launched.process.stop(self.service.stop_timeout).await;
                launched.finish_output().await;
            }
        }
        false
    }

    /// Until the readiness probe has passed and the sidecar is there; both are
    /// waited for at once.
    async fn start_up(&mut self, launched: &mut Launched) -> Result<(Duration, Seat), Cut> {
        let (app, since) = (launched.port.address(), launched.since);
        let progress = Mutex::new(Progress::default());
        let probe = Probe { app, readiness: &self.service.readiness, attempt: self.shared.probing.attempt };
        let passed = async {
            let missed = |miss| progress.lock().miss = Some(miss);
            probe.until_passed(&self.shared.crowd, missed).await;
            let took = since.elapsed();
            progress.lock().passed = true;
            Ok(took)
        };
        let mut wish = self.wish.clone();
        let both = async { tokio::try_join!(passed, self.ask_for_seat(app)) };
        tokio::select! {
            biased;
            end = launched.process.ended() => Err(Cut::Ended(end)),
            () = drain::wished(&mut wish) => Err(Cut::Stop),
            outcome = timeout(self.service.start_timeout, both) => match outcome {
                Ok(Ok(both)) => Ok(both),
                Ok(Err(error)) => Err(Cut::Useless(self.without_seat(&error))),
                Err(_) => Err(Cut::Useless(self.too_slow(launched, &progress.lock()))),
            },
        }
    }

    async fn ask_for_seat(&self, app: SocketAddr) -> io::Result<Seat> {
        let (reply, seat) = oneshot::channel();
        let request = SeatRequest {
            pod: Arc::clone(&self.name),
            revision: self.service.revision.clone(),
            app,
            spec: Arc::clone(&self.service.spec),
            reply,
        };
        let gone = || io::Error::new(io::ErrorKind::BrokenPipe, "nobody makes sidecars any more");
        self.shared.links.seats.send(request).await.map_err(|_| gone())?;
        seat.await.unwrap_or_else(|_| Err(gone()))
    }

    /// Tells that the pod is ready, and keeps asking where that was agreed,
    /// until something ends it.
    async fn while_ready(&self, launched: &mut Launched, seat: &mut Seat, start_took: Duration) -> Cut {
        let ready = || Note::Ready { address: seat.address, start_took };
        info!(
            pod = %self.name, pid = launched.process.pid(), port = launched.port.number(),
            took_ms = start_took.as_secs_f64() * 1e3, "pod ready"
        );
        self.note(ready()).await;
        let app = launched.port.address();
        let mut wish = self.wish.clone();
        let asking = self.keep_asking(app, &ready);
        tokio::select! {
            biased;
            end = launched.process.ended() => Cut::Ended(end),
            () = drain::wished(&mut wish) => Cut::Stop,
            _ = &mut seat.ended => Cut::Useless(Failure {
                kind: TroubleKind::StartFailed,
                text: format!("the sidecar of pod {} ended by itself", self.name),
            }),
            never = asking => match never {},
        }
    }

    async fn keep_asking(&self, app: SocketAddr, ready: &impl Fn() -> Note) -> std::convert::Infallible {
        let readiness = &self.service.readiness;
        let probing = &self.shared.probing;
        if *readiness == super::Readiness::Tcp {
            return std::future::pending().await;
        }
        let probe = Probe { app, readiness, attempt: probing.attempt };
        let mut missed = 0_u32;
        loop {
            let unready = missed >= probing.failures;
            sleep(if unready { probing.period.min(UNREADY_PERIOD) } else { probing.period }).await;
            match probe.once().await {
                Ok(()) => {
                    missed = 0;
                    if unready {
                        info!(pod = %self.name, "pod ready again");
                        self.note(ready()).await;
                    }
                }
                Err(miss) => {
                    missed = missed.saturating_add(1);
                    if missed == probing.failures {
                        warn!(pod = %self.name, %miss, "pod not ready any more");
                        self.note(Note::Unready).await;
                    }
                }
            }
        }
    }

    async fn crashed(&mut self, mut launched: Launched, end: End, was_ready: bool) {
        let kind = TroubleKind::StartFailed;
        let exit = match end {
            End::Failed(text) => {
                return self.failed(Failure { kind, text: text.to_string() }).await;
            }
            End::Exited(exit) => exit,
        };
        let ran = launched.since.elapsed();
        // Whatever outlived its first process is killed before the next start.
        launched.process.stop(Duration::ZERO).await;
        if exit == Exit::Lost {
            // Not the app's doing: started again at once, and not held against it.
            return;
        }
        launched.finish_output().await;
        let (command, last_words) = (&launched.command, launched.last_words());
        let exit = words::exit(exit);
        let text = format!("`{command}` {exit} after {ran:.1?}{last_words}");
        warn!(pod = %self.name, "{text}");
        self.failures = self.failures.saturating_add(1);
        self.failed_starts = if was_ready { 0 } else { self.failed_starts.saturating_add(1) };
        if self.failed_starts >= CRASHES {
            let text = format!("{text} ({} times in a row)", self.failed_starts);
            self.note(Note::Failed(Failure { kind, text })).await;
        }
    }

    async fn failed(&mut self, failure: Failure) {
        warn!(pod = %self.name, "{}", failure.text);
        self.failures = self.failures.saturating_add(1);
        self.note(Note::Failed(failure)).await;
    }

    fn without_seat(&self, error: &io::Error) -> Failure {
        let text = format!("pod {} got no sidecar: {error}", self.name);
        Failure { kind: TroubleKind::StartFailed, text }
    }

    fn too_slow(&self, launched: &Launched, progress: &Progress) -> Failure {
        let limit = self.service.start_timeout;
        let (command, port) = (&launched.command, launched.port.number());
        let text = match (progress.passed, &self.service.readiness, progress.miss) {
            (true, ..) => format!("pod {} got no sidecar within {limit:?}", self.name),
            (_, _, None) => format!("`{command}` did not answer at port {port} within {limit:?}"),
            (_, super::Readiness::Tcp, Some(miss)) => {
                format!("`{command}` did not open port {port} within {limit:?}: {miss}")
            }
            (_, super::Readiness::Http(path), Some(miss)) => {
                format!("`{command}` did not pass GET {path} at port {port} within {limit:?}: {miss}")
            }
        };
        let text = text + &launched.last_words();
        Failure { kind: TroubleKind::StartTimeout, text }
    }

    async fn note(&self, note: Note) {
        // Refused only when the reconciler is gone, and with it all pods.
        let (revision, pod) = (self.service.revision.clone(), Arc::clone(&self.name));
        let _ = self.notes.send(Told { revision, pod, note }).await;
    }
}

/// How often an unready pod is asked, at most; a ready one is asked less.
const UNREADY_PERIOD: Duration = Duration::from_millis(100);

/// How far a start has come, for the text should it take too long.
#[derive(Debug, Default)]
struct Progress {
    passed: bool,
    miss: Option<Miss>,
}
