//! The variables that take precedence over `OBSERVABILITY_CONFIG`.

use super::endpoint::Endpoint;
use super::{Export, Listener, ListenerTls, Protocol};
use crate::identity::Resource;
use crate::trace::Sampler;
use std::time::Duration;

/// Longest time of one message when nobody says, that of the OTLP specification.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(10);

/// Variables that change what is sent and that nothing here follows.
const IGNORED: [&str; 5] = [
    "OTEL_EXPORTER_OTLP_COMPRESSION",
    "OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION",
    "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE",
    "OTEL_PROPAGATORS",
    "OTEL_SDK_DISABLED",
];

/// A look at the environment.
pub(super) struct Variables<'a> {
    get: &'a dyn Fn(&str) -> Option<String>,
    pub(super) faults: Vec<String>,
    pub(super) notices: Vec<String>,
}

impl<'a> Variables<'a> {
    pub(super) fn new(get: &'a dyn Fn(&str) -> Option<String>) -> Variables<'a> {
        let mut all = Variables { get, faults: Vec::new(), notices: Vec::new() };
        for name in IGNORED {
            if let Some(value) = all.get(name) {
                all.notices.push(format!("{name}={value} has no effect here"));
            }
        }
        all
    }

    /// An empty value counts as none, as OpenTelemetry has it.
    fn get(&self, name: &str) -> Option<String> {
        (self.get)(name).filter(|value| !value.is_empty())
    }

    fn number<T: std::str::FromStr>(&mut self, name: &str) -> Option<T> {
        let value = self.get(name)?;
        let number = value.trim().parse().ok();
        if number.is_none() {
            self.faults.push(format!("{name}: \"{value}\" is no number"));
        }
        number
    }

    /// The collector of one signal (`METRICS` or `TRACES`).
    pub(super) fn export(
        &mut self,
        signal: &str,
        protocol: Protocol,
        given: &str,
        fault: &dyn Fn(&str) -> String,
    ) -> Option<Export> {
        let own = format!("OTEL_EXPORTER_OTLP_{signal}_ENDPOINT");
        let (url, name) = match (self.get(&own), self.get("OTEL_EXPORTER_OTLP_ENDPOINT")) {
            (Some(url), _) => (url, own),
            (None, Some(base)) => (below(&base, signal, protocol), "OTEL_EXPORTER_OTLP_ENDPOINT".to_owned()),
            (None, None) if given.is_empty() => (default_url(signal, protocol), String::new()),
            (None, None) => (given.to_owned(), String::new()),
        };
        let Some(endpoint) = Endpoint::parse(&url, protocol == Protocol::Grpc) else {
            let text = format!("\"{url}\" is no http or https URL");
            self.faults.push(if name.is_empty() { fault(&text) } else { format!("{name}: {text}") });
            return None;
        };
        if endpoint.tls {
            let collector = endpoint.authority();
            self.notices.push(format!("https collectors cannot be used yet: nothing is sent to {collector}"));
        }
        let timeout = self
            .number(&format!("OTEL_EXPORTER_OTLP_{signal}_TIMEOUT"))
            .or_else(|| self.number("OTEL_EXPORTER_OTLP_TIMEOUT"))
            .map_or(EXPORT_TIMEOUT, Duration::from_millis);
        let headers = self.pairs(&[&format!("OTEL_EXPORTER_OTLP_{signal}_HEADERS"), "OTEL_EXPORTER_OTLP_HEADERS"]);
        Some(Export { protocol, endpoint, headers, timeout })
    }

    /// How often metrics are sent, if a variable says.
    pub(super) fn interval(&mut self) -> Option<Duration> {
        let millis = self.number("OTEL_METRIC_EXPORT_INTERVAL")?;
        (millis > 0).then(|| Duration::from_millis(millis))
    }

    pub(super) fn sampler(&mut self) -> Option<Sampler> {
        let name = self.get("OTEL_TRACES_SAMPLER")?;
        let rate: f64 = self.number("OTEL_TRACES_SAMPLER_ARG").unwrap_or(1.0);
        let sampler = Sampler::named(&name, rate);
        if sampler.is_none() {
            self.notices.push(format!("OTEL_TRACES_SAMPLER: \"{name}\" is unknown and has no effect"));
        }
        sampler
    }

    pub(super) fn listener(&mut self, host: String, port: u16) -> Listener {
        let host = self.get("METRICS_PROMETHEUS_HOST").unwrap_or(host);
        let port = self.number("METRICS_PROMETHEUS_PORT").unwrap_or(port);
        let tls = match (self.get("METRICS_PROMETHEUS_TLS_CERT"), self.get("METRICS_PROMETHEUS_TLS_KEY")) {
            (Some(certificate), Some(key)) => Some(ListenerTls {
                certificate,
                key,
                client_auth: self.get("METRICS_PROMETHEUS_TLS_CLIENT_AUTH").unwrap_or_else(|| "none".to_owned()),
                client_ca: self.get("METRICS_PROMETHEUS_TLS_CLIENT_CA_FILE"),
                min_version: self.get("METRICS_PROMETHEUS_TLS_MIN_VERSION"),
            }),
            (None, None) => None,
            (Some(_), None) => self.lone("METRICS_PROMETHEUS_TLS_CERT", "METRICS_PROMETHEUS_TLS_KEY"),
            (None, Some(_)) => self.lone("METRICS_PROMETHEUS_TLS_KEY", "METRICS_PROMETHEUS_TLS_CERT"),
        };
        Listener { host, port, tls }
    }

    fn lone(&mut self, given: &str, missing: &str) -> Option<ListenerTls> {
        self.faults.push(format!("{missing}: is needed beside {given}"));
        None
    }

    pub(super) fn resource(&mut self) -> Resource {
        Resource {
            service_name: self.get("OTEL_SERVICE_NAME"),
            pod_name: self.get("POD_NAME").or_else(|| self.get("HOSTNAME")),
            attributes: self.pairs(&["OTEL_RESOURCE_ATTRIBUTES"]),
        }
    }

    /// `a=b,c=d` of the first of these variables that is set, percent-decoded.
    fn pairs(&mut self, names: &[&str]) -> Vec<(String, String)> {
        let Some((name, list)) = names.iter().find_map(|name| Some((*name, self.get(name)?))) else {
            return Vec::new();
        };
        let mut pairs = Vec::new();
        for entry in list.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
            match entry.split_once('=') {
                Some((key, value)) if !key.trim().is_empty() => {
                    pairs.push((key.trim().to_owned(), decode(value.trim())));
                }
                // Such values may be secrets: the entry itself is not told.
                _ => self.notices.push(format!("{name}: an entry without \"=\" has no effect")),
            }
        }
        pairs
    }
}

fn below(base: &str, signal: &str, protocol: Protocol) -> String {
    match protocol {
        Protocol::Grpc => base.to_owned(),
        Protocol::Http => format!("{}/v1/{}", base.trim_end_matches('/'), signal.to_lowercase()),
    }
}

/// OTLP's own default.
fn default_url(signal: &str, protocol: Protocol) -> String {
    match protocol {
        Protocol::Grpc => "http://localhost:4317".to_owned(),
        Protocol::Http => below("http://localhost:4318", signal, protocol),
    }
}

fn decode(text: &str) -> String {
    let digit = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16));
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match (byte, digit(bytes.get(at + 1)), digit(bytes.get(at + 2))) {
            (b'%', Some(high), Some(low)) => {
                out.push(u8::try_from(high * 16 + low).unwrap_or(b'%'));
                at += 3;
            }
            _ => {
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}
