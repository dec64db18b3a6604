//! An app that is killed and started again at the same port.

use crate::floor::{PATIENCE, binaries};
use anyhow::ensure;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::time::sleep;

/// The app.
pub(super) struct App {
    pub(super) address: SocketAddr,
    process: Mutex<Child>,
    absences: Mutex<Vec<(Instant, Instant)>>,
}

impl App {
    pub(super) fn start() -> anyhow::Result<App> {
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let process = spawn(address)?;
        let began = Instant::now();
        while std::net::TcpStream::connect(address).is_err() {
            ensure!(began.elapsed() < PATIENCE, "the app does not start");
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(App { address, process: Mutex::new(process), absences: Mutex::default() })
    }

    /// Kills it, and starts it again after a while; it listens then.
    pub(super) async fn restart(&self, gone: Duration) -> anyhow::Result<()> {
        let from = Instant::now();
        self.kill();
        sleep(gone).await;
        *self.process.lock().unwrap_or_else(PoisonError::into_inner) = spawn(self.address)?;
        while TcpStream::connect(self.address).await.is_err() {
            ensure!(from.elapsed() < PATIENCE, "the app does not start again");
            sleep(Duration::from_millis(1)).await;
        }
        let mut absences = self.absences.lock().unwrap_or_else(PoisonError::into_inner);
        absences.push((from, Instant::now()));
        Ok(())
    }

    /// From when to when it was not there.
    pub(super) fn absences(&self) -> Vec<(Instant, Instant)> {
        self.absences.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn kill(&self) {
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = process.kill();
        let _ = process.wait();
    }
}

impl Drop for App {
    fn drop(&mut self) {
        self.kill();
    }
}

fn spawn(address: SocketAddr) -> anyhow::Result<Child> {
    let mut command = Command::new(binaries::testapp()?);
    command.args(["--port", &address.port().to_string()]).stdin(Stdio::null()).stdout(Stdio::null());
    Ok(command.spawn()?)
}
