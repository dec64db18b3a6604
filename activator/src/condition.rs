//! What is known of one pod beside its address: how it fared lately, and
//! whether its sidecar is ours.

use plumbing::headers;
use plumbing::reason::Reason;
use policy::eject::Sign;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

#[derive(Debug)]
pub(crate) struct Condition {
    /// Failures since the last answer.
    failures: AtomicU32,
    ours: AtomicBool,
    /// Many pods behind one address: what one of them says of itself is not
    /// true of all.
    many: bool,
}

impl Condition {
    /// Of a pod that has not failed yet.
    pub(crate) fn new(is_ours: bool) -> Condition {
        Condition { failures: AtomicU32::new(0), ours: AtomicBool::new(is_ours), many: false }
    }

    /// Of an address that many pods are behind.
    pub(crate) fn of_many() -> Condition {
        Condition { many: true, ..Condition::new(false) }
    }

    /// It has answered a request.
    pub(crate) fn answered(&self) {
        if self.failures.load(Ordering::Relaxed) != 0 {
            self.failures.store(0, Ordering::Relaxed);
        }
    }

    /// It has failed; how many times in a row by now.
    pub(crate) fn failed(&self) -> u32 {
        self.failures.fetch_add(1, Ordering::Relaxed).saturating_add(1)
    }

    /// What an answer to a probe says of its sidecar; true if that is news.
    pub(crate) fn heard(&self, fields: &http::HeaderMap) -> bool {
        let is_ours = fields.contains_key(headers::PROXY) && !self.many;
        self.ours.swap(is_ours, Ordering::Relaxed) != is_ours
    }

    /// True when it can be made offers.
    pub(crate) fn is_ours(&self) -> bool {
        self.ours.load(Ordering::Relaxed)
    }

    /// What an answer shows of the pod: `None` when it is one of the app.
    pub(crate) fn sign(&self, fields: &http::HeaderMap) -> Option<Sign> {
        // An app behind a sidecar of ours cannot give a reason.
        let code = fields.get(headers::REASON).filter(|_| self.is_ours())?.as_bytes();
        let is = |reason: Reason| code == reason.code().as_bytes();
        if is(Reason::ResetBeforeAnswer) {
            Some(Sign::Reset)
        } else if is(Reason::FirstByteTimeout) || is(Reason::TotalTimeout) || is(Reason::IdleTimeout) {
            Some(Sign::Late)
        } else if is(Reason::ConnectFailed) {
            Some(Sign::Unreachable)
        } else {
            None
        }
    }
}
