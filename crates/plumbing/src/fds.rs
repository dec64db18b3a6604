//! File descriptors: as many as may be had, and no spin when they run out.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Descriptors that are open beside counted sockets: listeners, epoll, pipes
/// and logs. The share of the limit that is never handed to connections.
const RESERVED_FDS: u64 = 64;

/// Raises the soft limit to the hard one. Returns the old soft limit, which
/// child processes should get back, and the budget that results.
///
/// # Errors
/// When the system refuses; the old limit is then in force.
pub fn raise() -> std::io::Result<(u64, Budget)> {
    let old = getrlimit(Resource::Nofile);
    let hard = old.maximum.or(old.current).unwrap_or(1024);
    setrlimit(Resource::Nofile, Rlimit { current: Some(hard), maximum: old.maximum })?;
    Ok((old.current.unwrap_or(hard), Budget::new(hard)))
}

/// Counts sockets against the limit. Clones share the count.
#[derive(Clone, Debug)]
pub struct Budget {
    open: Arc<AtomicU64>,
    limit: u64,
}

/// What the budget allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// Go on.
    Free,
    /// From 90 %: answer `fd_limit` and close.
    Scarce,
    /// From 97 %: accept no more.
    Full,
}

impl Budget {
    /// With a limit on open descriptors.
    pub fn new(limit: u64) -> Budget {
        Budget { open: Arc::new(AtomicU64::new(RESERVED_FDS)), limit: limit.max(RESERVED_FDS * 2) }
    }

    /// Without a limit of its own; for tests and embedded use.
    pub fn unlimited() -> Budget {
        Budget::new(u64::MAX)
    }

    /// Counts `sockets` descriptors until the guard is dropped.
    pub fn take(&self, sockets: u64) -> Taken {
        self.open.fetch_add(sockets, Ordering::Relaxed);
        Taken { open: self.open.clone(), sockets }
    }

    /// How much room there is now.
    pub fn room(&self) -> Room {
        let open = self.open.load(Ordering::Relaxed) as f64;
        let limit = self.limit as f64;
        if open >= limit * 0.97 {
            Room::Full
        } else if open >= limit * 0.90 {
            Room::Scarce
        } else {
            Room::Free
        }
    }
}

/// See [`Budget::take`].
#[derive(Debug)]
pub struct Taken {
    open: Arc<AtomicU64>,
    sockets: u64,
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.open.fetch_sub(self.sockets, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_gets_scarce_and_then_full_and_comes_back() {
        let budget = Budget::new(1000);
        assert_eq!(budget.room(), Room::Free);
        let most = budget.take(850);
        assert_eq!(budget.room(), Room::Scarce);
        let rest = budget.take(60);
        assert_eq!(budget.room(), Room::Full);
        drop((most, rest));
        assert_eq!(budget.room(), Room::Free);
    }
}
