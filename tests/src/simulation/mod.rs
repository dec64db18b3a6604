//! Policy and admission in a closed loop, in simulated time, from one seed.
//!
//! Clients come, wait, are served, handed back, and leave in every state; pods
//! start, crash, lose their readiness, are resized, doubted and removed; stats
//! become decisions, and decisions pods and paths. Nothing of it is real but
//! the core: [`policy::admit`], [`policy::timeline`], [`policy::collect`],
//! [`policy::scale`] and [`policy::zero`], called as the shells call them.
//!
//! A second book-keeping (`shadow`) says after each call what has to hold
//! ([`Invariant`]). That it can notice anything is shown by planted faults
//! ([`Fault`]), that histories get everywhere by what was [`Outcome::seen`].
//!
//! It is not a model of the network: there, whole components run
//! (`tests/chain.rs`).

mod clients;
mod control;
mod disturb;
pub(crate) mod draw;
mod ending;
mod fault;
mod invariant;
mod platform;
mod scaler;
mod setup;
mod shadow;
mod trace;
mod world;

pub use fault::Fault;
pub use invariant::{Invariant, Violation};
pub use world::Seen;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use trace::{LINES_IN_REPORT, Trace};
use world::World;

/// Everything that any history is to come across: if one is never seen, the
/// simulation has lost a part of what it is for.
pub const SIGHTS: &[&str] = &[
    "claimed",
    "claimed a refusal",
    "direct",
    "doubted",
    "flood",
    "handed back",
    "left when granted",
    "left when refused",
    "left while queued",
    "left while running",
    "let go",
    "limit changed",
    "ordered pods",
    "ordered zero",
    "path back",
    "path direct",
    "pod back",
    "pod crashed",
    "pod started",
    "pod terminated",
    "queued",
    "readiness lost",
    "refused by bounds",
    "refused in trouble",
    "removed with requests",
    "revision removed",
    "route lost",
    "trouble",
    "woken from zero",
];

/// What came of one history.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What it was made from.
    pub seed: u64,
    /// The fault that was planted.
    pub fault: Fault,
    /// Events that happened.
    pub steps: u64,
    /// Requests that came.
    pub requests: u64,
    /// A number that stands for the whole trace.
    pub trace_hash: u64,
    /// What does not hold, at the last step; empty = all held.
    pub found: Vec<Violation>,
    /// The last lines of the trace, or all of them.
    pub lines: Vec<String>,
    /// What the history came across.
    pub seen: Seen,
}

/// One history; the trace's last lines are kept.
pub fn run(seed: u64, fault: Fault) -> Outcome {
    history(seed, fault, LINES_IN_REPORT)
}

/// One history with its whole trace.
pub fn replay(seed: u64, fault: Fault) -> Outcome {
    history(seed, fault, usize::MAX)
}

fn history(seed: u64, fault: Fault, keep: usize) -> Outcome {
    let mut world = World::new(seed, fault, Trace::new(keep));
    // The core's own assertions may be faster than the checks.
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| world.run())) {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a word");
        world.shadow.found.push(Violation::new(Invariant::Panic, text));
    }
    Outcome {
        seed,
        fault,
        steps: world.steps,
        requests: u64::from(world.next_request),
        trace_hash: world.trace.hash(),
        found: world.shadow.found,
        lines: world.trace.into_lines(),
        seen: world.seen,
    }
}

impl Outcome {
    /// True when something does not hold.
    pub fn failed(&self) -> bool {
        !self.found.is_empty()
    }

    /// The command that shows this history again.
    pub fn replay_command(&self) -> String {
        let fault = match self.fault {
            Fault::None => String::new(),
            planted => format!(" --fault {}", planted.as_str()),
        };
        format!("cargo run --release -p tests --bin campaign -- simulation --seed {}{fault}", self.seed)
    }
}

/// A report for people: what failed, what went before, how to see it again.
impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Outcome { seed, steps, requests, trace_hash, .. } = self;
        for line in &self.lines {
            writeln!(f, "  {line}")?;
        }
        write!(f, "seed {seed}: ")?;
        if !self.failed() {
            return writeln!(f, "all holds, {steps} steps, {requests} requests, trace {trace_hash:016x}");
        }
        writeln!(f, "FAILED at step {steps}, planted: {}", self.fault.as_str())?;
        for Violation { invariant, what } in &self.found {
            writeln!(f, "  {}: {what}", invariant.as_str())?;
        }
        writeln!(f, "  again: {}", self.replay_command())
    }
}
