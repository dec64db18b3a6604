//! An activator on the file platform: `--snapshots FILE --stats HOST:PORT`,
//! and `--name NAME` where there are several.

use std::process::ExitCode;

fn main() -> ExitCode {
    match tests::filehost::activator::main(std::env::args().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fileactivator: {error:#}");
            ExitCode::FAILURE
        }
    }
}
