//! What a limit does, and which setting is behind it.

use super::Setting;
use crate::knative::annotations::keys;
use policy::limit::LimitKind;
use policy::revision::RevisionSpec;
use std::time::Duration;

/// One sentence.
pub(super) fn what(limit: LimitKind) -> &'static str {
    match limit {
        LimitKind::RateUp => "one decision adds no more than that, of the ready pods",
        LimitKind::RateDown => "one decision leaves at least that, of the pods there",
        LimitKind::ActivationScale => "so many when any is wanted",
        LimitKind::StartingPods => "what waits only because pods still start is left out",
        LimitKind::PanicFloor => "in panic the number never falls",
        LimitKind::AfterPanic => "panic is over, and the panic window still asks for that",
        LimitKind::Steady => "the load lies at the edge of one pod less",
        LimitKind::DelayWindow => "a lower number must have held for that long",
        LimitKind::Override => "a schedule keeps so many",
        LimitKind::InitialScale => "so many are to be reached once",
        LimitKind::MinScale => "never fewer",
        LimitKind::MaxScale => "never more",
        LimitKind::ScaleToZeroOff => "the last pod stays",
        LimitKind::Starting => "a start is in progress, and the number is left alone",
        LimitKind::StartTimedOut => "the start took too long, and is given up",
        LimitKind::StableWindow => "the last pod stays until it was active for a stable window",
        LimitKind::MarkedIdle => "idle from now on; the last pods go in a later step",
        LimitKind::ActivatorMissing => "the activator is not seen in the path yet, so the last pod stays",
        LimitKind::Retention => "the last pod stays that long after the load",
        LimitKind::Grace => "the activator has that long to get into the path",
    }
}

/// Places of a setting that Knative has: annotation, key of `config-autoscaler`,
/// flag of `zeroscale run`, key below `scale` in a snapshot file; empty = none.
struct Places {
    annotation: &'static str,
    config: &'static str,
    flag: &'static str,
    file: &'static str,
}

const NONE: Places = Places { annotation: "", config: "", flag: "", file: "" };

fn setting(name: &str, value: String, places: &Places) -> Setting {
    let Places { annotation, config, flag, file } = *places;
    let all = [("annotation ", annotation), ("config-autoscaler ", config), ("", flag), ("scale.", file)];
    let places = all.iter().filter(|(_, place)| !place.is_empty()).map(|(kind, place)| format!("{kind}{place}"));
    Setting { name: name.to_owned(), value, places: places.collect() }
}

/// The setting behind a limit.
pub(super) fn of(limit: LimitKind, spec: &RevisionSpec) -> Option<Setting> {
    let (scale, bounds) = (&spec.scale, &spec.bounds);
    let found = match limit {
        LimitKind::RateUp => {
            let places = Places { config: "max-scale-up-rate", ..NONE };
            setting("max-scale-up-rate", scale.max_scale_up_rate.to_string(), &places)
        }
        LimitKind::RateDown => {
            let places = Places { config: "max-scale-down-rate", ..NONE };
            setting("max-scale-down-rate", scale.max_scale_down_rate.to_string(), &places)
        }
        LimitKind::ActivationScale => {
            let annotation = keys::ACTIVATION_SCALE.name;
            let places = Places { annotation, flag: "--activation-scale", file: "activation", ..NONE };
            setting("activation-scale", scale.activation_scale.to_string(), &places)
        }
        LimitKind::PanicFloor => {
            let places = Places {
                annotation: keys::PANIC_THRESHOLD.name,
                config: "panic-threshold-percentage",
                flag: "--panic-threshold-percentage",
                file: "panicThresholdPercentage",
            };
            setting("panic-threshold-percentage", (scale.panic_threshold * 100.0).to_string(), &places)
        }
        // Ours alone.
        LimitKind::StartingPods | LimitKind::AfterPanic | LimitKind::Steady => {
            setting("compat", "better".to_owned(), &Places { flag: "--compat (strict turns it off)", ..NONE })
        }
        LimitKind::DelayWindow => {
            let places = Places {
                annotation: keys::SCALE_DOWN_DELAY.name,
                config: "scale-down-delay",
                flag: "--scale-down-delay",
                file: "scaleDownDelay",
            };
            setting("scale-down-delay", span(scale.scale_down_delay), &places)
        }
        LimitKind::Override => {
            setting("schedules", "holds".to_owned(), &Places { flag: "the file of --schedules", ..NONE })
        }
        LimitKind::InitialScale => {
            let annotation = keys::INITIAL_SCALE.name;
            let places = Places { annotation, config: "initial-scale", flag: "--min-scale", file: "initial" };
            setting("initial-scale", scale.initial_scale.to_string(), &places)
        }
        LimitKind::MinScale => {
            let annotation = keys::MIN_SCALE.name;
            let places = Places { annotation, config: "min-scale", flag: "--min-scale", file: "min" };
            setting("min-scale", bounds.min_scale.to_string(), &places)
        }
        LimitKind::MaxScale => {
            let annotation = keys::MAX_SCALE.name;
            let places = Places { annotation, config: "max-scale", flag: "--max-scale", file: "max" };
            setting("max-scale", bounds.max_scale.to_string(), &places)
        }
        LimitKind::ScaleToZeroOff => {
            let places = Places { config: "enable-scale-to-zero", file: "toZero", ..NONE };
            setting("enable-scale-to-zero", bounds.scale_to_zero.to_string(), &places)
        }
        LimitKind::Starting | LimitKind::StartTimedOut => {
            let annotation = keys::PROGRESS_DEADLINE.name;
            let places = Places { annotation, flag: "--start-timeout", file: "startTimeout", ..NONE };
            setting("progress-deadline", span(bounds.progress_deadline), &places)
        }
        LimitKind::StableWindow | LimitKind::MarkedIdle => {
            let annotation = keys::WINDOW.name;
            let places = Places { annotation, config: "stable-window", flag: "--window", file: "window" };
            setting("stable-window", span(scale.stable_window), &places)
        }
        LimitKind::ActivatorMissing => return None,
        LimitKind::Retention => {
            let places = Places {
                annotation: keys::RETENTION.name,
                config: "scale-to-zero-pod-retention-period",
                flag: "--retention",
                file: "retention",
            };
            setting("scale-to-zero-pod-retention-period", span(bounds.retention), &places)
        }
        LimitKind::Grace => {
            let places = Places { config: "scale-to-zero-grace-period", flag: "--grace", file: "grace", ..NONE };
            setting("scale-to-zero-grace-period", span(bounds.grace), &places)
        }
    };
    Some(found)
}

fn span(span: Duration) -> String {
    format!("{span:?}")
}
