//! From the environment to settings: each variable once, by its name.
//!
//! Names and forms are the reference's, ours begin with `ZEROSCALE_`. All
//! faults are collected and told together. The default mode also refuses what
//! the reference takes although it cannot work, such as an empty `USER_PORT`.

mod ports;
#[cfg(test)]
mod tests;

pub use ports::Ports;

use crate::config::{Config, QUEUE_DEPTH_PER_SLOT};
use crate::readiness::Readiness;
use observe::{Component, Identity};
use plumbing::env::Env;
use plumbing::http1::Http1;
use plumbing::trust::{Ranges, Trust};
use policy::compat::Compat;
use policy::drain::Rules;
use policy::revision::{NO_LIMIT, RevisionId, Timeouts};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

/// Where the controller mounts certificates.
const CERT_DIR: &str = "/var/lib/knative/certs";

/// What the binary is told.
#[derive(Clone)]
pub struct Settings {
    /// Of the sidecar itself.
    pub config: Config,
    /// What it listens on.
    pub ports: Ports,
    /// TLS of the main port; `None` when there are no certificates.
    pub tls: Option<plumbing::tls::Settings>,
    /// Who the sidecar is, for telemetry.
    pub identity: Identity,
    /// What is told of requests, and to whom.
    pub observe: observe::Config,
    /// Whose HTTP/1 it speaks (`ZEROSCALE_HTTP1`).
    pub http1: Http1,
    /// How the process's log is written.
    pub log: Log,
}

/// The process's log, as the controller describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// `SERVING_LOGGING_CONFIG`: JSON, or empty.
    pub config: String,
    /// `SERVING_LOGGING_LEVEL`: a level, or empty.
    pub level: String,
}

/// Reads all settings. Whatever stands in faulty variables is replaced, so
/// that one run finds all faults: use the result only if `env` has none.
/// `exists` tells whether a file is there.
pub fn read(env: &mut Env, exists: impl Fn(&Path) -> bool) -> Settings {
    let compat = compat(env);
    let ports = Ports::read(env, compat);
    let app = app(env, compat);
    let observe = observability(env);
    let tls = tls(env, compat, exists);
    ports::differ(env, &ports, tls.is_some(), &observe.metrics, app, compat);
    let configuration = env.required("SERVING_CONFIGURATION");
    let pod_ip = env.required("SERVING_POD_IP");
    let log = Log { config: env.required("SERVING_LOGGING_CONFIG"), level: env.required("SERVING_LOGGING_LEVEL") };
    let config = config(env, app, compat);
    let identity = Identity {
        namespace: config.revision.namespace.clone(),
        service: env.text("SERVING_SERVICE").into(),
        configuration: configuration.into(),
        revision: config.revision.name.clone(),
        pod: config.pod.clone(),
        pod_ip: pod_ip.into(),
    };
    Settings { config, ports, tls, identity, observe, http1: Http1::read(env), log }
}

/// TLS is on when certificates are there, and only then its variables count,
/// as in the reference.
fn tls(env: &mut Env, compat: Compat, exists: impl Fn(&Path) -> bool) -> Option<plumbing::tls::Settings> {
    let folder = env.raw("ZEROSCALE_CERT_DIR").filter(|text| !text.is_empty()).unwrap_or(CERT_DIR).to_owned();
    let files = plumbing::tls::Settings::of(Path::new(&folder));
    let there = exists(&files.certificate) && exists(&files.key);
    there.then(|| plumbing::tls::variables::read(env, "QUEUE_PROXY", Path::new(&folder), compat))
}

fn config(env: &mut Env, app: SocketAddr, compat: Compat) -> Config {
    let namespace = name(env, "SERVING_NAMESPACE", compat);
    let revision = name(env, "SERVING_REVISION", compat);
    let pod = name(env, "SERVING_POD", compat);
    let mut config = Config::new(pod, RevisionId::new(namespace, revision), app, trust(env, compat));
    config.compat = compat;
    config.in_pod = true;
    config.full_duplex = env.flag("ENABLE_HTTP_FULL_DUPLEX");
    config.limit_to(concurrency(env));
    if let Some(depth) = env.own_form("ZEROSCALE_QUEUE_DEPTH", "number of requests") {
        config.queue_depth = depth;
    }
    let settle = env.duration("ZEROSCALE_DRAIN_SETTLE");
    config.timeouts = timeouts(env, compat);
    let limit = Some(config.timeouts.total).filter(|limit| *limit != NO_LIMIT);
    config.drain = Rules::new(compat, settle, limit);
    if let Some(limit) = env.duration("ZEROSCALE_DRAIN_TUNNEL_TIMEOUT") {
        config.tunnel_timeout = limit;
    }
    config.connect_retry = match (env.duration("ZEROSCALE_CONNECT_RETRY"), compat) {
        (Some(span), _) => span,
        (None, Compat::Better) => config.connect_retry,
        (None, Compat::Strict) => Duration::ZERO,
    };
    config.readiness = readiness(env, app, compat);
    config.stats_push = env.own("ZEROSCALE_STATS_ADDR", ports::target);
    config
}

fn compat(env: &mut Env) -> Compat {
    let read = |text: &str| match text {
        "strict" => Ok(Compat::Strict),
        "better" => Ok(Compat::Better),
        _ => Err(format!("`{text}` is neither `strict` nor `better`")),
    };
    env.own("ZEROSCALE_COMPAT", read).unwrap_or_default()
}

/// Who is believed. The controller sets neither list, so unset means all.
fn trust(env: &mut Env, compat: Compat) -> Trust {
    let mut list = |name| env.own(name, str::parse::<Ranges>).unwrap_or_else(Ranges::everybody);
    let trust = Trust { peers: list("ZEROSCALE_TRUSTED_PEERS"), proxies: list("ZEROSCALE_TRUSTED_PROXIES") };
    if compat == Compat::Strict { Trust::everybody() } else { trust }
}

/// A name that identifies something: the reference takes an empty one.
fn name(env: &mut Env, name: &str, compat: Compat) -> String {
    let text = env.required(name);
    if text.is_empty() && compat == Compat::Better && env.raw(name).is_some() {
        env.fault(format!("{name}: must not be empty"));
    }
    text
}

fn app(env: &mut Env, compat: Compat) -> SocketAddr {
    let ip = env.own_form("ZEROSCALE_APP_ADDR", "IP address").unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let port = match ports::required(env, "USER_PORT", compat) {
        // An empty port is what the reference's dialer takes for HTTP's.
        0 if compat == Compat::Strict => 80,
        0 => {
            if env.raw("USER_PORT") == Some("0") {
                env.fault("USER_PORT: the app cannot listen on port 0");
            }
            80
        }
        port => port,
    };
    SocketAddr::new(ip, port)
}

/// Below 1: no limit.
fn concurrency(env: &mut Env) -> u32 {
    let limit = env.required_int("CONTAINER_CONCURRENCY").max(0);
    u32::try_from(limit)
        .ok()
        .filter(|limit| (*limit as usize).checked_mul(QUEUE_DEPTH_PER_SLOT + 1).is_some())
        .unwrap_or_else(|| {
            env.fault(format!("CONTAINER_CONCURRENCY: a limit of {limit} is none; 0 is"));
            0
        })
}

fn timeouts(env: &mut Env, compat: Compat) -> Timeouts {
    let total = env.required_int("REVISION_TIMEOUT_SECONDS");
    let total = match (positive(env, "REVISION_TIMEOUT_SECONDS", total, compat), compat) {
        // The reference lets no request live then.
        (None, Compat::Strict) => Duration::ZERO,
        (None, Compat::Better) => NO_LIMIT,
        (Some(total), _) => total,
    };
    let mut optional = |name| {
        let seconds = env.int(name).unwrap_or_default();
        positive(env, name, seconds, compat)
    };
    let response_start = optional("REVISION_RESPONSE_START_TIMEOUT_SECONDS");
    let idle = optional("REVISION_IDLE_TIMEOUT_SECONDS");
    let upgrade = match env.duration("ZEROSCALE_UPGRADE_TIMEOUT") {
        Some(Duration::ZERO) => None,
        Some(limit) => Some(limit),
        None => Some(total).filter(|total| *total != NO_LIMIT),
    };
    Timeouts { total, response_start, idle, upgrade }
}

/// Seconds; `None` for 0, and for what the reference takes as such.
fn positive(env: &mut Env, name: &str, seconds: i64, compat: Compat) -> Option<Duration> {
    if seconds < 0 && compat == Compat::Better {
        env.fault(format!("{name}: {seconds} s is no time limit"));
    }
    let seconds = u64::try_from(seconds).ok().filter(|seconds| *seconds > 0)?;
    Some(Duration::from_secs(seconds).min(NO_LIMIT))
}

fn observability(env: &mut Env) -> observe::Config {
    let variable = |name: &str| env.raw(name).map(str::to_owned);
    observe::Config::parse(Component::Sidecar, &env.text("OBSERVABILITY_CONFIG"), variable).unwrap_or_else(|faults| {
        faults.into_iter().for_each(|fault| env.fault(fault));
        observe::Config::default()
    })
}

fn readiness(env: &mut Env, app: SocketAddr, compat: Compat) -> Readiness {
    let several = env.flag("ENABLE_MULTI_CONTAINER_PROBES");
    let detect_http2 = env.flag("ENABLE_HTTP2_AUTO_DETECTION");
    match Readiness::parse(&env.text("SERVING_READINESS_PROBE"), several, app, compat) {
        Ok(readiness) => Readiness { detect_http2, ..readiness },
        Err(fault) => {
            env.fault(format!("SERVING_READINESS_PROBE: {fault}"));
            Readiness::none()
        }
    }
}
