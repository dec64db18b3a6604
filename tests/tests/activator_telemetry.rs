//! What the real activator tells of its requests: traces, metrics, the log of
//! requests.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tests::filehost::daemon::Daemon;
use tests::filehost::world::{self, Line};
use tests::floor::binaries;
use tests::otlp::{self, Got, Span, collector};
use tests::rig::{self, OK, read_head, read_to_end, read_until, send, sidecar, sidecar_config};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// How long a test waits for something that must come.
const PATIENCE: Duration = Duration::from_secs(20);
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CALLER: &str = "b7ad6b7169203331";
/// The phases of a wake-up, in their order.
const PHASES: [&str; 6] = ["signal", "order", "start", "ready", "connect", "first_byte"];
/// So that series tell the service from the revision.
const REVISION: &str = "  service: shop\n  containerConcurrency: 1\n";

/// An activator that knows one revision, `default/rev`.
struct Stage {
    daemon: Daemon,
    http: SocketAddr,
    page: SocketAddr,
    file: PathBuf,
    _folder: tempfile::TempDir,
}

impl Stage {
    /// With these variables, and the revision at zero.
    async fn start(more: &[(&str, &str)]) -> Stage {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("world.yaml");
        world::put(&file, &world::text(REVISION, &[]));
        let platform = format!("file:{}", file.display());
        let base = [
            ("POD_NAME", "activator-1"),
            ("POD_IP", "127.0.0.1"),
            ("SYSTEM_NAMESPACE", "knative-serving"),
            ("CLUSTER_DOMAIN", "cluster.local"),
            ("ZEROSCALE_PLATFORM", platform.as_str()),
            ("ZEROSCALE_BIND", "127.0.0.1"),
            ("ZEROSCALE_HTTP_PORT", "0"),
            ("ZEROSCALE_HTTP2_PORT", "0"),
            ("PROFILING_PORT", "0"),
            ("METRICS_PROMETHEUS_PORT", "0"),
            ("ZEROSCALE_AUTOSCALER", "127.0.0.1:9"),
            ("ZEROSCALE_LOG_FORMAT", "text"),
            ("ZEROSCALE_DRAIN_SETTLE", "0s"),
        ];
        let variables: Vec<_> = base.into_iter().chain(more.iter().copied()).collect();
        let mut daemon = Daemon::start(&binaries::activator().unwrap(), &[], &variables);
        let (http, page) = (daemon.address("name=\"http\""), daemon.address("name=\"metrics\""));
        let stage = Stage { daemon, http, page, file, _folder: folder };
        stage.page_with("the revision is known", |page| page.contains("kn_revision_name=\"rev\"")).await;
        stage
    }

    fn pods(&self, pods: &[(&str, SocketAddr, &'static str)]) {
        let line = |&(name, address, phase): &(&str, _, _)| Line { name: name.to_owned(), address, phase };
        world::put(&self.file, &world::text(REVISION, &pods.iter().map(line).collect::<Vec<_>>()));
    }

    /// Waits until the page of metrics says so.
    async fn page_with(&self, what: &str, holds: impl Fn(&str) -> bool) -> String {
        let began = Instant::now();
        loop {
            let page = ask(self.page, "GET /metrics HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await;
            if holds(&page) {
                return page;
            }
            assert!(began.elapsed() < PATIENCE, "{what}: {page}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Waits until so many requests are held.
    async fn held(&self, count: usize) {
        let ends = format!(" {count}");
        let holds = |line: &str| line.starts_with("kn_revision_request_queued{") && line.ends_with(&ends);
        self.page_with("held", |page| page.lines().any(holds)).await;
    }

    /// Waits until so many lines of the log of requests are there, which end in `LOG`.
    async fn logged(&self, count: usize) -> Vec<String> {
        let began = Instant::now();
        loop {
            let lines: Vec<String> = self.daemon.lines().into_iter().filter(|line| line.ends_with("|LOG")).collect();
            if lines.len() >= count {
                return lines;
            }
            assert!(began.elapsed() < PATIENCE, "{:#?}", self.daemon.lines());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    async fn end(self) {
        let (code, lines) = self.daemon.terminate().await;
        assert_eq!(code, 0, "{lines:#?}");
    }
}

async fn ask(address: SocketAddr, request: &str) -> String {
    read_to_end(&mut send(address, request).await).await.0
}

/// A request to the revision.
fn request(path: &str, more: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: rev.default.svc.cluster.local\r\n{more}\r\n")
}

fn traced(trace: &str, flags: &str) -> String {
    request("/t?q", &format!("traceparent: 00-{trace}-{CALLER}-{flags}\r\ntracestate: a=1\r\n"))
}

async fn answered(address: SocketAddr, request: &str) -> String {
    let answer = read_until(&mut send(address, request).await, "\r\n\r\nok").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    answer
}

/// A pod with a sidecar of ours; the heads that its app saw.
async fn pod() -> (SocketAddr, UnboundedReceiver<String>) {
    let (seen, heads) = unbounded_channel();
    let app = rig::app(move |mut stream| {
        let seen = seen.clone();
        async move {
            loop {
                let head = read_head(&mut stream).await;
                if head.is_empty() {
                    return;
                }
                let _ = seen.send(head.to_ascii_lowercase());
                if stream.write_all(OK).await.is_err() {
                    return;
                }
            }
        }
    })
    .await;
    (sidecar(sidecar_config(app, 1)).await.address, heads)
}

/// The span in the `traceparent` that an app saw.
fn span_seen(head: &str, trace: &str) -> String {
    head.split_once(&format!("traceparent: 00-{trace}-")).unwrap_or_else(|| panic!("{head}")).1[..16].to_owned()
}

fn tracing(collector: SocketAddr, rate: f64) -> String {
    format!(
        r#"{{"tracing":{{"protocol":"http/protobuf","endpoint":"http://{collector}/v1/traces","samplingRate":{rate}}}}}"#
    )
}

fn spans(got: &mut UnboundedReceiver<Got>) -> Vec<Span> {
    let mut all = Vec::new();
    while let Ok((_, message)) = got.try_recv() {
        let resource = otlp::resource(&message);
        assert_eq!(
            (resource["service.name"].as_str(), resource["k8s.pod.name"].as_str()),
            ("activator", "activator-1")
        );
        all.extend(otlp::spans(&message));
    }
    all
}

fn one<'a>(all: &'a [Span], trace: &str, name: &str) -> &'a Span {
    let found: Vec<&Span> =
        all.iter().filter(|span| span.trace == trace && span.name == name && span.kind != 2).collect();
    assert_eq!(found.len(), 1, "{name}: {all:#?}");
    found[0]
}

fn root<'a>(all: &'a [Span], trace: &str) -> &'a Span {
    all.iter().find(|span| span.trace == trace && span.kind == 2).unwrap_or_else(|| panic!("{all:#?}"))
}

#[tokio::test]
async fn a_cold_start_is_a_trace_with_its_phases_and_a_warm_request_one_without() {
    let (collector, mut got) = collector().await;
    let stage = Stage::start(&[("OBSERVABILITY_CONFIG", &tracing(collector, 1.0))]).await;
    let (pod, mut seen) = pod().await;
    // Two wait for one wake-up.
    let second = TRACE.replace("0af7", "1bf7");
    let mut waiting = Vec::new();
    for (count, trace) in [TRACE, &second].into_iter().enumerate() {
        waiting.push(send(stage.http, &traced(trace, "01")).await);
        stage.held(count + 1).await;
    }
    // The pod answers, so it is used although it is not said to be ready.
    tokio::time::sleep(Duration::from_millis(100)).await;
    stage.pods(&[("pod-1", pod, "starting")]);
    for mut stream in waiting {
        let answer = read_until(&mut stream, "\r\n\r\nok").await;
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("x-zeroscale-cold-start"), "{answer}");
    }
    let warm = TRACE.replace("0af7", "2bf7");
    answered(stage.http, &traced(&warm, "00")).await;
    stage.end().await;

    let heads: Vec<String> = std::iter::from_fn(|| seen.try_recv().ok()).collect();
    let all = spans(&mut got);
    for trace in [TRACE, &second, &warm] {
        let root = root(&all, trace);
        assert_eq!((root.name.as_str(), root.parent.as_str(), &root.failed), ("GET", CALLER, &None));
        for (name, value) in [
            ("kn.revision.name", "rev"),
            ("kn.service.name", "shop"),
            ("k8s.namespace.name", "default"),
            ("http.response.status_code", "200"),
            ("http.response.body.size", "2"),
            ("url.path", "/t"),
            ("server.address", "rev.default.svc.cluster.local"),
        ] {
            assert_eq!(root.attributes.get(name).map(String::as_str), Some(value), "{name}: {root:#?}");
        }
        let (wait, proxy) = (one(&all, trace, "throttler_try"), one(&all, trace, "activator_proxy"));
        assert_eq!((&wait.parent, &proxy.parent, &wait.failed), (&root.id, &root.id, &None));
        let try_at_pod = one(&all, trace, "GET");
        assert_eq!((&try_at_pod.parent, try_at_pod.kind), (&proxy.id, 3));
        assert_eq!(try_at_pod.attributes["server.port"], pod.port().to_string());
        assert_eq!(try_at_pod.attributes["url.full"], format!("http://{pod}/t?q"));
        let head = heads.iter().find(|head| head.contains(trace)).unwrap_or_else(|| panic!("{trace}: {heads:#?}"));
        assert_eq!(span_seen(head, trace), try_at_pod.id, "the pod goes on under it: {head}");
        assert!(head.contains("tracestate: a=1"), "{head}");
    }
    let wakes: Vec<&Span> = all.iter().filter(|span| span.name == "wake").collect();
    assert_eq!(wakes.len(), 1, "{all:#?}");
    let wake = wakes[0];
    assert_eq!(wake.parent, root(&all, &wake.trace).id);
    let mut last = wake.start;
    for name in PHASES {
        let phase = one(&all, &wake.trace, name);
        assert_eq!((&phase.parent, phase.start), (&wake.id, last), "{name}: {phase:#?}");
        assert!(phase.end >= phase.start);
        last = phase.end;
    }
    assert_eq!(last, wake.end);
    let order = one(&all, &wake.trace, "order");
    assert!(order.end - order.start > 50_000_000, "nothing was ordered for a while: {order:#?}");
}

#[tokio::test]
async fn each_try_is_a_span_and_so_is_a_wait_that_was_in_vain() {
    let (collector, mut got) = collector().await;
    let changes = [("OBSERVABILITY_CONFIG", tracing(collector, 1.0)), ("ZEROSCALE_WAIT_LIMIT", "300ms".to_owned())];
    let changes: Vec<_> = changes.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let stage = Stage::start(&changes).await;
    let refused = ask(stage.http, &traced(TRACE, "01").replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n")).await;
    assert!(refused.starts_with("HTTP/1.1 503"), "{refused}");
    stage.end().await;
    let all = spans(&mut got);
    let (root, wait) = (root(&all, TRACE), one(&all, TRACE, "throttler_try"));
    assert_eq!(
        (wait.parent.as_str(), root.attributes["http.response.status_code"].as_str()),
        (root.id.as_str(), "503")
    );
    assert_eq!(wait.failed.as_deref(), Some("no instance became ready within the wait limit"));
    assert!(root.failed.is_some() && all.len() == 2, "{all:#?}");

    // A pod whose one slot somebody else has, who came past the activator.
    let changes = tracing(collector, 1.0);
    let stage = Stage::start(&[("OBSERVABILITY_CONFIG", &changes)]).await;
    let gate = rig::Gate::default();
    let pod = sidecar(sidecar_config(rig::gated_app(&gate).await, 1)).await.address;
    let mut other = send(pod, rig::GET).await;
    rig::until("it is in", || gate.inside() == 1).await;
    stage.pods(&[("pod-1", pod, "ready")]);
    let mut ours = send(stage.http, &traced(TRACE, "01")).await;
    stage.page_with("it came back", |page| page.contains("zeroscale_activator_handbacks_total{why=\"full\"} 1")).await;
    gate.open.notify_one();
    assert!(read_until(&mut other, "\r\n\r\n").await.starts_with("HTTP/1.1 200"));
    rig::until("ours is in", || gate.seen() == 2).await;
    gate.open.notify_one();
    assert!(read_until(&mut ours, "\r\n\r\n").await.starts_with("HTTP/1.1 200"));
    stage.end().await;
    let all = spans(&mut got);
    let of =
        |name: &str, kind: u64| all.iter().filter(|span| span.name == name && span.kind == kind).collect::<Vec<_>>();
    let (tries, proxies, waits) = (of("GET", 3), of("activator_proxy", 1), of("throttler_try", 1));
    assert!(tries.len() >= 2 && proxies.len() == tries.len() && waits.len() == tries.len(), "{all:#?}");
    let (last, failed) = tries.split_last().unwrap();
    assert!(failed.iter().all(|span| span.failed.as_deref() == Some("handed back: full")), "{all:#?}");
    assert_eq!((&last.failed, last.attributes["http.response.status_code"].as_str()), (&None, "200"));
}

#[tokio::test]
async fn trace_headers_pass_untouched_when_traces_are_off_and_go_on_unrecorded_when_asked() {
    let (pod, mut seen) = pod().await;
    let parent = format!("traceparent: 00-{TRACE}-{CALLER}-01");
    let off = Stage::start(&[]).await;
    off.pods(&[("pod-1", pod, "ready")]);
    answered(off.http, &traced(TRACE, "01")).await;
    assert!(seen.recv().await.unwrap().contains(&parent));
    answered(off.http, &request("/", "")).await;
    assert!(!seen.recv().await.unwrap().contains("traceparent"), "none is invented");
    off.end().await;

    let on = Stage::start(&[("ZEROSCALE_TRACE_CONTEXT", "continue")]).await;
    on.pods(&[("pod-1", pod, "ready")]);
    answered(on.http, &traced(TRACE, "01")).await;
    let head = seen.recv().await.unwrap();
    let span = span_seen(&head, TRACE);
    assert!(span != CALLER && head.contains(&format!("{span}-00")), "{head}");
    answered(on.http, &request("/", "")).await;
    assert!(seen.recv().await.unwrap().contains("traceparent: 00-"), "one begins");
    on.end().await;
}

const LOG: &str = concat!(
    r#"{"enableRequestLog":true,"enableProbeRequestLog":true,"requestLogTemplate":"{{.Request.Method}} "#,
    r#"{{.Request.URL.Path}} {{.Request.Host}}|{{.Response.Code}}|{{.Response.Size}}|{{.Revision.Name}} "#,
    r#"{{.Revision.Namespace}} {{.Revision.Service}}|{{.Revision.PodName}} {{.Revision.PodIP}}|{{.TraceID}}|"#,
    r#"{{index .Request.Header \"K-Original-Host\" 0}} {{.Request.Header.Get \"K-Proxy-Request\"}}|LOG"}"#
);

#[tokio::test]
async fn each_request_to_a_revision_has_its_line_with_the_pod_and_the_trace() {
    let (pod, _seen) = pod().await;
    let stage = Stage::start(&[("OBSERVABILITY_CONFIG", LOG)]).await;
    // Neither is a revision's.
    let unknown = "GET /u HTTP/1.1\r\nhost: other.default.svc.cluster.local\r\nconnection: close\r\n\r\n";
    // The route of the platform would take it.
    let probe = "GET /p HTTP/1.1\r\nhost: a\r\nk-network-probe: activator\r\nconnection: close\r\n\r\n";
    assert!(ask(stage.http, probe).await.starts_with("HTTP/1.1 200"));
    stage.pods(&[("pod-1", pod, "ready")]);
    answered(stage.http, &traced(TRACE, "01")).await;
    let host = "rev.default.svc.cluster.local";
    let expected = format!("GET /t {host}|200|2|rev default shop|pod-1 127.0.0.1|{TRACE}|{host} activator|LOG");
    assert_eq!(stage.logged(1).await, [expected]);
    answered(stage.http, &unknown.replace("connection: close", "x: y")).await;
    assert!(stage.logged(2).await[1].starts_with("GET /u other.default"), "the fallback is a revision's too");
    // Nobody has answered it: no pod has it.
    stage.pods(&[]);
    stage.page_with("no pod", |page| page.contains("kn_revision_request_active")).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let leaver = send(stage.http, &request("/gone", "")).await;
    stage.held(1).await;
    drop(leaver);
    let gone = format!("GET /gone {host}|499|0|rev default shop| ||{host} activator|LOG");
    assert_eq!(stage.logged(3).await[2], gone);
    stage.end().await;
}

#[tokio::test]
async fn in_strict_mode_the_log_is_the_references_and_one_of_no_revision_has_no_line() {
    let (pod, _seen) = pod().await;
    let strict = [("OBSERVABILITY_CONFIG", LOG), ("ZEROSCALE_COMPAT", "strict")];
    let stage = Stage::start(&strict).await;
    stage.pods(&[("pod-1", pod, "ready")]);
    let unknown = "GET /u HTTP/1.1\r\nhost: other.default.svc.cluster.local\r\nconnection: close\r\n\r\n";
    assert!(ask(stage.http, unknown).await.starts_with("HTTP/1.1 404"));
    answered(stage.http, &traced(TRACE, "01")).await;
    let host = "rev.default.svc.cluster.local";
    let expected = format!("GET /t {host}|200|2|rev default shop| ||{host} activator|LOG");
    assert_eq!(stage.logged(1).await, [expected], "flaw and all");
    stage.end().await;
}

#[tokio::test]
async fn the_default_line_is_the_references_json() {
    let (pod, _seen) = pod().await;
    let stage = Stage::start(&[("OBSERVABILITY_CONFIG", r#"{"enableRequestLog":true}"#)]).await;
    stage.pods(&[("pod-1", pod, "ready")]);
    answered(stage.http, &traced(TRACE, "01")).await;
    let (_, lines) = stage.daemon.terminate().await;
    let line = lines.iter().find(|line| line.starts_with("{\"httpRequest\"")).unwrap_or_else(|| panic!("{lines:#?}"));
    let line: serde_json::Value = serde_json::from_str(line).unwrap();
    let http = &line["httpRequest"];
    assert_eq!(
        (&http["requestUrl"], &http["status"], &http["responseSize"]),
        (&"/t?q".into(), &200.into(), &"2".into())
    );
    assert_eq!((&http["serverIp"], &line["traceId"]), (&"127.0.0.1".into(), &TRACE.into()));
}

fn metrics(collector: SocketAddr) -> String {
    format!(r#"{{"metrics":{{"protocol":"http/protobuf","endpoint":"http://{collector}/v1/metrics"}}}}"#)
}

/// The series of a metric that have all of the labels.
fn found<'a>(page: &'a str, name: &str, labels: &[&str]) -> Vec<&'a str> {
    let series = page.lines().filter(|line| line.split(['{', ' ']).next() == Some(name));
    series.filter(|line| labels.iter().all(|label| line.contains(label))).collect()
}

const SERVED: &str = "http_server_request_duration_seconds_count";
const CALLED: &str = "http_client_request_duration_seconds_count";
const OF_REV: [&str; 3] = ["kn_revision_name=\"rev\"", "kn_service_name=\"shop\"", "k8s_namespace_name=\"default\""];

#[tokio::test]
async fn series_are_a_revisions_bounded_and_gone_with_it() {
    let (pod, _seen) = pod().await;
    let (collector, mut got) = collector().await;
    let stage = Stage::start(&[("OBSERVABILITY_CONFIG", &metrics(collector))]).await;
    stage.pods(&[("pod-1", pod, "ready")]);
    for n in 0..25 {
        let named = "knative-serving-revision: rev\r\nknative-serving-namespace: default";
        answered(stage.http, &format!("GET /{n} HTTP/1.1\r\nhost: h{n}.example\r\n{named}\r\n\r\n")).await;
    }
    let page = stage.page_with("25 hosts", |page| found(page, SERVED, &OF_REV).len() == 21).await;
    assert_eq!(found(&page, SERVED, &["server_address=\"other\"", "http_response_status_code=\"200\""]).len(), 1);
    let client = found(&page, CALLED, &OF_REV);
    assert!(client.len() == 1 && client[0].ends_with(" 25") && !client[0].contains("server_address"), "{client:?}");
    for name in ["http_server_request_body_size_bytes_sum", "http_server_response_body_size_bytes_sum"] {
        assert_eq!(found(&page, name, &OF_REV).len(), 21, "{name}");
    }
    assert_eq!(found(&page, "kn_revision_request_concurrency", &OF_REV).len(), 1, "{page}");
    assert_eq!(found(&page, "target_info", &["service_name=\"activator\""]).len(), 1, "{page}");
    let families: Vec<&str> = page.lines().filter(|line| line.starts_with("# TYPE")).collect();
    let mut once = families.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), families.len(), "each family stands once: {families:#?}");

    // Gone, and another of the same name counts from nothing.
    world::put(&stage.file, "revisions: []\n...\n");
    let gone = |page: &str| !page.contains("kn_revision_name=\"rev\"");
    let page = stage.page_with("it is gone", gone).await;
    assert_eq!(found(&page, SERVED, &[]).len(), 0, "{page}");
    assert!(ask(stage.http, &request("/", "connection: close\r\n")).await.starts_with("HTTP/1.1 404"));
    let page = stage.page_with("one of no revision", |page| !found(page, SERVED, &["_code=\"404\""]).is_empty()).await;
    assert!(gone(&page), "{page}");
    stage.pods(&[("pod-1", pod, "ready")]);
    stage.page_with("it is back", |page| page.contains("kn_revision_name=\"rev\"")).await;
    answered(stage.http, &request("/", "")).await;
    let again = |page: &str| found(page, SERVED, &OF_REV).first().is_some_and(|line| line.ends_with(" 1"));
    stage.page_with("it counts anew", again).await;
    stage.end().await;

    let mut series = Vec::new();
    while let Ok((head, message)) = got.try_recv() {
        assert!(head.starts_with("post /v1/metrics "), "{head}");
        series = otlp::series(&message);
    }
    for (name, kind, labelled) in [
        ("http.server.request.duration", "histogram", true),
        ("http.server.request.body.size", "histogram", true),
        ("http.server.response.body.size", "histogram", true),
        ("http.client.request.duration", "histogram", true),
        ("http.client.request.body.size", "histogram", true),
        ("kn.revision.request.concurrency", "gauge", true),
        ("kn.revision.request.queued", "sum", true),
        ("kn.revision.request.active", "sum", true),
        ("kn.activator.stats.conn.reachable", "gauge", false),
        ("kn.activator.stats.conn.errors", "sum", false),
    ] {
        let fits = |(other, as_kind, labels): &&(String, &str, otlp::Attributes)| {
            other == name
                && *as_kind == kind
                && (!labelled || labels.get("kn.revision.name").is_some_and(|rev| rev == "rev"))
        };
        assert!(series.iter().any(|series| fits(&series)), "{name}: {series:#?}");
    }
}

#[tokio::test]
async fn in_strict_mode_pods_are_told_apart_and_wake_ups_have_no_span() {
    let (pod, _seen) = pod().await;
    let (collector, mut got) = collector().await;
    let config = format!(
        r#"{{"metrics":{{"protocol":"prometheus","endpoint":":0"}},"tracing":{{"protocol":"http/protobuf",
            "endpoint":"http://{collector}/v1/traces","samplingRate":1}}}}"#
    );
    let stage = Stage::start(&[("OBSERVABILITY_CONFIG", &config), ("ZEROSCALE_COMPAT", "strict")]).await;
    let mut stream = send(stage.http, &traced(TRACE, "00")).await;
    stage.held(1).await;
    stage.pods(&[("pod-1", pod, "ready")]);
    assert!(read_until(&mut stream, "\r\n\r\nok").await.starts_with("HTTP/1.1 200"));
    let labels = ["server_address=\"127.0.0.1\"", &format!("server_port=\"{}\"", pod.port()), OF_REV[0]];
    stage.page_with("the pod's address", |page| found(page, CALLED, &labels).len() == 1).await;
    stage.end().await;
    let all = spans(&mut got);
    let names: Vec<&str> = all.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(names, ["throttler_try", "activator_proxy", "GET /t", "GET"], "{all:#?}");
}

#[tokio::test]
async fn a_collector_that_hangs_does_not_hold_the_end_and_nothing_is_started_with_faults() {
    let hanging = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let stage = Stage::start(&[("OBSERVABILITY_CONFIG", &tracing(hanging.local_addr().unwrap(), 1.0))]).await;
    let leaver = send(stage.http, &request("/", "")).await;
    stage.held(1).await;
    drop(leaver);
    stage.held(0).await;
    let began = Instant::now();
    stage.end().await;
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    let config = r#"{"metrics":{"protocol":"pigeon"},"tracing":{"protocol":"smoke"},"requestLogTemplate":7}"#;
    let (code, lines) =
        Daemon::start(&binaries::activator().unwrap(), &[], &[("OBSERVABILITY_CONFIG", config)]).ended().await;
    let text = lines.join("\n");
    assert_eq!(code, 1, "{text}");
    for name in ["metrics.protocol", "tracing.protocol", "requestLogTemplate"] {
        assert!(text.contains(&format!("OBSERVABILITY_CONFIG: {name}")), "{name}: {text}");
    }
}
