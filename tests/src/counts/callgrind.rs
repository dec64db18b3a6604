//! A process under callgrind, which counts from when it is told until it is
//! told again.

use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

pub(super) struct Callgrind {
    file: PathBuf,
    arguments: [String; 4],
}

impl Callgrind {
    /// Its counts go into files that begin with this name.
    pub(super) fn new(file: &Path) -> Callgrind {
        let arguments = [
            "valgrind".to_owned(),
            "--tool=callgrind".to_owned(),
            "--instr-atstart=no".to_owned(),
            format!("--callgrind-out-file={}", file.display()),
        ];
        Callgrind { file: file.to_owned(), arguments }
    }

    /// The command that takes a program as its last argument.
    pub(super) fn wrapper(&self) -> [&str; 4] {
        self.arguments.each_ref().map(String::as_str)
    }

    pub(super) async fn begin(&self, pid: i32) -> anyhow::Result<()> {
        control(pid, &["--instr=on"]).await
    }

    pub(super) async fn end(&self, pid: i32) -> anyhow::Result<()> {
        control(pid, &["--instr=off"]).await?;
        control(pid, &["--dump"]).await
    }

    /// All that were counted.
    pub(super) fn instructions(&self) -> anyhow::Result<u64> {
        let mut name = self.file.clone().into_os_string();
        name.push(".1");
        let text = std::fs::read_to_string(&name).with_context(|| format!("{}", name.display()))?;
        let of = |line: &str| line.strip_prefix("totals: ")?.trim().parse().ok();
        text.lines().find_map(of).with_context(|| format!("{} has no sum", name.display()))
    }
}

async fn control(pid: i32, arguments: &[&str]) -> anyhow::Result<()> {
    let mut command = Command::new("callgrind_control");
    command.args(arguments).arg(pid.to_string());
    // The app and the client go on meanwhile.
    let output = tokio::task::spawn_blocking(move || command.output()).await?.context("callgrind_control")?;
    if !output.status.success() {
        bail!("callgrind_control {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}
