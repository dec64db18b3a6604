//! What a pod carries, and shares of it. No number passes all comparisons, as
//! it does in the reference; the better way refuses it.

use super::super::keys::{self, Key};
use super::{Annotations, Refusals};
use crate::knative::config::{PANIC_WINDOW_PERCENTAGE, TARGET_LOWEST};
use crate::knative::text::{float, show_float};
use policy::compat::Compat;
use std::ops::RangeInclusive;

const PANIC_THRESHOLD_PERCENTAGE: RangeInclusive<f64> = 110.0..=1000.0;
const UTILIZATION_PERCENTAGE: RangeInclusive<f64> = 1.0..=100.0;

pub(super) fn check(annotations: &Annotations, compat: Compat, refusals: &mut Refusals) {
    let shares = [
        (keys::PANIC_WINDOW, PANIC_WINDOW_PERCENTAGE),
        (keys::PANIC_THRESHOLD, PANIC_THRESHOLD_PERCENTAGE),
        (keys::TARGET_UTILIZATION, UTILIZATION_PERCENTAGE),
    ];
    for (key, bounds) in shares {
        share(annotations, key, &bounds, compat, refusals);
    }
    if let Some((key, value, target)) = number(annotations, keys::TARGET, compat, refusals)
        && target < TARGET_LOWEST
    {
        refusals.add(format!("target {value} should be at least {TARGET_LOWEST}"), &[key]);
    }
    if let Some((key, value, burst)) = number(annotations, keys::TARGET_BURST_CAPACITY, compat, refusals)
        && burst < 0.0
        && burst != -1.0
    {
        refusals.invalid(value, key);
    }
}

fn share(annotations: &Annotations, key: Key, bounds: &RangeInclusive<f64>, compat: Compat, refusals: &mut Refusals) {
    let Some((key, value, share)) = number(annotations, key, compat, refusals) else { return };
    let (least, most) = (*bounds.start(), *bounds.end());
    if share < least || share > most {
        refusals.out_of_bounds(value, [&show_float(least), &show_float(most)], key);
    }
}

/// The key as spelled, the text, and the number; `None` also where it is
/// refused.
fn number<'a>(
    annotations: &'a Annotations,
    key: Key,
    compat: Compat,
    refusals: &mut Refusals,
) -> Option<(&'static str, &'a str, f64)> {
    let (key, value) = key.find(annotations)?;
    match float(value) {
        Ok(number) if number.is_finite() || compat == Compat::Strict => Some((key, value, number)),
        _ => {
            refusals.invalid(value, key);
            None
        }
    }
}
