//! Judges recorded vectors: `replay PATH...` (see `tests/src/replay`).
//!
//! Exit codes: 0 all as recorded, 1 a row failed, 2 an unknown file or a
//! command line that makes no sense.

use std::io::{self, Write};
use std::process::ExitCode;
use tests::replay::cases::child;
use tests::replay::files::Listing;
use tests::replay::{Options, USAGE, run};

const REFUSED: u8 = 2;

fn main() -> ExitCode {
    // Not for people: `replay` starts itself so, once for each case.
    if std::env::args_os().nth(1).is_some_and(|word| word == child::WORD) {
        return child::main();
    }
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(why) => return refuse(&format!("{why}\n{USAGE}")),
    };
    let listing = match Listing::of(&options.paths) {
        Ok(listing) => listing,
        Err(why) => return refuse(&why),
    };
    let mut out = io::BufWriter::new(io::stdout().lock());
    let outcome = run(&listing, &options, &mut out);
    match outcome.and_then(|outcome| out.flush().map(|()| outcome)) {
        Ok(outcome) => ExitCode::from(outcome.exit_code(&options)),
        Err(error) => refuse(&error.to_string()),
    }
}

fn refuse(why: &str) -> ExitCode {
    eprintln!("replay: {why}");
    ExitCode::from(REFUSED)
}
