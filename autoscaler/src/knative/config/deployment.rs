//! `config-deployment`: how long a start may take.

use super::map::{read_either, span};
use super::{ConfigFault, Data};
use crate::knative::text::show_duration;
use std::time::Duration;

const SECOND: i64 = 1_000_000_000;
const DEFAULT: i64 = 600 * SECOND;

/// The key `progress-deadline` (600 s).
///
/// # Errors
/// When it does not read, is not positive, or has parts of seconds.
pub fn progress_deadline(data: &Data) -> Result<Duration, ConfigFault> {
    let nanos = read_either(data, ["progressDeadline", "progress-deadline"], DEFAULT, span)?;
    let shown = show_duration(nanos);
    match u64::try_from(nanos) {
        Ok(0) | Err(_) => {
            Err(ConfigFault::Validate(format!("progress-deadline cannot be a non-positive duration, was {shown}")))
        }
        Ok(_) if nanos % SECOND != 0 => {
            Err(ConfigFault::Validate(format!("progress-deadline must be rounded to a whole second, was: {shown}")))
        }
        Ok(nanos) => Ok(Duration::from_nanos(nanos)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(pairs: &[(&str, &str)]) -> Result<Duration, ConfigFault> {
        progress_deadline(&pairs.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect())
    }

    #[test]
    fn the_newer_spelling_counts_and_the_older_one_must_read_too() {
        assert_eq!(parse(&[]), Ok(Duration::from_secs(600)));
        assert_eq!(parse(&[("progressDeadline", "1m")]), Ok(Duration::from_secs(60)));
        assert_eq!(parse(&[("progressDeadline", "1m"), ("progress-deadline", "2m")]), Ok(Duration::from_secs(120)));
        assert!(matches!(parse(&[("progressDeadline", "x"), ("progress-deadline", "2m")]), Err(ConfigFault::Parse(_))));
    }

    #[test]
    fn it_is_positive_and_of_whole_seconds() {
        for odd in ["0s", "-1s", "1.5s"] {
            assert!(matches!(parse(&[("progress-deadline", odd)]), Err(ConfigFault::Validate(_))), "{odd}");
        }
    }
}
