use super::*;
use std::collections::HashMap;

fn parse(text: &str, variables: &[(&str, &str)]) -> Result<Config, Vec<String>> {
    let all: HashMap<&str, &str> = variables.iter().copied().collect();
    Config::parse(Component::Sidecar, text, |name| all.get(name).map(|value| (*value).to_owned()))
}

fn good(text: &str, variables: &[(&str, &str)]) -> Config {
    parse(text, variables).unwrap()
}

#[test]
fn absent_empty_and_stock_configs_switch_all_off() {
    let stock = r#"{"tracing":{"protocol":"none"},"metrics":{"protocol":"none"},"runtime":{"profiling":"disabled",
        "exportInterval":15000000000},"requestMetrics":{"protocol":"none"},"requestLogTemplate":"{{.TraceID}}"}"#;
    for text in ["", "{}", "null", stock] {
        assert_eq!(good(text, &[]), Config::default(), "{text}");
    }
}

#[test]
fn bad_json_and_unknown_protocols_are_faults_by_name() {
    assert!(parse("{", &[]).unwrap_err()[0].starts_with("OBSERVABILITY_CONFIG: is not JSON"));
    let text = r#"{"requestMetrics":{"protocol":"opencensus","exportInterval":"1s"},"tracing":{"protocol":"zipkin"},
        "enableRequestLog":"yes"}"#;
    let faults = parse(text, &[]).unwrap_err();
    for field in ["requestMetrics.protocol", "requestMetrics.exportInterval", "tracing.protocol", "enableRequestLog"] {
        let head = format!("OBSERVABILITY_CONFIG: {field}:");
        assert!(faults.iter().any(|fault| fault.starts_with(&head)), "{field} in {faults:?}");
    }
    assert_eq!(faults.len(), 4);
}

#[test]
fn prometheus_listens_where_it_is_told_and_variables_win() {
    let at = |text: &str, variables: &[(&str, &str)]| match good(text, variables).metrics {
        Metrics::Prometheus(listener) => (listener.host, listener.port),
        other => panic!("{other:?}"),
    };
    let plain = r#"{"requestMetrics":{"protocol":"prometheus"}}"#;
    assert_eq!(at(plain, &[]), (String::new(), 9091));
    let told = r#"{"requestMetrics":{"protocol":"prometheus","endpoint":"127.0.0.1:9999"}}"#;
    assert_eq!(at(told, &[]), ("127.0.0.1".to_owned(), 9999));
    let variables = [("METRICS_PROMETHEUS_HOST", "::1"), ("METRICS_PROMETHEUS_PORT", "1")];
    assert_eq!(at(told, &variables), ("::1".to_owned(), 1));
    let lone = parse(plain, &[("METRICS_PROMETHEUS_TLS_CERT", "c")]).unwrap_err();
    assert!(lone[0].starts_with("METRICS_PROMETHEUS_TLS_KEY"));
}

#[test]
fn collectors_are_found_by_the_nearest_variable() {
    let url = |variables: &[(&str, &str)]| {
        let text = r#"{"requestMetrics":{"protocol":"http/protobuf","endpoint":"http://c:4318/x","exportInterval":5000000000}}"#;
        match good(text, variables).metrics {
            Metrics::Otlp { export, every } => (export.endpoint.authority() + &export.endpoint.path, every.as_secs()),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(url(&[]), ("c:4318/x".to_owned(), 5));
    let base = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://base:1/p/");
    assert_eq!(url(&[base]).0, "base:1/p/v1/metrics");
    assert_eq!(url(&[base, ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://m:2")]).0, "m:2/");
    assert_eq!(url(&[("OTEL_METRIC_EXPORT_INTERVAL", "2000")]).1, 2);
    let fault = parse(r#"{"tracing":{"protocol":"grpc","endpoint":"gopher://x"}}"#, &[]).unwrap_err();
    assert!(fault[0].starts_with("OBSERVABILITY_CONFIG: tracing.endpoint:"));
    let secure = good(r#"{"tracing":{"protocol":"grpc","endpoint":"https://c"}}"#, &[]);
    assert!(secure.notices[0].starts_with("https collectors cannot be used yet"));
    let headers = good(
        r#"{"tracing":{"protocol":"grpc"}}"#,
        &[("OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%20b, x=y"), ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "50")],
    );
    let Tracing::Otlp(export) = headers.tracing else { panic!() };
    assert_eq!(export.headers, [("api-key".into(), "a b".into()), ("x".into(), "y".into())]);
    assert_eq!((export.endpoint.port, export.timeout.as_millis()), (4317, 50));
}

#[test]
fn sampling_follows_protocol_rate_and_variables() {
    let sampler = |rate: &str, variables: &[(&str, &str)]| {
        good(&format!(r#"{{"tracing":{{"protocol":"http/protobuf","samplingRate":{rate}}}}}"#), variables).sampler
    };
    assert_eq!(sampler("0", &[]), Sampler::Never);
    assert_eq!(sampler("-1", &[]), Sampler::Never);
    assert_eq!(sampler("1.5", &[]), Sampler::Always);
    assert_eq!(sampler("0.25", &[]), Sampler::rate(0.25));
    assert_eq!(sampler("0", &[("OTEL_TRACES_SAMPLER", "always_on")]), Sampler::Always);
    assert_eq!(good(r#"{"tracing":{"protocol":"stdout"}}"#, &[]).sampler, Sampler::Always);
    let odd = good(r#"{"tracing":{"protocol":"stdout"}}"#, &[("OTEL_TRACES_SAMPLER", "jaeger_remote")]);
    assert_eq!((odd.sampler, odd.notices.len()), (Sampler::Always, 1));
}

#[test]
fn the_request_log_is_off_without_a_template_or_the_switch() {
    let log = |text: &str| good(text, &[]).request_log;
    assert_eq!(log(r#"{"requestLogTemplate":"x"}"#), None);
    assert_eq!(log(r#"{"enableRequestLog":true,"requestLogTemplate":""}"#), None);
    let template = crate::request_log::DEFAULT_TEMPLATE.to_owned();
    assert_eq!(log(r#"{"enableRequestLog":true}"#), Some(RequestLog { template, probes: false }));
}
