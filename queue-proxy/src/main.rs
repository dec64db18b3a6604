//! The sidecar as a program: environment, listeners, signals, exit code.
//!
//! One worker on the main thread: the app beside it wants the cores.

use observe::config::Metrics;
use observe::{Component, Sending, Setup};
use plumbing::env::Env;
use plumbing::fds::{self, Budget};
use plumbing::listen::listen;
use plumbing::shutdown::Shutdown;
use plumbing::signals::Signals;
use plumbing::tls::Acceptor;
use plumbing::worker::Worker;
use plumbing::{clock, duration};
use queue_proxy::env::{self, Ports, Settings};
use queue_proxy::process_log::ProcessLog;
use queue_proxy::{Links, Sockets};
use std::io::Write;
use std::net::SocketAddr;
use std::process::ExitCode;
use tokio::net::TcpListener;

/// What the log calls the build.
const COMMIT: &str = env!("CARGO_PKG_VERSION");

fn main() -> ExitCode {
    // The clock's anchor: before anything is measured.
    let _ = clock::now();
    let mut env = Env::new(std::env::vars_os());
    let settings = env::read(&mut env, |file| file.is_file());
    let settings = match env.finish(settings) {
        Ok(settings) => settings,
        Err(faults) => {
            let _ = write!(std::io::stderr(), "{faults}");
            return ExitCode::FAILURE;
        }
    };
    let (log, fault) = ProcessLog::new(&settings.log.config, &settings.log.level, &settings.identity, COMMIT);
    log.install();
    if let Some(fault) = fault {
        tracing::warn!(error = fault, "the logging configuration is of no use; the default one is");
    }
    match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => {
            let code = runtime.block_on(serve(settings));
            // A name that is being looked up would hold the end otherwise.
            runtime.shutdown_background();
            code
        }
        Err(error) => not_brought_up(&error.to_string()),
    }
}

/// Serves until a signal, drains, and is done; a second signal ends at once.
async fn serve(settings: Settings) -> ExitCode {
    tracing::info!("Starting queue-proxy");
    let (mut signals, sockets) = match (Signals::new(), bind(&settings)) {
        (Ok(signals), Ok(sockets)) => (signals, sockets),
        (Err(error), _) => return not_brought_up(&error.to_string()),
        (_, Err(error)) => return not_brought_up(&error),
    };
    let app = settings.config.app;
    let setup = Setup {
        component: Component::Sidecar,
        who: settings.identity,
        compat: settings.config.compat,
        app: Some((app.ip().to_string(), app.port())),
    };
    let telemetry = Sending::start(settings.observe, setup);
    let budget = fds::raise().map_or_else(|_| Budget::unlimited(), |(_, budget)| budget);
    let shutdown = Shutdown::new();
    let worker = Worker::with(&shutdown, budget, settings.http1);
    let links = Links { stats: None, observer: telemetry.observer.clone(), worker };
    let quiet = settings.config.drain.quiet;
    let mut running = std::pin::pin!(queue_proxy::run(settings.config, sockets, links, shutdown.clone()));
    tokio::select! {
        () = &mut running => return not_brought_up("the sidecar ended by itself"),
        _ = signals.next() => {}
    }
    tracing::info!("Received TERM signal, attempting to gracefully shutdown servers.");
    tracing::info!("Sleeping {} to allow K8s propagation of non-ready state", duration::text(quiet));
    shutdown.drain();
    let ended = async {
        running.await;
        tracing::info!("Shutdown complete, exiting...");
        telemetry.end().await;
    };
    tokio::select! {
        () = ended => ExitCode::SUCCESS,
        _ = signals.next() => ExitCode::FAILURE,
    }
}

/// The port of the user metrics. That it cannot be had is no reason not to
/// serve requests, as in the reference.
fn user_metrics(ports: &Ports, metrics: &Metrics) -> Option<TcpListener> {
    let Metrics::Prometheus(wanted) = metrics else { return None };
    if wanted.tls.is_some() {
        tracing::error!(
            "METRICS_PROMETHEUS_TLS_CERT: this build serves no TLS here; the user metrics port stays closed"
        );
        return None;
    }
    let listener = wanted.address(ports.bind).and_then(|address| open("user-metrics", address));
    listener.inspect_err(|error| tracing::error!(error, "the user metrics port stays closed")).ok()
}

fn not_brought_up(error: &str) -> ExitCode {
    tracing::error!(error, "Failed to bring up queue-proxy, shutting down.");
    ExitCode::FAILURE
}

/// All listeners, or the first that cannot be had, in words. The main one comes
/// last: whoever finds it open finds all of them.
fn bind(settings: &Settings) -> Result<Sockets, String> {
    let ports = &settings.ports;
    let admin = open("admin", ports.address(ports.admin))?;
    let autometric = open("metrics", ports.address(ports.autometric))?;
    let lease = |port| open("lease", SocketAddr::new(ports.lease_ip(), port));
    let lease = ports.lease.map(lease).transpose()?;
    let user_metrics = user_metrics(ports, &settings.observe.metrics);
    let serving_tls = |tls| {
        let acceptor = Acceptor::new(tls).map_err(|error| format!("main-tls server failed to serve: {error}"))?;
        Ok::<_, String>((open("main-tls", ports.address(ports.serving_tls))?, acceptor))
    };
    let serving_tls = settings.tls.as_ref().map(serving_tls).transpose()?;
    let mut sockets = Sockets::serving(open("main", ports.address(ports.serving))?);
    (sockets.admin, sockets.autometric, sockets.lease) = (Some(admin), Some(autometric), lease);
    (sockets.user_metrics, sockets.serving_tls) = (user_metrics, serving_tls);
    Ok(sockets)
}

fn open(name: &str, address: SocketAddr) -> Result<TcpListener, String> {
    let fault =
        |error: std::io::Error| format!("{name} server failed to serve: listen tcp :{}: bind: {error}", address.port());
    let listener = listen(address).map_err(fault)?;
    let port = listener.local_addr().map_err(fault)?.port();
    tracing::info!("Starting http server {name}:{port}");
    Ok(listener)
}
