//! Numbers of pods.

use super::super::keys::{self, Key};
use super::{Annotations, Refusals};
use crate::knative::config::AutoscalerConfig;
use crate::knative::text::{Misread, int32, int64};

/// `min-scale`, `max-scale`, and `activation-scale` between them. One that
/// does not read counts as 0 for the others.
pub(super) fn bounds(annotations: &Annotations, config: &AutoscalerConfig, refusals: &mut Refusals) {
    let min = count(annotations, keys::MIN_SCALE, refusals).unwrap_or(0);
    let own_max = count(annotations, keys::MAX_SCALE, refusals);
    let max = own_max.unwrap_or(0);
    if max != 0 && max < min {
        let why = format!("max-scale={max} is less than min-scale={min}");
        refusals.add(why, &[keys::MAX_SCALE.name, keys::MIN_SCALE.name]);
    }
    if own_max.is_some() && config.max_scale_limit > 0 {
        below_limit(annotations, max, config.max_scale_limit, refusals);
    }
    activation(annotations, min, max, refusals);
}

/// A number that is not negative; `None` also where it is refused.
fn count(annotations: &Annotations, key: Key, refusals: &mut Refusals) -> Option<i32> {
    let (key, value) = key.find(annotations)?;
    match int32(value) {
        Ok(pods @ 0..) => return Some(pods),
        Ok(_) | Err(Misread::Range(_)) => refusals.out_of_bounds(value, ["0", &i32::MAX.to_string()], key),
        Err(Misread::Syntax(_)) => refusals.invalid(value, key),
    }
    None
}

/// Where the cluster has a limit, nobody may be without one.
fn below_limit(annotations: &Annotations, max: i32, limit: i32, refusals: &mut Refusals) {
    let Some((key, _)) = keys::MAX_SCALE.find(annotations) else { return };
    if max == 0 {
        refusals.add(format!("max-scale=0 (unlimited), must be less than {limit}"), &[key]);
    } else if max > limit {
        refusals.out_of_bounds(&max.to_string(), ["1", &limit.to_string()], key);
    }
}

fn activation(annotations: &Annotations, min: i32, max: i32, refusals: &mut Refusals) {
    let Some((key, value)) = keys::ACTIVATION_SCALE.find(annotations) else { return };
    let Ok(pods) = int32(value) else { return refusals.invalid(value, key) };
    let why = if min > pods {
        format!("min-scale={min} is greater than activation-scale={pods}")
    } else if max != 0 && max < pods {
        format!("max-scale={max} is less than activation-scale={pods}")
    } else if pods < 2 {
        format!("activation-scale={pods} must be greater than 1")
    } else {
        return;
    };
    refusals.add(why, &[key]);
}

/// `initial-scale`: any number of 64 bits, though one that does not fit into
/// 32 has no effect later.
pub(super) fn initial(annotations: &Annotations, config: &AutoscalerConfig, refusals: &mut Refusals) {
    let Some((key, value)) = keys::INITIAL_SCALE.find(annotations) else { return };
    match int64(value) {
        Err(_) => refusals.invalid(value, key),
        Ok(..0) => refusals.invalid(value, &format!("{key} must be greater than 0")),
        Ok(0) if !config.allow_zero_initial_scale => {
            refusals.invalid(value, &format!("{key}=0 not allowed by cluster"));
        }
        Ok(_) => {}
    }
}
