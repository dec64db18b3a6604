//! An app that leaves a daemon behind, in a session of its own, that does not
//! hear TERM: gone when its pod goes, however that comes.

use super::Report;
use crate::floor::client::Ask;
use crate::floor::{Instance, TestApp};
use rustix::process::Signal;
use std::time::Duration;

/// From the pod's end to the daemon's.
const GONE: Duration = Duration::from_secs(1);

/// How the pod comes to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Nobody asks any more.
    ScaleDown,
    /// `zeroscale` is told to end.
    Term,
    /// `zeroscale` is killed.
    Kill,
}

/// Starts the app, ends its pod, and looks for what is left.
///
/// # Errors
/// When something cannot be tried at all.
pub async fn run(end: End, slack: u32) -> anyhow::Result<Report> {
    let mut report = Report::new(slack);
    let app = TestApp::deaf("--daemon")?;
    let mut instance = Instance::start("--window 6s --stop-timeout 300ms", &app.command).await?;
    let answer = Ask::get("one").send(instance.address).await?;
    report.holds(format!("{end:?}: the app serves"), answer.is_good(), answer.status);
    crate::floor::until("its daemon is there", async || app.sightings().of("daemon").count() == 1).await?;
    report.count(format!("{end:?}: processes of the app"), instance.apps().len(), 2);
    match end {
        End::ScaleDown => {
            instance.until_status("no pod is left", |status| status.is_at_zero()).await?;
            report.count("ScaleDown: processes left when the pod is gone", instance.apps().len(), 0);
        }
        End::Term => {
            instance.signal(Signal::TERM)?;
            let ended = instance.ended().await?;
            report.holds("Term: exit code 0", ended.code == Some(0), format!("{:?}", ended.code));
            report.count("Term: processes left at once", instance.processes().len(), 0);
        }
        End::Kill => {
            instance.signal(Signal::KILL)?;
            instance.ended().await?;
            let gone = instance.until_nothing_is_left().await?;
            report.time("Kill: nothing left after", gone, GONE);
        }
    }
    Ok(report)
}
