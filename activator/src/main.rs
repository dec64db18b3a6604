//! The activator as a program: environment, listeners, signals, exit code.

use activator::env::{self, Autoscaler, Platform, Settings};
use activator::link::{self, Reach};
use activator::{Activator, Links, Sockets, uplink};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, Response, StatusCode};
use metrics_exporter_prometheus::PrometheusHandle;
use observe::config::Metrics;
use observe::{Component, Sending, Setup};
use platform::file;
use plumbing::body::Body;
use plumbing::env::Env;
use plumbing::fds::{self, Budget};
use plumbing::listen::listen;
use plumbing::serve::Port;
use plumbing::shutdown::Shutdown;
use plumbing::signals::Signals;
use plumbing::stats::{self, StatSource};
use plumbing::tls::Acceptor;
use plumbing::worker::Workers;
use plumbing::{clock, duration, metrics, side, telemetry};
use policy::world::{Holding, Snapshot};
use std::io::Write;
use std::net::SocketAddr;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// How long the last report may take on its way.
const LAST_REPORT: Duration = Duration::from_secs(1);
/// How long a caller of a side port may hold its end.
const SIDE_PORT_MAX: Duration = Duration::from_millis(200);

fn main() -> ExitCode {
    // The clock's anchor: before anything is measured.
    let _ = clock::now();
    let mut env = Env::new(std::env::vars_os());
    let settings = env::read(&mut env, &std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default());
    let settings = match env.finish(settings) {
        Ok(settings) => settings,
        Err(faults) => {
            let _ = write!(std::io::stderr(), "{faults}");
            return ExitCode::FAILURE;
        }
    };
    let (format, level) = settings.log;
    telemetry::install(format, level);
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
async fn serve(mut settings: Settings) -> ExitCode {
    tracing::info!(version = env!("CARGO_PKG_VERSION"), "starting the activator");
    // Before anybody can know that it runs, and end it.
    let mut signals = match Signals::new() {
        Ok(signals) => signals,
        Err(error) => return not_brought_up(&error.to_string()),
    };
    let (who, compat) = (settings.identity.clone(), settings.config.compat);
    let setup = Setup { component: Component::Activator, who, compat, app: None };
    let telemetry = Sending::start(settings.observe.clone(), setup);
    settings.config.observer = telemetry.observer.clone();
    let running = match start(&settings) {
        Ok(running) => running,
        Err(error) => return not_brought_up(&error),
    };
    let _ = signals.next().await;
    tracing::info!(settle = duration::text(settings.settle), "asked to end: going on until nobody sends requests here");
    running.activator.terminate();
    // The last message has what it counted: it must be there until then.
    let counted = running.activator.clone();
    let ended = async {
        sleep(settings.settle).await;
        running.end().await;
        telemetry.end().await;
        drop(counted);
    };
    tokio::select! {
        () = ended => ExitCode::SUCCESS,
        _ = signals.next() => ExitCode::FAILURE,
    }
}

/// Everything that runs.
struct Running {
    activator: Activator,
    serving: tokio::task::JoinHandle<()>,
    linked: tokio::task::JoinHandle<()>,
    /// Stages of the end, in their order.
    requests: Shutdown,
    link: Shutdown,
    side_ports: Shutdown,
    workers: Shutdown,
}

impl Running {
    /// Listeners close and what runs finishes; then what is left goes to the
    /// autoscaler; the side ports answer until the last.
    async fn end(self) {
        tracing::info!("draining");
        self.requests.drain();
        let _ = self.serving.await;
        self.link.drain();
        let _ = timeout(LAST_REPORT, self.linked).await;
        self.side_ports.drain();
        let _ = timeout(SIDE_PORT_MAX, self.side_ports.finished()).await;
        self.side_ports.stop();
        self.workers.stop();
        tracing::info!("ended");
    }
}

/// Starts everything, or says what could not be had. Listeners open before the
/// autoscaler is reached: only the health answer waits for that.
fn start(settings: &Settings) -> Result<Running, String> {
    // First: a handle that is made before it counts nothing.
    let recorder = metrics::install()?;
    let ports = &settings.ports;
    let mut serving: Vec<Port> = Vec::new();
    for (name, port) in [("http", ports.http), ("http2", ports.http2)] {
        serving.push(open(name, ports.address(port))?.into());
    }
    if let Some(tls) = &settings.tls {
        let acceptor = Acceptor::new(tls).map_err(|error| format!("https: {error}"))?;
        serving.push(Port::with_tls(open("https", ports.address(ports.https))?, acceptor));
    }
    let profiling = open("profiling", ports.address(ports.profiling))?;
    let page = page_address(settings)?.map(|address| open("metrics", address)).transpose()?;
    let (requests, link, side_ports, workers) = (Shutdown::new(), Shutdown::new(), Shutdown::new(), Shutdown::new());
    let budget = fds::raise().map_or_else(|_| Budget::unlimited(), |(_, budget)| budget);
    let threads =
        Workers::start(settings.workers, &workers, &budget, settings.http1).map_err(|error| error.to_string())?;
    let (holding, _) = watch::channel(Arc::new(Holding::default()));
    let (sink, source) = stats::link();
    let activator = Activator::new(settings.config.clone(), sink, holding);
    let (reach, reached) = watch::channel(Reach::NeverYet);
    activator.reaches(reached);
    let linked = match settings.autoscaler.clone() {
        Autoscaler::Websocket(settings) => tokio::spawn(link::run(settings, source, reach, link.clone())),
        Autoscaler::Stream(address) => tokio::spawn(stream(address, source, reach, link.clone())),
    };
    tokio::spawn(metrics::upkeep(recorder.clone(), workers.clone()));
    tokio::spawn(side::serve(profiling, side_ports.clone(), |_| async { side::not_found() }));
    if let Some(listener) = page {
        let activator = activator.clone();
        tokio::spawn(side::serve(listener, side_ports.clone(), move |request| {
            let answer = exposition(request.method(), request.uri().path(), &recorder, &activator);
            async move { answer }
        }));
    }
    let links = Links { world: world(&settings.platform, &workers), workers: threads };
    let serving = tokio::spawn(activator::run(activator.clone(), Sockets { serving }, links, requests.clone()));
    Ok(Running { activator, serving, linked, requests, link, side_ports, workers })
}

/// Where the page of metrics is served.
fn page_address(settings: &Settings) -> Result<Option<SocketAddr>, String> {
    let ports = &settings.ports;
    match &settings.observe.metrics {
        Metrics::Prometheus(wanted) if wanted.tls.is_some() => {
            tracing::error!(
                "METRICS_PROMETHEUS_TLS_CERT: this build serves no TLS here; the metrics port stays closed"
            );
            Ok(None)
        }
        Metrics::Prometheus(wanted) => wanted.address(ports.bind).map(Some),
        Metrics::Off | Metrics::Otlp { .. } => Ok(ports.metrics.map(|port| ports.address(port))),
    }
}

/// Stats by the stream that our autoscaler gives receipts for.
async fn stream(autoscaler: String, source: StatSource, reach: watch::Sender<Reach>, link: Shutdown) {
    let (tell, mut connected) = watch::channel(false);
    let mut sending = pin!(uplink::run(autoscaler, source, tell, async move { link.draining().await }));
    loop {
        tokio::select! {
            () = &mut sending => return,
            Ok(()) = connected.changed() => {
                let up = *connected.borrow_and_update();
                reach.send_replace(if up { Reach::Up } else { Reach::Lost });
            }
        }
    }
}

/// Where snapshots come from; followed until `stop` stops.
fn world(platform: &Platform, stop: &Shutdown) -> watch::Receiver<Arc<Snapshot>> {
    match platform {
        Platform::File(path) => {
            let (over, stop) = (CancellationToken::new(), stop.clone());
            let ended = over.clone();
            tokio::spawn(async move {
                stop.stopping().await;
                ended.cancel();
            });
            file::snapshots(file::Source { path: path.clone(), now: clock::now }, over).world
        }
    }
}

fn exposition(method: &Method, path: &str, recorder: &PrometheusHandle, activator: &Activator) -> Response<Body> {
    if path != "/metrics" {
        return side::not_found();
    }
    if method != Method::GET {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
        return response;
    }
    let text = recorder.render() + &activator.exposition();
    let mut response = Response::new(Body::full(Bytes::from(text)));
    let plain = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}

fn open(name: &str, address: SocketAddr) -> Result<TcpListener, String> {
    let fault = |error: std::io::Error| format!("{name}: cannot listen on {address}: {error}");
    let listener = listen(address).map_err(fault)?;
    let address = listener.local_addr().map_err(fault)?;
    tracing::info!(name, %address, "listening");
    Ok(listener)
}

fn not_brought_up(error: &str) -> ExitCode {
    tracing::error!(error, "the activator cannot be brought up");
    ExitCode::FAILURE
}
