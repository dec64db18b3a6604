//! The files that have a judge.

use super::row::Verdict;
use super::{
    Options, Tally, breaker, capacity, cases, collection, config, decider_init, delay_window, forwarder, hash, http,
    lb, metric_status, pipeline, probe, reconcile, reporter, scale, scale_to_zero, serverless_service, sks,
    stat_server, stat_wire, weighted_coeff, windows,
};
use policy::compat::Compat;
use serde_json::Value;
use std::io::{self, Write};
use std::path::Path;

/// Judges one row in one mode.
pub type Judge = fn(&Value, Compat) -> Verdict;

/// Drives a whole component through all rows of a file, over sockets.
pub type Driver = fn(&Path, &Options, &mut dyn Write) -> io::Result<Tally>;

/// Folder, file, and what drives its rows.
pub const DRIVEN: &[(&str, &str, Driver)] =
    &[("activator", "http.jsonl", http::drive), ("queue-proxy", "cases.jsonl", cases::drive)];

/// Folder, file, and what judges its rows.
pub const JUDGED: &[(&str, &str, Judge)] = &[
    ("activator", "breaker.jsonl", breaker::judge),
    ("activator", "capacity_assign.jsonl", capacity::assign),
    ("activator", "capacity_public_endpoints.jsonl", capacity::public_endpoints),
    ("activator", "capacity_sequences.jsonl", capacity::sequences),
    ("activator", "lb.jsonl", lb::judge),
    ("activator", "probe.jsonl", probe::judge),
    ("activator", "reporter.jsonl", reporter::judge),
    ("activator", "sks.jsonl", sks::judge),
    ("activator", "stat_wire.jsonl", stat_wire::judge),
    ("autoscaler", "collection.jsonl", collection::judge),
    ("autoscaler", "config.jsonl", config::judge),
    ("autoscaler", "decider_init.jsonl", decider_init::judge),
    ("autoscaler", "delay_window.jsonl", delay_window::judge),
    ("autoscaler", "forwarder.jsonl", forwarder::judge),
    ("autoscaler", "hash.jsonl", hash::judge),
    ("autoscaler", "metric_status.jsonl", metric_status::judge),
    ("autoscaler", "pipeline.jsonl", pipeline::judge),
    ("autoscaler", "reconcile.jsonl", reconcile::judge),
    ("autoscaler", "scale.jsonl", scale::judge),
    ("autoscaler", "scale_to_zero.jsonl", scale_to_zero::judge),
    ("autoscaler", "sks.jsonl", serverless_service::judge),
    ("autoscaler", "stat_server.jsonl", stat_server::judge),
    ("autoscaler", "weighted_coeff.jsonl", weighted_coeff::judge),
    ("autoscaler", "windows.jsonl", windows::judge),
];

/// The judge of a file, if there is one.
pub fn judge(folder: &str, file: &str) -> Option<Judge> {
    let mut all = JUDGED.iter();
    all.find(|(f, name, _)| *f == folder && *name == file).map(|(_, _, judge)| *judge)
}

/// The driver of a file, if there is one.
pub fn driver(folder: &str, file: &str) -> Option<Driver> {
    let mut all = DRIVEN.iter();
    all.find(|(f, name, _)| *f == folder && *name == file).map(|(_, _, driver)| *driver)
}
