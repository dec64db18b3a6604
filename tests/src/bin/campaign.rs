//! Long tests by name: `campaign --list`, `campaign NAME [OPTION...]` (see
//! `tests/src/campaign`).
//!
//! Exit codes: 0 all passed, 1 something failed, 64 a command line that makes
//! no sense.

use std::io::{self, Write};
use std::process::ExitCode;
use tests::campaign::{ALL, Arguments, Failure, Tally, USAGE, find};

const FAILED: u8 = 1;
const USAGE_CODE: u8 = 64;

fn main() -> ExitCode {
    let mut out = io::stdout().lock();
    match run(std::env::args().skip(1), &mut out) {
        Ok(Some(Tally { failed: 1.., .. })) => ExitCode::from(FAILED),
        Ok(_) => ExitCode::SUCCESS,
        Err(Failure::Usage(why)) => {
            eprintln!("campaign: {why}\n{USAGE}");
            ExitCode::from(USAGE_CODE)
        }
        Err(Failure::Io(error)) => {
            eprintln!("campaign: {error}");
            ExitCode::from(FAILED)
        }
    }
}

/// Runs what the command line names; `None` when there was nothing to run.
fn run(mut arguments: impl Iterator<Item = String>, out: &mut dyn Write) -> Result<Option<Tally>, Failure> {
    let name = arguments.next().ok_or_else(|| Failure::Usage("no campaign was named".to_owned()))?;
    if name == "--list" {
        for campaign in ALL {
            writeln!(out, "{}: {}", campaign.name, campaign.about)?;
        }
        return Ok(None);
    }
    let campaign = find(&name).ok_or_else(|| Failure::Usage(format!("there is no campaign {name}")))?;
    let tally = (campaign.run)(Arguments::parse(arguments), out)?;
    writeln!(out, "{} passed, {} failed", tally.passed, tally.failed)?;
    Ok(Some(tally))
}
