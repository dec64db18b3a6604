//! What a sidecar is told at its start.

use crate::readiness::{Readiness, Target};
use plumbing::serve::Settings;
use plumbing::trust::Trust;
use policy::compat::Compat;
use policy::drain::Rules;
use policy::revision::{RevisionId, Timeouts};
use policy::world::PodName;
use std::net::SocketAddr;
use std::time::Duration;

/// Queue depth as a multiple of the limit, the reference's.
pub const QUEUE_DEPTH_PER_SLOT: usize = 10;
/// Longest time for a request, Knative's default.
const TOTAL: Duration = Duration::from_secs(300);
/// How long tunnels may hold the end of a drain, the reference's.
const TUNNEL_TIMEOUT: Duration = Duration::from_secs(60);
/// How long an app that cannot be reached is tried again.
const CONNECT_RETRY: Duration = Duration::from_secs(3);

/// A sidecar's settings.
#[derive(Clone)]
pub struct Config {
    /// The pod's name, sent in every stat (`SERVING_POD`).
    pub pod: PodName,
    /// Its revision.
    pub revision: RevisionId,
    /// Where the app listens.
    pub app: SocketAddr,
    /// Requests at the app at a time (`CONTAINER_CONCURRENCY`); 0 = no limit.
    pub container_concurrency: u32,
    /// Requests that may wait for the app; without meaning when there is no limit.
    pub queue_depth: usize,
    /// The limits of one request; waiting here counts in them.
    pub timeouts: Timeouts,
    /// How the app is asked whether it is ready.
    pub readiness: Readiness,
    /// Whose internal headers are believed.
    pub trust: Trust,
    /// Limits of client connections.
    pub serve: Settings,
    /// Strict: as the reference does, flaws included; marks of an activator
    /// are not read.
    pub compat: Compat,
    /// True in a pod of its own: kubelet asks us, so health probes are known
    /// by their user agent alone, and failed ones are logged. False behind a
    /// front that passes on what clients say.
    pub in_pod: bool,
    /// Answers may begin before the request's body has been read
    /// (`ENABLE_HTTP_FULL_DUPLEX`); only strict mode waits otherwise.
    pub full_duplex: bool,
    /// How the drain goes.
    pub drain: Rules,
    /// How long tunnels may hold the end, from the end of the quiet time on.
    pub tunnel_timeout: Duration,
    /// How long an app that cannot be reached is tried again.
    pub connect_retry: Duration,
    /// Where stats are pushed to, beside being scraped (`ZEROSCALE_STATS_ADDR`).
    pub stats_push: Option<Target>,
}

impl Config {
    /// For a sidecar inside another process: no limit, Knative's time limits,
    /// ready when `app` accepts connections, no quiet time at the end.
    pub fn new(pod: impl Into<PodName>, revision: RevisionId, app: SocketAddr, trust: Trust) -> Config {
        Config {
            pod: pod.into(),
            revision,
            app,
            container_concurrency: 0,
            queue_depth: 0,
            timeouts: Timeouts { total: TOTAL, response_start: None, idle: None, upgrade: Some(TOTAL) },
            readiness: Readiness::tcp(app),
            trust,
            serve: Settings::default(),
            compat: Compat::Better,
            in_pod: false,
            full_duplex: false,
            drain: Rules::at_once(),
            tunnel_timeout: TUNNEL_TIMEOUT,
            connect_retry: CONNECT_RETRY,
            stats_push: None,
        }
    }

    /// Lets `limit` requests at the app at a time (0 = no limit), and as many
    /// wait as the reference does.
    pub fn limit_to(&mut self, limit: u32) {
        self.container_concurrency = limit;
        self.queue_depth = (limit as usize).saturating_mul(QUEUE_DEPTH_PER_SLOT);
    }
}
