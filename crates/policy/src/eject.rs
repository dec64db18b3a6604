//! Which pods are passed over because they just failed, and for how long.
//!
//! Whatever the sign, a pod comes back only when it has shown that it is ready
//! (the shell asks it). How sure the sign is decides how many pods may be out:
//! one that takes no connection can serve nobody, so all of them may be; one
//! that broke off or was late may be a matter of the request, so at most half.

use std::time::Duration;

/// What a pod did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// It took no connection, or gave the request back unserved.
    Unreachable,
    /// It broke off before it answered.
    Reset,
    /// A limit passed before it answered.
    Late,
}

/// First rest of a pod that failed again, and of one that was late; doubles
/// with each further failure in a row.
const REST_AGAIN: Duration = Duration::from_millis(100);
const REST_LATE: Duration = Duration::from_secs(1);
/// Longest rest.
const REST_MAX: Duration = Duration::from_secs(10);
/// Doublings after which the rest is the longest in any case.
const DOUBLINGS_MAX: u32 = 10;

/// May one more of `pods` be passed over, when `out` of them are already?
pub fn may_eject(sign: Sign, pods: usize, out: usize) -> bool {
    match sign {
        Sign::Unreachable => true,
        Sign::Reset | Sign::Late => (out + 1) * 2 <= pods,
    }
}

/// How long a pod rests before it is asked whether it is ready. `failures` in
/// a row, this one included: after a first failure it is asked at once, since
/// an app that has ended may be back; a pod that passes its probe and fails
/// each request must not draw them all to itself.
pub fn rest(sign: Sign, failures: u32) -> Duration {
    let (first, doublings) = match (sign, failures) {
        (Sign::Late, n) => (REST_LATE, n.saturating_sub(1)),
        (_, 0 | 1) => return Duration::ZERO,
        (_, n) => (REST_AGAIN, n - 2),
    };
    (first * 2u32.pow(doublings.min(DOUBLINGS_MAX))).min(REST_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_most_half_are_out_on_a_doubtful_sign_and_never_the_last() {
        for (pods, most) in [(1, 0), (2, 1), (3, 1), (4, 2), (10, 5)] {
            let out = (0..pods).find(|&out| !may_eject(Sign::Reset, pods, out));
            assert_eq!(out, Some(most), "{pods} pods");
            assert!((0..pods).all(|out| may_eject(Sign::Unreachable, pods, out)));
        }
    }

    #[test]
    fn a_first_failure_is_looked_into_at_once_and_further_ones_later_and_later() {
        let rests = |sign| [1, 2, 3, 4, 99].map(|n| rest(sign, n).as_millis());
        assert_eq!(rests(Sign::Reset), [0, 100, 200, 400, 10_000]);
        assert_eq!(rests(Sign::Unreachable), rests(Sign::Reset));
        assert_eq!(rests(Sign::Late), [1000, 2000, 4000, 8000, 10_000]);
    }
}
