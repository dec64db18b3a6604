//! The state of one sidecar.

use crate::config::Config;
use parking_lot::Mutex;
use plumbing::clock;
use plumbing::limiter::Limiter;
use plumbing::shutdown::Shutdown;
use plumbing::worker::Worker;
use policy::admit::Bounds;
use policy::pick::Rule;
use policy::timeline::{Kind, Report, Timeline};
use std::future::Future;
use std::sync::Arc;

pub(crate) struct Sidecar {
    pub(crate) config: Config,
    /// `None` = no limit.
    pub(crate) limiter: Option<Limiter>,
    shutdown: Shutdown,
    timeline: Mutex<Timeline>,
}

impl Sidecar {
    pub(crate) fn new(config: Config, shutdown: Shutdown) -> Sidecar {
        let limiter = (config.container_concurrency > 0).then(|| {
            let limit = config.container_concurrency;
            let places = (limit as usize).saturating_add(config.queue_depth);
            let bounds = Bounds { waiting_max: usize::MAX, places_max: places };
            let limiter = Limiter::new(bounds, Rule::FirstFree, None);
            limiter.update(|admission, woken| admission.add_pod(Some(limit), woken));
            limiter
        });
        let timeline = Mutex::new(Timeline::new(clock::now()));
        Sidecar { config, limiter, shutdown, timeline }
    }

    /// Counts a request until the guard is dropped.
    pub(crate) fn enter(self: &Arc<Self>, proxied: bool) -> Inside {
        let kind = if proxied { Kind::Proxied } else { Kind::Direct };
        self.timeline.lock().enter(clock::now(), kind);
        Inside { sidecar: self.clone(), kind }
    }

    /// Runs an upgraded connection; it holds the drain, and ends with it.
    pub(crate) fn track(&self, worker: &Worker, tunnel: impl Future<Output = ()> + Send + 'static) {
        let shutdown = self.shutdown.clone();
        worker.spawn(self.shutdown.track(async move {
            tokio::select! { () = tunnel => {}, () = shutdown.stopping() => {} }
        }));
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.shutdown.is_draining()
    }

    /// Slots that are free now; told with a handback.
    pub(crate) fn free_slots(&self) -> u64 {
        let Some(limiter) = &self.limiter else { return u64::from(u32::MAX) };
        limiter.read(|admission| admission.capacity().unwrap_or(0).saturating_sub(admission.running() as u64))
    }

    pub(crate) fn report(&self) -> Report {
        self.timeline.lock().report(clock::now())
    }
}

/// A request that is counted.
pub(crate) struct Inside {
    sidecar: Arc<Sidecar>,
    kind: Kind,
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.sidecar.timeline.lock().leave(clock::now(), self.kind);
    }
}
