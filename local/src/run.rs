//! `zeroscale run`: one service until a signal.

use crate::assemble::{self, Floor};
use crate::cli::{LogFormat, RunFlags};
use crate::settings::{self, Settings};
use crate::{EXIT_USAGE, admin};
use platform::process::GuardCommand;
use plumbing::fds::{self, Budget};
use plumbing::signals::{Ending, Signals};
use plumbing::telemetry::{self, Format};
use std::io::Write;
use std::process::ExitCode;

/// Hidden first argument by which this program becomes the guard.
pub(crate) const GUARD_ARGUMENT: &str = "__guard";

/// As a shell reports a program ended by Ctrl-C.
pub(crate) const EXIT_INTERRUPTED: u8 = 130;

pub(crate) fn main(flags: &RunFlags) -> ExitCode {
    let settings = match (settings::of_run(flags), flags.log_level.parse::<tracing::Level>()) {
        (Ok(settings), Ok(level)) => {
            telemetry::install(format(flags.log_format), level);
            settings
        }
        (settings, level) => {
            let mut faults = settings.err().unwrap_or_default();
            if level.is_err() {
                faults.push(format!("--log-level: `{}` is none of error, warn, info, debug, trace", flags.log_level));
            }
            faults.iter().for_each(|fault| eprintln!("zeroscale: {fault}"));
            return ExitCode::from(EXIT_USAGE);
        }
    };
    match on_runtime(serve(flags, settings)) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("zeroscale: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs a future on the control thread's runtime.
pub(crate) fn on_runtime<T>(future: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(future)
}

async fn serve(flags: &RunFlags, settings: Settings) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::new()?;
    let listener = assemble::listen(flags.listen)
        .map_err(|error| anyhow::anyhow!("cannot listen on {} (--listen): {error}", flags.listen))?;
    let (guard, budget) = prepare();
    let door = admin::open().inspect_err(|error| {
        tracing::warn!(error = format!("{error:#}"), "no admin socket: `status` will not find this instance");
    });
    let floor = assemble::start(settings, listener, guard, budget)?;
    let admin = door.ok().map(|door| door.serve(admin::Source::of(&floor)));
    // Whoever started us may have closed it; that is no reason to stop.
    let _ = writeln!(std::io::stdout(), "zeroscale: listening on http://{}", floor.address);
    let ending = signals.next().await;
    tracing::info!(?ending, "ending");
    let code = end(floor, signals, ending).await;
    if let Some(admin) = admin {
        admin.close().await;
    }
    Ok(code)
}

/// Raises the limit on descriptors; processes get the old one.
pub(crate) fn prepare() -> (GuardCommand, Budget) {
    let mut guard = GuardCommand::own(GUARD_ARGUMENT);
    match fds::raise() {
        Ok((old, budget)) => {
            guard.soft_nofile = Some(old);
            (guard, budget)
        }
        Err(error) => {
            tracing::warn!(%error, "the limit on file descriptors could not be raised");
            (guard, Budget::unlimited())
        }
    }
}

/// Stops in good order; a second signal ends at once, and the guard then
/// takes the processes with it.
pub(crate) async fn end(floor: Floor, mut signals: Signals, ending: Ending) -> ExitCode {
    tokio::select! {
        () = floor.stop() => match ending {
            Ending::Terminated => ExitCode::SUCCESS,
            Ending::Interrupted => ExitCode::from(EXIT_INTERRUPTED),
        },
        _ = signals.next() => ExitCode::FAILURE,
    }
}

fn format(flag: LogFormat) -> Format {
    match flag {
        LogFormat::Text => Format::Text,
        LogFormat::Json => Format::Json,
    }
}
