//! Pauses between attempts to connect.

use policy::compat::Compat;
use std::time::Duration;

/// The reference's: the first pause, how each grows, and by how much each is
/// lengthened at random; after so many the series begins anew.
const FIRST: Duration = Duration::from_millis(100);
const FACTOR: f64 = 1.3;
const JITTER: f64 = 0.5;
const STEPS: u32 = 20;
/// The longest while there is news, so that somebody may wait to be woken: the
/// reference's grow to 17 s.
const LONGEST: Duration = Duration::from_secs(1);
/// The longest while there is none.
const LONGEST_QUIET: Duration = Duration::from_secs(10);
/// A connection that held less long is one that failed.
pub(super) const HELD_WELL: Duration = Duration::from_secs(1);

/// How long to wait before the next attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Pause {
    /// As soon as there is news that nobody has been told.
    pub(super) with_news: Duration,
    /// Else.
    pub(super) quiet: Duration,
}

/// Where the series is.
pub(super) struct Backoff {
    compat: Compat,
    failures: u32,
}

impl Backoff {
    pub(super) fn new(compat: Compat) -> Backoff {
        Backoff { compat, failures: 0 }
    }

    /// A connection ended that had held for so long. The pause before the next
    /// attempt: none, but where the server takes connections to end them.
    pub(super) fn lost_after(&mut self, held: Duration) -> Pause {
        if self.compat == Compat::Better && held < HELD_WELL {
            return self.failed();
        }
        self.failures = 0;
        Pause::default()
    }

    /// An attempt failed. The pause before the next.
    pub(super) fn failed(&mut self) -> Pause {
        let step = match self.compat {
            Compat::Strict => self.failures % STEPS,
            Compat::Better => self.failures.min(STEPS),
        };
        self.failures = self.failures.wrapping_add(1);
        let pause = FIRST.mul_f64(FACTOR.powi(i32::try_from(step).unwrap_or_default()));
        let jitter = 1.0 + JITTER * fastrand::f64();
        let at_most = |longest| if self.compat == Compat::Better { pause.min(longest) } else { pause };
        Pause { with_news: at_most(LONGEST).mul_f64(jitter), quiet: at_most(LONGEST_QUIET).mul_f64(jitter) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pauses_are_the_references_in_strict_mode() {
        let mut backoff = Backoff::new(Compat::Strict);
        for round in 0..2 {
            let mut shortest = 0.1;
            for step in 0..STEPS {
                let Pause { with_news, quiet } = backoff.failed();
                assert_eq!(with_news, quiet);
                let pause = quiet.as_secs_f64();
                assert!((shortest..=shortest * 1.5).contains(&pause), "round {round}, step {step}: {pause}");
                shortest *= FACTOR;
            }
        }
        assert_eq!(backoff.lost_after(Duration::ZERO), Pause::default());
    }

    #[test]
    fn nobody_waits_long_and_a_server_that_hangs_up_at_once_is_left_alone() {
        let mut backoff = Backoff::new(Compat::Better);
        let pauses: Vec<_> = (0..60).map(|_| backoff.failed()).collect();
        assert!(pauses.iter().all(|pause| pause.with_news <= LONGEST.mul_f64(1.5) && pause.with_news <= pause.quiet));
        assert!(pauses.iter().all(|pause| pause.quiet <= LONGEST_QUIET.mul_f64(1.5)));
        assert!(
            pauses[STEPS as usize..].iter().all(|pause| pause.quiet >= LONGEST_QUIET),
            "the series does not begin anew"
        );
        assert_eq!(backoff.lost_after(HELD_WELL), Pause::default());
        assert!(backoff.lost_after(Duration::ZERO).with_news >= FIRST);
    }
}
