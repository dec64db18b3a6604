//! What is measured, and how each of it is started.

mod baselines;
mod haproxy;
mod knative;
mod nginx;
mod ours;
pub(crate) mod sidecar_env;

use crate::process::{self, PROXY, Process, find};
use anyhow::Context;
use serde::{Deserialize, Serialize};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) use ours::{activator, binary as ours_binary, metrics_of, revisions};

/// Something between clients and the app.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum Peer {
    /// Nothing.
    Direct,
    Floor,
    /// Ours.
    QueueProxy,
    Activator,
    Both,
    /// `zeroscale`: all of it in one process. Only of cold starts.
    Local,
    Nginx,
    Haproxy,
    Knative,
    Hyper,
    Pingora,
}

/// How it is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Setup {
    pub(crate) protocol: Protocol,
    /// Requests at the app at a time.
    pub(crate) limit: u32,
}

/// Spoken on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http1,
    /// Without TLS.
    Http2,
}

/// A limit that is set and never reached.
pub(crate) const AMPLE: u32 = 500;

/// Ports within the namespace. Knative's are fixed, the others keep clear.
const APP: u16 = 9001;
const APP_HTTP2: u16 = 9002;

impl Protocol {
    /// Where the app listens.
    pub(crate) fn app(self) -> SocketAddr {
        let port = match self {
            Protocol::Http1 => APP,
            Protocol::Http2 => APP_HTTP2,
        };
        local(port)
    }
}

pub(crate) fn local(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

impl Peer {
    pub(crate) const ALL: [Peer; 10] = [
        Peer::Direct,
        Peer::Floor,
        Peer::QueueProxy,
        Peer::Activator,
        Peer::Both,
        Peer::Nginx,
        Peer::Haproxy,
        Peer::Knative,
        Peer::Hyper,
        Peer::Pingora,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Peer::Direct => "direct",
            Peer::Floor => "floor",
            Peer::QueueProxy => "queue-proxy",
            Peer::Activator => "activator",
            Peer::Both => "activator + queue-proxy",
            Peer::Local => "zeroscale",
            Peer::Nginx => "nginx",
            Peer::Haproxy => "HAProxy",
            Peer::Knative => "Knative",
            Peer::Hyper => "hyper",
            Peer::Pingora => "pingora",
        }
    }

    /// Its name on the command line.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Peer::Both => "both",
            Peer::Haproxy => "haproxy",
            Peer::Knative => "knative",
            other => other.name(),
        }
    }

    /// Why it cannot be measured here.
    pub(crate) fn missing(self) -> Option<String> {
        let installed = |name: &str| match find(name) {
            Some(_) => None,
            None => Some(format!("`{name}` is not installed")),
        };
        match self {
            Peer::Direct | Peer::Floor => None,
            Peer::QueueProxy => ours::missing("queue-proxy"),
            Peer::Activator => ours::missing("activator"),
            Peer::Both => ours::missing("queue-proxy").or_else(|| ours::missing("activator")),
            Peer::Local => ours::missing("zeroscale"),
            Peer::Nginx => installed("nginx"),
            Peer::Haproxy => installed("haproxy"),
            Peer::Knative => knative::missing(),
            Peer::Hyper => baselines::missing("hyper"),
            Peer::Pingora => baselines::missing("pingora"),
        }
    }

    /// Its version, as it says itself.
    pub(crate) fn version(self) -> String {
        let said = |name: &str, flag: &str| {
            let output = Command::new(find(name)?).arg(flag).output().ok()?;
            let text = if output.stdout.is_empty() { output.stderr } else { output.stdout };
            Some(String::from_utf8_lossy(&text).lines().next()?.to_owned())
        };
        match self {
            Peer::Nginx => said("nginx", "-v").unwrap_or_default(),
            Peer::Haproxy => said("haproxy", "-v").unwrap_or_default(),
            Peer::Knative => knative::version(),
            Peer::Direct | Peer::Floor | Peer::QueueProxy | Peer::Activator | Peer::Both | Peer::Local => {
                env!("CARGO_PKG_VERSION").to_owned()
            }
            Peer::Hyper | Peer::Pingora => "bench/baselines/Cargo.lock".to_owned(),
        }
    }

    /// Starts it; it takes requests then.
    pub(crate) fn start(self, setup: Setup, folder: &Path) -> anyhow::Result<Running> {
        let running = match self {
            Peer::Direct => Ok(Running { peer: self, address: setup.protocol.app(), processes: Vec::new() }),
            Peer::Floor => floor(setup, folder),
            Peer::QueueProxy => ours::queue_proxy(setup, folder),
            Peer::Activator => ours::activator(setup, &ours::revisions(1, setup), true, folder),
            Peer::Both => ours::both(setup, folder),
            Peer::Local => Err(anyhow::anyhow!("it is its row that starts it")),
            Peer::Nginx => nginx::start(setup, folder),
            Peer::Haproxy => haproxy::start(setup, folder),
            Peer::Knative => knative::start(setup, folder),
            Peer::Hyper | Peer::Pingora => baselines::start(self, setup, folder),
        };
        running.with_context(|| format!("starting {}", self.name()))
    }
}

/// A peer that runs; ends when it is dropped.
pub(crate) struct Running {
    pub(crate) peer: Peer,
    /// Where it takes requests.
    pub(crate) address: SocketAddr,
    processes: Vec<Process>,
}

impl Running {
    /// Of one program that is to listen there.
    fn of(peer: Peer, name: &str, command: &mut Command, address: SocketAddr, folder: &Path) -> anyhow::Result<Self> {
        process::is_free(address)?;
        let mut process = Process::start(name, command, Some(PROXY), folder)?;
        process.listens(address)?;
        Ok(Running { peer, address, processes: vec![process] })
    }

    /// All its processes.
    pub(crate) fn ids(&self) -> Vec<u32> {
        self.processes.iter().flat_map(Process::family).collect()
    }

    /// What they said last.
    pub(crate) fn said(&self) -> String {
        self.processes.iter().map(Process::said).collect::<Vec<_>>().join(" / ")
    }
}

fn floor(setup: Setup, folder: &Path) -> anyhow::Result<Running> {
    let address = local(9110);
    let mut command = Command::new(myself()?);
    command.args(["floor", &address.to_string(), &setup.protocol.app().to_string()]);
    Running::of(Peer::Floor, "floor", &mut command, address, folder)
}

/// Both apps; they end when they are dropped.
pub(crate) fn apps(folder: &Path) -> anyhow::Result<Vec<Process>> {
    let mut apps = Vec::new();
    for (kind, protocol) in [("direct", Protocol::Http1), ("direct-http2", Protocol::Http2)] {
        let mut command = Command::new(myself()?);
        // On every address: revisions by the thousand are told apart by it.
        let listen = SocketAddr::from((Ipv4Addr::UNSPECIFIED, protocol.app().port()));
        command.args([kind, &listen.to_string()]);
        let mut app = Process::start(kind, &mut command, Some(process::CLIENTS), folder)?;
        app.listens(protocol.app())?;
        apps.push(app);
    }
    Ok(apps)
}

/// The command of a sidecar, for who starts it himself, and where it will listen.
pub(crate) fn start_command(peer: Peer, setup: Setup) -> anyhow::Result<(Command, SocketAddr)> {
    match peer {
        Peer::Knative => knative::command(setup),
        _ => {
            let address = local(9165);
            Ok((ours::sidecar_command(setup, address)?, address))
        }
    }
}

/// This program.
pub(crate) fn myself() -> anyhow::Result<PathBuf> {
    std::env::current_exe().context("the path of this program")
}
