//! Messages as collectors get them, over sockets.

use super::messages::{
    AnyKind, Data, ExportMetricsServiceRequest, ExportTraceServiceRequest, KeyValue, NumberDataPoint, ResourceMetrics,
};
use crate::facts::RequestFacts;
use crate::watch::{End, Outcome};
use crate::{Component, Config, Identity, Observer, Setup};
use bytes::{Buf, Bytes};
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use policy::compat::Compat;
use prost::Message;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// What a collector got.
struct Got {
    path: String,
    headers: HeaderMap,
    message: Bytes,
}

/// A collector: where it is, and what it got.
struct Collector {
    port: u16,
    got: UnboundedReceiver<Got>,
}

impl Collector {
    /// Answers the first requests with the statuses, and all others with 200.
    async fn http(statuses: &'static [u16]) -> Collector {
        let (listener, port, send, got) = listen().await;
        let count = Arc::new(AtomicUsize::new(0));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (send, count) = (send.clone(), count.clone());
                let service = service_fn(move |request: Request<hyper::body::Incoming>| {
                    let (send, count) = (send.clone(), count.clone());
                    async move {
                        let (parts, body) = request.into_parts();
                        let message = body.collect().await.unwrap().to_bytes();
                        let _ = send.send(Got { path: parts.uri.to_string(), headers: parts.headers, message });
                        let status = statuses.get(count.fetch_add(1, Ordering::Relaxed)).copied().unwrap_or(200);
                        let response = Response::builder().status(status).body(Full::new(Bytes::new())).unwrap();
                        Ok::<_, Infallible>(response)
                    }
                });
                tokio::spawn(
                    hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service),
                );
            }
        });
        Collector { port, got }
    }

    async fn grpc() -> Collector {
        let (listener, port, send, got) = listen().await;
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let send = send.clone();
                tokio::spawn(async move {
                    let mut connection = h2::server::handshake(stream).await.unwrap();
                    while let Some(Ok((request, respond))) = connection.accept().await {
                        tokio::spawn(answer(request, respond, send.clone()));
                    }
                });
            }
        });
        Collector { port, got }
    }

    /// Takes connections, and never says anything.
    async fn hanging() -> Collector {
        let (listener, port, _, got) = listen().await;
        tokio::spawn(async move {
            let mut kept = Vec::new();
            while let Ok((stream, _)) = listener.accept().await {
                kept.push(stream);
            }
        });
        Collector { port, got }
    }

    async fn next(&mut self) -> Got {
        tokio::time::timeout(Duration::from_secs(10), self.got.recv()).await.unwrap().unwrap()
    }
}

async fn listen() -> (TcpListener, u16, UnboundedSender<Got>, UnboundedReceiver<Got>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (send, got) = unbounded_channel();
    (listener, port, send, got)
}

async fn answer(
    request: Request<h2::RecvStream>,
    mut respond: h2::server::SendResponse<Bytes>,
    send: UnboundedSender<Got>,
) {
    let (parts, mut body) = request.into_parts();
    let mut message = Vec::new();
    while let Some(part) = body.data().await {
        let part = part.unwrap();
        body.flow_control().release_capacity(part.len()).unwrap();
        message.extend_from_slice(&part);
    }
    let mut framed = Bytes::from(message);
    assert_eq!((framed.get_u8(), framed.get_u32() as usize), (0, framed.len()));
    let _ = send.send(Got { path: parts.uri.path().to_owned(), headers: parts.headers, message: framed });
    let response = Response::builder().header("content-type", "application/grpc").body(()).unwrap();
    let mut stream = respond.send_response(response, false).unwrap();
    stream.send_data(Bytes::from_static(&[0; 5]), false).unwrap();
    let trailers = HeaderMap::from_iter([("grpc-status".parse().unwrap(), "0".parse().unwrap())]);
    stream.send_trailers(trailers).unwrap();
}

fn observer(text: &str, variables: &[(&str, &str)]) -> Observer {
    let get = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    let config = Config::parse(Component::Sidecar, text, get).unwrap();
    let text = |text: &str| text.into();
    let who = Identity { namespace: text("ns1"), service: text("svc1"), revision: text("rev1"), ..Identity::default() };
    let setup =
        Setup { component: Component::Sidecar, who, compat: Compat::Better, app: Some(("127.0.0.1".to_owned(), 8080)) };
    let observer = Observer::start(config, setup).0;
    observer.read_depth(|| 3);
    observer
}

/// One request of which the app answers 2 bytes.
fn serve(observer: &Observer) {
    let request = Request::get("/t?x=1").header("host", "app.example.com").header("tracestate", "a=1");
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let mut parts = request.header("traceparent", parent).body(()).unwrap().into_parts().0;
    let peer = "10.1.2.3:99".parse().unwrap();
    let facts = RequestFacts { parts: &parts, target: None, peer, by_agent: true, tls: false, body_length: Some(0) };
    let mut watch = observer.begin(&facts);
    watch.queued();
    watch.at_app(&mut parts.headers);
    watch.answered(200);
    watch.finish(Outcome { status: 200, end: End::Whole, response_bytes: 2 });
}

fn text<'a>(attributes: &'a [KeyValue], key: &str) -> &'a str {
    let found = attributes.iter().find(|pair| pair.key == key).and_then(|pair| pair.value.as_ref()?.value.as_ref());
    match found {
        Some(AnyKind::Text(text)) => text,
        other => panic!("{key}: {other:?}"),
    }
}

fn config(kind: &str, protocol: &str, port: u16, path: &str, more: &str) -> String {
    format!(r#"{{"{kind}":{{"protocol":"{protocol}","endpoint":"http://127.0.0.1:{port}{path}"{more}}}}}"#)
}

fn check_metrics(message: &Bytes) {
    let mut message = ExportMetricsServiceRequest::decode(message.clone()).unwrap();
    let ResourceMetrics { resource, scope_metrics } = message.resource_metrics.remove(0);
    let resource = resource.unwrap().attributes;
    assert_eq!((text(&resource, "service.name"), text(&resource, "k8s.namespace.name")), ("svc1", "ns1"));
    let scopes: Vec<String> = scope_metrics.iter().map(|scope| scope.scope.clone().unwrap().name).collect();
    assert_eq!(
        scopes[..2],
        ["knative.dev/serving/pkg/queue", "go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"]
    );
    let all: Vec<_> = scope_metrics.iter().flat_map(|scope| &scope.metrics).collect();
    let find = |name: &str| all.iter().find(|metric| metric.name == name).unwrap();
    let duration = find("http.server.request.duration");
    assert_eq!(duration.unit, "s");
    let Some(Data::Histogram(histogram)) = &duration.data else { panic!() };
    assert_eq!(histogram.aggregation_temporality, 2);
    let point = &histogram.data_points[0];
    assert_eq!((point.count, point.bucket_counts.len(), point.explicit_bounds.len()), (1, 15, 14));
    assert!(point.start_time_unix_nano > 0 && point.time_unix_nano >= point.start_time_unix_nano);
    assert_eq!(
        (text(&point.attributes, "server.address"), text(&point.attributes, "kn.route.tag")),
        ("app.example.com", "kn:disabled")
    );
    let depth = find("kn.serving.queue.depth");
    let Some(Data::Gauge(gauge)) = &depth.data else { panic!() };
    assert!(matches!(gauge.data_points[0], NumberDataPoint { as_int: Some(3), .. }));
    for name in ["kn.serving.invocation.duration", "http.client.request.duration", "http.server.response.body.size"] {
        find(name);
    }
}

#[tokio::test]
async fn metrics_are_posted_to_the_url_exactly_as_given_and_once_more_at_the_end() {
    let mut collector = Collector::http(&[]).await;
    let every = r#","exportInterval":100000000"#;
    let text = config("requestMetrics", "http/protobuf", collector.port, "/v1/metrics/?a=b", every);
    let observer = observer(&text, &[("OTEL_EXPORTER_OTLP_HEADERS", "api-key=k")]);
    serve(&observer);
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(async move {
        observer.run(async { drop(stopped.await) }, Duration::from_secs(10)).await;
    });
    let got = collector.next().await;
    assert_eq!(got.path, "/v1/metrics/?a=b");
    assert_eq!(got.headers["content-type"], "application/x-protobuf");
    assert_eq!((&got.headers["api-key"], got.headers.get("content-encoding")), (&"k".parse().unwrap(), None));
    check_metrics(&got.message);
    drop(stop);
    running.await.unwrap();
    while let Ok(got) = collector.got.try_recv() {
        check_metrics(&got.message);
    }
}

#[tokio::test]
async fn metrics_go_over_grpc_to_the_collectors_service() {
    let mut collector = Collector::grpc().await;
    let text = config("requestMetrics", "grpc", collector.port, "", "");
    let observer = observer(&text, &[]);
    serve(&observer);
    observer.run(std::future::ready(()), Duration::from_secs(10)).await;
    let got = collector.next().await;
    assert_eq!(got.path, "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export");
    assert_eq!(
        (&got.headers["content-type"], &got.headers["te"]),
        (&"application/grpc".parse().unwrap(), &"trailers".parse().unwrap())
    );
    check_metrics(&got.message);
    assert_eq!(observer.dropped().unwrap().exports(), 0);
}

fn check_spans(message: &Bytes) {
    let message = ExportTraceServiceRequest::decode(message.clone()).unwrap();
    let spans: Vec<_> = message.resource_spans[0].scope_spans.iter().flat_map(|scope| &scope.spans).collect();
    let find = |name: &str| *spans.iter().find(|span| span.name == name).unwrap();
    let (server, proxy) = (find("GET"), find("kn.queueproxy.proxy"));
    let (wait, client) = (find("kn.queueproxy.wait"), find("HTTP GET"));
    assert_eq!([server.kind, proxy.kind, wait.kind, client.kind], [2, 1, 1, 3]);
    assert_eq!(server.parent_span_id, [0xb7, 0xad, 0x6b, 0x71, 0x69, 0x20, 0x33, 0x31]);
    assert_eq!(proxy.parent_span_id, server.span_id);
    assert_eq!([&wait.parent_span_id, &client.parent_span_id], [&proxy.span_id, &proxy.span_id]);
    assert!(spans.iter().all(|span| span.trace_id[..4] == [0x0a, 0xf7, 0x65, 0x19] && span.trace_state == "a=1"));
    assert_eq!(text(&server.attributes, "client.address"), "10.1.2.3");
    assert_eq!(text(&server.attributes, "url.path"), "/t");
    assert_eq!(text(&client.attributes, "url.full"), "http://127.0.0.1:8080/t?x=1");
    assert_eq!((server.flags & 0x300, proxy.flags & 0x300), (0x300, 0x100));
}

#[tokio::test]
async fn spans_are_posted_within_their_five_seconds() {
    let mut collector = Collector::http(&[]).await;
    let text = config("tracing", "http/protobuf", collector.port, "/v1/traces", r#","samplingRate":1"#);
    let observer = observer(&text, &[]);
    serve(&observer);
    let began = Instant::now();
    let running = tokio::spawn(async move { observer.run(std::future::pending(), Duration::ZERO).await });
    let got = collector.next().await;
    assert!(began.elapsed() < Duration::from_secs(8));
    assert_eq!(got.path, "/v1/traces");
    check_spans(&got.message);
    running.abort();
}

#[tokio::test]
async fn spans_go_over_grpc_at_the_end() {
    let mut collector = Collector::grpc().await;
    let text = config("tracing", "grpc", collector.port, "", r#","samplingRate":1"#);
    let observer = observer(&text, &[]);
    // More than one window of the other side's.
    (0..300).for_each(|_| serve(&observer));
    observer.run(std::future::ready(()), Duration::from_secs(10)).await;
    let mut spans = 0;
    for _ in 0..3 {
        let got = collector.next().await;
        assert_eq!(got.path, "/opentelemetry.proto.collector.trace.v1.TraceService/Export");
        let message = ExportTraceServiceRequest::decode(got.message.clone()).unwrap();
        spans += message.resource_spans[0].scope_spans.iter().map(|scope| scope.spans.len()).sum::<usize>();
    }
    assert_eq!(spans, 1200);
}

#[tokio::test]
async fn a_busy_collector_is_asked_again_and_a_bad_message_is_not() {
    let mut busy = Collector::http(&[503, 429]).await;
    let text = config("requestMetrics", "http/protobuf", busy.port, "/", "");
    let again = observer(&text, &[]);
    again.run(std::future::ready(()), Duration::from_secs(10)).await;
    for _ in 0..3 {
        busy.next().await;
    }
    assert_eq!(again.dropped().unwrap().exports(), 0);
    let mut bad = Collector::http(&[400]).await;
    let never = observer(&config("requestMetrics", "http/protobuf", bad.port, "/", ""), &[]);
    never.run(std::future::ready(()), Duration::from_secs(10)).await;
    bad.next().await;
    assert!(bad.got.try_recv().is_err());
    assert_eq!(never.dropped().unwrap().exports(), 1);
}

#[tokio::test]
async fn a_collector_that_hangs_does_not_hold_the_end() {
    for protocol in ["http/protobuf", "grpc"] {
        let collector = Collector::hanging().await;
        let text = format!(
            r#"{{"requestMetrics":{{"protocol":"{protocol}","endpoint":"http://127.0.0.1:{port}","exportInterval":1000000}},
            "tracing":{{"protocol":"{protocol}","endpoint":"http://127.0.0.1:{port}","samplingRate":1}}}}"#,
            port = collector.port
        );
        let observer = observer(&text, &[]);
        serve(&observer);
        let began = Instant::now();
        observer.run(tokio::time::sleep(Duration::from_millis(100)), Duration::from_millis(200)).await;
        assert!(began.elapsed() < Duration::from_secs(3), "{protocol}");
    }
}

#[tokio::test]
async fn a_collector_that_is_gone_costs_spans_and_no_memory() {
    let text = config("tracing", "http/protobuf", 1, "/", r#","samplingRate":1"#);
    let observer = observer(&text, &[("OTEL_EXPORTER_OTLP_TIMEOUT", "50")]);
    (0..1000).for_each(|_| serve(&observer));
    let dropped = observer.dropped().unwrap();
    assert_eq!(dropped.spans(), 4000 - 2048);
    observer.run(std::future::ready(()), Duration::from_secs(10)).await;
    assert_eq!(dropped.spans(), 4000);
}
