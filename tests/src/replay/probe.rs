//! `activator/probe`: which pods are asked, and what comes of their answers.

use super::capacity::destinations;
use super::row::{Verdict, at, differs, list, located, part, parts, same};
use policy::backends::{Backends, Destination};
use policy::compat::Compat;
use policy::endpoints::Listed;
use policy::mesh::MeshMode;
use policy::moment::Moment;
use policy::probing::{Answer, Settings, Watch};
use serde_json::Value;
use std::collections::BTreeSet;

/// The recorded private service.
const SERVICE: &str = "172.16.0.9:80";

/// Rows have no times: one step is one period of the ticker later than the
/// one before.
const STEP_MILLIS: i64 = 200;

pub(super) fn judge(row: &Value, mode: Compat) -> Verdict {
    let mesh: String = part(&row["mesh_mode"])?;
    let settings = Settings {
        mesh: MeshMode::from_setting(&mesh),
        passthrough: part(&row["passthrough_lb"])?,
        trust_probe: part(&row["trust_probe_before_k8s_ready"])?,
        ..Settings::default()
    };
    let mut watch = Watch::new(settings, mode, 0, at(0));
    watch.service(Some(SERVICE.into()), at(0));
    let mut told = Told { mode, expected: Backends::default(), got: Backends::default() };
    for (step, number) in list(&row["steps"])?.iter().zip(0..) {
        let verdict = judge_step(&mut watch, step, at(number * STEP_MILLIS), &mut told);
        located(|| format!("step {number}"), verdict)?;
    }
    Ok(())
}

/// What was told last. The default mode does not tell again what it told, so
/// there only what is known after a step counts.
struct Told {
    mode: Compat,
    expected: Backends,
    got: Backends,
}

impl Told {
    fn compare(&mut self, expected: Vec<Backends>, got: Option<Backends>) -> Verdict {
        let got: Vec<Backends> = got.into_iter().collect();
        if self.mode == Compat::Strict {
            return same("updates", expected, got);
        }
        self.expected = expected.into_iter().next_back().unwrap_or_else(|| self.expected.clone());
        self.got = got.into_iter().next_back().unwrap_or_else(|| self.got.clone());
        same("backends", &self.expected, &self.got)
    }
}

fn judge_step(watch: &mut Watch, step: &Value, now: Moment, told: &mut Told) -> Verdict {
    match step["event"].as_str() {
        Some("endpoints") => {
            let listed = Listed { ready: destinations(&step["ready"])?, not_ready: destinations(&step["not_ready"])? };
            watch.endpoints(listed, now);
        }
        // The recording forces the check, whether the timer was armed or not.
        Some("timer") => watch.check_now(now),
        _ => return differs("malformed row: unknown event"),
    }
    let mut probed = BTreeSet::new();
    while let Some(probe) = watch.next_probe(now) {
        watch.answered(probe.id, answer(&step["probe_answers"][&*probe.to])?, now);
        probed.insert(probe.to);
    }
    same("probed", destinations(&step["probed"])?, probed)?;
    told.compare(updates(&step["updates"])?, watch.update())?;
    same("healthy", destinations(&step["healthy_after"])?, watch.healthy())?;
    same("cluster IP healthy", part(&step["cluster_ip_healthy"])?, watch.cluster_ip_healthy())?;
    same("pods addressable", part(&step["pods_addressable"])?, watch.pods_addressable())?;
    same("timer armed", part(&step["timer_armed_after"])?, watch.wake_at().is_some())
}

/// The recording does not say what came with a status; a mesh says what is
/// wrong.
fn answer(text: &Value) -> Verdict<Answer> {
    match text.as_str() {
        None | Some("refused") => Ok(Answer::Failed),
        Some("ok") => Ok(Answer::new(200, b"queue", false)),
        Some("badbody") => Ok(Answer::new(200, b"something else", false)),
        Some(code) => match code.parse() {
            Ok(status) => Ok(Answer::new(status, b"upstream connect error", false)),
            Err(_) => differs(format!("malformed row: unknown answer {code:?}")),
        },
    }
}

fn updates(value: &Value) -> Verdict<Vec<Backends>> {
    let updates: Vec<Value> = parts(value)?;
    updates.iter().map(update).collect()
}

fn update(value: &Value) -> Verdict<Backends> {
    let address: String = part(&value["cluster_ip"])?;
    let dests = destinations(&value["dests"])?;
    if address.is_empty() {
        return Ok(Backends::Pods(dests));
    }
    Ok(Backends::ClusterIp { address: Destination::from(address), ready: dests })
}
