//! A request's way through all of it.

use super::watch::{End, Outcome, Watch};
use super::{Component, Config, Identity, Observer, RequestFacts, Setup, Unmet, metrics};
use http::{HeaderMap, Method, Request, request};
use policy::compat::Compat;

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn start(text: &str, compat: Compat) -> (Observer, Unmet) {
    let config = Config::parse(Component::Sidecar, text, |_| None).unwrap();
    let setup = Setup {
        component: Component::Sidecar,
        who: Identity::default(),
        compat,
        app: Some(("127.0.0.1".to_owned(), 8080)),
    };
    Observer::start(config, setup)
}

fn counting(compat: Compat) -> Observer {
    start(r#"{"requestMetrics":{"protocol":"prometheus"}}"#, compat).0
}

fn parts(lines: &[(&str, &str)]) -> request::Parts {
    let request = lines.iter().fold(Request::get("/x"), |request, (name, value)| request.header(*name, *value));
    request.body(()).unwrap().into_parts().0
}

fn begin(observer: &Observer, parts: &request::Parts) -> Watch {
    let peer = "127.0.0.1:1".parse().unwrap();
    observer.begin(&RequestFacts { parts, target: None, peer, by_agent: true, tls: false, body_length: Some(0) })
}

fn outcome(status: u16, end: End) -> Outcome {
    Outcome { status, end, response_bytes: 15 }
}

/// The status labels of the server's and of the app's durations.
fn statuses(observer: &Observer) -> (Vec<String>, Vec<String>) {
    let page = metrics::answer(&observer.metrics().unwrap(), &Method::GET, "/metrics");
    let page = String::from_utf8(page.into_body().to_vec()).unwrap();
    let of = |name: &str| {
        let lines = page.lines().filter(|line| line.starts_with(name));
        let status = |line: &str| line.split_once("status_code=\"").unwrap().1[..3].to_owned();
        lines.map(status).collect()
    };
    (of("http_server_request_duration_seconds_count"), of("kn_serving_invocation_duration_seconds_count"))
}

fn seen(compat: Compat, end: Option<Outcome>) -> (String, String) {
    let observer = counting(compat);
    let mut watch = begin(&observer, &parts(&[]));
    watch.at_app(&mut HeaderMap::new());
    match end {
        Some(outcome) => watch.finish(outcome),
        None => drop(watch),
    }
    let (server, invocation) = statuses(&observer);
    (server.concat(), invocation.concat())
}

#[test]
fn a_request_that_timed_out_is_a_504_and_in_strict_mode_a_200_at_the_app() {
    let pair = |server: &str, invocation: &str| (server.to_owned(), invocation.to_owned());
    let late = Some(outcome(504, End::TimedOut));
    assert_eq!(seen(Compat::Better, late), pair("504", "504"));
    assert_eq!(seen(Compat::Strict, late), pair("504", "200"));
    let gone = Some(outcome(502, End::ClientGone));
    assert_eq!(seen(Compat::Better, gone), pair("499", "499"));
    assert_eq!(seen(Compat::Strict, gone), pair("502", "200"));
    assert_eq!(seen(Compat::Better, None), pair("499", "499"), "a watch that is dropped");
    assert_eq!(seen(Compat::Better, Some(outcome(200, End::Cut))), pair("500", "500"));
    let tunnel = Some(outcome(101, End::Tunnel));
    assert_eq!((seen(Compat::Better, tunnel), seen(Compat::Strict, tunnel)), (pair("101", "101"), pair("200", "200")));
}

#[test]
fn a_refused_request_is_in_the_servers_counts_alone() {
    let observer = counting(Compat::Better);
    let mut watch = begin(&observer, &parts(&[]));
    watch.queued();
    watch.finish(outcome(503, End::Whole));
    assert_eq!(statuses(&observer), (vec!["503".to_owned()], Vec::new()));
}

#[test]
fn probes_are_not_watched_and_neither_is_anything_when_all_is_off() {
    let probe = parts(&[("user-agent", "kube-probe/1"), ("k-network-probe", "queue")]);
    assert!(begin(&counting(Compat::Better), &probe).is_off());
    assert!(begin(&start("", Compat::Better).0, &parts(&[])).is_off());
    assert!(start("", Compat::Better).0.metrics().is_none());
}

#[test]
fn trace_headers_pass_untouched_when_traces_are_off() {
    let observer = counting(Compat::Better);
    let mut parts = parts(&[("traceparent", PARENT)]);
    let mut watch = begin(&observer, &parts);
    watch.at_app(&mut parts.headers);
    assert_eq!(parts.headers["traceparent"], PARENT);
    watch.finish(outcome(200, End::Whole));
}

/// The `traceparent` that the app sees.
fn passed_on(rate: &str, parent: &[(&str, &str)]) -> String {
    let text = format!(r#"{{"tracing":{{"protocol":"http/protobuf","samplingRate":{rate}}}}}"#);
    let mut parts = parts(parent);
    let mut watch = begin(&start(&text, Compat::Better).0, &parts);
    watch.at_app(&mut parts.headers);
    watch.finish(outcome(200, End::Whole));
    parts.headers["traceparent"].to_str().unwrap().to_owned()
}

#[test]
fn the_app_gets_the_trace_with_a_span_of_ours() {
    let kept = passed_on("1", &[("traceparent", PARENT)]);
    assert!(kept.starts_with(&PARENT[..36]) && kept.ends_with("-01") && !kept.contains("b7ad6b7169203331"));
    let unsampled = passed_on("0", &[("traceparent", PARENT)]);
    assert!(unsampled.starts_with(&PARENT[..36]) && unsampled.ends_with("-00"));
    for parent in [&[][..], &[("traceparent", "nonsense")][..]] {
        let new = passed_on("1", parent);
        assert_eq!((new.len(), &new[53..]), (55, "01"), "{new}");
    }
}

#[test]
fn a_template_that_is_not_supported_is_told_and_the_log_stays_off() {
    let text = r#"{"enableRequestLog":true,"requestLogTemplate":"{{.Request.TLS}}"}"#;
    let (observer, Unmet { errors, notices }) = start(text, Compat::Better);
    assert!(begin(&observer, &parts(&[])).is_off());
    assert_eq!((errors.len(), notices.len()), (1, 0));
    assert!(errors[0].contains(".Request.TLS") && errors[0].contains("Request logs will be unavailable"));
}

#[test]
fn what_is_not_watched_takes_a_pointers_room() {
    assert_eq!(size_of::<Watch>(), size_of::<usize>(), "each request that waits has one");
}
