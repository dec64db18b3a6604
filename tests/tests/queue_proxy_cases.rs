//! `replay` on rows of `queue-proxy/cases.jsonl`, with small scripts in place
//! of the sidecar: how cases are kept apart, and what counts as a failure.

use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A folder of the test's own with a script as its sidecar.
struct Bench {
    folder: PathBuf,
}

impl Bench {
    fn new(test: &str, script: &str) -> Bench {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cases").join(test);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("queue-proxy")).unwrap();
        let sidecar = folder.join("bin/queue-proxy");
        fs::create_dir_all(sidecar.parent().unwrap()).unwrap();
        fs::write(&sidecar, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&sidecar, fs::Permissions::from_mode(0o755)).unwrap();
        Bench { folder }
    }

    /// Exit code, and what was printed.
    fn replay(&self, rows: &[Value], options: &[&str]) -> (i32, String) {
        let file = self.folder.join("queue-proxy/cases.jsonl");
        let lines: Vec<String> = rows.iter().map(Value::to_string).collect();
        fs::write(&file, lines.join("\n")).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_replay"))
            .args(options)
            .arg(&file)
            .env("ZEROSCALE_BIN_DIR", self.folder.join("bin"))
            .env("ZEROSCALE_SOMETHING", "of whoever runs the tests")
            .output()
            .unwrap();
        (output.status.code().unwrap(), String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// A row of the recording.
fn recorded(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors/queue-proxy/cases.jsonl");
    let text = fs::read_to_string(path).unwrap();
    let mut rows = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    rows.find(|row| row["name"] == name).unwrap()
}

/// A row of our own.
fn row(name: &str, steps: Value) -> Value {
    json!({
        "name": name, "group": "own", "about": "", "verdict": "match", "wait_for_ports": false,
        "app": { "type": "http1" }, "steps": steps,
    })
}

const MISSING: &str = "start-missing-container-concurrency";
const SAYS_SO: &str = "echo required key CONTAINER_CONCURRENCY missing value >&2; exit 1";

#[test]
fn a_row_that_is_as_recorded_passes() {
    let bench = Bench::new("passes", SAYS_SO);
    let (code, out) = bench.replay(&[recorded(MISSING)], &[]);
    assert_eq!(code, 0, "{out}");
    assert!(out.ends_with("cases.jsonl: 1 passed, 0 failed, 0 not judged\n1 passed, 0 failed\n"), "{out}");
}

#[test]
fn a_broken_row_makes_replay_fail_with_the_first_difference() {
    let bench = Bench::new("broken", SAYS_SO);
    let mut row = recorded(MISSING);
    row["steps"][0]["expect"]["exit_code"] = json!(2);
    let (code, out) = bench.replay(&[row], &[]);
    assert_eq!(code, 1, "{out}");
    assert!(out.contains(&format!("{MISSING}: FAILED: step 0 (wait_exit): exit_code: expected 2, got 1\n")), "{out}");
}

#[test]
fn a_sidecar_that_does_not_start_fails_its_row() {
    let bench = Bench::new("dies", SAYS_SO);
    let (code, out) = bench.replay(&[recorded("get-basic")], &["-v"]);
    assert_eq!(code, 1, "{out}");
    assert!(out.contains("ended with code 1 before port 8022 was open"), "{out}");
}

#[test]
fn the_sidecar_gets_the_environment_of_the_row_and_no_other() {
    let bench = Bench::new("environment", "env | sort");
    let stdout = |lines: Value| {
        json!([
            { "op": "wait_exit", "expect": { "exit_code": 0 } },
            { "op": "stdout", "grep": "^(ZEROSCALE_|HOME=|CARGO|USER)", "expect": { "lines": lines } },
        ])
    };
    let strict = row("strict", stdout(json!([{ "text": "USER_PORT=8080" }, { "text": "ZEROSCALE_COMPAT=strict" }])));
    let (code, out) = bench.replay(&[strict], &[]);
    assert_eq!(code, 0, "{out}");
    let default = row("default", stdout(json!([{ "text": "USER_PORT=8080" }])));
    let (code, out) = bench.replay(&[default], &["--mode", "default"]);
    assert_eq!(code, 0, "{out}");
}

#[test]
fn cases_at_the_same_time_have_ports_of_their_own() {
    let bench = Bench::new("ports", "exec sleep 30");
    let steps = json!([
        { "op": "send", "port": 8080, "data": "GET / HTTP/1.1\r\n\r\n" },
        { "op": "sleep", "ms": 300 },
        { "op": "recv", "expect": { "status": 200, "body": "ok" } },
        { "op": "upstream", "expect": { "requests": [{ "target": "/" }], "connections": 1 } },
    ]);
    let rows: Vec<Value> = (0..4).map(|number| row(&format!("row-{number}"), steps.clone())).collect();
    let (code, out) = bench.replay(&rows, &["--jobs", "4"]);
    assert_eq!(code, 0, "{out}");
    assert!(out.ends_with("\n4 passed, 0 failed\n"), "{out}");
}

#[test]
fn nothing_of_a_case_stays_behind() {
    const MARK: &str = "86401.25";
    let bench = Bench::new("leftovers", &format!("sleep {MARK} & exec sleep {MARK}"));
    let (code, out) = bench.replay(&[row("leaves", json!([{ "op": "sleep", "ms": 300 }]))], &[]);
    assert_eq!(code, 0, "{out}");
    std::thread::sleep(std::time::Duration::from_millis(200));
    let command_lines =
        fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    let left = command_lines.filter(|line| String::from_utf8_lossy(line).contains(MARK)).count();
    assert_eq!(left, 0);
}

#[test]
fn cases_can_be_picked_and_are_told_step_by_step() {
    let bench = Bench::new("picked", SAYS_SO);
    let rows = [recorded(MISSING), recorded("get-basic")];
    let (code, out) = bench.replay(&rows, &["--case", MISSING]);
    assert_eq!(code, 0, "{out}");
    assert!(out.contains("  step 0: wait_exit"), "{out}");
    assert!(out.ends_with("\n1 passed, 0 failed\n"), "{out}");
    let (code, out) = bench.replay(&rows, &["--case", "unheard-of"]);
    assert_eq!(code, 1);
    assert!(out.contains("unheard-of: FAILED: there is no such case\n"), "{out}");
}

#[test]
fn a_named_difference_of_the_default_mode_is_no_failure() {
    let bench = Bench::new("named", "exec sleep 30");
    let name = "request-log-aborted";
    let connects = json!({ "op": "connect", "expect": { "connected": true } });
    let mut named = row(name, json!([{ "op": "sleep", "ms": 1 }, connects]));
    let (code, out) = bench.replay(&[named.clone()], &["--mode", "default"]);
    assert_eq!(code, 0, "{out}");
    assert!(out.contains(&format!("{name}: differs in the default mode: ")), "{out}");
    assert!(out.ends_with("\n0 passed, 0 failed, 1 skipped\n"), "{out}");
    assert_eq!(bench.replay(&[named.clone()], &[]).0, 1);
    // Another step than the one that is named.
    assert_eq!(bench.replay(&[row(name, json!([connects]))], &["--mode", "default"]).0, 1);
    named["name"] = json!("another");
    assert_eq!(bench.replay(&[named], &["--mode", "default"]).0, 1);
}
