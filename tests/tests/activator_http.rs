//! `replay` on `activator/http.jsonl`: that all rows pass, and that it notices
//! what is not as recorded.

use std::fs;
use std::path::Path;
use std::process::Command;
use tests::replay::http::row::Row;
use tests::replay::http::{better, table};

fn recorded() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors/activator/http.jsonl");
    fs::read_to_string(path).unwrap()
}

fn rows() -> Vec<Row> {
    recorded().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Exit code, and what was printed, for these rows.
fn replay(test: &str, text: &str, options: &[&str]) -> (i32, String) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("http").join(test).join("activator");
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("http.jsonl");
    fs::write(&file, text).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_replay")).args(options).arg(&file).output().unwrap();
    (output.status.code().unwrap(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn every_row_is_as_recorded_or_better() {
    let (code, out) = replay("all", &recorded(), &[]);
    assert_eq!(code, 0, "{out}");
    assert!(out.ends_with("\n60 passed, 0 failed, 3 skipped\n"), "{out}");
}

#[test]
fn the_default_mode_differs_where_that_is_named_and_nowhere_else() {
    let (code, out) = replay("default", &recorded(), &["--mode", "default"]);
    assert_eq!(code, 0, "{out}");
    assert!(!out.contains("named as different in the default mode, but is as recorded"), "{out}");
    for (row, reason) in table::DIFFERENT_BY_DEFAULT {
        assert!(out.contains(&format!("{row}: differs in the default mode: {reason}")), "{row}: {out}");
    }
}

#[test]
fn a_broken_row_makes_replay_fail() {
    let plain = recorded().lines().next().unwrap().to_owned();
    for (number, (was, is)) in [
        ("200 OK", "201 OK"),
        ("X-From: pod", "X-From: app"),
        (r"\r\n\r\nhi", r"\r\n\r\nho"),
        ("K-Proxy-Request: activator", "K-Proxy-Request: a"),
        ("127.0.0.1", "127.0.0.2"),
        ("SPANID-00", "SPANID-01"),
        (r#""elapsed_ms_rounded": 0"#, r#""elapsed_ms_rounded": 900"#),
    ]
    .into_iter()
    .enumerate()
    {
        assert!(plain.contains(was));
        let (code, out) = replay(&format!("broken-{number}"), &plain.replace(was, is), &[]);
        assert_eq!(code, 1, "{is}: {out}");
        assert!(out.contains("htp-001: FAILED: "), "{out}");
    }
}

#[test]
fn checks_of_flaws_fail_on_the_recording_and_those_of_quirks_hold() {
    for row in rows().iter().filter(|row| row.verdict != "match") {
        let recorded = row.as_recorded();
        let checks: Vec<_> = better::of(&row.id).collect();
        let held = checks.iter().filter(|check| (check.look)(&recorded).is_ok()).count();
        match row.verdict.as_str() {
            "quirk" => assert!(held == checks.len() && held > 0, "{}", row.id),
            // Several may be needed to say what is better: one that fails is enough to tell.
            _ if checks.is_empty() => {}
            _ => assert!(better::hold(&row.id, &recorded).is_err(), "{}", row.id),
        }
    }
}
