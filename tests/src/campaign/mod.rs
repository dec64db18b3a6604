//! Long tests, run by hand: soaks, large counts, full figures. `cargo test`
//! shows the same at a reduced size.
//!
//! Each campaign is a file here and a row of [`ALL`]. It writes what it does
//! as it goes, and gives back a [`Tally`].

mod arguments;
mod autoscaler_load;
mod burst;
mod cold_start;
mod cost;
mod differential;
mod early_answers;
mod fuzz;
mod held;
mod kills;
mod leavers;
mod leaving;
mod loads;
mod pod_end;
mod report;
mod reuse;
mod scraping;
mod simulation;
mod soak;
mod start_failures;
mod wake_signal;
mod zero_and_back;

pub use arguments::Arguments;

use std::io::{self, Write};

/// What to print when the command line makes no sense.
pub const USAGE: &str = "usage: campaign --list | NAME [OPTION...] [FILE...]";

/// One of the campaigns.
pub struct Campaign {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it shows, and its options.
    pub about: &'static str,
    /// Runs it.
    pub run: fn(Arguments, &mut dyn Write) -> Result<Tally, Failure>,
}

/// All there are.
pub const ALL: &[Campaign] = &[
    Campaign { name: "simulation", about: simulation::ABOUT, run: simulation::run },
    Campaign { name: "zero-and-back", about: zero_and_back::ABOUT, run: zero_and_back::run },
    Campaign { name: "cold-start", about: cold_start::ABOUT, run: cold_start::run },
    Campaign { name: "burst", about: burst::ABOUT, run: burst::run },
    Campaign { name: "leavers", about: leavers::ABOUT, run: leavers::run },
    Campaign { name: "start-failures", about: start_failures::ABOUT, run: start_failures::run },
    Campaign { name: "kills", about: kills::ABOUT, run: kills::run },
    Campaign { name: "held", about: held::ABOUT, run: held::run },
    Campaign { name: "loads", about: loads::ABOUT, run: loads::run },
    Campaign { name: "leaving", about: leaving::ABOUT, run: leaving::run },
    Campaign { name: "wake-signal", about: wake_signal::ABOUT, run: wake_signal::run },
    Campaign { name: "pod-end", about: pod_end::ABOUT, run: pod_end::run },
    Campaign { name: "early-answers", about: early_answers::ABOUT, run: early_answers::run },
    Campaign { name: "reuse", about: reuse::ABOUT, run: reuse::run },
    Campaign { name: "scraping", about: scraping::ABOUT, run: scraping::run },
    Campaign { name: "autoscaler-load", about: autoscaler_load::ABOUT, run: autoscaler_load::run },
    Campaign { name: "cost", about: cost::ABOUT, run: cost::run },
    Campaign { name: "fuzz", about: fuzz::ABOUT, run: fuzz::run },
    Campaign { name: "differential", about: differential::ABOUT, run: differential::run },
    Campaign { name: "soak", about: soak::ABOUT, run: soak::run },
];

/// The campaign of that name.
pub fn find(name: &str) -> Option<&'static Campaign> {
    ALL.iter().find(|campaign| campaign.name == name)
}

/// How many of the things that a campaign shows did show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Those that did.
    pub passed: u64,
    /// Those that did not.
    pub failed: u64,
}

impl Tally {
    /// Counts one more.
    pub fn count(&mut self, passed: bool) {
        *(if passed { &mut self.passed } else { &mut self.failed }) += 1;
    }
}

/// Why a campaign could not be run.
#[derive(Debug)]
pub enum Failure {
    /// The command line makes no sense; one sentence for people.
    Usage(String),
    /// Something outside of it went wrong.
    Io(io::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Io(error)
    }
}
