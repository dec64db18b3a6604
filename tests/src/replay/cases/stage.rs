//! What a case runs on: its apps, its sidecar and its client connections.

use super::app::{Log, Running};
use super::case::Case;
use super::client::Conn;
use super::env::environment;
use super::sidecar::Sidecar;
use super::steps::h2::H2Conn;
use super::tls::Mounted;
use anyhow::bail;
use policy::compat::Compat;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;

/// How long the ports may take to open.
const STARTS_WITHIN: Duration = Duration::from_secs(15);

/// How often a port is tried.
const TRY_EVERY: Duration = Duration::from_millis(5);

/// Everything of a running case.
pub struct Stage {
    /// Its apps.
    pub apps: Vec<Running>,
    /// What they saw.
    pub log: Arc<Log>,
    /// Its sidecar.
    pub sidecar: Sidecar,
    /// Client connections by name.
    pub conns: BTreeMap<String, Conn>,
    /// HTTP/2 connections by name.
    pub h2: BTreeMap<String, H2Conn>,
    /// Its certificate.
    pub mounted: Option<Mounted>,
}

impl Stage {
    /// Starts the apps, then the sidecar, and waits for its ports if the row
    /// says so.
    ///
    /// # Errors
    /// When something does not start.
    pub async fn set(case: &Case, mode: Compat, binary: &Path) -> anyhow::Result<Stage> {
        let log = Arc::new(Log::default());
        let mut apps = Vec::new();
        for app in case.all_apps() {
            apps.extend(Running::start(app, &log).await?);
        }
        let mounted = case.tls.then(Mounted::new).transpose()?;
        let environment = environment(case, mode, mounted.as_ref().map(Mounted::folder));
        let sidecar = Sidecar::start(binary, &environment)?;
        let (conns, h2) = (BTreeMap::new(), BTreeMap::new());
        let mut stage = Stage { apps, log, sidecar, conns, h2, mounted };
        if case.wait_for_ports {
            let mut ports: Vec<u16> = vec![8022, 9090];
            ports.extend(environment.get("QUEUE_SERVING_PORT").and_then(|port| port.parse::<u16>().ok()));
            ports.extend(case.tls.then_some(8112));
            stage.wait_for(&ports).await?;
        }
        Ok(stage)
    }

    async fn wait_for(&mut self, ports: &[u16]) -> anyhow::Result<()> {
        let deadline = Instant::now() + STARTS_WITHIN;
        for port in ports {
            while TcpStream::connect(("127.0.0.1", *port)).await.is_err() {
                if let Some(code) = self.sidecar.wait(Duration::ZERO).await {
                    bail!("the sidecar ended with code {code} before port {port} was open: {}", self.last_words());
                }
                if Instant::now() > deadline {
                    bail!("port {port} did not open within {STARTS_WITHIN:?}: {}", self.last_words());
                }
                tokio::time::sleep(TRY_EVERY).await;
            }
        }
        Ok(())
    }

    /// The end of what the sidecar wrote.
    pub fn last_words(&self) -> String {
        let mut lines = self.sidecar.stdout();
        lines.extend(self.sidecar.stderr());
        let from = lines.len().saturating_sub(8);
        lines[from..].join(" | ")
    }
}
