//! `autoscaler/windows`: records, averages and resizes of one window.

use super::row::{POW, Verdict, differs, exact, float, list, located, part, same, seconds, time, within};
use policy::compat::Compat;
use policy::revision::Aggregation;
use policy::window::Window;
use serde_json::Value;

pub(super) fn judge(row: &Value, mode: Compat) -> Verdict {
    let aggregation = match row["kind"].as_str() {
        Some("linear") => Aggregation::Linear,
        Some("weighted") => Aggregation::WeightedExponential,
        _ => return differs("malformed row: kind is neither linear nor weighted"),
    };
    let granularity: u32 = part(&row["granularity_s"])?;
    let span = seconds(&row["window_s"])?;
    let mut window = Window::with_granularity(span, granularity, aggregation);
    for (number, op) in list(&row["ops"])?.iter().enumerate() {
        located(|| format!("op {number} {op}"), apply(&mut window, aggregation, op, mode))?;
    }
    Ok(())
}

fn apply(window: &mut Window, aggregation: Aggregation, op: &Value, mode: Compat) -> Verdict {
    let now = time(&op[1])?;
    match op[0].as_str() {
        Some("r") => window.record(now, float(&op[2])?),
        Some("z") => window.resize(seconds(&op[2])?, now, mode),
        Some("a") => {
            let got = window.average(now);
            match aggregation {
                Aggregation::Linear => exact("average", &op[2], got)?,
                Aggregation::WeightedExponential => within("average", &op[2], got, POW)?,
            }
            return same("empty", part(&op[3])?, window.is_empty(now));
        }
        _ => return differs("malformed row: unknown op"),
    }
    Ok(())
}
