//! A network namespace of its own, and one of processes: ports are free, and
//! nothing outlives the run.

use anyhow::{Context, ensure};
use std::process::{Command, ExitCode, Stdio};

/// Hidden first argument of the run within.
pub(crate) const WORD: &str = "__apart";

/// As root; and as anybody where that is allowed.
const WAYS: [&[&str]; 2] = [
    &["--net", "--pid", "--fork", "--mount-proc", "--kill-child=KILL"],
    &["--user", "--map-root-user", "--net", "--pid", "--fork", "--mount-proc", "--kill-child=KILL"],
];

/// Runs this program again within.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let works = |way: &&&[&str]| {
        let mut probe = Command::new("unshare");
        probe.args(**way).args(["ip", "link", "set", "lo", "up"]);
        probe.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        probe.status().is_ok_and(|status| status.success())
    };
    let way = WAYS.iter().find(works);
    let way = way.context("no network namespace can be made (`unshare` of util-linux and `ip` of iproute2)")?;
    // The interface has to be up before anything listens.
    let mut command = Command::new("unshare");
    command.args(*way).args(["sh", "-c", "ip link set lo up && exec \"$@\"", "sh"]);
    command.arg(crate::peers::myself()?).arg(WORD).args(arguments);
    let status = command.status()?;
    ensure!(status.code().is_some(), "ended with {status}");
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
