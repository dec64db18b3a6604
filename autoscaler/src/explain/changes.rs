//! Other settings than those of the recording: what would have been decided.

use policy::compat::Compat;
use policy::duration;
use policy::revision::{Metric, RevisionSpec, WindowSpec};
use policy::world::RevisionView;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

/// What is to be otherwise; nothing by default.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// The mode; `None` = as recorded.
    pub compat: Option<Compat>,
    set: Vec<Set>,
}

/// One setting of every revision.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Set {
    Target(f64),
    Total(f64),
    ContainerConcurrency(u32),
    Metric(Metric),
    StableWindow(Duration),
    PanicWindow(f64),
    PanicThreshold(f64),
    MaxScaleUpRate(f64),
    MaxScaleDownRate(f64),
    ScaleDownDelay(Duration),
    TargetBurstCapacity(f64),
    InitialScale(i32),
    ActivationScale(i32),
    MinScale(i32),
    MaxScale(i32),
    ScaleToZero(bool),
    Grace(Duration),
    Retention(Duration),
    ProgressDeadline(Duration),
}

/// The names of all settings, for help and messages.
pub const KEYS: [&str; 19] = [
    "target",
    "total",
    "container-concurrency",
    "metric",
    "stable-window",
    "panic-window-percentage",
    "panic-threshold-percentage",
    "max-scale-up-rate",
    "max-scale-down-rate",
    "scale-down-delay",
    "target-burst-capacity",
    "initial-scale",
    "activation-scale",
    "min-scale",
    "max-scale",
    "enable-scale-to-zero",
    "scale-to-zero-grace-period",
    "scale-to-zero-pod-retention-period",
    "progress-deadline",
];

const HOUR: Duration = Duration::from_secs(3600);

impl Changes {
    /// Adds `KEY=VALUE`, with the keys' names and bounds of Knative's settings.
    ///
    /// # Errors
    /// What is wrong with it, naming the key.
    pub fn set(&mut self, text: &str) -> Result<(), String> {
        let (key, value) = text.split_once('=').ok_or_else(|| format!("`{text}` is not KEY=VALUE"))?;
        self.set.push(Set::parse(key, value).map_err(|why| format!("{key}: {why}"))?);
        Ok(())
    }

    /// True when the settings are those of the recording.
    pub fn is_none(&self) -> bool {
        self.set.is_empty()
    }

    pub(super) fn view(&self, seen: &RevisionView) -> Arc<RevisionView> {
        let mut view = seen.clone();
        if !self.set.is_empty() {
            let spec = Arc::make_mut(&mut view.spec);
            self.set.iter().for_each(|set| set.put_into(spec));
        }
        Arc::new(view)
    }
}

impl Set {
    fn parse(key: &str, value: &str) -> Result<Set, String> {
        let scale = || number::<i32>(value, 0..=i32::MAX);
        let rate = || number(value, 1.0 + f64::EPSILON..=1e9);
        let span = |bounds| span(value, bounds);
        Ok(match key {
            "target" => Set::Target(number(value, 0.01..=1e9)?),
            "total" => Set::Total(number(value, 0.01..=1e9)?),
            "container-concurrency" => Set::ContainerConcurrency(number(value, 0..=u32::MAX)?),
            "metric" => Set::Metric(match value {
                "concurrency" => Metric::Concurrency,
                "rps" => Metric::Rps,
                _ => return Err(format!("`{value}` is neither concurrency nor rps")),
            }),
            "stable-window" | "window" => Set::StableWindow(span(Duration::from_secs(6)..=HOUR)?),
            "panic-window-percentage" => Set::PanicWindow(number(value, 1.0..=100.0)?),
            "panic-threshold-percentage" => Set::PanicThreshold(number(value, 110.0..=1000.0)? / 100.0),
            "max-scale-up-rate" => Set::MaxScaleUpRate(rate()?),
            "max-scale-down-rate" => Set::MaxScaleDownRate(rate()?),
            "scale-down-delay" => Set::ScaleDownDelay(span(Duration::ZERO..=HOUR)?),
            "target-burst-capacity" if value == "-1" => Set::TargetBurstCapacity(-1.0),
            "target-burst-capacity" => Set::TargetBurstCapacity(number(value, 0.0..=1e9)?),
            "initial-scale" => Set::InitialScale(scale()?),
            "activation-scale" => Set::ActivationScale(scale()?),
            "min-scale" => Set::MinScale(scale()?),
            "max-scale" => Set::MaxScale(scale()?),
            "enable-scale-to-zero" => {
                Set::ScaleToZero(value.parse().map_err(|_| format!("`{value}` is neither true nor false"))?)
            }
            "scale-to-zero-grace-period" | "grace" => Set::Grace(span(Duration::ZERO..=HOUR)?),
            "scale-to-zero-pod-retention-period" | "retention" => Set::Retention(span(Duration::ZERO..=HOUR)?),
            "progress-deadline" => Set::ProgressDeadline(span(Duration::from_secs(1)..=24 * HOUR)?),
            _ => return Err(format!("there is no such setting; there are {}", KEYS.join(", "))),
        })
    }

    fn put_into(self, spec: &mut RevisionSpec) {
        let RevisionSpec { scale, windows, bounds, .. } = spec;
        match self {
            Set::Target(target) => scale.target = target,
            Set::Total(total) => scale.total = total,
            Set::ContainerConcurrency(limit) => spec.container_concurrency = limit,
            Set::Metric(metric) => scale.metric = metric,
            Set::StableWindow(window) => {
                // The panic window keeps its share.
                let share = windows.panic.as_secs_f64() / windows.stable.as_secs_f64() * 100.0;
                windows.panic = WindowSpec::panic_of(window, share);
                (windows.stable, scale.stable_window) = (window, window);
            }
            Set::PanicWindow(share) => windows.panic = WindowSpec::panic_of(windows.stable, share),
            Set::PanicThreshold(ratio) => scale.panic_threshold = ratio,
            Set::MaxScaleUpRate(rate) => scale.max_scale_up_rate = rate,
            Set::MaxScaleDownRate(rate) => scale.max_scale_down_rate = rate,
            Set::ScaleDownDelay(delay) => scale.scale_down_delay = delay,
            Set::TargetBurstCapacity(capacity) => scale.target_burst_capacity = capacity,
            Set::InitialScale(pods) => scale.initial_scale = pods,
            Set::ActivationScale(pods) => scale.activation_scale = pods,
            Set::MinScale(pods) => bounds.min_scale = pods,
            Set::MaxScale(pods) => bounds.max_scale = pods,
            Set::ScaleToZero(on) => bounds.scale_to_zero = on,
            Set::Grace(grace) => bounds.grace = grace,
            Set::Retention(retention) => bounds.retention = retention,
            Set::ProgressDeadline(deadline) => bounds.progress_deadline = deadline,
        }
    }
}

fn number<N>(text: &str, bounds: RangeInclusive<N>) -> Result<N, String>
where
    N: std::str::FromStr + PartialOrd + std::fmt::Display,
{
    let fault = || format!("`{text}` is no number from {} to {}", bounds.start(), bounds.end());
    text.parse().ok().filter(|number| bounds.contains(number)).ok_or_else(fault)
}

fn span(text: &str, bounds: RangeInclusive<Duration>) -> Result<Duration, String> {
    let span = duration::parse(text)?;
    let (least, most) = (duration::text(*bounds.start()), duration::text(*bounds.end()));
    bounds.contains(&span).then_some(span).ok_or_else(|| format!("`{text}` does not lie between {least} and {most}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_known_and_nonsense_is_told_by_its_key() {
        for key in KEYS {
            let value = match key {
                "metric" => "rps",
                "enable-scale-to-zero" => "false",
                key if key.ends_with("window") || key.ends_with("delay") || key.contains("-period") => "30s",
                "progress-deadline" => "1m",
                "panic-threshold-percentage" => "150",
                _ => "7",
            };
            Changes::default().set(&format!("{key}={value}")).unwrap();
            let fault = Changes::default().set(&format!("{key}=much")).unwrap_err();
            assert!(fault.starts_with(&format!("{key}: ")) && fault.contains("much"), "{fault}");
        }
        for odd in
            ["target=0", "target=NaN", "stable-window=1s", "max-scale=-1", "max-scale-up-rate=1", "colour=red", "x"]
        {
            assert!(Changes::default().set(odd).is_err(), "{odd}");
        }
    }
}
