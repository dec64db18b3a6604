//! From the environment to settings: each variable once, by its name.
//!
//! Names and forms are the reference's, ours begin with `ZEROSCALE_`. All
//! faults are collected and told together.

mod domain;
#[cfg(test)]
mod tests;

use crate::config::{Cluster, Config};
use crate::link;
use observe::config::{Metrics, Tracing};
use observe::{Component, Identity};
use plumbing::duration;
use plumbing::env::Env;
use plumbing::http1::Http1;
use plumbing::telemetry::Format;
use plumbing::tls;
use plumbing::trust::{Ranges, Trust};
use policy::compat::Compat;
use policy::mesh::MeshMode;
use policy::probing;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The reference's constants.
const HTTP: u16 = 8012;
const HTTP2: u16 = 8013;
const HTTPS: u16 = 8112;
const PROFILING: u16 = 8008;
const METRICS: u16 = 9090;
const AUTOSCALER: u16 = 8080;
const SETTLE: Duration = Duration::from_secs(45);
/// Those who wait still are told so this long after the listeners have closed:
/// early enough for the 600 s that a pod has to end.
const DRAIN_WAIT: Duration = Duration::from_secs(120);
/// Threads that serve requests, where nothing is said: the cores, at most.
const WORKERS_MAX: usize = 4;

/// Whom stats and pokes go to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Autoscaler {
    /// The reference's, or one like it: `HOST:PORT`, also after `ws://`.
    Websocket(link::Settings),
    /// One of ours at this address, which gives receipts: `grpc://HOST:PORT`.
    Stream(String),
}

/// What the binary is told.
#[derive(Clone)]
pub struct Settings {
    /// Of the activator itself.
    pub config: Config,
    /// Its own namespace, name and address, as what it is observed is told.
    pub identity: Identity,
    /// What is told of its requests.
    pub observe: observe::Config,
    /// What it listens on.
    pub ports: Ports,
    /// TLS of the port for that; `None` when there are no certificates.
    pub tls: Option<tls::Settings>,
    /// Whom it reports to.
    pub autoscaler: Autoscaler,
    /// Where its snapshots come from.
    pub platform: Platform,
    /// Whose HTTP/1 it speaks (`ZEROSCALE_HTTP1`).
    pub http1: Http1,
    /// Threads that serve requests.
    pub workers: usize,
    /// How long it goes on as before when it has been asked to end.
    pub settle: Duration,
    /// How its log is written.
    pub log: (Format, tracing::Level),
}

/// Where snapshots come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Platform {
    /// A YAML file (`file:PATH`).
    File(PathBuf),
}

/// Addresses of the listeners. Port 0 lets the system choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    /// The address they are all on (`ZEROSCALE_BIND`); unset: every one.
    pub bind: IpAddr,
    /// Requests (8012; `ZEROSCALE_HTTP_PORT`).
    pub http: u16,
    /// The same (8013; `ZEROSCALE_HTTP2_PORT`): only the number differs.
    pub http2: u16,
    /// The same under TLS (8112; `ZEROSCALE_HTTPS_PORT`).
    pub https: u16,
    /// `PROFILING_PORT`: where the reference answers 404.
    pub profiling: u16,
    /// `METRICS_PROMETHEUS_PORT`; `None` = nowhere.
    pub metrics: Option<u16>,
}

impl Ports {
    /// Where to listen on one of them.
    pub fn address(&self, port: u16) -> SocketAddr {
        SocketAddr::new(self.bind, port)
    }
}

/// Reads all settings. Whatever stands in faulty variables is replaced, so
/// that one run finds all faults: use the result only if `env` has none.
/// `resolver` is what stands in `/etc/resolv.conf`.
pub fn read(env: &mut Env, resolver: &str) -> Settings {
    let compat = compat(env);
    let pod = required_name(env, "POD_NAME", compat);
    let pod_ip = required_name(env, "POD_IP", compat);
    let namespace = required_name(env, "SYSTEM_NAMESPACE", compat);
    let domain = match env.text("CLUSTER_DOMAIN") {
        text if text.is_empty() => domain::of_resolver(resolver),
        text => text,
    };
    let mut config = Config::new(pod, trust(env, compat));
    config.compat = compat;
    config.drain_wait = Some(DRAIN_WAIT);
    config.cluster =
        Some(Cluster { domain: domain.as_str().into(), address: address(&pod_ip).into(), probing: probing(env) });
    bounds(env, &mut config);
    let websocket = |autoscaler| Autoscaler::Websocket(link::Settings { autoscaler, compat });
    let autoscaler = env
        .own("ZEROSCALE_AUTOSCALER", |text| match text.strip_prefix("grpc://") {
            Some(rest) => authority(rest).map(Autoscaler::Stream),
            None => authority(text.strip_prefix("ws://").unwrap_or(text)).map(websocket),
        })
        .unwrap_or_else(|| websocket(format!("autoscaler.{namespace}.svc.{domain}:{AUTOSCALER}")));
    idle_connections(env);
    let observe = observability(env);
    let identity = Identity {
        namespace: namespace.into(),
        pod: config.pod_name.clone(),
        pod_ip: pod_ip.into(),
        ..Identity::default()
    };
    Settings {
        config,
        identity,
        ports: ports(env, compat, &observe.metrics),
        observe,
        tls: certificates(env, compat),
        autoscaler,
        platform: platform(env),
        http1: Http1::read(env),
        workers: env.own("ZEROSCALE_WORKERS", workers).unwrap_or_else(cores),
        settle: env.duration("ZEROSCALE_DRAIN_SETTLE").unwrap_or(SETTLE),
        log: log(env),
    }
}

fn compat(env: &mut Env) -> Compat {
    let read = |text: &str| match text {
        "strict" => Ok(Compat::Strict),
        "better" => Ok(Compat::Better),
        _ => Err(format!("`{text}` is neither `strict` nor `better`")),
    };
    env.own("ZEROSCALE_COMPAT", read).unwrap_or_default()
}

/// What identifies something: the reference takes an empty one.
fn required_name(env: &mut Env, name: &str, compat: Compat) -> String {
    let text = env.required(name);
    if text.is_empty() && env.raw(name).is_some() && compat == Compat::Better {
        env.fault(format!("{name}: must not be empty"));
    }
    text
}

/// Who is believed. A stock deployment sets neither list, so unset means all:
/// whoever reaches an activator of a cluster is an ingress, a kubelet or a
/// controller.
fn trust(env: &mut Env, compat: Compat) -> Trust {
    let mut list = |name| env.own(name, str::parse::<Ranges>).unwrap_or_else(Ranges::everybody);
    let trust = Trust { peers: list("ZEROSCALE_TRUSTED_PEERS"), proxies: list("ZEROSCALE_TRUSTED_PROXIES") };
    if compat == Compat::Strict { Trust::everybody() } else { trust }
}

fn probing(env: &mut Env) -> probing::Settings {
    let usual = probing::Settings::default();
    probing::Settings {
        mesh: env.own("ZEROSCALE_MESH", mesh).unwrap_or_default(),
        passthrough: env.flag("ZEROSCALE_POD_ADDRESSABILITY"),
        every: reference_duration(env, "PROBE_FREQUENCY").unwrap_or(usual.every),
        answer_max: reference_duration(env, "PROBE_TIMEOUT").unwrap_or(usual.answer_max),
        ..usual
    }
}

fn mesh(text: &str) -> Result<MeshMode, String> {
    match text {
        "auto" | "enabled" | "disabled" => Ok(MeshMode::from_setting(text)),
        _ => Err(format!("`{text}` is neither `auto` nor `enabled` nor `disabled`")),
    }
}

/// In the form in which addresses are listed, if it is one.
fn address(text: &str) -> String {
    text.parse::<IpAddr>().map_or_else(|_| text.to_owned(), |address| address.to_string())
}

fn bounds(env: &mut Env, config: &mut Config) {
    for (name, bound) in [
        ("ZEROSCALE_HELD_MAX", &mut config.held_per_revision_max),
        ("ZEROSCALE_HELD_ALL_MAX", &mut config.held_max),
        ("ZEROSCALE_HELD_BYTES_MAX", &mut config.held_bytes_per_revision_max),
        ("ZEROSCALE_HELD_BYTES_ALL_MAX", &mut config.held_bytes_max),
    ] {
        if let Some(most) = env.own_form::<usize>(name, "number") {
            *bound = most;
        }
    }
    config.wakes_per_caller_max = env.own_form::<u32>("ZEROSCALE_WAKES_PER_CALLER", "number");
    config.charge_wait = env.flag("ZEROSCALE_CHARGE_WAIT");
    if let Some(limit) = env.duration("ZEROSCALE_WAIT_LIMIT") {
        config.wait_max = limit;
    }
    if let Some(limit) = env.duration("ZEROSCALE_DRAIN_WAIT") {
        config.drain_wait = Some(limit);
    }
    if let Some(limit) = env.duration("ZEROSCALE_DRAIN_TUNNEL_TIMEOUT") {
        config.tunnel_timeout = limit;
    }
}

/// What is told of requests. A trace goes on where that is asked for, also if
/// nothing of it is recorded here.
fn observability(env: &mut Env) -> observe::Config {
    let goes_on = env.own("ZEROSCALE_TRACE_CONTEXT", |text| match text {
        "pass" => Ok(false),
        "continue" => Ok(true),
        _ => Err(format!("`{text}` is neither `pass` nor `continue`")),
    });
    let variable = |name: &str| env.raw(name).map(str::to_owned);
    let read = observe::Config::parse(Component::Activator, &env.text("OBSERVABILITY_CONFIG"), variable);
    let mut config = read.unwrap_or_else(|faults| {
        faults.into_iter().for_each(|fault| env.fault(fault));
        observe::Config::default()
    });
    if goes_on == Some(true) && config.tracing == Tracing::Off {
        config.tracing = Tracing::Unrecorded;
    }
    config
}

fn ports(env: &mut Env, compat: Compat, metrics: &Metrics) -> Ports {
    let metrics = match metrics {
        // That variable has been read with it.
        Metrics::Prometheus(listener) => Some(listener.port),
        Metrics::Off | Metrics::Otlp { .. } => env.own_form("METRICS_PROMETHEUS_PORT", "port"),
    };
    // The reference has that port only where a config map says so.
    let unset = if compat == Compat::Strict { None } else { Some(METRICS) };
    let ports = Ports {
        bind: env.own_form("ZEROSCALE_BIND", "IP address").unwrap_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED)),
        http: env.own_form("ZEROSCALE_HTTP_PORT", "port").unwrap_or(HTTP),
        http2: env.own_form("ZEROSCALE_HTTP2_PORT", "port").unwrap_or(HTTP2),
        https: env.own_form("ZEROSCALE_HTTPS_PORT", "port").unwrap_or(HTTPS),
        profiling: env.own_form("PROFILING_PORT", "port").unwrap_or(PROFILING),
        metrics: metrics.or(unset),
    };
    let named = [
        ("ZEROSCALE_HTTP_PORT", Some(ports.http)),
        ("ZEROSCALE_HTTP2_PORT", Some(ports.http2)),
        ("ZEROSCALE_HTTPS_PORT", Some(ports.https)),
        ("PROFILING_PORT", Some(ports.profiling)),
        ("METRICS_PROMETHEUS_PORT", ports.metrics),
    ];
    for (place, (name, port)) in named.iter().enumerate() {
        let earlier = named[..place].iter().find(|(_, other)| port.is_some_and(|port| port > 0) && other == port);
        if let (Some((taken, _)), Some(port)) = (earlier, port) {
            env.fault(format!("{name}: {port} is taken by {taken}"));
        }
    }
    ports
}

fn certificates(env: &mut Env, compat: Compat) -> Option<tls::Settings> {
    let folder = env.text("ZEROSCALE_CERT_DIR");
    (!folder.is_empty()).then(|| tls::variables::read(env, "ACTIVATOR", Path::new(&folder), compat))
}

fn platform(env: &mut Env) -> Platform {
    const NAME: &str = "ZEROSCALE_PLATFORM";
    let read = |text: &str| match text.strip_prefix("file:") {
        Some(path) if !path.is_empty() => Ok(Platform::File(path.into())),
        _ => Err(format!("`{text}` is no platform of this build, such as file:PATH")),
    };
    let missing = env.raw(NAME).is_none_or(str::is_empty);
    if missing {
        env.fault(format!("required key {NAME} missing value"));
    }
    env.own(NAME, read).unwrap_or_else(|| Platform::File(PathBuf::new()))
}

fn authority(text: &str) -> Result<String, String> {
    let port =
        text.rsplit_once(':').filter(|(host, _)| !host.is_empty()).and_then(|(_, port)| port.parse::<u16>().ok());
    port.map(|_| text.to_owned()).ok_or_else(|| format!("`{text}` is no HOST:PORT"))
}

fn workers(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count @ 1..) => Ok(count),
        _ => Err(format!("`{text}` is no number of threads")),
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(WORKERS_MAX)
}

/// A duration in a variable of the reference, which may not be empty.
fn reference_duration(env: &mut Env, name: &str) -> Option<Duration> {
    match env.raw(name).map(duration::parse)? {
        Ok(span) => Some(span),
        Err(fault) => {
            env.fault(format!("{name}: {fault}"));
            None
        }
    }
}

/// They are read so that a fault in them is told; how many connections are
/// kept is ours to say.
fn idle_connections(env: &mut Env) {
    for name in ["MAX_IDLE_PROXY_CONNS", "MAX_IDLE_PROXY_CONNS_PER_HOST"] {
        let _ = env.int(name);
    }
}

fn log(env: &mut Env) -> (Format, tracing::Level) {
    let format = env.own("ZEROSCALE_LOG_FORMAT", |text| match text {
        "json" => Ok(Format::Json),
        "text" => Ok(Format::Text),
        _ => Err(format!("`{text}` is neither `json` nor `text`")),
    });
    let level = env.own_form("ZEROSCALE_LOG_LEVEL", "log level");
    (format.unwrap_or(Format::Json), level.unwrap_or(tracing::Level::INFO))
}
