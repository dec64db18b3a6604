//! The HorizontalPodAutoscaler of a revision that Kubernetes scales.

use super::super::row::{Miss, Verdict};
use policy::compat::Compat;
use serde_json::Value;

pub(super) fn judge(_row: &Value, _mode: Compat) -> Verdict {
    Err(Miss::NotJudged)
}
