//! `OBSERVABILITY_CONFIG` and the variables that take precedence over it.
//!
//! Pure: strings in, settings out. Whatever cannot be is a fault with the
//! name of the field or variable, and all faults are told together. What can
//! be but is not done here is a notice: the sidecar starts, and says so.

mod endpoint;
mod json;
mod variables;

pub use endpoint::Endpoint;

use super::component::Component;
use super::trace::Sampler;
use json::Fields;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::time::Duration;
use variables::Variables;

/// How often metrics are sent when nobody says.
const EXPORT_EVERY: Duration = Duration::from_secs(60);

/// What is observed, and where it goes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// Metrics of requests.
    pub metrics: Metrics,
    /// Traces.
    pub tracing: Tracing,
    /// Which traces.
    pub sampler: Sampler,
    /// True when the profiling port is asked for.
    pub profiling: bool,
    /// The log of requests; `None` when it is off.
    pub request_log: Option<RequestLog>,
    /// Names from the environment.
    pub resource: super::identity::Resource,
    /// What was asked for and is not done; for the log.
    pub notices: Vec<String>,
}

/// Where metrics of requests go.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Metrics {
    /// Nowhere; nothing is counted.
    #[default]
    Off,
    /// To whoever asks for them.
    Prometheus(Listener),
    /// To a collector.
    Otlp {
        /// The collector.
        export: Export,
        /// How often.
        every: Duration,
    },
}

/// Where spans go.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Tracing {
    /// Nowhere; trace headers pass untouched.
    #[default]
    Off,
    /// Nowhere; traces go on, or begin, under a span of ours, of which nothing is kept.
    Unrecorded,
    /// To standard output.
    Stdout,
    /// To a collector.
    Otlp(Export),
}

/// The listener of the metrics' page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Address to bind; empty means every interface.
    pub host: String,
    /// Port to bind.
    pub port: u16,
    /// TLS, if asked for.
    pub tls: Option<ListenerTls>,
}

impl Listener {
    /// Where to listen: on `bind` unless it names a host of its own.
    ///
    /// # Errors
    /// When the host has no address, in words.
    pub fn address(&self, bind: IpAddr) -> Result<SocketAddr, String> {
        if self.host.is_empty() {
            return Ok(SocketAddr::new(bind, self.port));
        }
        let fault = |error: std::io::Error| format!("{}: {error}", self.host);
        let mut found = (self.host.as_str(), self.port).to_socket_addrs().map_err(fault)?;
        found.next().ok_or_else(|| format!("{}: no address", self.host))
    }
}

/// TLS of the metrics' listener (`METRICS_PROMETHEUS_TLS_*`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerTls {
    /// File of the certificate.
    pub certificate: String,
    /// File of its key.
    pub key: String,
    /// `none`, `optional` or `require`.
    pub client_auth: String,
    /// File of the authorities of client certificates.
    pub client_ca: Option<String>,
    /// `1.2` or `1.3`.
    pub min_version: Option<String>,
}

/// A collector.
#[derive(Clone, Debug, PartialEq)]
pub struct Export {
    /// What it speaks.
    pub protocol: Protocol,
    /// Where it is.
    pub endpoint: Endpoint,
    /// Headers of each message (`OTEL_EXPORTER_OTLP_HEADERS`).
    pub headers: Vec<(String, String)>,
    /// Longest time of one message (`OTEL_EXPORTER_OTLP_TIMEOUT`).
    pub timeout: Duration,
}

/// What a collector speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Protobuf by POST.
    Http,
    /// gRPC.
    Grpc,
}

/// The log of requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestLog {
    /// The template's text.
    pub template: String,
    /// True when probes are logged too.
    pub probes: bool,
}

impl Config {
    /// Reads `text` (`OBSERVABILITY_CONFIG`, may be empty) and the variables.
    ///
    /// # Errors
    /// All faults, each with the name of its field or variable.
    pub fn parse(
        component: Component,
        text: &str,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Config, Vec<String>> {
        let mut faults = Vec::new();
        let mut notices = Vec::new();
        let root = Fields::parse(text, &mut faults);
        let mut env = Variables::new(&variable);
        let metrics = read_metrics(component, &root, &mut env, &mut faults);
        let tracing = root.object("tracing", &mut faults);
        let (tracing, sampler) = read_tracing(&tracing, &mut env, &mut faults);
        let runtime = root.object("runtime", &mut faults);
        let profiling = runtime.string("profiling", &mut faults);
        if !matches!(profiling.as_str(), "" | "enabled" | "disabled") {
            notices.push(format!("OBSERVABILITY_CONFIG: runtime.profiling: \"{profiling}\" is unknown; it stays off"));
        }
        if profiling == "enabled" {
            notices.push("OBSERVABILITY_CONFIG: runtime.profiling: there is no profiling port here".to_owned());
        }
        let request_log = read_request_log(&root, &mut faults);
        let resource = env.resource();
        faults.append(&mut env.faults);
        notices.append(&mut env.notices);
        if !faults.is_empty() {
            return Err(faults);
        }
        Ok(Config { metrics, tracing, sampler, profiling: profiling == "enabled", request_log, resource, notices })
    }
}

fn read_metrics(component: Component, root: &Fields, env: &mut Variables, faults: &mut Vec<String>) -> Metrics {
    let given = root.object(component.metrics_field(), faults);
    let every = match u64::try_from(given.integer("exportInterval", faults)) {
        Ok(0) => EXPORT_EVERY,
        Ok(nanos) => Duration::from_nanos(nanos),
        Err(_) => {
            faults.push(given.fault("exportInterval", "must not be negative"));
            EXPORT_EVERY
        }
    };
    let endpoint = given.string("endpoint", faults);
    match given.string("protocol", faults).as_str() {
        "" | "none" => Metrics::Off,
        "prometheus" => match endpoint::listener(&endpoint, component.metrics_port()) {
            Some((host, port)) => Metrics::Prometheus(env.listener(host, port)),
            None => {
                faults.push(given.fault("endpoint", &format!("\"{endpoint}\" is no host:port")));
                Metrics::Off
            }
        },
        name @ ("http/protobuf" | "grpc") => {
            let export = env.export("METRICS", protocol(name), &endpoint, &|text| given.fault("endpoint", text));
            export.map_or(Metrics::Off, |export| Metrics::Otlp { export, every: env.interval().unwrap_or(every) })
        }
        other => {
            let text = format!("\"{other}\" is none of none, prometheus, http/protobuf, grpc");
            faults.push(given.fault("protocol", &text));
            Metrics::Off
        }
    }
}

fn read_tracing(given: &Fields, env: &mut Variables, faults: &mut Vec<String>) -> (Tracing, Sampler) {
    let sampler = Sampler::rate(given.number("samplingRate", faults));
    let endpoint = given.string("endpoint", faults);
    match given.string("protocol", faults).as_str() {
        "" | "none" => (Tracing::Off, Sampler::Never),
        "stdout" => (Tracing::Stdout, env.sampler().unwrap_or(Sampler::Always)),
        name @ ("http/protobuf" | "grpc") => {
            let export = env.export("TRACES", protocol(name), &endpoint, &|text| given.fault("endpoint", text));
            (export.map_or(Tracing::Off, Tracing::Otlp), env.sampler().unwrap_or(sampler))
        }
        other => {
            let text = format!("\"{other}\" is none of none, http/protobuf, grpc, stdout");
            faults.push(given.fault("protocol", &text));
            (Tracing::Off, Sampler::Never)
        }
    }
}

fn read_request_log(root: &Fields, faults: &mut Vec<String>) -> Option<RequestLog> {
    let on = root.boolean("enableRequestLog", faults);
    let probes = root.boolean("enableProbeRequestLog", faults);
    let given = root.optional_string("requestLogTemplate", faults);
    let template = given.unwrap_or_else(|| super::request_log::DEFAULT_TEMPLATE.to_owned());
    (on && !template.is_empty()).then_some(RequestLog { template, probes })
}

fn protocol(name: &str) -> Protocol {
    if name == "grpc" { Protocol::Grpc } else { Protocol::Http }
}

#[cfg(test)]
mod tests;
