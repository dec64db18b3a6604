use super::*;

const GOOD: [(&str, &str); 4] = [
    ("POD_NAME", "activator-1"),
    ("POD_IP", "10.0.0.7"),
    ("SYSTEM_NAMESPACE", "knative-serving"),
    ("ZEROSCALE_PLATFORM", "file:/world.yaml"),
];

fn with(lines: &[(&str, &str)], without: &[&str]) -> Result<Settings, Vec<String>> {
    let kept = GOOD.iter().filter(|(name, _)| !without.contains(name));
    let mut env = Env::new(kept.chain(lines).map(|(name, value)| (name.into(), value.into())));
    let settings = read(&mut env, "search knative-serving.svc.prod svc.prod prod");
    env.finish(settings).map_err(|faults| faults.lines().to_vec())
}

fn settings(lines: &[(&str, &str)]) -> Settings {
    with(lines, &[]).unwrap_or_else(|faults| panic!("{faults:?}"))
}

#[test]
fn what_a_stock_deployment_sets_is_enough_beside_the_platform() {
    let settings = settings(&[]);
    assert_eq!((&*settings.config.pod_name, &*settings.identity.pod_ip), ("activator-1", "10.0.0.7"));
    assert_eq!(settings.platform, Platform::File("/world.yaml".into()));
    let autoscaler = "autoscaler.knative-serving.svc.prod:8080".to_owned();
    let reference = link::Settings { autoscaler, compat: Compat::Better };
    assert_eq!(settings.autoscaler, Autoscaler::Websocket(reference));
    let Ports { bind, http, http2, https, profiling, metrics } = settings.ports;
    assert_eq!(
        (bind.to_string().as_str(), http, http2, https, profiling, metrics),
        ("::", 8012, 8013, 8112, 8008, Some(9090))
    );
    assert_eq!((settings.settle, settings.tls.is_none()), (Duration::from_secs(45), true));
    let config = settings.config;
    assert_eq!((config.held_per_revision_max, config.held_max, config.wait_max.as_secs()), (10_000, 20_000, 300));
    assert!(config.trust == Trust::everybody() && config.compat == Compat::Better);
    assert_eq!(config.cluster, Some(Cluster::new("prod", "10.0.0.7")));
}

#[test]
fn all_that_is_missing_is_told_at_once() {
    let required = ["POD_NAME", "POD_IP", "SYSTEM_NAMESPACE", "ZEROSCALE_PLATFORM"];
    let faults = with(&[], &required).map(|_| ()).unwrap_err();
    let expected: Vec<String> = required.iter().map(|name| format!("required key {name} missing value")).collect();
    assert_eq!(faults, expected);
}

#[test]
fn each_fault_names_its_variable() {
    for (name, value) in [
        ("POD_NAME", ""),
        ("PROBE_TIMEOUT", "soon"),
        ("PROBE_TIMEOUT", ""),
        ("PROBE_FREQUENCY", "5"),
        ("MAX_IDLE_PROXY_CONNS", "many"),
        ("MAX_IDLE_PROXY_CONNS_PER_HOST", "1.5"),
        ("METRICS_PROMETHEUS_PORT", "http"),
        ("METRICS_PROMETHEUS_PORT", "8012"),
        ("PROFILING_PORT", "8013"),
        ("ZEROSCALE_HTTP_PORT", "70000"),
        ("ZEROSCALE_BIND", "localhost"),
        ("ZEROSCALE_COMPAT", "lax"),
        ("ZEROSCALE_TRUSTED_PEERS", "10.0.0.0/99"),
        ("ZEROSCALE_TRUSTED_PROXIES", "all"),
        ("ZEROSCALE_PLATFORM", "kubernetes"),
        ("ZEROSCALE_PLATFORM", "file:"),
        ("ZEROSCALE_AUTOSCALER", "autoscaler"),
        ("ZEROSCALE_POD_ADDRESSABILITY", "maybe"),
        ("ZEROSCALE_MESH", "yes"),
        ("ZEROSCALE_TRACE_CONTEXT", "on"),
        ("OBSERVABILITY_CONFIG", "{"),
        ("OBSERVABILITY_CONFIG", r#"{"metrics":{"protocol":"carrier-pigeon"}}"#),
        ("OBSERVABILITY_CONFIG", r#"{"tracing":{"protocol":"grpc","endpoint":"gopher://x"}}"#),
        ("ZEROSCALE_HELD_MAX", "-1"),
        ("ZEROSCALE_HELD_ALL_MAX", "x"),
        ("ZEROSCALE_HELD_BYTES_MAX", "64M"),
        ("ZEROSCALE_WAIT_LIMIT", "5"),
        ("ZEROSCALE_DRAIN_SETTLE", "x"),
        ("ZEROSCALE_DRAIN_WAIT", "x"),
        ("ZEROSCALE_DRAIN_TUNNEL_TIMEOUT", "x"),
        ("ZEROSCALE_WORKERS", "0"),
        ("ZEROSCALE_LOG_FORMAT", "xml"),
        ("ZEROSCALE_LOG_LEVEL", "loud"),
    ] {
        let told = with(&[(name, value)], &[]).map(|_| ()).unwrap_err();
        assert_eq!(told.len(), 1, "{name}={value}: {told:?}");
        assert!(told[0].contains(name), "{name}={value}: {told:?}");
    }
}

#[test]
fn our_own_settings_are_read() {
    let settings = settings(&[
        ("CLUSTER_DOMAIN", "c.example"),
        ("ZEROSCALE_COMPAT", "strict"),
        ("ZEROSCALE_TRUSTED_PEERS", "10.0.0.0/8"),
        ("ZEROSCALE_AUTOSCALER", "[::1]:81"),
        ("ZEROSCALE_CERT_DIR", "/certs"),
        ("ACTIVATOR_TLS_MIN_VERSION", "1.2"),
        ("ZEROSCALE_HELD_MAX", "5"),
        ("ZEROSCALE_HELD_BYTES_ALL_MAX", "70000"),
        ("ZEROSCALE_CHARGE_WAIT", "true"),
        ("ZEROSCALE_WAKES_PER_CALLER", "9"),
        ("ZEROSCALE_WAIT_LIMIT", "7s"),
        ("ZEROSCALE_TRACE_CONTEXT", "continue"),
        ("ZEROSCALE_POD_ADDRESSABILITY", "true"),
        ("ZEROSCALE_MESH", "enabled"),
        ("PROBE_FREQUENCY", "1s"),
        ("PROBE_TIMEOUT", "2s"),
        ("ZEROSCALE_HTTP_PORT", "0"),
        ("ZEROSCALE_HTTP2_PORT", "0"),
    ]);
    assert_eq!(
        settings.autoscaler,
        Autoscaler::Websocket(link::Settings { autoscaler: "[::1]:81".into(), compat: Compat::Strict })
    );
    assert!(settings.config.trust == Trust::everybody(), "strict mode believes everybody");
    let mut cluster = Cluster::new("c.example", "10.0.0.7");
    let (every, answer_max) = (Duration::from_secs(1), Duration::from_secs(2));
    cluster.probing =
        probing::Settings { mesh: MeshMode::Enabled, passthrough: true, every, answer_max, ..cluster.probing };
    assert_eq!(settings.config.cluster, Some(cluster));
    assert_eq!((settings.config.held_per_revision_max, settings.config.wait_max.as_secs()), (5, 7));
    assert_eq!((settings.config.held_bytes_max, settings.config.charge_wait), (70_000, true));
    assert_eq!(settings.config.wakes_per_caller_max, Some(9));
    assert_eq!(settings.tls.map(|tls| tls.min), Some(tls::Version::Tls12));
    assert_eq!((settings.ports.metrics, settings.ports.http), (None, 0));
    let ours = with(&[("ZEROSCALE_AUTOSCALER", "grpc://autoscaler:9000")], &[]).map(|settings| settings.autoscaler);
    assert_eq!(ours, Ok(Autoscaler::Stream("autoscaler:9000".into())));
}
