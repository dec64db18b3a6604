//! `autoscaler/pipeline`: windows and decisions together.

use super::row::{POW, Verdict, at, differs, exact, float, int, list, located, part, same, seconds, time, within};
use super::scale::same_decision;
use super::spec::{scale_spec, window_spec};
use policy::collect::{Collection, Load, Silence};
use policy::compat::Compat;
use policy::limit::Overrides;
use policy::revision::{Aggregation, ScaleSpec, WindowSpec};
use policy::scale::{Memory, Observed, Ready, decide};
use policy::stat::Stat;
use serde_json::Value;

struct Pipeline {
    spec: ScaleSpec,
    windows: WindowSpec,
    collection: Collection,
    memory: Memory,
}

pub(super) fn judge(row: &Value, mode: Compat) -> Verdict {
    let spec = scale_spec(&row["spec"])?;
    let windows = window_spec(&row["metric"])?;
    let mut pipeline = Pipeline {
        collection: Collection::new(&windows, silence(&row["metric"]), mode),
        memory: Memory::new(&spec, 0, at(0), mode),
        spec,
        windows,
    };
    for (number, event) in list(&row["events"])?.iter().enumerate() {
        located(|| format!("event {number} {event}"), pipeline.apply(event))?;
    }
    Ok(())
}

/// Nobody is asked when there is no scrape target.
pub(super) fn silence(metric: &Value) -> Silence {
    if metric["scrape_target"] == "" { Silence::Idle } else { Silence::Unknown }
}

/// A report as rows write it: average, proxied average, count, proxied count.
pub(super) fn stat(numbers: &[Value]) -> Verdict<Stat> {
    let [average, average_proxied, count, count_proxied] = numbers else {
        return differs("malformed row: a report has four numbers");
    };
    Ok(Stat {
        pod_name: "pod".into(),
        average_concurrency: float(average)?,
        average_proxied_concurrency: float(average_proxied)?,
        request_count: float(count)?,
        proxied_request_count: float(count_proxied)?,
    })
}

impl Pipeline {
    fn apply(&mut self, event: &Value) -> Verdict {
        let fields = list(event)?;
        let now = time(&event[1])?;
        match event[0].as_str() {
            Some("scrape" | "activator") => {
                // A report that is dropped shows in the averages that follow.
                let _ = self.collection.record(now, &stat(&fields[2..])?);
                Ok(())
            }
            Some("scrape_empty" | "scrape_error") => Ok(()),
            Some("windows") => {
                self.windows.stable = seconds(&event[2])?;
                self.windows.panic = seconds(&event[3])?;
                self.collection.resize(&self.windows, now);
                Ok(())
            }
            Some("tick") => self.tick(event),
            _ => differs("malformed row: unknown event"),
        }
    }

    fn tick(&mut self, event: &Value) -> Verdict {
        let now = time(&event[1])?;
        let load = self.collection.load(self.spec.metric, now);
        same_load(&event[3], &event[4], load, self.windows.aggregation)?;
        let seen = Observed::new(load, Ready::Pods(part(&event[2])?));
        let result = decide(&self.spec, &seen, &Overrides::NONE, &mut self.memory, now);
        same_decision(&event[5], &event[6], &event[7], &result)?;
        same("panic mode", int(&event[8])? != 0, self.memory.panic_since().is_some())
    }
}

/// Compares averages, or that there are none.
pub(super) fn same_load(stable: &Value, panic: &Value, got: Load, aggregation: Aggregation) -> Verdict {
    let expected_none = stable == "nodata";
    match got {
        Load::Average { stable: s, panic: p } if !expected_none => match aggregation {
            Aggregation::Linear => exact("stable", stable, s).and(exact("panic", panic, p)),
            Aggregation::WeightedExponential => within("stable", stable, s, POW).and(within("panic", panic, p, POW)),
        },
        Load::NoData if expected_none => Ok(()),
        other => differs(format!("load: expected {stable} and {panic}, got {other:?}")),
    }
}
