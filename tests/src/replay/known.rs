//! The files that have a judge.

use super::row::Verdict;
use super::{
    breaker, collection, decider_init, delay_window, pipeline, reconcile, reporter, scale, scale_to_zero,
    weighted_coeff, windows,
};
use policy::compat::Compat;
use serde_json::Value;

/// Judges one row in one mode.
pub type Judge = fn(&Value, Compat) -> Verdict;

/// Folder, file, and what judges its rows.
pub const JUDGED: &[(&str, &str, Judge)] = &[
    ("activator", "breaker.jsonl", breaker::judge),
    ("activator", "reporter.jsonl", reporter::judge),
    ("autoscaler", "collection.jsonl", collection::judge),
    ("autoscaler", "decider_init.jsonl", decider_init::judge),
    ("autoscaler", "delay_window.jsonl", delay_window::judge),
    ("autoscaler", "pipeline.jsonl", pipeline::judge),
    ("autoscaler", "reconcile.jsonl", reconcile::judge),
    ("autoscaler", "scale.jsonl", scale::judge),
    ("autoscaler", "scale_to_zero.jsonl", scale_to_zero::judge),
    ("autoscaler", "weighted_coeff.jsonl", weighted_coeff::judge),
    ("autoscaler", "windows.jsonl", windows::judge),
];

/// The judge of a file, if there is one.
pub fn judge(folder: &str, file: &str) -> Option<Judge> {
    let mut all = JUDGED.iter();
    all.find(|(f, name, _)| *f == folder && *name == file).map(|(_, _, judge)| *judge)
}
