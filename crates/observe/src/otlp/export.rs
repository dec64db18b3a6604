//! Sending, now and then, to a collector that may be slow, gone or hanging.

use super::{grpc, http, metrics, spans};
use crate::component::Component;
use crate::config::{Export, Protocol};
use crate::metrics::{Dropped, Metrics};
use crate::trace::Span;
use prost::Message;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Tries of one message. All of them together, with the pauses, have the
/// time of one message.
const TRIES: u32 = 3;

/// The pause after the first try; it doubles.
const PAUSE: Duration = Duration::from_millis(500);

/// Why a message was not taken.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SendError {
    /// Another try may help.
    Again(String),
    Never(String),
}

/// What is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    Metrics,
    Traces,
}

impl Signal {
    fn method(self) -> &'static str {
        match self {
            Signal::Metrics => "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
            Signal::Traces => "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Signal::Metrics => "metrics",
            Signal::Traces => "traces",
        }
    }
}

/// The way to one collector, for one signal.
pub(crate) struct Uplink {
    export: Export,
    component: Component,
    signal: Signal,
    /// The last message was not taken: it has been told.
    failing: AtomicBool,
    dropped: Arc<Dropped>,
}

impl Uplink {
    pub(crate) fn new(export: Export, component: Component, signal: Signal, dropped: Arc<Dropped>) -> Uplink {
        Uplink { export, component, signal, failing: AtomicBool::new(false), dropped }
    }

    pub(crate) async fn send_metrics(&self, all: &Metrics) -> bool {
        let message = metrics::message(self.component, &all.read(), &self.dropped).encode_to_vec();
        self.send(message).await
    }

    pub(crate) async fn send_spans(&self, all: &[Span], resource: &[(String, String)]) -> bool {
        let message = spans::message(all, resource).encode_to_vec();
        self.send(message).await
    }

    /// True when the collector has it.
    async fn send(&self, message: Vec<u8>) -> bool {
        let error = match tokio::time::timeout(self.export.timeout, self.tries(message)).await {
            Ok(Ok(())) => {
                if self.failing.swap(false, Ordering::Relaxed) {
                    tracing::info!(signal = self.signal.name(), "the collector takes telemetry again");
                }
                return true;
            }
            Ok(Err(error)) => error,
            Err(_) => "no answer in time".to_owned(),
        };
        self.dropped.add_export();
        if !self.failing.swap(true, Ordering::Relaxed) {
            let (signal, collector) = (self.signal.name(), self.export.endpoint.authority());
            tracing::warn!(signal, collector, error, "the collector does not take telemetry");
        }
        false
    }

    async fn tries(&self, message: Vec<u8>) -> Result<(), String> {
        let mut pause = PAUSE;
        for _ in 1..TRIES {
            match self.once(message.clone()).await {
                Ok(()) => return Ok(()),
                Err(SendError::Never(error)) => return Err(error),
                Err(SendError::Again(error)) => {
                    tracing::debug!(signal = self.signal.name(), error, "telemetry is sent again");
                }
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        self.once(message).await.map_err(|error| match error {
            SendError::Again(error) | SendError::Never(error) => error,
        })
    }

    async fn once(&self, message: Vec<u8>) -> Result<(), SendError> {
        let agent = format!("zeroscale-{}/{}", self.component.name(), env!("CARGO_PKG_VERSION"));
        match self.export.protocol {
            Protocol::Http => http::post(&self.export, &agent, message).await,
            Protocol::Grpc => grpc::call(&self.export, &agent, self.signal.method(), &message).await,
        }
    }
}
