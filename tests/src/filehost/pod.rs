//! One pod: the test app, and our sidecar in front of it.

use crate::floor::binaries;
use crate::program::Program;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(2);

/// Both processes; killed when it is dropped.
pub struct Pod {
    app: Child,
    sidecar: Program,
}

impl Pod {
    /// Starts a pod; it is ready then.
    ///
    /// # Panics
    /// When it does not come up.
    pub fn start(work: Duration, variables: &[(&str, &str)]) -> Pod {
        let began = Instant::now();
        loop {
            // Between our look and the app's own, somebody may take the port.
            let port = free_port();
            let mut app = start_app(port, work);
            while app.try_wait().expect("its state is known").is_none() {
                assert!(began.elapsed() < PATIENCE, "the app does not open its port");
                if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok() {
                    let app_at = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
                    return Pod { app, sidecar: Program::start(app_at, variables) };
                }
                std::thread::sleep(LOOK);
            }
        }
    }

    /// Where requests go.
    pub fn address(&self) -> SocketAddr {
        self.sidecar.main
    }

    /// TERM to the sidecar, which finishes what it has.
    pub fn end(&self) {
        self.sidecar.terminate();
    }

    /// True until the sidecar has ended.
    pub fn is_running(&mut self) -> bool {
        self.sidecar.is_running()
    }
}

impl Drop for Pod {
    fn drop(&mut self) {
        let _ = self.app.kill();
        let _ = self.app.wait();
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    listener.local_addr().expect("an address").port()
}

fn start_app(port: u16, work: Duration) -> Child {
    let mut command = Command::new(binaries::testapp().expect("the binary"));
    command.arg("--port").arg(port.to_string()).arg("--work").arg(work.as_millis().to_string());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts")
}
