//! What the sidecar listens on.

use crate::readiness::Target;
use observe::config::Metrics;
use plumbing::env::Env;
use policy::compat::Compat;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The reference's constants.
const ADMIN: u16 = 8022;
const AUTOMETRIC: u16 = 9090;

/// Addresses of the listeners. Port 0 lets the system choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    /// The address they are all on (`ZEROSCALE_BIND`); unset: every one, IPv6
    /// and IPv4.
    pub bind: IpAddr,
    /// The main port (`QUEUE_SERVING_PORT`).
    pub serving: u16,
    /// The main port over TLS (`QUEUE_SERVING_TLS_PORT`).
    pub serving_tls: u16,
    /// The stop hook (8022; `ZEROSCALE_ADMIN_PORT`).
    pub admin: u16,
    /// What the autoscaler scrapes (9090; `ZEROSCALE_METRICS_PORT`).
    pub autometric: u16,
    /// Where the app says that it is busy (`ZEROSCALE_LEASE_PORT`); `None` =
    /// nowhere, as always in strict mode.
    pub lease: Option<u16>,
}

impl Ports {
    pub(super) fn read(env: &mut Env, compat: Compat) -> Ports {
        Ports {
            bind: env.own_form("ZEROSCALE_BIND", "IP address").unwrap_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED)),
            serving: required(env, "QUEUE_SERVING_PORT", compat),
            serving_tls: required(env, "QUEUE_SERVING_TLS_PORT", compat),
            admin: env.own_form("ZEROSCALE_ADMIN_PORT", "port").unwrap_or(ADMIN),
            autometric: env.own_form("ZEROSCALE_METRICS_PORT", "port").unwrap_or(AUTOMETRIC),
            lease: env.own_form("ZEROSCALE_LEASE_PORT", "port").filter(|_| compat == Compat::Better),
        }
    }

    /// The address of the lease's port: for the app alone, so on loopback
    /// whatever the others are on.
    pub fn lease_ip(&self) -> IpAddr {
        if self.bind.is_loopback() { self.bind } else { IpAddr::V4(Ipv4Addr::LOCALHOST) }
    }

    /// Where to listen on one of them.
    pub fn address(&self, port: u16) -> SocketAddr {
        SocketAddr::new(self.bind, port)
    }
}

/// A port of a variable that must be there; 0 when it is empty.
pub(super) fn required(env: &mut Env, name: &str, compat: Compat) -> u16 {
    let text = env.required(name);
    if text.is_empty() {
        // A variable that is not there has been told of.
        if compat == Compat::Better && env.raw(name).is_some() {
            env.fault(format!("{name}: must not be empty"));
        }
        return 0;
    }
    text.parse().unwrap_or_else(|_| {
        env.fault(format!("{name}: `{text}` is no port"));
        0
    })
}

/// Two listeners cannot share a port, and a sidecar that is its own app would
/// send each request round for ever.
pub(super) fn differ(env: &mut Env, ports: &Ports, tls: bool, metrics: &Metrics, app: SocketAddr, compat: Compat) {
    if compat == Compat::Strict {
        return;
    }
    let user_metrics = match metrics {
        Metrics::Prometheus(listener) if listener.host.is_empty() => listener.port,
        _ => 0,
    };
    let ours = [
        ("QUEUE_SERVING_PORT", ports.address(ports.serving)),
        ("QUEUE_SERVING_TLS_PORT", ports.address(if tls { ports.serving_tls } else { 0 })),
        ("ZEROSCALE_ADMIN_PORT", ports.address(ports.admin)),
        ("ZEROSCALE_METRICS_PORT", ports.address(ports.autometric)),
        ("ZEROSCALE_LEASE_PORT", SocketAddr::new(ports.lease_ip(), ports.lease.unwrap_or(0))),
        ("OBSERVABILITY_CONFIG: requestMetrics.endpoint", ports.address(user_metrics)),
    ];
    for (at, (name, address)) in ours.iter().enumerate().filter(|(_, (_, address))| address.port() != 0) {
        for (other, _) in ours[..at].iter().filter(|(_, other)| clash(*other, *address)) {
            env.fault(format!("{name}: {} is taken by {other}", address.port()));
        }
        if clash(*address, app) {
            env.fault(format!("{name}: {} is the app's own port (USER_PORT)", address.port()));
        }
    }
}

/// True when two listeners cannot be on both.
fn clash(one: SocketAddr, other: SocketAddr) -> bool {
    let everywhere = one.ip().is_unspecified() || other.ip().is_unspecified();
    one.port() == other.port() && (everywhere || one.ip() == other.ip())
}

/// `host:port`.
pub(super) fn target(text: &str) -> Result<Target, String> {
    let authority: Option<http::uri::Authority> = text.parse().ok();
    let found = authority.and_then(|authority| {
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = authority.port_u16().filter(|port| *port != 0)?;
        (!host.is_empty()).then_some(Target { host, port })
    });
    found.ok_or_else(|| format!("`{text}` is no address such as autoscaler.knative-serving:8080"))
}
