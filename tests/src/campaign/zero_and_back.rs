//! A command of everybody's, from zero and back, twice.

use super::report::{NO_SLACK, table};
use super::{Arguments, Failure, Tally};
use crate::floor::trial::zero_and_back;
use std::ffi::OsString;
use std::io::Write;

pub(super) const ABOUT: &str = "python3 -m http.server from zero and back
    --rounds N      so many times (2)";

pub(super) fn run(mut arguments: Arguments, out: &mut dyn Write) -> Result<Tally, Failure> {
    let rounds = arguments.take("rounds")?.unwrap_or(2);
    arguments.finish()?;
    let mut tally = Tally::default();
    let command = ["python3", "-m", "http.server", "{port}"].map(OsString::from);
    table("python3 -m http.server {port}", zero_and_back::run(&command, rounds, NO_SLACK), &mut tally, out)?;
    Ok(tally)
}
