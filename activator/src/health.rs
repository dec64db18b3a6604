//! What the kubelet is told. It asks the same for readiness and for liveness,
//! so a no that lasts restarts the process and loses what it holds.

use crate::link::Reach;
use policy::compat::Compat;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::watch;

/// How the process is.
pub(crate) struct Health {
    compat: Compat,
    terminating: AtomicBool,
    reach: OnceLock<watch::Receiver<Reach>>,
}

impl Health {
    pub(crate) fn new(compat: Compat) -> Health {
        Health { compat, terminating: AtomicBool::new(false), reach: OnceLock::new() }
    }

    /// From now on it is on its way out.
    pub(crate) fn terminate(&self) {
        self.terminating.store(true, Ordering::Relaxed);
    }

    /// Whether the autoscaler is reached counts from now on.
    pub(crate) fn follow(&self, reach: watch::Receiver<Reach>) {
        let _ = self.reach.set(reach);
    }

    /// Whether the autoscaler is reached now; `None` where that is not known.
    pub(crate) fn reaches(&self) -> Option<bool> {
        self.reach.get().map(|reach| *reach.borrow() == Reach::Up)
    }

    /// Why it should get no requests, if it should not.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        if self.terminating.load(Ordering::Relaxed) {
            return Some("received SIGTERM from kubelet");
        }
        let reach = *self.reach.get()?.borrow();
        let bad = match (reach, self.compat) {
            (Reach::NeverYet, _) => true,
            // An autoscaler that is away for two minutes would have all
            // activators restarted, with the requests that they hold.
            (Reach::Lost, compat) => compat == Compat::Strict,
            (Reach::Up, _) => false,
        };
        bad.then_some("connection has not yet been established")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(compat: Compat, reach: Reach) -> bool {
        let health = Health::new(compat);
        health.follow(watch::channel(reach).1);
        health.fault().is_none()
    }

    #[test]
    fn a_lost_autoscaler_is_no_reason_to_be_restarted() {
        assert!(!seen(Compat::Better, Reach::NeverYet) && !seen(Compat::Strict, Reach::NeverYet));
        assert!(seen(Compat::Better, Reach::Lost) && !seen(Compat::Strict, Reach::Lost));
        assert!(seen(Compat::Better, Reach::Up) && seen(Compat::Strict, Reach::Up));
    }

    #[test]
    fn its_end_counts_more_than_all_else() {
        let health = Health::new(Compat::Better);
        assert_eq!(health.fault(), None);
        health.terminate();
        assert_eq!(health.fault(), Some("received SIGTERM from kubelet"));
    }
}
