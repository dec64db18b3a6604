use super::*;
use crate::facts::RequestFacts;
use crate::identity::{Identity, Resource};
use http::{Request, StatusCode};
use std::time::Duration;

fn metrics(compat: Compat, depth: Option<Depth>) -> Metrics {
    let who = Identity {
        namespace: "ns1".into(),
        service: "svc1".into(),
        configuration: "cfg1".into(),
        revision: "rev1".into(),
        pod: "pod-1".into(),
        pod_ip: "10.0.0.7".into(),
    };
    let resource = Resource::default().resolve(Component::Sidecar, &who, compat);
    let app = Some(("127.0.0.1".to_owned(), 8080));
    let component = Component::Sidecar;
    let metrics = Metrics::new(Setup { compat, component, resource, app, dropped: Arc::default() });
    depth.into_iter().for_each(|depth| metrics.read_depth(depth));
    metrics
}

/// Serves one request, with 2 bytes of answer.
fn serve(metrics: &Metrics, lines: &[(&str, &str)], status: u16) {
    let request = lines.iter().fold(Request::get("/"), |request, (name, value)| request.header(*name, *value));
    let parts = request.body(()).unwrap().into_parts().0;
    let facts = RequestFacts {
        parts: &parts,
        target: None,
        peer: "127.0.0.1:1".parse().unwrap(),
        tls: false,
        by_agent: true,
        body_length: Some(0),
    };
    let labels = metrics.labels(&facts);
    let span = Duration::from_millis(3);
    metrics.started();
    metrics.own.called(labels, None, status, span, 0);
    metrics.own.invoked(status, span);
    metrics.own.served(labels, status, span, 0, 2);
}

fn page(metrics: &Metrics) -> String {
    String::from_utf8(answer(metrics, &http::Method::GET, "/metrics").into_body().to_vec()).unwrap()
}

const HOST: (&str, &str) = ("host", "app.example.com");

#[test]
fn a_series_reads_as_the_references_does() {
    let metrics = metrics(Compat::Strict, None);
    serve(&metrics, &[HOST, ("knative-serving-tag", "blue")], 200);
    let labels = format!(
        "{{http_request_method=\"GET\",http_response_status_code=\"200\",kn_route_tag=\"blue\",\
         network_protocol_name=\"http\",network_protocol_version=\"1.1\",\
         otel_scope_name=\"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp\",otel_scope_schema_url=\"\",\
         otel_scope_version=\"{}\",server_address=\"app.example.com\",url_scheme=\"http\"",
        env!("CARGO_PKG_VERSION")
    );
    let page = page(&metrics);
    let head = "# HELP http_server_response_body_size_bytes Size of HTTP server response bodies.\n\
                # TYPE http_server_response_body_size_bytes histogram\n";
    let family = page.split_once(head).map(|(_, rest)| rest).unwrap();
    let mut golden = String::new();
    for bound in
        ["0", "5", "10", "25", "50", "75", "100", "250", "500", "750", "1000", "2500", "5000", "7500", "10000", "+Inf"]
    {
        let count = i32::from(bound != "0");
        golden += &format!("http_server_response_body_size_bytes_bucket{labels},le=\"{bound}\"}} {count}\n");
    }
    golden += &format!("http_server_response_body_size_bytes_sum{labels}}} 2\n");
    golden += &format!("http_server_response_body_size_bytes_count{labels}}} 1\n");
    assert_eq!(&family[..golden.len()], golden);
    let bounds =
        ["0.005", "0.01", "0.025", "0.05", "0.075", "0.1", "0.25", "0.5", "0.75", "1", "2.5", "5", "7.5", "10", "+Inf"];
    for bound in bounds {
        let tail = format!("otel_scope_schema_url=\"\",otel_scope_version=\"\",le=\"{bound}\"}} 1");
        assert!(page.contains(&tail), "{bound}");
    }
    assert!(page.contains("kn_serving_invocation_duration_seconds_sum{http_response_status_code=\"200\",otel_scope_name=\"knative.dev/serving/pkg/queue\",otel_scope_schema_url=\"\",otel_scope_version=\"\"} 0.003\n"));
}

#[test]
fn the_apps_side_has_the_apps_address() {
    let metrics = metrics(Compat::Strict, None);
    serve(&metrics, &[HOST], 200);
    serve(&metrics, &[HOST], 0);
    let page = page(&metrics);
    let line = |status: &str| {
        page.lines().any(|line| {
            line.starts_with(&format!("http_client_request_duration_seconds_count{{http_request_method=\"GET\",{status}kn_route_tag=\"kn:disabled\","))
                && line.ends_with("server_address=\"127.0.0.1\",server_port=\"8080\",url_scheme=\"http\"} 1")
        })
    };
    assert!(line("http_response_status_code=\"200\","), "{page}");
    assert!(line(""), "without an answer there is no status");
}

#[test]
fn target_info_names_the_pod() {
    let page = page(&metrics(Compat::Strict, None));
    let line = page.lines().find(|line| line.starts_with("target_info{")).unwrap();
    for label in
        ["container_name=\"queue-proxy\"", "k8s_namespace_name=\"ns1\"", "k8s_pod_name=\"\"", "service_name=\"svc1\""]
    {
        assert!(line.contains(label), "{line}");
    }
    assert!(line.ends_with("} 1"));
}

#[test]
fn the_depth_is_the_truth_but_in_strict_mode() {
    let taken = Arc::new(AtomicU64::new(1));
    let depth = |compat| {
        let taken = taken.clone();
        metrics(compat, Some(Box::new(move || taken.load(Ordering::Relaxed))))
    };
    let (better, strict) = (depth(Compat::Better), depth(Compat::Strict));
    assert!(!page(&strict).contains("kn_serving_queue_depth"), "nothing has started yet");
    serve(&better, &[HOST], 200);
    serve(&strict, &[HOST], 200);
    taken.store(0, Ordering::Relaxed);
    let gauge = |metrics: &Metrics| {
        let page = page(metrics);
        page.lines()
            .find(|line| line.starts_with("kn_serving_queue_depth{"))
            .map(|line| line.rsplit_once(' ').unwrap().1.to_owned())
    };
    assert_eq!(gauge(&better).as_deref(), Some("0"));
    assert_eq!(gauge(&strict).as_deref(), Some("1"));
    assert_eq!(gauge(&metrics(Compat::Better, None)), None, "there is no queue without a limit");
}

#[test]
fn hosts_that_clients_make_up_are_one_label() {
    let metrics = metrics(Compat::Better, None);
    for host in 0..500 {
        serve(&metrics, &[("host", &format!("h{host}"))], 200);
    }
    let page = page(&metrics);
    let counts = page.lines().filter(|line| line.starts_with("http_server_request_duration_seconds_count"));
    assert_eq!(counts.count(), 21);
    let other = page.lines().find(|line| {
        line.starts_with("http_server_request_duration_seconds_count") && line.contains("server_address=\"other\"")
    });
    assert!(other.unwrap().ends_with(" 480"));
}

#[test]
fn statuses_that_an_app_makes_up_end_in_the_overflow() {
    let metrics = metrics(Compat::Better, None);
    for host in 0..20 {
        for status in 100..400 {
            serve(&metrics, &[("host", &format!("h{host}"))], status);
        }
    }
    let page = page(&metrics);
    let counts = page.lines().filter(|line| line.starts_with("http_server_request_duration_seconds_count"));
    assert_eq!(counts.count(), 2001);
    let overflow = page
        .lines()
        .find(|line| line.contains("http_server_request_duration_seconds_count{otel_metric_overflow=\"true\""));
    assert!(overflow.unwrap().ends_with(" 4000"));
}

#[test]
fn threads_count_in_the_same_series() {
    let metrics = Arc::new(metrics(Compat::Better, None));
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let metrics = metrics.clone();
            std::thread::spawn(move || (0..1000).for_each(|_| serve(&metrics, &[HOST], 200)))
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let page = page(&metrics);
    assert!(
        page.lines()
            .any(|line| line.starts_with("kn_serving_invocation_duration_seconds_count") && line.ends_with(" 4000"))
    );
}

#[test]
fn a_hosts_port_is_a_label_of_its_own_and_text_is_escaped() {
    let metrics = metrics(Compat::Better, None);
    serve(&metrics, &[("host", "a:8080"), ("knative-serving-tag", "q\"\\")], 200);
    let page = page(&metrics);
    assert!(page.contains("server_address=\"a\",server_port=\"8080\""));
    assert!(page.contains("kn_route_tag=\"q\\\"\\\\\""));
}

#[test]
fn the_page_is_for_get_and_head_alone() {
    let metrics = metrics(Compat::Better, None);
    let ask = |method: http::Method, path: &str| answer(&metrics, &method, path);
    let get = ask(http::Method::GET, "/metrics");
    assert_eq!(get.headers()["content-type"], "text/plain; version=0.0.4; charset=utf-8; escaping=underscores");
    let head = ask(http::Method::HEAD, "/metrics");
    assert!(head.body().is_empty() && head.headers()["content-length"] != "0");
    let post = ask(http::Method::POST, "/metrics");
    assert_eq!(
        (post.status(), post.headers()["allow"].to_str().unwrap()),
        (StatusCode::METHOD_NOT_ALLOWED, "GET, HEAD")
    );
    let other = ask(http::Method::GET, "/other");
    assert_eq!((other.status(), &other.body()[..]), (StatusCode::NOT_FOUND, &b"404 page not found\n"[..]));
}
