//! A pod's network and a node's, joined by a veth.
//!
//! Each namespace is held by a process that ends when this one does, and the
//! namespace with it: nothing is left on the machine.

use anyhow::{Context, ensure};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::time::timeout;

/// How long code in a namespace may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// The pod's address.
pub const POD: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 244, 0, 78));
/// The node's, where kubelet, activator and autoscaler come from.
pub const NODE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 244, 0, 1));

/// Why this cannot be tried here, if so.
pub fn missing() -> Option<String> {
    if std::env::var("ZEROSCALE_TEST_SKIP").is_ok_and(|list| list.split(',').any(|word| word == "netns")) {
        return Some("ZEROSCALE_TEST_SKIP names netns".to_owned());
    }
    if !rustix::process::geteuid().is_root() {
        return Some("only root can make a user 65532 without capabilities".to_owned());
    }
    let tried = ["unshare --net --mount true", "nsenter --version", "setpriv --version", "ip -V", "chroot --version"];
    let fails = |line: &&&str| {
        let mut words = line.split(' ');
        let mut command = Command::new(words.next().unwrap_or_default());
        let quiet = command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        !quiet.status().is_ok_and(|status| status.success())
    };
    tried.iter().find(fails).map(|line| format!("`{line}` does not work here"))
}

/// A network namespace.
pub struct Namespace {
    holder: Child,
}

/// The two of them.
pub struct Network {
    /// Where the sidecar and its app are.
    pub pod: Namespace,
    /// Where those are who ask it.
    pub node: Namespace,
}

impl Network {
    /// Makes both, and the way between.
    ///
    /// # Errors
    /// When one of the steps fails.
    pub fn new() -> anyhow::Result<Network> {
        let network = Network { pod: Namespace::new()?, node: Namespace::new()? };
        let (pod, node) = (network.pod.holder.id().to_string(), network.node.holder.id().to_string());
        run(Command::new("ip")
            .args(["link", "add", "name", "eth0", "netns", &pod])
            .args(["type", "veth", "peer", "name", "eth0", "netns", &node]))?;
        for (namespace, address) in [(&network.pod, POD), (&network.node, NODE)] {
            run(namespace.command("ip").args(["address", "add", &format!("{address}/24"), "dev", "eth0"]))?;
            run(namespace.command("ip").args(["link", "set", "eth0", "up"]))?;
        }
        Ok(network)
    }
}

impl Namespace {
    fn new() -> anyhow::Result<Namespace> {
        // `cat` ends with the other end of its pipe, however this process ends.
        let script = "ip link set lo up && echo up && exec cat";
        let mut holder = Command::new("unshare")
            .args(["--net", "sh", "-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("unshare")?;
        let mut line = String::new();
        BufReader::new(holder.stdout.take().context("a pipe")?).read_line(&mut line)?;
        let namespace = Namespace { holder };
        ensure!(line == "up\n", "no network namespace");
        Ok(namespace)
    }

    fn path(&self) -> String {
        format!("/proc/{}/ns/net", self.holder.id())
    }

    /// A command that runs in here.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net={}", self.path())).arg(program);
        command
    }

    /// Runs code on a thread in here, with a runtime of its own.
    ///
    /// # Panics
    /// When the namespace cannot be entered.
    pub fn spawn<T, F>(&self, work: impl FnOnce() -> F + Send + 'static) -> JoinHandle<T>
    where
        T: Send + 'static,
        F: Future<Output = T>,
    {
        let namespace = File::open(self.path()).expect("its namespace");
        thread::spawn(move || {
            // Of this thread alone, and before the runtime has a socket.
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).expect("entering it");
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(work())
        })
    }

    /// Runs code in here to its end.
    ///
    /// # Panics
    /// When it panics, or takes too long.
    pub fn run<T, F>(&self, work: impl FnOnce() -> F + Send + 'static) -> T
    where
        T: Send + 'static,
        F: Future<Output = T>,
    {
        let limited = || async { timeout(PATIENCE, work()).await.expect("it takes too long") };
        self.spawn(limited).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

fn run(command: &mut Command) -> anyhow::Result<()> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(())
}
