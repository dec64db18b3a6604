//! What the request path and `main` see of all this.

use super::component::Component;
use super::config::{Config, Metrics as MetricsConfig, Tracing};
use super::facts::RequestFacts;
use super::identity::Identity;
use super::metrics::{Dropped, Metrics, More, Setup as MetricsSetup};
use super::otlp::{Signal, Uplink};
use super::request_log::{Lines, RequestLog, Template};
use super::trace::{self, RequestTrace, Sampler, SpanQueue};
use super::watch::Watch;
use policy::compat::Compat;
use policy::moment::Moment;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// Who is observed, and how.
pub struct Setup {
    /// Which component.
    pub component: Component,
    /// Names of the pod and of what it serves.
    pub who: Identity,
    /// Strict: flaws included.
    pub compat: Compat,
    /// Host and port of the app, as labels show them; `None` at an activator,
    /// which has many pods.
    pub app: Option<(String, u16)>,
}

/// What was asked for and is not done, in words for the log.
#[derive(Debug, Default)]
pub struct Unmet {
    /// The log of requests stays off for these.
    pub errors: Vec<String>,
    /// Settings without effect.
    pub notices: Vec<String>,
}

/// Metrics, traces and the request log of one component. Clones share them.
/// With all of them off it does nothing, at no cost.
#[derive(Clone)]
pub struct Observer {
    inner: Option<Arc<Inner>>,
}

/// What is switched on.
pub(super) struct Inner {
    pub(super) compat: Compat,
    pub(super) component: Component,
    pub(super) app: Option<(String, u16)>,
    pub(super) metrics: Option<Arc<Metrics>>,
    pub(super) tracer: Option<Tracer>,
    pub(super) log: Option<RequestLog>,
    metrics_to: Option<(Uplink, Duration)>,
    spans_to: Option<SpansTo>,
    resource: Vec<(String, String)>,
    lines: Option<Lines>,
    dropped: Arc<Dropped>,
}

pub(super) struct Tracer {
    pub(super) sampler: Sampler,
    pub(super) queue: SpanQueue,
}

enum SpansTo {
    Stdout(Lines),
    Collector(Uplink),
}

impl Observer {
    /// Nothing is observed.
    pub fn off() -> Observer {
        Observer { inner: None }
    }

    /// Starts what the configuration asks for, as far as it can be done.
    pub fn start(config: Config, setup: Setup) -> (Observer, Unmet) {
        let Setup { component, compat, .. } = setup;
        let mut unmet = Unmet { errors: Vec::new(), notices: config.notices };
        let dropped = Arc::<Dropped>::default();
        let resource = config.resource.resolve(component, &setup.who, compat);
        let template = config.request_log.and_then(|log| match Template::compile(&log.template) {
            Ok(template) => Some((template, log.probes)),
            Err(faults) => {
                let head = "Error setting up request logger. Request logs will be unavailable.";
                unmet.errors.extend(faults.iter().map(|fault| format!("{head} requestLogTemplate: {fault}")));
                None
            }
        });
        let traces = config.tracing != Tracing::Off;
        let wants_lines = template.is_some() || config.tracing == Tracing::Stdout;
        let lines = wants_lines.then(|| Lines::to_stdout(dropped.clone()));
        let log = template
            .zip(lines.clone())
            .map(|((template, probes), lines)| RequestLog::new(template, setup.who, component, compat, probes, lines));
        let metrics = (config.metrics != MetricsConfig::Off).then(|| {
            let (app, dropped) = (setup.app.clone(), dropped.clone());
            let setup = MetricsSetup { component, compat, resource: resource.clone(), app, dropped };
            Arc::new(Metrics::new(setup))
        });
        let metrics_to = match config.metrics {
            MetricsConfig::Otlp { export, every } => {
                Some((Uplink::new(export, component, Signal::Metrics, dropped.clone()), every))
            }
            MetricsConfig::Off | MetricsConfig::Prometheus(_) => None,
        };
        let spans_to = match config.tracing {
            Tracing::Off | Tracing::Unrecorded => None,
            Tracing::Stdout => lines.clone().map(SpansTo::Stdout),
            Tracing::Otlp(export) => {
                Some(SpansTo::Collector(Uplink::new(export, component, Signal::Traces, dropped.clone())))
            }
        };
        let queue = SpanQueue::new(dropped.clone());
        let tracer = traces.then_some(Tracer { sampler: config.sampler, queue });
        if metrics.is_none() && tracer.is_none() && log.is_none() {
            return (Observer::off(), unmet);
        }
        let inner = Inner {
            compat,
            component,
            app: setup.app,
            metrics,
            tracer,
            log,
            metrics_to,
            spans_to,
            resource,
            lines,
            dropped,
        };
        (Observer { inner: Some(Arc::new(inner)) }, unmet)
    }

    /// True when nothing is observed.
    pub fn is_off(&self) -> bool {
        self.inner.is_none()
    }

    /// A request begins: before its head is changed, and before anything can refuse it.
    pub fn begin(&self, facts: &RequestFacts<'_>) -> Watch {
        let Some(inner) = &self.inner else { return Watch::off() };
        let probe = facts.is_any_probe(inner.compat);
        let labels = inner.metrics.as_ref().filter(|_| !probe).map(|metrics| metrics.labels(facts));
        let begin = |tracer: &Tracer| RequestTrace::begin(facts, inner.component, tracer.sampler);
        let trace = inner.tracer.as_ref().filter(|_| !probe).map(begin);
        let capture = |log: &RequestLog| log.capture(facts, trace.as_ref());
        let logged = inner.log.as_ref().filter(|log| !probe || log.probes).map(capture);
        if labels.is_none() && trace.is_none() && logged.is_none() {
            return Watch::off();
        }
        Watch::begin(inner.clone(), facts, labels, trace, logged)
    }

    /// True when more than counts is wanted of a request: its head, for traces
    /// or the log.
    pub fn wants_heads(&self) -> bool {
        self.inner.as_ref().is_some_and(|inner| inner.tracer.is_some() || inner.log.is_some())
    }

    /// A request over HTTP/1.1 begins that is no probe and names no route, and
    /// of which only counts are wanted ([`Observer::wants_heads`]).
    pub fn begin_plain(&self, method: &http::Method, host: &str, tls: bool, at: Moment) -> Watch {
        let Some(inner) = &self.inner else { return Watch::off() };
        let Some(metrics) = &inner.metrics else { return Watch::off() };
        Watch::counting(inner.clone(), metrics.plain_labels(method, host, tls), at)
    }

    /// The app has a limit: reads how many places are taken, running and waiting.
    pub fn read_depth(&self, depth: impl Fn() -> u64 + Send + Sync + 'static) {
        if let Some(metrics) = self.inner.as_ref().and_then(|inner| inner.metrics.as_ref()) {
            metrics.read_depth(Box::new(depth));
        }
    }

    /// There are many revisions: reads what there is of them.
    pub fn read_more(&self, more: impl Fn() -> More + Send + Sync + 'static) {
        if let Some(metrics) = self.inner.as_ref().and_then(|inner| inner.metrics.as_ref()) {
            metrics.read_more(Box::new(more));
        }
    }

    /// The counters, for the user metrics port; `None` when nothing is counted.
    pub fn metrics(&self) -> Option<Arc<Metrics>> {
        self.inner.as_ref()?.metrics.clone()
    }

    /// What had to be let go of so far.
    pub fn dropped(&self) -> Option<Arc<Dropped>> {
        self.inner.as_ref().map(|inner| inner.dropped.clone())
    }

    /// Sends what is to be sent, until `stop` is ready; then what is left,
    /// within `longest`. A collector that hangs is left at once.
    pub async fn run(&self, stop: impl Future<Output = ()>, longest: Duration) {
        let Some(inner) = &self.inner else { return stop.await };
        tokio::select! {
            () = stop => {}
            () = inner.send_metrics() => {}
            () = inner.send_spans() => {}
        }
        let last = async { tokio::join!(inner.send_metrics_now(), inner.send_spans_now()) };
        let _ = tokio::time::timeout(longest, last).await;
    }

    /// Waits until lines for standard output are written, at most so long.
    /// The last thing before the process ends; blocks the thread.
    pub fn close(&self, longest: Duration) {
        if let Some(lines) = self.inner.as_ref().and_then(|inner| inner.lines.as_ref()) {
            lines.flush(longest);
        }
    }
}

impl Inner {
    async fn send_metrics(&self) {
        let Some((_, every)) = &self.metrics_to else { return std::future::pending().await };
        loop {
            tokio::time::sleep(*every).await;
            self.send_metrics_now().await;
        }
    }

    async fn send_metrics_now(&self) {
        if let (Some((uplink, _)), Some(metrics)) = (&self.metrics_to, &self.metrics) {
            uplink.send_metrics(metrics).await;
        }
    }

    async fn send_spans(&self) {
        let Some(tracer) = &self.tracer else { return std::future::pending().await };
        loop {
            tracer.queue.ready().await;
            self.send_spans_now().await;
        }
    }

    async fn send_spans_now(&self) {
        let (Some(tracer), Some(to)) = (&self.tracer, &self.spans_to) else { return };
        while let Some(batch) = tracer.queue.take() {
            let taken = match to {
                SpansTo::Stdout(lines) => {
                    for span in batch.spans() {
                        lines.push(trace::line(span, &self.resource).as_bytes());
                    }
                    true
                }
                SpansTo::Collector(uplink) => uplink.send_spans(batch.spans(), &self.resource).await,
            };
            batch.settle(taken);
        }
    }
}
