//! `autoscaler/delay_window`: the sliding maximum.

use super::row::{Verdict, list, located, part, same, seconds, time};
use policy::compat::Compat;
use policy::window::DelayWindow;
use serde_json::Value;

pub(super) fn judge(row: &Value, _mode: Compat) -> Verdict {
    let (span, granularity) = (seconds(&row["duration_s"])?, seconds(&row["granularity_s"])?);
    let mut window = DelayWindow::new(span, granularity);
    for (number, op) in list(&row["ops"])?.iter().enumerate() {
        let got = window.record(time(&op[0])?, part(&op[1])?);
        located(|| format!("op {number} {op}"), same("maximum", part(&op[2])?, got))?;
    }
    Ok(())
}
