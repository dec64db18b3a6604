//! The wiring of one machine: platform, sidecars, activator, autoscaler.

use crate::seats::Seats;
use crate::settings::Settings;
use activator::Activator;
use anyhow::Context;
use autoscaler::Autoscaler;
use metrics_exporter_prometheus::PrometheusHandle;
use platform::Platform;
use platform::process::{self, GuardCommand};
use plumbing::fds::Budget;
use plumbing::http1::Http1;
use plumbing::shutdown::Shutdown;
use plumbing::worker::Workers;
use plumbing::{clock, metrics, stats};
use policy::collect::Silence;
use policy::world::{Holding, Snapshot};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

/// Sidecars that may be asked for at a time; beyond, starts wait their turn.
const SEATS_ASKED_MAX: usize = 64;
/// Connections that may wait to be accepted (the system's own bound is 4096).
const BACKLOG: u32 = 4096;
/// How long the platform may take to stop all processes, beside the grace
/// that each of them has.
const PLATFORM_MARGIN: Duration = Duration::from_secs(5);

/// Everything that runs.
pub(crate) struct Floor {
    pub(crate) address: SocketAddr,
    pub(crate) activator: Activator,
    pub(crate) autoscaler: Autoscaler,
    pub(crate) world: watch::Receiver<Arc<Snapshot>>,
    front: Shutdown,
    served: tokio::task::JoinHandle<()>,
    platform_stop: CancellationToken,
    platform_ended: tokio::task::JoinHandle<()>,
    control: Shutdown,
    settings: Settings,
    pub(crate) recorder: PrometheusHandle,
    deciding: AbortHandle,
    seating: AbortHandle,
}

/// A part of the floor that runs until the floor ends.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) name: &'static str,
    pub(crate) task: AbortHandle,
}

/// Listens on `address`; nothing else has been started when it fails.
///
/// # Errors
/// When the address cannot be had.
pub(crate) fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Starts everything, on the current runtime and on worker threads.
///
/// # Errors
/// When a thread, the guard or the platform cannot be started.
pub(crate) fn start(
    settings: Settings,
    listener: TcpListener,
    guard: GuardCommand,
    fds: Budget,
) -> anyhow::Result<Floor> {
    let address = listener.local_addr()?;
    // First: a handle that is made before it counts nothing.
    let recorder = metrics::install().map_err(anyhow::Error::msg)?;
    let control = Shutdown::new();
    tokio::spawn(metrics::upkeep(recorder.clone(), control.clone()));
    let workers =
        Workers::start(settings.workers, &control, &fds, Http1::Own).context("starting the worker threads")?;
    let (sink, source) = stats::link();
    let (holding, held) = watch::channel(Arc::new(Holding::default()));

    let (seats, asked) = mpsc::channel(SEATS_ASKED_MAX);
    let makers = Seats::new(workers.clone(), sink.clone(), &settings);
    let seating = tokio::spawn(makers.run(asked)).abort_handle();

    let platform_stop = CancellationToken::new();
    let links = process::Links { seats, holding: held, now: clock::now };
    let mut config = process::Config::new(settings.services.clone(), settings.routes.clone(), guard);
    config.max_pods = settings.max_pods;
    let Platform { world, orders, ended } =
        process::start(config, links, platform_stop.clone()).context("starting the process platform")?;

    let autoscaler = Autoscaler::new(autoscaler::Config {
        compat: settings.compat,
        silence: Silence::Idle,
        ..autoscaler::Config::default()
    });
    let links = autoscaler::Links { world: world.clone(), orders, stats: source };
    let deciding = tokio::spawn(autoscaler::run(autoscaler.clone(), links, control.clone())).abort_handle();

    let front = Shutdown::new();
    let activator = Activator::new(activator_config(&settings), sink, holding);
    let links = activator::Links { world: world.clone(), workers };
    let sockets = activator::Sockets { serving: vec![listener.into()] };
    let served = tokio::spawn(activator::run(activator.clone(), sockets, links, front.clone()));

    Ok(Floor {
        address,
        activator,
        autoscaler,
        world,
        front,
        served,
        platform_stop,
        platform_ended: ended,
        control,
        settings,
        recorder,
        deciding,
        seating,
    })
}

fn activator_config(settings: &Settings) -> activator::Config {
    let mut config = activator::Config::new("activator", settings.trust.clone());
    config.held_per_revision_max = settings.held_max;
    config.held_max = settings.held_all_max;
    config.held_bytes_per_revision_max = settings.held_mib_max.saturating_mul(1 << 20);
    config.held_bytes_max = settings.held_mib_all_max.saturating_mul(1 << 20);
    config.charge_wait = settings.charge_wait;
    config.wakes_per_caller_max = settings.wakes_per_caller;
    config.wait_max = settings.wait_limit;
    config.compat = settings.compat;
    // What waits or is upgraded when the time is over is told so.
    (config.drain_wait, config.tunnel_timeout) = (Some(settings.shutdown_timeout), settings.shutdown_timeout);
    config
}

/// For answers and close frames that are given when the time is over.
const LAST_WORDS: Duration = Duration::from_millis(600);

impl Floor {
    /// What must run for requests to be served.
    pub(crate) fn parts(&self) -> Vec<Part> {
        let part = |name, task: &AbortHandle| Part { name, task: task.clone() };
        vec![
            part("activator", &self.served.abort_handle()),
            part("platform", &self.platform_ended.abort_handle()),
            part("autoscaler", &self.deciding),
            part("maker of sidecars", &self.seating),
        ]
    }

    /// Ends in order: the front, with its requests; the sidecars and the
    /// processes; the autoscaler and the threads.
    pub(crate) async fn stop(self) {
        self.front.drain();
        let mut served = self.served;
        if tokio::time::timeout(self.settings.shutdown_timeout + LAST_WORDS, &mut served).await.is_err() {
            let left = self.front.unfinished();
            tracing::warn!(connections = left, "requests did not end within the shutdown timeout");
            self.front.stop();
            let _ = served.await;
        }
        self.platform_stop.cancel();
        let longest = self.settings.services.iter().map(|service| service.stop_timeout).max().unwrap_or_default();
        if tokio::time::timeout(longest + PLATFORM_MARGIN, self.platform_ended).await.is_err() {
            tracing::warn!("processes did not end in time; the guard kills them");
        }
        self.control.stop();
    }
}
