//! The state of one sidecar.

use crate::config::Config;
use crate::readiness::Prober;
use crate::version::AppVersion;
use observe::Observer;
use parking_lot::Mutex;
use plumbing::clock;
use plumbing::drain::Drain;
use plumbing::limiter::Limiter;
use plumbing::shutdown::Shutdown;
use policy::admit::Bounds;
use policy::compat::Compat;
use policy::moment::Moment;
use policy::pick::Rule;
use policy::timeline::{Kind, Report, Timeline};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

pub(crate) struct Sidecar {
    pub(crate) config: Config,
    /// `None` = no limit.
    pub(crate) limiter: Option<Limiter>,
    pub(crate) drain: Drain,
    pub(crate) prober: Prober,
    pub(crate) app_version: AppVersion,
    /// Metrics, traces and the request log.
    pub(crate) observer: Observer,
    /// Ends the connections of the main port.
    pub(crate) closing: Shutdown,
    /// Ends upgraded connections: asked politely first, then dropped.
    pub(crate) tunnels: Shutdown,
    timeline: Mutex<Timeline>,
    /// Set once a lease of the app made no sense.
    pub(crate) lease_fault: OnceLock<()>,
}

impl Sidecar {
    pub(crate) fn new(config: Config, observer: Observer) -> Sidecar {
        let limiter = (config.container_concurrency > 0).then(|| {
            let limit = config.container_concurrency;
            let places = (limit as usize).saturating_add(config.queue_depth);
            let bounds = Bounds { waiting_max: usize::MAX, places_max: places };
            let limiter = Limiter::new(bounds, Rule::FirstFree, None);
            limiter.update(|admission, woken| admission.add_pod(Some(limit), woken));
            let queue = limiter.clone();
            observer.read_depth(move || queue.read(|admission| (admission.running() + admission.waiting()) as u64));
            limiter
        });
        let timeline = Mutex::new(Timeline::new(clock::now()));
        let prober = Prober::new(&config.readiness, config.compat, config.in_pod);
        let drain = Drain::new(config.drain);
        Sidecar {
            config,
            limiter,
            drain,
            prober,
            app_version: AppVersion::default(),
            observer,
            closing: Shutdown::new(),
            tunnels: Shutdown::new(),
            timeline,
            lease_fault: OnceLock::new(),
        }
    }

    /// Counts a request until the guard is dropped.
    pub(crate) fn enter(self: &Arc<Self>, proxied: bool, at: Moment) -> Inside {
        let kind = if proxied { Kind::Proxied } else { Kind::Direct };
        self.timeline.lock().enter(at, kind);
        Inside { sidecar: self.clone(), kind, left: false }
    }

    /// The app says that it works in the background for that long from now on;
    /// zero = not any more.
    pub(crate) fn lease(&self, span: Duration) {
        let now = clock::now();
        let until = (!span.is_zero()).then(|| now + span);
        self.timeline.lock().busy(now, until);
        self.drain.hold(until);
    }

    /// How much longer that is.
    pub(crate) fn leased(&self) -> Duration {
        self.drain.held().map_or(Duration::ZERO, |until| until.since(clock::now()))
    }

    /// Slots that are free now; told with a handback.
    pub(crate) fn free_slots(&self) -> u64 {
        let Some(limiter) = &self.limiter else { return u64::from(u32::MAX) };
        limiter.read(|admission| admission.free().unwrap_or(u64::from(u32::MAX)))
    }

    pub(crate) fn report(&self) -> Report {
        let mut timeline = self.timeline.lock();
        match self.config.compat {
            Compat::Better => timeline.report_measured(clock::now()),
            Compat::Strict => timeline.report(clock::now()),
        }
    }
}

/// A request that is counted.
pub(crate) struct Inside {
    sidecar: Arc<Sidecar>,
    kind: Kind,
    left: bool,
}

impl Inside {
    /// It ended then.
    pub(crate) fn leave(mut self, at: Moment) {
        self.left = true;
        self.sidecar.timeline.lock().leave(at, self.kind);
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        if !self.left {
            self.sidecar.timeline.lock().leave(clock::now(), self.kind);
        }
    }
}
