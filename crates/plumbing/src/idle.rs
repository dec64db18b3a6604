//! How long a server keeps idle connections, learned from when it closes them.
//!
//! A request on a connection that is closed at that very moment is lost, and
//! not all requests may be sent twice. So a connection is used again only well
//! before its server is known to close it.

use std::time::Duration;

/// An idle connection is closed, not used, beyond this.
pub const IDLE_MAX: Duration = Duration::from_secs(90);
/// A request that cannot be sent twice uses a connection idle for no longer
/// than this while nothing has been learned. What it does not use stays idle
/// meanwhile, and shows how long they live.
const UNPROVEN_MAX: Duration = Duration::from_millis(150);
/// The same where a loss is taken for a longer reuse: servers commonly close
/// idle ones after two seconds and more.
const UNPROVEN_MAX_TRUSTING: Duration = Duration::from_secs(1);
/// A connection closed sooner says little: its server may be ending. Only as
/// many in a row as [`DOUBTFUL_MAX`] say that it does so always.
const DOUBTFUL: Duration = Duration::from_millis(100);
const DOUBTFUL_MAX: u8 = 3;

/// What is lost if a connection is closed at the moment of its use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stake {
    /// Nothing: the request may be sent twice.
    Nothing,
    /// The request.
    Request,
    /// The request, and that is accepted for a longer reuse.
    Accepted,
}

/// What is known of one server.
#[derive(Clone, Copy, Debug, Default)]
pub struct IdleLimit {
    shortest: Option<Duration>,
    /// The longest that a connection is known to have been kept.
    kept: Duration,
    doubtful: u8,
}

impl IdleLimit {
    /// The server closed a connection that had lain idle for `age`.
    pub fn closed_after(&mut self, age: Duration) {
        if age < DOUBTFUL {
            self.doubtful += 1;
            if self.doubtful < DOUBTFUL_MAX {
                return;
            }
        }
        self.doubtful = 0;
        self.hint(age);
    }

    /// The server says that it closes after `limit` (`Keep-Alive: timeout=…`).
    pub fn hint(&mut self, limit: Duration) {
        self.shortest = Some(self.shortest.map_or(limit, |known| known.min(limit)));
    }

    /// True if one that is still open after `age` shows something new.
    pub fn would_learn(&self, age: Duration) -> bool {
        age > self.kept
    }

    /// A connection that had lain idle for `age` still worked.
    pub fn worked_after(&mut self, age: Duration) {
        self.kept = self.kept.max(age);
        if age >= DOUBTFUL {
            self.doubtful = 0;
        }
    }

    /// The server has ended: the next may do otherwise.
    pub fn forget(&mut self) {
        *self = IdleLimit::default();
    }

    /// For how long a connection may have lain idle to be used once more.
    pub fn reuse_max(&self, stake: Stake) -> Duration {
        match (self.shortest, stake) {
            (Some(shortest), _) => (shortest * 3 / 4).min(IDLE_MAX),
            (None, Stake::Nothing) => IDLE_MAX,
            (None, Stake::Request) => (self.kept * 3 / 4).max(UNPROVEN_MAX),
            (None, Stake::Accepted) => (self.kept * 3 / 4).max(UNPROVEN_MAX_TRUSTING),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn connections_are_used_for_three_quarters_of_the_shortest_life_seen() {
        let mut limit = IdleLimit::default();
        assert_eq!((limit.reuse_max(Stake::Nothing), limit.reuse_max(Stake::Request)), (IDLE_MAX, UNPROVEN_MAX));
        limit.closed_after(ms(5000));
        assert_eq!((limit.reuse_max(Stake::Nothing), limit.reuse_max(Stake::Request)), (ms(3750), ms(3750)));
        limit.closed_after(ms(200));
        limit.closed_after(ms(400));
        assert_eq!(limit.reuse_max(Stake::Nothing), ms(150));
        limit.forget();
        assert_eq!(limit.reuse_max(Stake::Nothing), IDLE_MAX);
        limit.hint(Duration::from_secs(1_000_000));
        assert_eq!(limit.reuse_max(Stake::Nothing), IDLE_MAX);
    }

    #[test]
    fn what_cannot_be_sent_twice_waits_for_longer_once_that_has_been_seen_to_work() {
        let mut limit = IdleLimit::default();
        limit.worked_after(ms(190));
        assert_eq!(limit.reuse_max(Stake::Request), UNPROVEN_MAX);
        assert_eq!(limit.reuse_max(Stake::Accepted), UNPROVEN_MAX_TRUSTING);
        limit.worked_after(ms(4000));
        limit.worked_after(ms(10));
        assert_eq!(limit.reuse_max(Stake::Request), ms(3000));
        limit.closed_after(ms(2000));
        assert_eq!(limit.reuse_max(Stake::Request), ms(1500));
        limit.forget();
        assert_eq!(limit.reuse_max(Stake::Request), UNPROVEN_MAX);
    }

    #[test]
    fn one_that_ends_is_not_taken_for_one_that_is_always_quick() {
        let mut limit = IdleLimit::default();
        limit.closed_after(ms(3));
        limit.closed_after(ms(4));
        limit.worked_after(ms(150));
        limit.closed_after(ms(3));
        limit.closed_after(ms(4));
        assert_eq!(limit.reuse_max(Stake::Nothing), IDLE_MAX);
        limit.closed_after(ms(8));
        assert_eq!(limit.reuse_max(Stake::Nothing), ms(6));
    }
}
