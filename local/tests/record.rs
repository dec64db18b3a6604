//! `zeroscale record` of a running instance under load, and `zeroscale explain`
//! of what it has written.

mod support;

use rustix::process::Signal;
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use support::{PROGRAM, World, finish, get, signal, until};

/// `zeroscale run` of the sample app with short windows, and where it listens.
fn run(world: &World) -> (Child, String) {
    let arguments = [
        "run",
        "--listen=127.0.0.1:0",
        "--name=shop",
        "--window=6s",
        "--container-concurrency=2",
        "--target-burst-capacity=2",
        "--max-scale=4",
        "--log-level=error",
        "--",
        PROGRAM,
        "__sample-app",
    ];
    let mut child = world.command(&arguments).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("zeroscale: listening on http://").unwrap_or_else(|| panic!("{line:?}"));
    let address = address.to_owned();
    (child, address)
}

/// Clients that ask one after the other, until it is dropped.
struct Load(Arc<AtomicBool>, Vec<std::thread::JoinHandle<()>>);

impl Load {
    fn of(clients: usize, address: &str) -> Load {
        let over = Arc::new(AtomicBool::new(false));
        let client = |_| {
            let (over, address) = (over.clone(), address.to_owned());
            std::thread::spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    if let Ok(stream) = TcpStream::connect(&address) {
                        get(stream, "GET", "/");
                    }
                }
            })
        };
        let clients = (0..clients).map(client).collect();
        Load(over, clients)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        self.1.drain(..).for_each(|client| drop(client.join()));
    }
}

fn finished(world: &World, arguments: &[&str]) -> (Option<i32>, String, String) {
    let (status, shown, faults) = finish(world.command(arguments).spawn().unwrap());
    (status.code(), shown, faults)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn whole(folder: &Path) -> String {
    files(folder).iter().map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

#[test]
fn a_recording_of_a_running_instance_is_decided_alike_and_says_why() {
    let world = World::new();
    let here = tempfile::tempdir().unwrap();
    let path = |name: &str| here.path().join(name).to_str().unwrap().to_owned();
    let (instance, address) = run(&world);
    // Long before any load, so that it begins at zero; and with it in full.
    let whole_length = world.command(&["record", "--out", &path("all")]).spawn().unwrap();
    let all = |part: &str| here.path().join("all").exists() && whole(&here.path().join("all")).contains(part);
    until("it is recorded", || all("\"decided\""));
    let load = Load::of(6, &address);
    until("pods are ordered", || all("\"ordered\":4"));
    let part = world.command(&["record", "--out", &path("part"), "--service=shop", "--for=5s"]).spawn().unwrap();
    let other = world.command(&["record", "--out", &path("other"), "--service=blog", "--for=1s"]).spawn().unwrap();
    let killed = world.command(&["record", "--out", &path("killed")]).spawn().unwrap();
    let (status, said, faults) = finish(part);
    assert!(status.success() && said.contains("1 file in") && said.contains("without a gap"), "{said}{faults}");
    assert!(finish(other).0.success());
    assert_eq!(whole(&here.path().join("other")).lines().count(), 1, "nothing but a head");
    until("something is there", || whole(&here.path().join("killed")).lines().count() > 5);
    signal(&killed, Signal::KILL);
    finish(killed);
    drop(load);
    let again = |text: &str| text.rsplit_once("\"ordered\":4").is_some_and(|(_, rest)| rest.contains("\"ordered\":0"));
    until("the pods go again", || again(&whole(&here.path().join("all"))));
    // It ends with the instance, in good order.
    signal(&instance, Signal::TERM);
    assert!(finish(instance).0.success());
    let (status, said, faults) = finish(whole_length);
    assert!(status.success(), "{said}{faults}");

    for name in ["all", "part", "killed"] {
        let (code, shown, faults) = finished(&world, &["explain", &path(name)]);
        assert_eq!(code, Some(0), "{name}: {shown}{faults}");
        assert!(shown.contains("none differs"), "{name}: {shown}");
    }
    let (_, shown, _) = finished(&world, &["explain", &path("all")]);
    for part in
        ["default mode", "default/shop-00001  0 pods, through the activator: ", "concurrency", "window / target 1.4 = "]
    {
        assert!(shown.contains(part), "{part:?} is not in\n{shown}");
    }
    let (code, shown, _) = finished(&world, &["explain", "--service=blog", &path("all")]);
    assert!(code == Some(0) && shown.contains("0 decisions"), "{shown}");

    let (code, shown, _) = finished(&world, &["explain", "--set", "target=0.5", &path("all")]);
    assert_eq!(code, Some(1), "{shown}");
    for part in [
        "differs in target: recorded 1.4, now 0.5",
        "    recorded  ",
        "    now       ",
        " differ",
        "pod-seconds recorded",
    ] {
        assert!(shown.contains(part), "{part:?} is not in\n{shown}");
    }
    let (code, shown, _) = finished(&world, &["explain", "--json", "--mode=strict", &path("all")]);
    assert_eq!(code, Some(1), "{shown}");
    let lines: Vec<serde_json::Value> = shown.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["head"]["mode"], "default");
    assert!(lines.iter().any(|line| line["decision"]["differs"]["what"].is_string()), "{shown}");
    assert!(lines.last().unwrap()["sum"]["differ"].as_u64() > Some(0));
    world.assert_no_process();
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let world = World::new();
    let here = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| {
        let path = here.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let head =
        r#"{"head":{"format":1,"version":"0.1.0","at":1,"part":0,"mode":"default","silence":"idle","tick_nanos":1}}"#;
    let said = |arguments: &[&str]| finished(&world, arguments);
    for (text, fault) in [
        ("", ": it is empty"),
        ("{", ": there is no whole line in it"),
        ("{\"gap\":{\"now\":1,\"lost\":1}}\n", ":1: there is no `head` before it"),
        (&format!("{head}\n{{\"gap\":{{\"now\":1}}}}\n"), ":2:16: missing field `lost`"),
        (&format!("{head}\n\n"), ":2:0: EOF while parsing a value"),
        (&format!("{head}\n{{\"gap\":{{\"now\":-1,\"lost\":1}}}}\n"), ":2: `now`: -1 is no time of a recording"),
        (&head.replace("\"format\":1", "\"format\":9").replace("}}", "}}\n"), ":1: `format`: it is 9, and 1 is known"),
    ] {
        let path = put("bad.jsonl", text);
        let (code, _, faults) = said(&["explain", &path]);
        assert_eq!(code, Some(2), "{text}: {faults}");
        assert!(faults.contains(&format!("{path}{fault}")), "{text}: {faults}");
    }
    let cut = put("cut.jsonl", &format!("{head}\n{{\"gap\":{{\"no"));
    let (code, shown, faults) = said(&["explain", &cut]);
    assert_eq!(code, Some(0), "{faults}");
    assert!(faults.contains(":2: the recording was cut off in this line") && shown.contains("0 decisions"), "{faults}");
    let (code, _, faults) = said(&["explain", "--set", "target=much", &cut]);
    assert!(code == Some(64) && faults.contains("target: `much` is no number"), "{faults}");
    for missing in [&["explain", "/no/such/file"][..], &["explain", here.path().join("none").to_str().unwrap()]] {
        assert_eq!(said(missing).0, Some(2));
    }

    let (code, _, faults) = said(&["record"]);
    assert!(code == Some(1) && faults.contains("no instance is running"), "{faults}");
    let (code, _, faults) = said(&["record", "--admin", "/no/such.sock"]);
    assert!(code == Some(1) && faults.contains("/no/such.sock: "), "{faults}");
    let (instance, _) = run(&world);
    let (code, _, faults) = said(&["record", "--for=1s", "--out", here.path().to_str().unwrap()]);
    assert!(code == Some(1) && faults.contains("holds a recording already"), "{faults}");
    signal(&instance, Signal::TERM);
    finish(instance);
    world.assert_no_process();
}
