//! Everything as JSON.

use crate::book::Book;
use crate::goals::Judged;
use crate::options::Options;
use crate::peers::Peer;
use serde_json::{Value, json};

/// See the module.
pub(crate) fn text(book: &Book, judged: &[Judged], equal: &[Judged], options: &Options) -> anyhow::Result<String> {
    let versions: serde_json::Map<String, Value> = Peer::ALL
        .iter()
        .filter(|peer| peer.missing().is_none())
        .map(|peer| (peer.name().to_owned(), peer.version().into()))
        .collect();
    let document = json!({
        "machine": machine(),
        "versions": versions,
        "quick": options.quick,
        "rounds": options.rounds,
        "goals": judged,
        "goals_at_an_equal_rate": equal,
        "measured": book,
    });
    Ok(serde_json::to_string_pretty(&document)?)
}

/// Processor, number of processors, kernel.
pub(crate) fn machine() -> Value {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpuinfo = read("/proc/cpuinfo");
    let models: Vec<&str> = cpuinfo.lines().filter_map(|line| line.strip_prefix("model name")).collect();
    let model = models.first().map(|rest| rest.trim_start_matches(['\t', ' ', ':']).trim());
    json!({
        "processor": model,
        "processors": models.len(),
        "kernel": read("/proc/sys/kernel/osrelease").trim(),
        "load": read("/proc/loadavg").trim(),
    })
}
