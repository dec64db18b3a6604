//! Policy and admission in a closed loop, at CI size; `campaign simulation`
//! does the same at length.

use std::collections::BTreeSet;
use std::process::Command;
use tests::simulation::{Fault, Invariant, Outcome, SIGHTS, Seen, replay, run};

/// The campaign's own seeds begin at 1 too: what fails here fails there.
const FIRST_SEED: u64 = 1;
const HISTORIES: u64 = 1_500;

/// Histories in which a planted fault has to be found.
const HISTORIES_TO_FIND_IN: u64 = 100;

fn first_noticed(fault: Fault) -> Outcome {
    let mut histories = (FIRST_SEED..FIRST_SEED + HISTORIES_TO_FIND_IN).map(|seed| run(seed, fault));
    histories.find(Outcome::failed).unwrap_or_else(|| panic!("{} was not noticed", fault.as_str()))
}

/// The invariants that caught it.
fn caught_by(fault: Fault) -> BTreeSet<Invariant> {
    first_noticed(fault).found.iter().map(|found| found.invariant).collect()
}

fn campaign(arguments: &[&str]) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_campaign")).args(arguments).output().unwrap();
    (output.status.code().unwrap(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn every_invariant_holds_in_every_history_and_histories_get_everywhere() {
    let mut seen = Seen::new();
    for seed in FIRST_SEED..FIRST_SEED + HISTORIES {
        let outcome = run(seed, Fault::None);
        assert!(!outcome.failed(), "\n{outcome}");
        for (name, times) in outcome.seen {
            *seen.entry(name).or_default() += times;
        }
    }
    let listed: BTreeSet<&str> = SIGHTS.iter().copied().collect();
    let met: BTreeSet<&str> = seen.keys().copied().collect();
    assert_eq!(met, listed);
}

#[test]
fn the_same_seed_gives_the_same_trace_and_another_seed_another() {
    let hashes: BTreeSet<u64> = (0..100)
        .map(|seed| {
            let (one, two) = (run(seed, Fault::None), replay(seed, Fault::None));
            assert_eq!((one.trace_hash, one.steps), (two.trace_hash, two.steps), "seed {seed}");
            assert!(two.lines.ends_with(&one.lines) && two.lines.len() >= one.lines.len());
            one.trace_hash
        })
        .collect();
    assert_eq!(hashes.len(), 100);
}

#[test]
fn a_newcomer_that_takes_a_granted_slot_is_noticed() {
    assert!(caught_by(Fault::Barging).contains(&Invariant::Order));
}

#[test]
fn a_slot_that_its_waiter_never_gave_back_is_noticed() {
    assert!(caught_by(Fault::LostPermit).contains(&Invariant::Slots));
}

/// With assertions compiled in, the core itself may be the first to notice.
#[test]
fn a_slot_that_comes_back_twice_is_noticed() {
    let caught = caught_by(Fault::DoubleRelease);
    assert!(caught.contains(&Invariant::Slots) || caught.contains(&Invariant::Panic), "{caught:?}");
}

#[test]
fn a_report_names_the_step_what_went_before_and_the_command_that_shows_it_again() {
    let outcome = first_noticed(Fault::Barging);
    let report = outcome.to_string();
    assert_eq!(outcome.lines.len(), 30);
    assert!(report.contains(&format!("seed {}: FAILED at step {}", outcome.seed, outcome.steps)), "{report}");
    let command = outcome.replay_command();
    assert!(report.contains(&command));
    let (_, arguments) = command.split_once(" -- ").unwrap();
    let (code, out) = campaign(&arguments.split(' ').collect::<Vec<_>>());
    assert_eq!(code, 1);
    assert!(out.contains(outcome.lines.last().unwrap()), "{out}");
    assert!(out.ends_with("\n0 passed, 1 failed\n"), "{out}");
}

#[test]
fn the_campaign_prints_its_figures_and_finds_the_planted_faults() {
    let (code, out) = campaign(&["simulation", "--histories", "60"]);
    assert_eq!(code, 0, "{out}");
    assert!(out.starts_with("seeds 1 to 60\n60 histories, "), "{out}");
    for fault in Fault::PLANTED {
        assert!(out.contains(&format!("planted {}: found in history ", fault.as_str())), "{out}");
    }
    // Sixty histories, the trace, and three faults.
    assert!(out.ends_with("\n64 passed, 0 failed\n"), "{out}");
}

#[test]
fn campaigns_are_listed_and_a_command_line_that_makes_no_sense_exits_64() {
    let (code, out) = campaign(&["--list"]);
    assert_eq!(code, 0);
    assert!(out.contains("simulation: "), "{out}");
    let senseless: [&[&str]; 5] =
        [&[], &["odd"], &["simulation", "odd"], &["simulation", "--odd", "1"], &["simulation", "--fault", "odd"]];
    for line in senseless {
        assert_eq!(campaign(line), (64, String::new()), "{line:?}");
    }
}
