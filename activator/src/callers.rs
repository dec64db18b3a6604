//! Wake-ups per caller: estimated over the last second, in a memory that does
//! not grow with the callers, and bounded. Off unless it is asked for.

use crate::revision::Revision;
use pingora_limits::rate::Rate;
use plumbing::reason::Reason;
use plumbing::refuse::Refusal;
use std::net::IpAddr;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// The bound and what has been seen.
pub(crate) struct Callers {
    bound: Option<(isize, Rate)>,
}

impl Callers {
    pub(crate) fn new(wakes_max: Option<u32>) -> Callers {
        let bound = wakes_max.map(|max| (isize::try_from(max).unwrap_or(isize::MAX), Rate::new(SECOND)));
        Callers { bound }
    }

    /// Counts a request that would wake a revision.
    ///
    /// # Errors
    /// The refusal, when its caller has caused as many wake-ups as it may. The
    /// estimate may be too high when many thousand callers wake revisions in
    /// the same second, and is never too low.
    pub(crate) fn may_wake(&self, revision: &Revision, caller: IpAddr) -> Result<(), Refusal> {
        let Some((max, seen)) = &self.bound else { return Ok(()) };
        if !revision.is_asleep() || seen.observe(&of_one(caller), 1) <= *max {
            return Ok(());
        }
        Err(Refusal::new(Reason::WakeLimited))
    }
}

/// What counts as one caller: an address, and of IPv6 the network of 64 bits
/// that one host commonly has to itself.
fn of_one(caller: IpAddr) -> u128 {
    match caller {
        IpAddr::V4(address) => address.to_bits().into(),
        IpAddr::V6(address) => address.to_bits() & !u128::from(u64::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_network_are_one_caller() {
        let of = |text: &str| of_one(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
    }
}
