//! Each reader for two seconds, its seeds first; `campaign fuzz` takes longer.

use std::time::Duration;
use tests::fuzz::{ALL, run};

macro_rules! targets {
    ($($name:ident),* $(,)?) => {
        $(#[test] fn $name() { tried(stringify!($name)); })*

        #[test]
        fn every_target_has_its_test() {
            let listed: Vec<&str> = ALL.iter().map(|target| target.name).collect();
            assert_eq!(listed, [$(stringify!($name)),*]);
        }
    };
}

targets!(template, readiness, forwarded, stat, request, answer, settings, differential);

fn tried(name: &str) {
    let target = ALL.iter().find(|target| target.name == name).unwrap();
    let outcome = run(target, Duration::from_secs(2), 1);
    if let Some(finding) = outcome.finding {
        panic!("{finding}");
    }
    assert!(outcome.new > 10, "{} of {} inputs did something new", outcome.new, outcome.tried);
}
