//! Which traces are recorded.

use plumbing::trace_context::{Context, TraceId};

/// A rule.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Sampler {
    /// None.
    #[default]
    Never,
    /// All, whatever the caller decided.
    Always,
    /// A share of traces, by their ids, whatever the caller decided. The
    /// number is that of ids (of 2^63) which are recorded.
    Share(u64),
    /// As the caller decided; without one, by the id.
    FollowShare(u64),
    /// As the caller decided; without one, always.
    FollowAlways,
    /// As the caller decided; without one, never.
    FollowNever,
}

/// Ids have 63 bits that count here, as in OpenTelemetry's sampler.
const IDS: f64 = 9_223_372_036_854_775_808.0;

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the rate lies between 0 and 1")]
fn share(rate: f64) -> u64 {
    (rate.clamp(0.0, 1.0) * IDS) as u64
}

impl Sampler {
    /// By the rate of `OBSERVABILITY_CONFIG`. Nothing that is a number is refused.
    pub fn rate(rate: f64) -> Sampler {
        if rate >= 1.0 {
            Sampler::Always
        } else if rate > 0.0 {
            Sampler::FollowShare(share(rate))
        } else {
            Sampler::Never
        }
    }

    /// By the names of `OTEL_TRACES_SAMPLER`.
    pub fn named(name: &str, rate: f64) -> Option<Sampler> {
        Some(match name {
            "always_on" => Sampler::Always,
            "always_off" => Sampler::Never,
            "traceidratio" => Sampler::Share(share(rate)),
            "parentbased_always_on" => Sampler::FollowAlways,
            "parentbased_always_off" => Sampler::FollowNever,
            "parentbased_traceidratio" => Sampler::FollowShare(share(rate)),
            _ => return None,
        })
    }

    /// Is this trace recorded?
    pub(super) fn decides(self, parent: Option<&Context>, trace: &TraceId) -> bool {
        let followed = parent.map(Context::is_sampled);
        match self {
            Sampler::Never => false,
            Sampler::Always => true,
            Sampler::Share(share) => within(trace, share),
            Sampler::FollowShare(share) => followed.unwrap_or_else(|| within(trace, share)),
            Sampler::FollowAlways => followed.unwrap_or(true),
            Sampler::FollowNever => followed.unwrap_or(false),
        }
    }
}

fn within(trace: &TraceId, share: u64) -> bool {
    let [.., a, b, c, d, e, f, g, h] = *trace;
    u64::from_be_bytes([a, b, c, d, e, f, g, h]) >> 1 < share
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parent(flags: &str) -> Context {
        Context::parse(format!("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-{flags}").as_bytes()).unwrap()
    }

    #[test]
    fn a_share_goes_by_the_id_and_by_the_parent_first() {
        let half = Sampler::rate(0.5);
        let (low, high) = ([0x10; 16], [0xf0; 16]);
        assert!(half.decides(None, &low) && !half.decides(None, &high));
        assert!(half.decides(Some(&parent("01")), &high));
        assert!(!half.decides(Some(&parent("00")), &low));
    }

    #[test]
    fn always_and_never_do_not_ask_the_parent() {
        assert!(Sampler::rate(1.0).decides(Some(&parent("00")), &[1; 16]));
        assert!(!Sampler::rate(0.0).decides(Some(&parent("01")), &[1; 16]));
        assert_eq!(Sampler::rate(f64::NAN), Sampler::Never);
    }
}
