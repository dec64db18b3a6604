//! How the app is asked whether it is ready: `SERVING_READINESS_PROBE`, the
//! JSON of a Kubernetes probe, or of several.

use http::header::{HeaderName, HeaderValue};
use policy::compat::Compat;
use policy::probe::{ATTEMPT_MAX, Manner};
use serde::Deserialize;
use serde_json::Value;
use std::net::SocketAddr;

/// What must pass for the pod to be ready: all probes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Readiness {
    /// One for each container that has one; none = always ready.
    pub probes: Vec<Probe>,
    /// HTTP probes try HTTP/2 first (`ENABLE_HTTP2_AUTO_DETECTION`).
    pub detect_http2: bool,
}

/// How one container is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// What is asked.
    pub check: Check,
    /// How often.
    pub manner: Manner,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// It accepts a connection.
    Tcp(Target),
    /// It answers a GET with 200 to 399.
    Http(HttpGet),
    /// It says that it is serving, by gRPC's health protocol.
    Grpc {
        /// Whom to ask.
        target: Target,
        /// Which service; empty = the server as a whole.
        service: String,
    },
    /// A command: only the kubelet can run it, in the app's container.
    Exec,
    /// A probe that says nothing of how to ask.
    Nothing,
}

/// Where an app listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Address or name.
    pub host: String,
    /// Its port.
    pub port: u16,
}

/// A GET.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpGet {
    /// Whom to ask.
    pub target: Target,
    /// Path and query, with its leading slash.
    pub path: String,
    /// True: over TLS.
    pub https: bool,
    /// Configured headers.
    pub headers: Vec<(HeaderName, HeaderValue)>,
}

impl Target {
    /// `host:port`, with an IPv6 address in brackets.
    pub fn authority(&self) -> String {
        let Target { host, port } = self;
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }
}

impl From<SocketAddr> for Target {
    fn from(address: SocketAddr) -> Target {
        Target { host: address.ip().to_string(), port: address.port() }
    }
}

impl Readiness {
    /// Always ready.
    pub fn none() -> Readiness {
        Readiness::default()
    }

    /// One attempt to connect.
    pub fn tcp(app: SocketAddr) -> Readiness {
        Readiness::once(Check::Tcp(app.into()))
    }

    /// One GET of `path`.
    pub fn http(app: SocketAddr, path: &str) -> Readiness {
        let get = HttpGet { target: app.into(), path: rooted(path), https: false, headers: Vec::new() };
        Readiness::once(Check::Http(get))
    }

    fn once(check: Check) -> Readiness {
        let probe = Probe { check, manner: Manner::Once { limit: ATTEMPT_MAX } };
        Readiness { probes: vec![probe], detect_http2: false }
    }

    /// Reads the JSON of a probe, or of a list of probes (`several`). Empty:
    /// always ready. Loopback and what is left out stand for `app`.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn parse(json: &str, several: bool, app: SocketAddr, compat: Compat) -> Result<Readiness, String> {
        if json.trim().is_empty() {
            return Ok(Readiness::none());
        }
        let value: Value = serde_json::from_str(json).map_err(|error| format!("is not JSON: {error}"))?;
        let forms = match (value, several) {
            (Value::Null, true) => Vec::new(),
            (Value::Array(list), true) => list,
            (Value::Array(_), false) => return Err("is an array where one Kubernetes probe is expected".to_owned()),
            (_, true) => return Err("is no array of Kubernetes probes (ENABLE_MULTI_CONTAINER_PROBES)".to_owned()),
            (one, false) => vec![one],
        };
        let forms = forms.into_iter().map(Form::read).collect::<Result<Vec<Form>, _>>()?;
        let probes = forms.into_iter().map(|form| form.probe(app, compat)).collect::<Result<_, _>>()?;
        Ok(Readiness { probes, detect_http2: false })
    }
}

/// The fields of a Kubernetes probe that count here; others are left alone.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Form {
    http_get: Option<HttpGetForm>,
    tcp_socket: Option<TcpForm>,
    grpc: Option<GrpcForm>,
    exec: Option<Value>,
    period_seconds: i32,
    timeout_seconds: i32,
    success_threshold: i32,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct HttpGetForm {
    path: String,
    port: PortForm,
    host: String,
    scheme: String,
    #[serde(rename = "httpHeaders")]
    headers: Option<Vec<HeaderForm>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct HeaderForm {
    name: String,
    value: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TcpForm {
    port: PortForm,
    host: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct GrpcForm {
    port: i64,
    service: Option<String>,
}

/// Kubernetes writes ports as numbers or as text.
#[derive(Deserialize)]
#[serde(untagged)]
enum PortForm {
    Number(i64),
    Text(String),
}

impl Default for PortForm {
    fn default() -> PortForm {
        PortForm::Number(0)
    }
}

impl Form {
    fn read(value: Value) -> Result<Form, String> {
        match value {
            Value::Null => Ok(Form::default()),
            Value::Object(_) => {
                serde_json::from_value(value).map_err(|error| format!("is no Kubernetes probe: {error}"))
            }
            other => Err(format!("is no Kubernetes probe: {other}")),
        }
    }

    fn probe(self, app: SocketAddr, compat: Compat) -> Result<Probe, String> {
        let period = whole("periodSeconds", self.period_seconds, compat)?;
        let timeout = whole("timeoutSeconds", self.timeout_seconds, compat)?;
        let threshold = whole("successThreshold", self.success_threshold, compat)?;
        Ok(Probe { manner: Manner::new(period, timeout, threshold), check: self.check(app)? })
    }

    fn check(self, app: SocketAddr) -> Result<Check, String> {
        if let Some(get) = self.http_get {
            return Ok(Check::Http(get.read(app)?));
        }
        if let Some(TcpForm { port, host }) = self.tcp_socket {
            return Ok(Check::Tcp(target(&host, &port, app)?));
        }
        if let Some(GrpcForm { port, service }) = self.grpc {
            let target = target("", &PortForm::Number(port), app)?;
            return Ok(Check::Grpc { target, service: service.unwrap_or_default() });
        }
        Ok(if self.exec.is_some() { Check::Exec } else { Check::Nothing })
    }
}

impl HttpGetForm {
    fn read(self, app: SocketAddr) -> Result<HttpGet, String> {
        let https = match self.scheme.to_ascii_uppercase().as_str() {
            "" | "HTTP" => false,
            "HTTPS" => true,
            _ => return Err(format!("has the scheme `{}`, which is neither HTTP nor HTTPS", self.scheme)),
        };
        let headers = self.headers.unwrap_or_default().into_iter().map(HeaderForm::read).collect::<Result<_, _>>()?;
        let target = target(&self.host, &self.port, app)?;
        Ok(HttpGet { target, path: rooted(&self.path), https, headers })
    }
}

impl HeaderForm {
    fn read(self) -> Result<(HeaderName, HeaderValue), String> {
        let fault = || format!("has the header `{}: {}`, which is none that HTTP allows", self.name, self.value);
        let name = self.name.parse().map_err(|_| fault())?;
        let value = HeaderValue::from_str(&self.value).map_err(|_| fault())?;
        Ok((name, value))
    }
}

/// A setting of the probe that cannot be negative.
fn whole(name: &str, value: i32, compat: Compat) -> Result<u32, String> {
    match (u32::try_from(value), compat) {
        (Ok(value), _) => Ok(value),
        (Err(_), Compat::Strict) => Ok(0),
        (Err(_), Compat::Better) => Err(format!("has a negative {name}: {value}")),
    }
}

fn target(host: &str, port: &PortForm, app: SocketAddr) -> Result<Target, String> {
    let fault = |port: &dyn std::fmt::Display| format!("has the port `{port}`, which is no number from 1 to 65535");
    let port = match port {
        PortForm::Number(0) => app.port(),
        PortForm::Number(port) => u16::try_from(*port).map_err(|_| fault(port))?,
        PortForm::Text(text) if text.is_empty() => app.port(),
        PortForm::Text(text) => text.parse().ok().filter(|port| *port != 0).ok_or_else(|| fault(text))?,
    };
    // The app shares our network: by loopback the probe means the app, which
    // may listen elsewhere when many sidecars share a machine.
    let host = match host {
        "" | "127.0.0.1" | "localhost" => app.ip().to_string(),
        other => other.trim_start_matches('[').trim_end_matches(']').to_owned(),
    };
    Ok(Target { host, port })
}

/// A path as it stands in a request: one leading slash, nothing that would
/// end the request line.
pub(super) fn rooted(path: &str) -> String {
    let mut rooted = String::from("/");
    for byte in path.strip_prefix('/').unwrap_or(path).bytes() {
        if byte.is_ascii_graphic() {
            rooted.push(char::from(byte));
        } else {
            rooted.push_str(&format!("%{byte:02X}"));
        }
    }
    rooted
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn app() -> SocketAddr {
        "127.0.0.1:8080".parse().unwrap()
    }

    fn one(json: &str) -> Probe {
        let mut readiness = Readiness::parse(json, false, app(), Compat::Better).unwrap();
        assert_eq!(readiness.probes.len(), 1);
        readiness.probes.remove(0)
    }

    fn fault(json: &str, several: bool) -> String {
        Readiness::parse(json, several, app(), Compat::Better).unwrap_err()
    }

    #[test]
    fn the_typical_value_is_eager_tcp_at_the_app() {
        let probe = one(r#"{"tcpSocket":{"port":8080,"host":"127.0.0.1"},"successThreshold":1}"#);
        let expected = Probe { check: Check::Tcp(app().into()), manner: Manner::Eager { threshold: 1 } };
        assert_eq!(probe, expected);
    }

    #[test]
    fn the_first_handler_that_is_there_counts() {
        let get = one(r#"{"httpGet":{"path":"ready?x=1","port":"81","scheme":"HTTP",
            "httpHeaders":[{"name":"X-A","value":"1"}]},"tcpSocket":{"port":1},"periodSeconds":5,"timeoutSeconds":2}"#);
        let Check::Http(http) = &get.check else { panic!("{get:?}") };
        assert_eq!((http.path.as_str(), http.target.port, http.https), ("/ready?x=1", 81, false));
        assert_eq!(http.headers, [("x-a".parse().unwrap(), "1".parse().unwrap())]);
        assert_eq!(get.manner, Manner::Once { limit: Duration::from_secs(2) });
        let grpc = one(r#"{"grpc":{"port":9000,"service":"a.B"},"exec":{"command":["x"]}}"#).check;
        let target = Target { host: "127.0.0.1".into(), port: 9000 };
        assert_eq!(grpc, Check::Grpc { target, service: "a.B".into() });
        assert_eq!(one(r#"{"exec":{"command":["x"]}}"#).check, Check::Exec);
        assert_eq!(one("{}").check, Check::Nothing);
        assert_eq!(one("null").check, Check::Nothing);
    }

    #[test]
    fn nothing_is_always_ready_and_several_come_as_a_list() {
        assert_eq!(Readiness::parse("", false, app(), Compat::Better), Ok(Readiness::none()));
        let list = r#"[{"tcpSocket":{"port":8080}},{"httpGet":{"path":"/x","port":81}}]"#;
        assert_eq!(Readiness::parse(list, true, app(), Compat::Better).unwrap().probes.len(), 2);
        assert!(fault(list, false).contains("is an array"));
        assert!(fault(r#"{"tcpSocket":{"port":8080}}"#, true).contains("no array"));
    }

    #[test]
    fn faults_say_what_is_wrong() {
        for (json, named) in [
            ("nonsense", "is not JSON"),
            ("7", "no Kubernetes probe: 7"),
            (r#"{"tcpSocket":{"port":"http"}}"#, "port `http`"),
            (r#"{"tcpSocket":{"port":70000}}"#, "port `70000`"),
            (r#"{"httpGet":{"port":1,"scheme":"FTP"}}"#, "scheme `FTP`"),
            (r#"{"httpGet":{"port":1,"httpHeaders":[{"name":"a b","value":"1"}]}}"#, "header `a b: 1`"),
            (r#"{"httpGet":{"port":1,"httpHeaders":[{"name":"a","value":"1\r\nb: 2"}]}}"#, "header `a: 1"),
            (r#"{"periodSeconds":-1}"#, "periodSeconds"),
        ] {
            assert!(fault(json, false).contains(named), "{json}: {}", fault(json, false));
        }
        let strict = Readiness::parse(r#"{"periodSeconds":-1}"#, false, app(), Compat::Strict).unwrap();
        assert_eq!(strict.probes[0].manner, Manner::Eager { threshold: 1 });
    }

    #[test]
    fn a_path_cannot_end_the_request_line() {
        assert_eq!(rooted("/a b\r\nX: y/é?q=1%20"), "/a%20b%0D%0AX:%20y/%C3%A9?q=1%20");
        assert_eq!(rooted(""), "/");
        assert_eq!(rooted("//x"), "//x");
    }

    #[test]
    fn loopback_means_the_app_wherever_it_listens() {
        let app = "127.0.0.9:80".parse().unwrap();
        for host in ["", "127.0.0.1", "localhost"] {
            let json = format!(r#"{{"tcpSocket":{{"host":"{host}","port":81}}}}"#);
            let readiness = Readiness::parse(&json, false, app, Compat::Better).unwrap();
            let target = Target { host: "127.0.0.9".into(), port: 81 };
            assert_eq!(readiness.probes[0].check, Check::Tcp(target));
        }
        assert_eq!(Target { host: "::1".into(), port: 80 }.authority(), "[::1]:80");
    }
}
