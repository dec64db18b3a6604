//! What the sidecar listens on.

use crate::readiness::Target;
use plumbing::env::Env;
use policy::compat::Compat;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

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
    /// Where the app says that it is busy (`ZEROSCALE_LEASE_PORT`); `None` = nowhere.
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
            lease: env.own_form("ZEROSCALE_LEASE_PORT", "port"),
        }
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
pub(super) fn differ(env: &mut Env, ports: &Ports, app: SocketAddr, compat: Compat) {
    if compat == Compat::Strict {
        return;
    }
    let ours = [
        ("QUEUE_SERVING_PORT", ports.serving),
        ("ZEROSCALE_ADMIN_PORT", ports.admin),
        ("ZEROSCALE_METRICS_PORT", ports.autometric),
    ];
    for (at, (name, port)) in ours.iter().enumerate().filter(|(_, (_, port))| *port != 0) {
        for (other, _) in ours[..at].iter().filter(|(_, other)| other == port) {
            env.fault(format!("{name}: {port} is taken by {other}"));
        }
        if *port == app.port() && (ports.bind.is_unspecified() || ports.bind == app.ip()) {
            env.fault(format!("{name}: {port} is the app's own port (USER_PORT)"));
        }
    }
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
