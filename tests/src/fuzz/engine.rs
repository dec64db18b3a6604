//! The loop: an input, the property, and what was new about it.

use super::Target;
use super::corpus::{escape, seeds};
use super::mutate::{LONGEST, mutate};
use crate::simulation::draw::Draw;
use std::any::Any;
use std::collections::HashSet;
use std::fmt;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// One input may take this long. So much that a busy machine cannot reach it,
/// and so little that no reader of 4 KiB has an excuse.
const SLOW: Duration = Duration::from_secs(2);
/// What this process may grow by, at its peak.
const GROWTH_MAX: u64 = 256 << 20;
/// How often time and memory are looked at.
const ROUND: u64 = 256;
/// Inputs that are kept to be changed again.
const KEPT_MAX: usize = 4096;

/// How a run ended.
pub struct Outcome {
    /// Inputs that were tried.
    pub tried: u64,
    /// Those that did something new.
    pub new: usize,
    /// The first that broke the property, made as small as it could be.
    pub finding: Option<Finding>,
}

/// A broken property.
pub struct Finding {
    /// The input, as a line of the seeds.
    pub input: String,
    /// What is wrong.
    pub why: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n  input: {}", self.why, self.input)
    }
}

/// Tries a target for so long.
pub fn run(target: &Target, time: Duration, seed: u64) -> Outcome {
    let (began, at_start) = (Instant::now(), peak_bytes());
    let mut draw = Draw::new(seed);
    let mut known = HashSet::new();
    let mut kept = Vec::new();
    let mut outcome = Outcome { tried: 0, new: 0, finding: None };
    let mut first = seeds(target.seeds).into_iter();
    while !outcome.tried.is_multiple_of(ROUND) || began.elapsed() < time {
        let input = match first.next() {
            Some(seed) => seed,
            None => next(target, &kept, &mut draw),
        };
        outcome.tried += 1;
        match judge(target, &input) {
            Ok(seen) => {
                if known.insert(seen) {
                    outcome.new += 1;
                    let place = if kept.len() < KEPT_MAX { kept.len() } else { draw.below(KEPT_MAX as u64) as usize };
                    kept.splice(place..(place + 1).min(kept.len()), [input]);
                }
            }
            Err(why) => {
                outcome.finding = Some(smaller(target, input, why));
                return outcome;
            }
        }
        if outcome.tried.is_multiple_of(ROUND) && peak_bytes().saturating_sub(at_start) > GROWTH_MAX {
            let why = format!("the last {ROUND} inputs took more than {GROWTH_MAX} bytes");
            outcome.finding = Some(Finding { input: escape(&input_before(&kept)), why });
            return outcome;
        }
    }
    outcome
}

fn input_before(kept: &[Vec<u8>]) -> Vec<u8> {
    kept.last().cloned().unwrap_or_default()
}

fn next(target: &Target, kept: &[Vec<u8>], draw: &mut Draw) -> Vec<u8> {
    let pick = |draw: &mut Draw| match kept.len() {
        0 => Vec::new(),
        many => kept[draw.below(many as u64) as usize].clone(),
    };
    let mut input = if draw.one_in(2) { (target.sentence)(draw) } else { pick(draw) };
    if !draw.one_in(4) {
        let other = pick(draw);
        mutate(&mut input, &other, target.words, draw);
    }
    input.truncate(LONGEST);
    input
}

/// Of this thread: a machine that does other things is no fault of an input.
fn cpu_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// The property, a panic or too much time being broken ones too.
fn judge(target: &Target, input: &[u8]) -> Result<u64, String> {
    let began = cpu_time();
    let judged = catch_unwind(AssertUnwindSafe(|| (target.judge)(input)));
    let took = cpu_time().saturating_sub(began);
    match judged {
        Err(panic) => Err(format!("it panics: {}", words(&*panic))),
        Ok(Ok(_)) if took > SLOW => Err(format!("it takes {took:?}")),
        Ok(judged) => judged,
    }
}

fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("without a word")
}

/// Leaves out what is not needed for the property to be broken.
fn smaller(target: &Target, mut input: Vec<u8>, mut why: String) -> Finding {
    let mut step = input.len() / 2;
    while step > 0 {
        let mut at = 0;
        while at < input.len() {
            let mut less = input.clone();
            less.drain(at..(at + step).min(less.len()));
            match judge(target, &less) {
                Err(still) => (input, why) = (less, still),
                Ok(_) => at += step,
            }
        }
        step /= 2;
    }
    Finding { input: escape(&input), why }
}

/// The most memory that this process ever had.
fn peak_bytes() -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_ascii_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or_default() * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_secs(20);

    fn target(judge: fn(&[u8]) -> Result<u64, String>) -> Target {
        let sentence = |_: &mut Draw| b"begin".to_vec();
        Target { name: "", about: "", seeds: "one\nSEED", words: &["word"], sentence, judge }
    }

    #[test]
    fn a_broken_property_is_found_and_made_small() {
        let wrong = |input: &[u8]| match input.windows(4).any(|four| four == b"word") {
            true => Err("it has the word".to_owned()),
            false => Ok(input.len() as u64),
        };
        let found = run(&target(wrong), SHORT, 1).finding.unwrap();
        assert_eq!((found.input.as_str(), found.why.as_str()), ("word", "it has the word"));
    }

    #[test]
    fn a_panic_is_a_broken_property() {
        let panics = |input: &[u8]| {
            assert!(input.len() < 3, "too long");
            Ok(0)
        };
        let found = run(&target(panics), SHORT, 1).finding.unwrap();
        assert_eq!((found.input.len(), found.why.as_str()), (3, "it panics: too long"));
    }

    #[test]
    fn seeds_come_first_and_a_good_reader_is_tried_until_the_time_is_up() {
        let outcome = run(&target(|input| Ok(input.len() as u64)), Duration::ZERO, 1);
        assert!(outcome.finding.is_none());
        assert_eq!((outcome.tried, outcome.new > 2), (0, false));
        let outcome = run(&target(|input| Ok(input.len() as u64)), Duration::from_millis(20), 1);
        assert!(outcome.tried >= ROUND && outcome.new > 2);
    }
}
