//! Policy and admission in a closed loop, over many random histories.

use super::{Arguments, Failure, Tally};
use crate::simulation::{Fault, Outcome, SIGHTS, Seen, replay, run as history};
use std::io::{self, Write};
use std::time::{Duration, Instant};

pub(super) const ABOUT: &str = "policy and admission over random histories, and planted faults
    --histories N   so many (10000)
    --from SEED     the first seed (1)
    --seed SEED     one history only, with its whole trace
    --fault NAME    with a planted fault: barging, lost-permit, double-release";

const HISTORIES: u64 = 10_000;

/// Histories in which a planted fault has to be found, one after the other.
const HISTORIES_TO_FIND_IN: u64 = 100;

/// Reports of failed histories that are written out.
const REPORTS: u64 = 5;

pub(super) fn run(mut arguments: Arguments, out: &mut dyn Write) -> Result<Tally, Failure> {
    let seed: Option<u64> = arguments.take("seed")?;
    let histories = arguments.take("histories")?.unwrap_or(HISTORIES);
    let from: u64 = arguments.take("from")?.unwrap_or(1);
    let fault = match arguments.take::<String>("fault")? {
        Some(name) => planted(&name)?,
        None => Fault::None,
    };
    arguments.finish()?;
    // A panic of the core is in the report; its own print would only be noise.
    std::panic::set_hook(Box::new(|_| {}));
    let mut tally = Tally::default();
    if let Some(seed) = seed {
        let outcome = replay(seed, fault);
        write!(out, "{outcome}")?;
        tally.count(!outcome.failed());
        return Ok(tally);
    }
    let seeds = from..from.saturating_add(histories);
    tally_histories(seeds.clone(), fault, &mut tally, out)?;
    if fault == Fault::None {
        repeat(seeds.start, &mut tally, out)?;
        for fault in Fault::PLANTED {
            let found = find(fault, seeds.start, out)?;
            tally.count(found);
        }
    }
    Ok(tally)
}

fn planted(name: &str) -> Result<Fault, Failure> {
    let known = Fault::PLANTED.into_iter().find(|fault| fault.as_str() == name);
    known.ok_or_else(|| Failure::Usage(format!("there is no fault {name} to plant")))
}

fn tally_histories(
    seeds: std::ops::Range<u64>,
    fault: Fault,
    tally: &mut Tally,
    out: &mut dyn Write,
) -> io::Result<()> {
    let begin = Instant::now();
    let (mut steps, mut requests, mut seen) = (0, 0, Seen::new());
    for seed in seeds.clone() {
        let outcome = history(seed, fault);
        steps += outcome.steps;
        requests += outcome.requests;
        for (name, times) in &outcome.seen {
            *seen.entry(name).or_default() += times;
        }
        tally.count(!outcome.failed());
        if outcome.failed() && tally.failed <= REPORTS {
            write!(out, "{outcome}")?;
        }
    }
    let minutes = minutes(begin.elapsed());
    writeln!(out, "seeds {} to {}", seeds.start, seeds.end.saturating_sub(1))?;
    writeln!(out, "{} histories, {requests} requests, {steps} steps, {minutes:.2} minutes", seeds.end - seeds.start)?;
    for name in SIGHTS {
        writeln!(out, "  seen {:>9} times: {name}", seen.get(name).copied().unwrap_or(0))?;
    }
    Ok(())
}

/// The same seed once more.
fn repeat(seed: u64, tally: &mut Tally, out: &mut dyn Write) -> io::Result<()> {
    let [one, two, other] = [seed, seed, seed.wrapping_add(1)].map(|seed| history(seed, Fault::None).trace_hash);
    writeln!(out, "seed {seed}: trace {one:016x}, again {two:016x}; another seed {other:016x}")?;
    tally.count(one == two && one != other);
    Ok(())
}

/// Plants a fault until a history notices.
fn find(fault: Fault, from: u64, out: &mut dyn Write) -> io::Result<bool> {
    for tried in 1..=HISTORIES_TO_FIND_IN {
        let outcome = history(from.wrapping_add(tried - 1), fault);
        if outcome.failed() {
            writeln!(out, "planted {}: found in history {tried}, {}", fault.as_str(), finding(&outcome))?;
            return Ok(true);
        }
    }
    writeln!(out, "planted {}: NOT FOUND in {HISTORIES_TO_FIND_IN} histories", fault.as_str())?;
    Ok(false)
}

fn finding(outcome: &Outcome) -> String {
    let found: Vec<String> =
        outcome.found.iter().map(|found| format!("{}: {}", found.invariant.as_str(), found.what)).collect();
    format!("seed {} step {}, by {}", outcome.seed, outcome.steps, found.join("; "))
}

fn minutes(time: Duration) -> f64 {
    time.as_secs_f64() / 60.0
}
