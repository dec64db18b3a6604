//! The recorded vectors, file by file, and `replay` itself: that it notices a
//! broken row of every file, and its exit codes.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tests::replay::{Options, Tally, judge_file, known};

/// How a row is broken for a test: in the first row of `kind` that has
/// something at `pointer`, that is changed.
struct Break {
    kind: Option<&'static str>,
    pointer: &'static str,
}

const fn any(pointer: &'static str) -> Break {
    Break { kind: None, pointer }
}

const fn of(kind: &'static str, pointer: &'static str) -> Break {
    Break { kind: Some(kind), pointer }
}

/// Every judged file: rows that pass, rows without a judge, and how to break
/// a row of each of its kinds.
const FILES: &[(&str, &str, usize, usize, &[Break])] = &[
    ("activator", "breaker.jsonl", 9, 0, &[any("/ops/2/pending_or_running"), any("/ops/0/limit")]),
    (
        "activator",
        "capacity_assign.jsonl",
        294,
        0,
        &[
            of("pod", "/revision_capacity"),
            of("pod", "/pod_capacities/0"),
            of("pod", "/assigned/0"),
            of("pod", "/policy"),
            of("cluster_ip", "/revision_capacity"),
        ],
    ),
    (
        "activator",
        "capacity_public_endpoints.jsonl",
        27,
        0,
        &[any("/activators"), any("/index"), any("/assigned/0"), any("/revision_capacity")],
    ),
    (
        "activator",
        "capacity_sequences.jsonl",
        55,
        0,
        &[
            any("/steps/0/assigned/0"),
            any("/steps/1/revision_capacity"),
            any("/steps/1/backends"),
            any("/steps/1/cluster_ip_in_use"),
        ],
    ),
    ("activator", "lb.jsonl", 61, 0, &[any("/ops/0/chosen"), any("/pods/0/capacity")]),
    (
        "activator",
        "probe.jsonl",
        63,
        0,
        &[
            any("/steps/0/probed/0"),
            any("/steps/0/updates/0/dests/0"),
            any("/steps/0/updates/0/cluster_ip"),
            any("/steps/0/healthy_after/0"),
            any("/steps/0/cluster_ip_healthy"),
            any("/steps/0/pods_addressable"),
            any("/steps/0/timer_armed_after"),
        ],
    ),
    (
        "activator",
        "reporter.jsonl",
        45,
        0,
        &[any("/events/0/emitted/0/0/request_count"), any("/events/2/emitted/0/0/average_concurrent_requests")],
    ),
    (
        "activator",
        "sks.jsonl",
        125,
        0,
        &[of("subset", "/chosen/0"), of("private_name", "/private_service"), of("num_activators", "/num_activators")],
    ),
    (
        "activator",
        "stat_wire.jsonl",
        33,
        0,
        &[of("encode", "/messages/0/request_count"), of("decode", "/messages/0/request_count"), of("decode", "/error")],
    ),
    (
        "autoscaler",
        "collection.jsonl",
        129,
        0,
        &[
            of("sample_size", "/size"),
            of("merge", "/queries/0/2"),
            of("wire_encode", "/messages/0/stat/avg"),
            of("wire_decode", "/messages/0/stat/timestamp"),
            of("scrape", "/results/0/error"),
            of("scrape", "/results/0/pods_addressable_after"),
            of("scrape", "/results/0/stat/count"),
            of("http_scrape", "/stat/uptime"),
            of("http_scrape", "/might_be_mesh"),
            of("http_scrape", "/error"),
            of("scrape_error_inform", "/outcomes/1/1"),
        ],
    ),
    (
        "autoscaler",
        "config.jsonl",
        350,
        0,
        &[
            of("config", "/values/max-scale-up-rate"),
            of("config", "/values/stable-window-ns"),
            of("config", "/values/enable-scale-to-zero"),
            of("config", "/error_kind"),
            of("annotations", "/errors/0"),
            of("annotations", "/ok"),
            of("resolve", "/decider/target"),
            of("resolve", "/decider/metric"),
            of("resolve", "/decider/scale_down_delay_ns"),
            of("resolve", "/metric_spec/panic_window_ns"),
            of("resolve", "/metric_spec/algorithm"),
            of("resolve", "/bounds/1"),
            of("resolve", "/class"),
            of("hpa", "/max"),
            of("hpa", "/metrics/0/average_utilization"),
            of("hpa", "/stabilization_up_down_s/0"),
        ],
    ),
    (
        "autoscaler",
        "decider_init.jsonl",
        28,
        0,
        &[of("create", "/ebc"), of("inform", "/ticks/3/informed"), of("poke", "/ran")],
    ),
    ("autoscaler", "delay_window.jsonl", 15, 0, &[any("/ops/3/2")]),
    ("autoscaler", "forwarder.jsonl", 4, 0, &[any("/attempts_by_ms/2/1"), any("/ok_at_attempt")]),
    (
        "autoscaler",
        "hash.jsonl",
        41,
        0,
        &[
            of("bucket_owner", "/owners/0/1"),
            of("bucket_owner", "/names/0"),
            of("subset", "/chosen/0"),
            of("is_bucket_host", "/out"),
            of("holder_identity", "/pod"),
            of("holder_identity", "/ip"),
            of("holder_identity", "/ok"),
        ],
    ),
    (
        "autoscaler",
        "metric_status.jsonl",
        6,
        0,
        &[any("/ready"), any("/reason"), any("/message"), any("/conditions"), any("/reconcile_error")],
    ),
    ("autoscaler", "pipeline.jsonl", 12, 0, &[any("/events/43/3"), any("/events/43/5")]),
    (
        "autoscaler",
        "reconcile.jsonl",
        552,
        0,
        &[
            of("reconcile", "/steps/0/out/sks_write/num_activators"),
            of("reconcile", "/steps/0/out/sks_write/op"),
            of("reconcile", "/steps/1/out/metric_write/scrape_target"),
            of("reconcile", "/steps/1/out/metric_write/panic_window_ns"),
            of("reconcile", "/steps/1/out/requeue_after_ms/0"),
            of("reconcile", "/steps/4/out/patch_replicas"),
            of("reconcile", "/steps/9/out/probe_calls"),
            of("reconcile", "/steps/9/out/async_probe_offered"),
            of("reconcile", "/steps/3/out/error"),
            of("reconcile", "/steps/3/out/status/desired_scale"),
            of("reconcile", "/steps/3/out/status/actual_scale"),
            of("reconcile", "/steps/3/out/status/service_name"),
            of("reconcile", "/steps/3/out/status/observed_generation"),
            of("reconcile", "/steps/0/out/status/conditions/1/status"),
            of("reconcile", "/steps/1/out/status/conditions/2/since_ms"),
            of("reconcile", "/steps/1/out/status/conditions/2/message"),
            of("active", "/out/2"),
            of("num_activators", "/out"),
        ],
    ),
    ("autoscaler", "scale.jsonl", 178, 0, &[any("/steps/7/4"), any("/steps/7/5"), any("/steps/7/8")]),
    (
        "autoscaler",
        "scale_to_zero.jsonl",
        98,
        0,
        &[any("/out/want"), any("/out/requeue_after_ms/0"), any("/out/probe_calls")],
    ),
    (
        "autoscaler",
        "sks.jsonl",
        23,
        0,
        &[
            any("/out/writes/0"),
            any("/out/error"),
            any("/out/public_endpoints/0/ready/0"),
            any("/out/public_endpoints/0/not_ready/0"),
            any("/out/public_endpoints/0/ports/0"),
            any("/out/status/conditions/0/status"),
            any("/out/status/conditions/0/severity"),
            any("/out/status/private_service"),
            any("/exists/public_endpoints_owned"),
        ],
    ),
    (
        "autoscaler",
        "stat_server.jsonl",
        26,
        0,
        &[
            of("http", "/status"),
            of("http", "/upgraded"),
            of("message", "/delivered/0/2"),
            of("ping", "/pong_payload"),
            of("shutdown_close", "/code"),
            of("shutdown_close", "/reason"),
        ],
    ),
    ("autoscaler", "weighted_coeff.jsonl", 60, 0, &[any("/coeff"), any("/decay_pow/5")]),
    (
        "autoscaler",
        "windows.jsonl",
        82,
        0,
        &[of("linear", "/ops/1/2"), of("linear", "/ops/1/3"), of("weighted", "/ops/1/2")],
    ),
];

fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors")
}

/// A folder of the test's own, empty.
fn scratch(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn place(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    path
}

/// Exit code, and what was printed.
fn replay(arguments: &[&str]) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_replay")).args(arguments).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.code().unwrap(), text)
}

fn judged(folder: &str, name: &str) {
    let is = |file: &str| file.strip_suffix(".jsonl") == Some(name);
    let (_, file, passed, skipped, _) = FILES.iter().find(|(of, file, ..)| *of == folder && is(file)).unwrap();
    let judge = known::judge(folder, file).unwrap();
    let mut out = Vec::new();
    let path = vectors().join(folder).join(file);
    let tally = judge_file(&path, judge, &Options::default(), &mut out).unwrap();
    let expected = Tally { passed: *passed, failed: 0, skipped: *skipped };
    assert_eq!(tally, expected, "\n{}", String::from_utf8_lossy(&out));
}

/// A file is known by its folder and its name: two folders have a `sks`.
macro_rules! judged_files {
    ($($folder:ident: $($name:ident),* $(,)?;)*) => {
        $(mod $folder {
            $(#[test] fn $name() { super::judged(stringify!($folder), stringify!($name)); })*
        })*

        #[test]
        fn every_file_with_a_judge_has_its_test() {
            let mut tested = vec![$($((stringify!($folder), concat!(stringify!($name), ".jsonl"))),*),*];
            let mut listed: Vec<_> = FILES.iter().map(|(folder, file, ..)| (*folder, *file)).collect();
            let mut known: Vec<_> = known::JUDGED.iter().map(|(folder, file, _)| (*folder, *file)).collect();
            tested.sort_unstable();
            listed.sort_unstable();
            known.sort_unstable();
            assert_eq!(tested, known);
            assert_eq!(listed, known);
        }
    };
}

judged_files! {
    activator:
        breaker,
        capacity_assign,
        capacity_public_endpoints,
        capacity_sequences,
        lb,
        probe,
        reporter,
        sks,
        stat_wire;
    autoscaler:
        collection,
        config,
        decider_init,
        delay_window,
        forwarder,
        hash,
        metric_status,
        pipeline,
        reconcile,
        scale,
        scale_to_zero,
        sks,
        stat_server,
        weighted_coeff,
        windows;
}

#[test]
fn a_broken_row_of_any_judged_file_makes_replay_fail() {
    let scratch = scratch("broken");
    for (folder, file, _, _, breaks) in FILES {
        let text = fs::read_to_string(vectors().join(folder).join(file)).unwrap();
        for (number, how) in breaks.iter().enumerate() {
            let (whole, broken) = broken_row(&text, how);
            let name = format!("{number}/{folder}/{file}");
            let path = place(&scratch, &name, &whole);
            let (code, out) = replay(&[path.to_str().unwrap()]);
            assert_eq!(code, 0, "{name} {}: passes before: {out}", how.pointer);
            fs::write(&path, &broken).unwrap();
            let (code, out) = replay(&[path.to_str().unwrap()]);
            assert_eq!(code, 1, "{name} {}: {out}", how.pointer);
            assert!(out.contains("FAILED: ") && out.ends_with("0 passed, 1 failed\n"), "{out}");
        }
    }
}

/// The first row to which `how` applies, whole and broken.
fn broken_row(text: &str, how: &Break) -> (String, String) {
    for line in text.lines() {
        let mut row: Value = serde_json::from_str(line).unwrap();
        if how.kind.is_some_and(|kind| row["kind"] != kind) {
            continue;
        }
        let Some(place) = row.pointer_mut(how.pointer) else {
            continue;
        };
        *place = match &*place {
            Value::Bool(flag) => Value::from(!flag),
            Value::Number(number) if number.is_i64() => Value::from(number.as_i64().unwrap() + 1),
            Value::Number(number) => Value::from(number.as_f64().unwrap() + 0.001),
            Value::String(text) => Value::from(format!("{text}-broken")),
            _ => continue,
        };
        return (format!("{line}\n"), format!("{row}\n"));
    }
    panic!("no row has something to break at {}", how.pointer);
}

#[test]
fn the_copy_of_the_vectors_is_as_handed() {
    let handed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/vectors");
    if !handed.is_dir() {
        eprintln!("skipped: {} is not here", handed.display());
        return;
    }
    let (handed_files, own_files) = (tree(&handed), tree(&vectors()));
    assert_eq!(own_files, handed_files);
    for file in handed_files {
        let same = fs::read(handed.join(&file)).unwrap() == fs::read(vectors().join(&file)).unwrap();
        assert!(same, "{} differs from what was handed", file.display());
    }
}

/// All files below `root`, relative to it, sorted.
fn tree(root: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push(path.strip_prefix(root).unwrap().to_owned());
            }
        }
    }
    files.sort();
    files
}

#[test]
fn rows_without_a_judge_are_named_and_counted_apart() {
    let row = |id: &str, verdict: &str| {
        format!(r#"{{"id":"{id}","kind":"linear","verdict":"{verdict}","window_s":1,"granularity_s":1,"ops":[]}}"#)
    };
    let text = format!("{}\n{}\n", row("plain", "match"), row("odd", "quirk"));
    let path = place(&scratch("without"), "autoscaler/windows.jsonl", &text);
    let (code, out) = replay(&[path.to_str().unwrap()]);
    assert_eq!(code, 0);
    assert!(out.starts_with("odd: not judged\n"), "{out}");
    assert!(out.contains("windows.jsonl: 1 passed, 0 failed, 1 not judged\n"), "{out}");
    assert!(out.ends_with("\n1 passed, 0 failed, 1 skipped\n"), "{out}");
}

#[test]
fn an_unknown_file_is_an_error_by_name_and_listed_in_a_folder() {
    let folder = scratch("unknown");
    let strange = place(&folder, "autoscaler/strange.jsonl", "{}\n");
    place(&folder, "autoscaler/notes.txt", "no vectors");
    let (strange, folder) = (strange.to_str().unwrap(), folder.to_str().unwrap());
    assert_eq!(replay(&[strange]), (2, String::new()));
    assert_eq!(replay(&["--skip-unknown", strange]), (2, String::new()));
    let (code, out) = replay(&[folder]);
    assert_eq!(code, 2);
    assert!(out.ends_with("strange.jsonl: unknown\n0 passed, 0 failed\n"), "{out}");
    assert!(!out.contains("notes"), "{out}");
    assert_eq!(replay(&["--skip-unknown", folder]).0, 0);
}

#[test]
fn a_file_is_known_by_its_folder_too() {
    let folder = scratch("elsewhere");
    let path = place(&folder, "hpa/windows.jsonl", "{}\n");
    assert_eq!(replay(&[path.to_str().unwrap()]).0, 2);
}

#[test]
fn a_failure_counts_more_than_an_unknown_file() {
    let folder = scratch("both");
    place(&folder, "autoscaler/strange.jsonl", "{}\n");
    place(&folder, "autoscaler/windows.jsonl", "this is no row\n{\"kind\":\"linear\"}\n");
    let (code, out) = replay(&[folder.to_str().unwrap()]);
    assert_eq!(code, 1);
    assert!(out.ends_with("0 passed, 2 failed\n"), "{out}");
}

#[test]
fn the_cluster_recording_is_passed_over_without_a_word() {
    let cluster = vectors().join("knative-cluster");
    let file = cluster.join("reads.json");
    for path in [cluster, file] {
        let nothing = (0, "0 passed, 0 failed\n".to_owned());
        assert_eq!(replay(&[path.to_str().unwrap()]), nothing);
    }
}

#[test]
fn only_rows_to_be_matched_are_judged_on_request() {
    let folder = scratch("verdicts");
    let row =
        |verdict: &str| format!(r#"{{"kind":"linear","verdict":"{verdict}","window_s":1,"granularity_s":1,"ops":[]}}"#);
    let text = format!("{}\n{}\n{}\n", row("match"), row("flaw"), row("quirk"));
    let path = place(&folder, "autoscaler/windows.jsonl", &text);
    let path = path.to_str().unwrap();
    assert!(replay(&[path]).1.ends_with("1 passed, 0 failed, 2 skipped\n"));
    assert!(replay(&["--verdict", "match", path]).1.ends_with("1 passed, 0 failed\n"));
}

#[test]
fn the_default_mode_names_what_differs_and_fails_nothing_without_verdicts() {
    let path = vectors().join("autoscaler/windows.jsonl");
    let (code, out) = replay(&["--mode", "default", path.to_str().unwrap()]);
    assert_eq!(code, 0);
    assert!(out.contains("linear/resize-partial-window: differs in the default mode: "), "{out}");
    let (code, out) = replay(&["--mode", "strict", path.to_str().unwrap()]);
    assert_eq!((code, out.ends_with("\n82 passed, 0 failed\n")), (0, true), "{out}");
}

#[test]
fn a_command_line_that_makes_no_sense_exits_2() {
    let windows = vectors().join("autoscaler/windows.jsonl");
    let windows = windows.to_str().unwrap();
    for line in [&[][..], &["--mode", "odd", windows], &["--what", windows], &["/not/there"]] {
        assert_eq!(replay(line).0, 2, "{line:?}");
    }
}
