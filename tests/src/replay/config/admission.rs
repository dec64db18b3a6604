//! Annotations, admitted or not.

use super::super::row::{Verdict, parts, same};
use super::{config, texts};
use autoscaler::knative::annotations::{Refusal, admit};
use policy::compat::Compat;
use serde_json::Value;

pub(super) fn judge(row: &Value, mode: Compat) -> Verdict {
    let refusals = admit(&texts(&row["annotations"])?, &config(&row["config"], mode)?, mode);
    same("ok", row["ok"].as_bool(), Some(refusals.is_empty()))?;
    same("errors", parts(&row["errors"])?, refusals.iter().map(Refusal::to_string).collect())
}
