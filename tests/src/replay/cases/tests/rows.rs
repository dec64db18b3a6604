//! The rows of the file, judged without a sidecar.

use super::recorded::outcomes;
use crate::replay::cases::better;
use crate::replay::cases::case::{Case, Kind};
use crate::replay::cases::compare::{self, Slack};
use crate::replay::cases::judge::judge;
use crate::replay::cases::observed::Observed;
use crate::replay::cases::table::DIFFERENT_BY_DEFAULT;
use crate::replay::row::Miss;
use policy::compat::Compat;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

/// At most so many rows may be without a check (issue of the sidecar).
const NOT_JUDGED_AT_MOST: usize = 10;

/// At most so many differences of the default mode may be named.
const NAMED_AT_MOST: usize = 12;

fn cases() -> Vec<Case> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors/queue-proxy/cases.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn seen<'a>(case: &'a Case, got: &'a [Value], mode: Compat) -> Observed<'a> {
    Observed { case, got, mode, slack: Slack::default() }
}

#[test]
fn every_row_is_understood_and_has_its_own_name() {
    let cases = cases();
    let names: BTreeSet<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    assert_eq!((cases.len(), names.len()), (192, 192));
}

#[test]
fn what_was_recorded_agrees_with_the_recording() {
    for case in cases().iter().filter(|case| case.verdict == Kind::Match) {
        let got = outcomes(case);
        assert_eq!(judge(&seen(case, &got, Compat::Strict)), Ok(()), "{}", case.name);
    }
}

#[test]
fn anything_else_than_what_was_recorded_is_noticed() {
    let mut changes = 0;
    for case in cases().iter().filter(|case| case.verdict == Kind::Match) {
        for (step, got) in case.steps.iter().zip(outcomes(case)) {
            for (key, _) in step.expect.as_object().into_iter().flatten() {
                // That there is no Date, or how often bytes came, is free.
                let free = step.expect[key] == false || got.get(key).is_none();
                if free || ["series", "stat", "types", "bucket_bounds"].contains(&key.as_str()) {
                    continue;
                }
                let mut changed = got.clone();
                changed[key] = match &got[key] {
                    Value::Null => json!("something"),
                    Value::Bool(flag) => json!(!flag),
                    Value::Number(number) => json!(number.as_f64().unwrap() + 1e6),
                    Value::String(text) => json!(format!("{text}!")),
                    Value::Array(all) => json!([all.as_slice(), &[json!(["X-More", "1"])]].concat()),
                    other => panic!("{}: {key}: {other}", case.name),
                };
                changes += 1;
                let noticed = compare::step(step, &changed, Slack::default());
                assert!(noticed.is_err(), "{}: {} {key}", case.name, step.op.name());
            }
        }
    }
    assert!(changes > 1000, "{changes}");
}

#[test]
fn a_part_that_is_gone_is_noticed() {
    for case in cases().iter().filter(|case| case.verdict == Kind::Match) {
        let mut got = outcomes(case);
        let Some(place) =
            case.steps.iter().position(|step| step.op.name() == "recv" && !step.expect["status"].is_null())
        else {
            continue;
        };
        for instead in [json!({ "timeout": true }), json!({ "eof": true })] {
            got[place] = instead;
            assert!(judge(&seen(case, &got, Compat::Strict)).is_err(), "{}", case.name);
        }
    }
}

#[test]
fn every_named_check_of_a_flaw_fails_on_the_originals_outcome() {
    let cases = cases();
    let flaws: Vec<&Case> = cases.iter().filter(|case| case.verdict == Kind::Flaw).collect();
    assert_eq!(flaws.len(), 19);
    for case in flaws {
        let checks = better::of(&case.name);
        assert!(!checks.is_empty(), "{} has no check", case.name);
        let got = outcomes(case);
        for check in checks {
            let held = (check.look)(&seen(case, &got, Compat::Better));
            assert!(held.is_err(), "{}: the original is fine in that {}", case.name, check.name);
        }
    }
}

#[test]
fn every_named_check_of_a_quirk_holds_for_the_original() {
    for case in cases().iter().filter(|case| case.verdict == Kind::Quirk) {
        // Its expression stands for quotes that are not escaped, which the
        // template function never writes: the row was recorded from others.
        if case.name == "request-log-default" {
            continue;
        }
        let got = outcomes(case);
        assert_eq!(judge(&seen(case, &got, Compat::Strict)), Ok(()), "{}", case.name);
    }
}

#[test]
fn hardly_a_row_is_without_a_check() {
    let cases = cases();
    let others = cases.iter().filter(|case| case.verdict != Kind::Match);
    let without: Vec<&str> =
        others.filter(|case| better::of(&case.name).is_empty()).map(|case| case.name.as_str()).collect();
    assert!(without.len() <= NOT_JUDGED_AT_MOST, "{without:?}");
}

#[test]
fn every_check_is_for_a_row_that_is_not_to_be_matched() {
    let cases = cases();
    for check in better::all() {
        let case = cases.iter().find(|case| case.name == check.case);
        assert!(case.is_some_and(|case| case.verdict != Kind::Match), "{}", check.case);
    }
}

#[test]
fn differences_of_the_default_mode_are_few_and_of_rows_to_be_matched() {
    let cases = cases();
    assert!(DIFFERENT_BY_DEFAULT.len() <= NAMED_AT_MOST);
    for named in DIFFERENT_BY_DEFAULT {
        let case = cases.iter().find(|case| case.name == named.row);
        let case = case.filter(|case| case.verdict == Kind::Match);
        let says_something = case.is_some_and(|case| !case.steps[named.step].expect.is_null());
        assert!(says_something, "{} step {}", named.row, named.step);
    }
}

#[test]
fn a_row_without_a_check_is_not_judged() {
    let mut case = cases().into_iter().find(|case| case.verdict == Kind::Quirk).unwrap();
    case.name = "unheard-of".to_owned();
    let got = outcomes(&case);
    assert_eq!(judge(&seen(&case, &got, Compat::Strict)), Err(Miss::NotJudged));
}
