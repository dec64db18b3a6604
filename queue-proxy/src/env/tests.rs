//! The stock environment, and what may be wrong in it.

use super::*;
use crate::readiness::{Check, Probe, Target};
use plumbing::fault::Faults;
use plumbing::http1::Http1;
use plumbing::tls::{CHECK_EVERY, CHECK_EVERY_STRICT, Version};
use policy::probe::Manner;

/// What a stock controller passes.
const STOCK: [(&str, &str); 18] = [
    ("CONTAINER_CONCURRENCY", "0"),
    ("QUEUE_SERVING_PORT", "8012"),
    ("QUEUE_SERVING_TLS_PORT", "8112"),
    ("USER_PORT", "8080"),
    ("REVISION_TIMEOUT_SECONDS", "300"),
    ("REVISION_RESPONSE_START_TIMEOUT_SECONDS", "0"),
    ("REVISION_IDLE_TIMEOUT_SECONDS", "0"),
    ("SERVING_LOGGING_CONFIG", ""),
    ("SERVING_LOGGING_LEVEL", "info"),
    ("SERVING_NAMESPACE", "ns1"),
    ("SERVING_SERVICE", "svc1"),
    ("SERVING_CONFIGURATION", "cfg1"),
    ("SERVING_REVISION", "rev1"),
    ("SERVING_POD", "pod-1"),
    ("SERVING_POD_IP", "10.0.0.7"),
    ("ENABLE_HTTP2_AUTO_DETECTION", "false"),
    ("ENABLE_MULTI_CONTAINER_PROBES", "false"),
    ("SERVING_READINESS_PROBE", r#"{"tcpSocket":{"port":8080,"host":"127.0.0.1"},"successThreshold":1}"#),
];

fn with(changes: &[(&str, &str)], removed: &[&str], files: bool) -> Result<Settings, Faults> {
    let stock = STOCK.iter().filter(|(name, _)| !removed.contains(name));
    let all = stock.chain(changes).map(|(name, value)| (name.into(), value.into()));
    let mut env = Env::new(all);
    let settings = read(&mut env, |_| files);
    env.finish(settings)
}

fn settings(changes: &[(&str, &str)]) -> Settings {
    with(changes, &[], false).unwrap_or_else(|faults| panic!("{faults}"))
}

fn faults(changes: &[(&str, &str)]) -> Vec<String> {
    with(changes, &[], false).map(|_| Vec::new()).unwrap_or_else(|faults| faults.lines().to_vec())
}

const STRICT: (&str, &str) = ("ZEROSCALE_COMPAT", "strict");

#[test]
fn the_stock_environment_is_read() {
    let Settings { config, ports, tls, identity, observe, http1, log } = settings(&[]);
    assert_eq!(http1, Http1::Own);
    assert_eq!((&*config.pod, config.revision.to_string().as_str()), ("pod-1", "ns1/rev1"));
    assert_eq!((config.app.to_string().as_str(), config.container_concurrency), ("127.0.0.1:8080", 0));
    assert_eq!(config.timeouts.total, Duration::from_secs(300));
    assert_eq!((config.timeouts.response_start, config.timeouts.idle), (None, None));
    assert_eq!(config.timeouts.upgrade, Some(Duration::from_secs(300)));
    let eager = Probe { check: Check::Tcp(config.app.into()), manner: Manner::Eager { threshold: 1 } };
    assert_eq!(config.readiness.probes, [eager]);
    assert!(config.in_pod && !config.full_duplex && config.trust == Trust::everybody());
    assert_eq!((config.drain.quiet, config.drain.longest), (Duration::from_secs(30), Some(Duration::from_secs(200))));
    assert_eq!((config.tunnel_timeout, config.connect_retry), (Duration::from_secs(60), Duration::from_secs(3)));
    assert_eq!(ports.address(ports.serving).to_string(), "[::]:8012");
    assert_eq!((ports.serving_tls, ports.admin, ports.autometric, ports.lease), (8112, 8022, 9090, None));
    assert_eq!(ports.lease_ip().to_string(), "127.0.0.1");
    assert!(tls.is_none() && config.stats_push.is_none() && observe == observe::Config::default());
    assert_eq!((&*identity.service, &*identity.pod_ip, log.level.as_str()), ("svc1", "10.0.0.7", "info"));
}

#[test]
fn all_that_is_missing_is_told_at_once_in_the_words_of_the_reference() {
    let required = [
        "QUEUE_SERVING_PORT",
        "QUEUE_SERVING_TLS_PORT",
        "USER_PORT",
        "SERVING_CONFIGURATION",
        "SERVING_POD_IP",
        "SERVING_LOGGING_CONFIG",
        "SERVING_LOGGING_LEVEL",
        "SERVING_NAMESPACE",
        "SERVING_REVISION",
        "SERVING_POD",
        "CONTAINER_CONCURRENCY",
        "REVISION_TIMEOUT_SECONDS",
    ];
    for strict in [&[][..], &[STRICT]] {
        let faults = with(strict, &required, false).map(|_| ()).unwrap_err();
        let expected: Vec<String> = required.iter().map(|name| format!("required key {name} missing value")).collect();
        assert_eq!(faults.lines(), expected);
    }
}

#[test]
fn each_fault_names_its_variable() {
    for (name, value) in [
        ("CONTAINER_CONCURRENCY", "ten"),
        ("CONTAINER_CONCURRENCY", ""),
        ("CONTAINER_CONCURRENCY", "99999999999"),
        ("USER_PORT", ""),
        ("USER_PORT", "http"),
        ("USER_PORT", "0"),
        ("QUEUE_SERVING_PORT", "70000"),
        ("QUEUE_SERVING_PORT", "8080"),
        ("ZEROSCALE_ADMIN_PORT", "8012"),
        ("REVISION_TIMEOUT_SECONDS", "-5"),
        ("REVISION_IDLE_TIMEOUT_SECONDS", "-1"),
        ("ENABLE_HTTP_FULL_DUPLEX", "yes"),
        ("SERVING_READINESS_PROBE", "nonsense"),
        ("SERVING_POD", ""),
        ("ZEROSCALE_COMPAT", "lax"),
        ("ZEROSCALE_BIND", "localhost"),
        ("ZEROSCALE_APP_ADDR", "x"),
        ("ZEROSCALE_TRUSTED_PEERS", "10.0.0.0/99"),
        ("ZEROSCALE_TRUSTED_PROXIES", "all"),
        ("ZEROSCALE_UPGRADE_TIMEOUT", "5"),
        ("ZEROSCALE_QUEUE_DEPTH", "-1"),
        ("ZEROSCALE_DRAIN_SETTLE", "soon"),
        ("ZEROSCALE_DRAIN_TUNNEL_TIMEOUT", "1"),
        ("ZEROSCALE_CONNECT_RETRY", "x"),
        ("ZEROSCALE_LEASE_PORT", "x"),
        ("ZEROSCALE_LEASE_PORT", "8080"),
        ("ZEROSCALE_LEASE_PORT", "9090"),
        ("ZEROSCALE_METRICS_PORT", "x"),
        ("ZEROSCALE_STATS_ADDR", "autoscaler"),
        ("OBSERVABILITY_CONFIG", "{"),
        ("OBSERVABILITY_CONFIG", r#"{"requestMetrics":{"protocol":"statsd"}}"#),
        ("OBSERVABILITY_CONFIG", r#"{"requestMetrics":{"protocol":"prometheus","endpoint":":8012"}}"#),
        ("OBSERVABILITY_CONFIG", r#"{"tracing":{"protocol":"zipkin"}}"#),
    ] {
        let told = faults(&[(name, value)]);
        assert_eq!(told.len(), 1, "{name}={value}: {told:?}");
        assert!(told[0].contains(name), "{name}={value}: {told:?}");
    }
}

#[test]
fn all_faults_of_telemetry_are_told_with_the_rest() {
    let text = r#"{"requestMetrics":{"protocol":"statsd"},"tracing":{"protocol":"grpc","endpoint":"a b"}}"#;
    let told = faults(&[("OBSERVABILITY_CONFIG", text), ("USER_PORT", "x")]);
    for name in ["requestMetrics.protocol", "tracing.endpoint", "USER_PORT"] {
        assert!(told.iter().any(|line| line.contains(name)), "{name}: {told:?}");
    }
    assert_eq!(told.len(), 3, "{told:?}");
}

#[test]
fn strict_mode_takes_what_the_reference_takes() {
    let odd = [
        STRICT,
        ("USER_PORT", ""),
        ("QUEUE_SERVING_PORT", ""),
        ("SERVING_POD", ""),
        ("CONTAINER_CONCURRENCY", "-3"),
        ("REVISION_TIMEOUT_SECONDS", "-3"),
        ("REVISION_IDLE_TIMEOUT_SECONDS", "-1"),
        ("ZEROSCALE_TRUSTED_PEERS", "10.0.0.0/8"),
    ];
    let Settings { config, ports, .. } = settings(&odd);
    assert_eq!((config.app.port(), ports.serving, config.container_concurrency), (80, 0, 0));
    assert_eq!((config.timeouts.total, config.timeouts.idle), (Duration::ZERO, None));
    assert_eq!((config.connect_retry, config.drain.longest), (Duration::ZERO, None));
    assert_eq!(config.trust, Trust::everybody());
    assert_eq!(settings(&[STRICT, ("ZEROSCALE_LEASE_PORT", "7070")]).ports.lease, None);
}

#[test]
fn a_time_limit_of_zero_is_none_and_in_strict_mode_ends_each_request() {
    let none = settings(&[("REVISION_TIMEOUT_SECONDS", "0")]).config;
    assert_eq!((none.timeouts.total, none.timeouts.upgrade), (NO_LIMIT, None));
    assert_eq!(none.drain.longest, Some(Duration::from_secs(60)));
    let strict = settings(&[("REVISION_TIMEOUT_SECONDS", "0"), STRICT]).config;
    assert_eq!(strict.timeouts.total, Duration::ZERO);
}

#[test]
fn our_own_settings_are_read() {
    let ours = [
        ("CONTAINER_CONCURRENCY", "3"),
        ("ENABLE_HTTP_FULL_DUPLEX", "T"),
        ("ZEROSCALE_BIND", "127.0.0.9"),
        ("ZEROSCALE_APP_ADDR", "127.0.0.8"),
        ("ZEROSCALE_ADMIN_PORT", "0"),
        ("ZEROSCALE_METRICS_PORT", "1"),
        ("ZEROSCALE_LEASE_PORT", "2"),
        ("ZEROSCALE_TRUSTED_PEERS", "10.0.0.0/8"),
        ("ZEROSCALE_UPGRADE_TIMEOUT", "0s"),
        ("ZEROSCALE_DRAIN_SETTLE", "2s"),
        ("ZEROSCALE_DRAIN_TUNNEL_TIMEOUT", "5s"),
        ("ZEROSCALE_CONNECT_RETRY", "1s"),
        ("ZEROSCALE_STATS_ADDR", "[::1]:8080"),
    ];
    let Settings { config, ports, .. } = settings(&ours);
    assert_eq!((config.container_concurrency, config.queue_depth, config.full_duplex), (3, 30, true));
    assert_eq!((config.app.to_string(), ports.address(1).to_string()), ("127.0.0.8:8080".into(), "127.0.0.9:1".into()));
    assert_eq!((ports.admin, ports.autometric, ports.lease), (0, 1, Some(2)));
    assert_eq!(ports.lease_ip().to_string(), "127.0.0.9");
    assert!(!config.trust.peers.contains([11, 0, 0, 1].into()) && config.trust.proxies == Ranges::everybody());
    assert_eq!((config.timeouts.upgrade, config.drain.quiet), (None, Duration::from_secs(2)));
    assert_eq!((config.tunnel_timeout, config.connect_retry), (Duration::from_secs(5), Duration::from_secs(1)));
    assert_eq!(config.stats_push, Some(Target { host: "::1".into(), port: 8080 }));
    assert_eq!(settings(&[("ZEROSCALE_QUEUE_DEPTH", "0")]).config.queue_depth, 0);
}

#[test]
fn tls_is_on_where_its_files_are_and_only_then_its_settings_count() {
    let bad = [("QUEUE_PROXY_TLS_MIN_VERSION", "1.1"), ("QUEUE_PROXY_TLS_CURVE_PREFERENCES", "X25519, P-255")];
    assert!(settings(&bad).tls.is_none());
    let faults = with(&bad, &[], true).map(|_| ()).unwrap_err();
    assert!(faults.lines()[0].contains("MIN_VERSION") && faults.lines()[1].contains("P-255"), "{faults}");
    let same = ("QUEUE_SERVING_TLS_PORT", "8012");
    assert!(with(&[same], &[], false).is_ok(), "nothing listens there");
    let faults = with(&[same], &[], true).map(|_| ()).unwrap_err();
    assert_eq!(faults.lines(), ["QUEUE_SERVING_TLS_PORT: 8012 is taken by QUEUE_SERVING_PORT"]);
    let suites = ("QUEUE_PROXY_TLS_CIPHER_SUITES", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_FAST");
    let faults = with(&[suites], &[], true).map(|_| ()).unwrap_err();
    assert_eq!(faults.lines(), ["QUEUE_PROXY_TLS_CIPHER_SUITES: there is no cipher suite `TLS_FAST`"]);
    let tls = with(&[("ZEROSCALE_CERT_DIR", "/c"), ("QUEUE_PROXY_TLS_MIN_VERSION", "1.2")], &[], true)
        .unwrap_or_else(|faults| panic!("{faults}"));
    let tls = tls.tls.unwrap();
    assert_eq!(tls.check_every, CHECK_EVERY);
    let strict = with(&[STRICT], &[], true).unwrap_or_else(|faults| panic!("{faults}")).tls.unwrap();
    assert_eq!(strict.check_every, CHECK_EVERY_STRICT);
    assert_eq!((tls.certificate.to_str(), tls.min, tls.max), (Some("/c/tls.crt"), Version::Tls12, Version::Tls13));
}
