//! The autoscaler as a program of its own: settings, ports, signals, exit
//! code.
//!
//! | job | module |
//! | --- | --- |
//! | environment and flags | [`settings`] |
//! | how stats come, beside our own stream | [`transports`] |
//! | health, status, metrics | [`admin`] |

mod admin;
mod settings;
mod transports;

use autoscaler::stat_server::Sinks;
use autoscaler::{Autoscaler, Links, collect, forward, ingest, stat_server, state};
use platform::file;
use plumbing::fds::Budget;
use plumbing::shutdown::Shutdown;
use plumbing::stats::{StatSink, StatSource};
use plumbing::{clock, fds, listen, metrics, side, stats, telemetry};
use settings::{Asked, Settings};
use std::io::Write;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// How long connections and the last orders may take at the end.
const END_MAX: Duration = Duration::from_secs(5);

fn main() -> ExitCode {
    // The clock's anchor: before anything is measured.
    let _ = clock::now();
    let settings = match settings::read(std::env::args_os().skip(1), std::env::vars_os()) {
        Ok(Asked::Run(settings)) => settings,
        Ok(Asked::Help(text)) => {
            let _ = write!(std::io::stdout(), "{text}");
            return ExitCode::SUCCESS;
        }
        Err(faults) => {
            let _ = write!(std::io::stderr(), "{faults}");
            return ExitCode::FAILURE;
        }
    };
    telemetry::install(settings.log.0, settings.log.1);
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return not_brought_up(&error.to_string()),
    };
    let code = runtime.block_on(serve(*settings)).unwrap_or_else(|error| not_brought_up(&error));
    // A disc that hangs would hold the end otherwise.
    runtime.shutdown_background();
    code
}

fn not_brought_up(error: &str) -> ExitCode {
    tracing::error!(error, "the autoscaler cannot be brought up");
    ExitCode::FAILURE
}

async fn serve(settings: Settings) -> Result<ExitCode, String> {
    let mut signals = Signals::new().map_err(|error| error.to_string())?;
    let reports = open("stats", settings.stats)?;
    let websockets = open("websockets", settings.transports.websocket)?;
    let profiling = open("profiling", settings.transports.profiling)?;
    let asked = open("admin", settings.admin)?;
    // First: a handle that is made before it counts nothing.
    let recorder = metrics::install()?;
    let budget = fds::raise().map_or_else(|_| Budget::unlimited(), |(_, budget)| budget);

    let shutdown = Shutdown::new();
    let platform_stop = CancellationToken::new();
    let source = file::Source { path: settings.snapshots, now: clock::now };
    let snapshots = file::snapshots(source, platform_stop.clone());
    let (orders, written) = file::orders(settings.orders, platform_stop.clone());
    let alone = settings.transports.owners == forward::Owners::default();
    let (owners, owned) = watch::channel(Arc::new(settings.transports.owners));
    let (sinks, stats) = to_decisions(alone, &owned, &shutdown);
    let compat = settings.config.compat;
    let autoscaler = Autoscaler::new(settings.config).among(owned.clone());
    let keeping = settings.state.map(|path| {
        state::restore(&autoscaler, &path);
        tokio::spawn(state::keep(autoscaler.clone(), path, shutdown.clone()))
    });
    let intake = match alone {
        true => ingest::Intake::Decisions(autoscaler.clone(), orders.clone()),
        false => sinks.direct.clone().into(),
    };
    let links = Links { world: snapshots.world.clone(), orders, stats };
    let deciding = tokio::spawn(autoscaler::run(autoscaler.clone(), links, shutdown.clone()));
    tokio::spawn(metrics::upkeep(recorder.clone(), shutdown.clone()));
    if let Some(scrape) = settings.transports.scrape {
        tokio::spawn(collect::run(autoscaler.clone(), scrape, budget, shutdown.clone()));
    }
    let source = admin::Source::new(autoscaler.clone(), &snapshots, recorder);
    let taking = tokio::spawn(ingest::serve(reports, intake, settings.limits, shutdown.clone()));
    let served = stat_server::Settings { limits: settings.transports.limits, compat, owners: owned };
    let serving = tokio::spawn(stat_server::serve(websockets, sinks, served, shutdown.clone()));
    tokio::spawn(side::serve(profiling, shutdown.clone(), |_| async { side::not_found() }));
    let telling = tokio::spawn(side::serve(asked, shutdown.clone(), move |request| source.clone().answer(request)));

    tokio::select! {
        () = signals.next() => {}
        _ = deciding => return Err("the decisions ended by themselves".to_owned()),
        _ = taking => return Err("the ingest ended by itself".to_owned()),
        _ = serving => return Err("the stat server ended by itself".to_owned()),
        _ = telling => return Err("the admin port ended by itself".to_owned()),
        _ = snapshots.ended => return Err("the file is not followed any more".to_owned()),
    }
    tracing::info!("ending");
    // Until now: who owns what is not told any more.
    drop(owners);
    let ended = async {
        // Whoever records gets what there is, and the end.
        autoscaler.end_recordings();
        shutdown.drain();
        let _ = tokio::time::timeout(END_MAX, shutdown.finished()).await;
        shutdown.stop();
        platform_stop.cancel();
        let _ = tokio::time::timeout(END_MAX, written).await;
        if let Some(keeping) = keeping {
            let _ = tokio::time::timeout(END_MAX, keeping).await;
        }
    };
    tokio::select! {
        () = ended => Ok(ExitCode::SUCCESS),
        () = signals.next() => Ok(ExitCode::FAILURE),
    }
}

/// Where stats go: straight to the decisions, or by way of who owns them.
fn to_decisions(
    alone: bool,
    owned: &watch::Receiver<Arc<forward::Owners>>,
    shutdown: &Shutdown,
) -> (Sinks, StatSource) {
    let (local, stats): (StatSink, StatSource) = stats::link();
    if alone {
        return (Sinks { direct: local.clone(), forwarded: local }, stats);
    }
    let ((direct, of_all), (forwarded, of_replicas)) = (stats::link(), stats::link());
    let links = forward::Links { direct: of_all, forwarded: of_replicas, local };
    tokio::spawn(forward::run(links, owned.clone(), shutdown.clone()));
    (Sinks { direct, forwarded }, stats)
}

fn open(name: &str, address: SocketAddr) -> Result<TcpListener, String> {
    let fault = |error: std::io::Error| format!("cannot listen on {address} ({name}): {error}");
    let listener = listen::listen(address).map_err(fault)?;
    let address = listener.local_addr().map_err(fault)?;
    tracing::info!(%address, "listening for {name}");
    Ok(listener)
}

/// TERM and INT, from when it is made.
struct Signals {
    term: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Signals> {
        Ok(Signals { term: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.term.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
