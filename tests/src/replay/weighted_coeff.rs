//! `autoscaler/weighted_coeff`: how a weighted window weighs its buckets.

use super::row::{POW, Verdict, list, located, part, within};
use policy::compat::Compat;
use policy::window::{decay, weighted_coefficient};
use serde_json::Value;

pub(super) fn judge(row: &Value, _mode: Compat) -> Verdict {
    let coefficient = weighted_coefficient(part(&row["buckets"])?);
    within("coeff", &row["coeff"], coefficient, POW)?;
    for (power, expected) in (0..).zip(list(&row["decay_pow"])?) {
        let got = decay(coefficient, power);
        located(|| format!("power {power}"), within("decay", expected, got, POW))?;
    }
    Ok(())
}
