//! `config-leader-election`: how replicas divide the work.

use super::map::{read_either, span};
use super::{ConfigFault, Data};
use crate::knative::text::int32;
use std::time::Duration;

/// Most buckets that there may be.
const BUCKETS_MOST: i32 = 10;

/// The settings, checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElectionConfig {
    /// `buckets`: into how many parts the work is divided (1 to 10).
    pub buckets: u32,
    /// `lease-duration`: how long a lease stands that is not renewed (60 s).
    pub lease_duration: Duration,
    /// `renew-deadline`: how long its holder tries to renew it (40 s).
    pub renew_deadline: Duration,
    /// `retry-period`: time between two tries (10 s).
    pub retry_period: Duration,
}

impl ElectionConfig {
    /// From the map's text.
    ///
    /// # Errors
    /// The first value that does not read, else the first that is not allowed.
    pub fn parse(data: &Data) -> Result<ElectionConfig, ConfigFault> {
        const SECOND: i64 = 1_000_000_000;
        let time = |spellings, default: i64| read_either(data, spellings, default * SECOND, span);
        let lease = time(["leaseDuration", "lease-duration"], 60)?;
        let renew = time(["renewDeadline", "renew-deadline"], 40)?;
        let retry = time(["retryPeriod", "retry-period"], 10)?;
        let buckets = read_either(data, ["buckets", "buckets"], 1, int32)?;
        let Some(buckets) = u32::try_from(buckets).ok().filter(|_| (1..=BUCKETS_MOST).contains(&buckets)) else {
            let why = format!("buckets: value must be between 1 and {BUCKETS_MOST}, was: {buckets}");
            return Err(ConfigFault::Validate(why));
        };
        let span = |key: &str, nanos: i64| {
            let nanos = u64::try_from(nanos).map_err(|_| ConfigFault::Validate(format!("{key} cannot be negative")))?;
            Ok(Duration::from_nanos(nanos))
        };
        Ok(ElectionConfig {
            buckets,
            lease_duration: span("lease-duration", lease)?,
            renew_deadline: span("renew-deadline", renew)?,
            retry_period: span("retry-period", retry)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(pairs: &[(&str, &str)]) -> Result<ElectionConfig, ConfigFault> {
        ElectionConfig::parse(&pairs.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect())
    }

    #[test]
    fn there_are_defaults_and_older_spellings() {
        let config = parse(&[]).unwrap();
        let spans = [config.lease_duration, config.renew_deadline, config.retry_period].map(|span| span.as_secs());
        assert_eq!((config.buckets, spans), (1, [60, 40, 10]));
        let config = parse(&[("leaseDuration", "15s"), ("buckets", "10"), ("retry-period", "2s")]).unwrap();
        assert_eq!((config.buckets, config.lease_duration.as_secs(), config.retry_period.as_secs()), (10, 15, 2));
    }

    #[test]
    fn buckets_are_one_to_ten() {
        for odd in ["0", "11", "-1"] {
            assert!(matches!(parse(&[("buckets", odd)]), Err(ConfigFault::Validate(_))), "{odd}");
        }
        assert!(matches!(parse(&[("buckets", "x")]), Err(ConfigFault::Parse(_))));
    }
}
