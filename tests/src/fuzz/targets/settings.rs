//! `config-autoscaler` and annotations: lines of `key=value`, where keys with a
//! slash are annotations.

use super::super::Target;
use super::super::words::{about, must, one, seen};
use crate::simulation::draw::Draw;
use autoscaler::knative::annotations::{Annotations, Reachability, Refusal, Resolved, Wish, admit, resolve};
use autoscaler::knative::config::{AutoscalerConfig, Data};
use autoscaler::knative::text::{duration, float, show_duration, show_float};
use policy::compat::Compat;
use std::collections::BTreeSet;
use std::time::Duration;

pub(in super::super) const TARGET: Target = Target {
    name: "settings",
    about: "what the better way takes strict takes too, and what is admitted makes sense in the end; texts read as shown",
    seeds: include_str!("../../../fuzz/settings.txt"),
    words: &[
        "\n",
        "=",
        "nan",
        "inf",
        "-1",
        "1e999",
        "0x1p4",
        "1_0",
        "1h",
        ".5s",
        "99999999999",
        "autoscaling.knative.dev/",
    ],
    sentence,
    judge,
};

const PREFIX: &str = "autoscaling.knative.dev/";

const KEYS: [&str; 20] = [
    "min-scale",
    "max-scale",
    "maxScale",
    "initial-scale",
    "activation-scale",
    "max-scale-limit",
    "target",
    "target-utilization-percentage",
    "container-concurrency-target-percentage",
    "container-concurrency-target-default",
    "target-burst-capacity",
    "targetBurstCapacity",
    "panic-window-percentage",
    "panic-threshold-percentage",
    "window",
    "stable-window",
    "scale-down-delay",
    "scale-to-zero-pod-retention-period",
    "metric",
    "allow-zero-initial-scale",
];

const VALUES: [&str; 24] = [
    "0",
    "1",
    "2",
    "-1",
    "2147483648",
    "0.01",
    "0.7",
    "70",
    "1e3",
    "nan",
    "-inf",
    "0x1.8p3",
    "1_000",
    "6s",
    "60s",
    "1h",
    "1h0m0.5s",
    "-1s",
    "3µs",
    "true",
    "rps",
    "cpu",
    "",
    " 1",
];

fn sentence(draw: &mut Draw) -> Vec<u8> {
    let mut out = String::new();
    for _ in 0..draw.below(7) {
        if draw.one_in(2) {
            out.push_str(PREFIX);
        }
        out.push_str(one(draw, &KEYS));
        out.push('=');
        out.push_str(one(draw, &VALUES));
        out.push('\n');
    }
    out.into_bytes()
}

fn judge(input: &[u8]) -> Result<u64, String> {
    let text = String::from_utf8_lossy(input);
    let (mut data, mut annotations) = (Data::new(), Annotations::new());
    for line in text.lines() {
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        let map = if key.contains('/') { &mut annotations } else { &mut data };
        map.insert(key.to_owned(), value.to_owned());
        as_shown(value)?;
    }
    let [strict, better] = [Compat::Strict, Compat::Better].map(|compat| AutoscalerConfig::parse(&data, compat));
    must(better.is_err() || strict == better, || format!("strict {strict:?}, better {better:?}"))?;
    let config = better.clone().unwrap_or_default();
    let refusals = [Compat::Strict, Compat::Better].map(|compat| admit(&annotations, &config, compat));
    let paths = |of: &[Refusal]| of.iter().flat_map(|refusal| refusal.paths.clone()).collect::<BTreeSet<_>>();
    must(paths(&refusals[0]).is_subset(&paths(&refusals[1])), || format!("{refusals:?}"))?;
    let wish = Wish { annotations: &annotations, container_concurrency: 10, reachability: Reachability::Reachable };
    let [_, resolved] =
        [Compat::Strict, Compat::Better].map(|compat| resolve(&wish, &config, Duration::from_secs(600), compat));
    if refusals[1].is_empty() {
        makes_sense(&resolved)?;
    }
    let first = |text: &str| text.chars().take(24).collect::<String>();
    Ok(seen((
        strict.map(|_| ()).map_err(|fault| first(fault.as_str())),
        better.is_ok(),
        refusals[1].iter().map(|refusal| first(&refusal.message)).collect::<Vec<_>>(),
        about(annotations.len()),
    )))
}

/// A value reads as it is shown.
fn as_shown(value: &str) -> Result<(), String> {
    if let Ok(nanos) = duration(value) {
        let shown = show_duration(nanos);
        must(duration(&shown) == Ok(nanos), || format!("{value:?} is {nanos} ns and shown as {shown}"))?;
    }
    if let Ok(number) = float(value) {
        let shown = show_float(number);
        let again = float(&shown).map(f64::to_bits);
        let same = again == Ok(number.to_bits()) || number.is_nan();
        must(same, || format!("{value:?} is {number:?} and shown as {shown}"))?;
    }
    Ok(())
}

fn makes_sense(resolved: &Resolved) -> Result<(), String> {
    let Resolved { scale, windows, bounds, .. } = resolved;
    let second = Duration::from_secs(1);
    let whole = [windows.stable, windows.panic, scale.scale_down_delay].iter().all(|span| span.subsec_nanos() == 0);
    let holds = scale.target.is_finite()
        && scale.target >= 0.01
        && scale.total.is_finite()
        && scale.panic_threshold.is_finite()
        && (scale.target_burst_capacity >= 0.0 || scale.target_burst_capacity == -1.0)
        && whole
        && (6 * second..=3600 * second).contains(&windows.stable)
        && (second..=windows.stable).contains(&windows.panic)
        && bounds.min_scale >= 0
        && bounds.max_scale >= 0
        && scale.initial_scale >= 0;
    must(holds, || format!("{resolved:?}"))
}
