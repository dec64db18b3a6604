//! The driver's clients against the driver's apps, with nothing in between.

use crate::replay::cases::app::{self, Log};
use crate::replay::cases::case::{App, Case, Tls};
use crate::replay::cases::client::Conn;
use crate::replay::cases::stage::Stage;
use crate::replay::cases::tls::{self, Mounted};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

const LIMIT: Duration = Duration::from_secs(5);

/// An app with these routes, on a free port.
async fn app(speaks: &str, routes: &str) -> (u16, Arc<Log>) {
    let row = format!(r#"{{"type":"{speaks}","routes":{routes}}}"#);
    let app: Arc<App> = Arc::new(serde_json::from_str(&row).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let log = Arc::new(Log::default());
    let into = log.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(app::serve(stream, app.clone(), into.clone()));
        }
    });
    (port, log)
}

async fn conn(port: u16) -> Conn {
    Conn::open(port, None, None).await.unwrap().0
}

async fn ask(conn: &mut Conn, request: &str) -> Value {
    conn.send(request.as_bytes(), LIMIT).await.unwrap();
    conn.recv(false, true, LIMIT).await
}

#[tokio::test]
async fn without_a_route_the_app_says_ok_and_keeps_the_connection() {
    let (port, log) = app("http1", "{}").await;
    let mut conn = conn(port).await;
    let answer = ask(&mut conn, "POST /x?y HTTP/1.1\r\nA: 1\r\nContent-Length: 2\r\n\r\nhi").await;
    assert_eq!((&answer["status"], &answer["body"], &answer["framing"]), (&json!(200), &json!("ok"), &json!("length")));
    assert_eq!(answer["connection"], "open");
    let seen = &log.requests()[0];
    assert_eq!((&seen["target"], &seen["body"], &seen["framing"]), (&json!("/x?y"), &json!("hi"), &json!("length")));
    assert_eq!(ask(&mut conn, "GET / HTTP/1.1\r\n\r\n").await["status"], 200);
    assert_eq!(log.count(), 2);
}

#[tokio::test]
async fn pipelined_answers_are_read_one_after_another() {
    let (port, _) = app("http1", "{}").await;
    let mut conn = conn(port).await;
    let first = ask(&mut conn, "GET /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\n\r\n").await;
    assert!(first["extra"].as_str().unwrap().ends_with("ok"));
    assert_eq!(conn.recv(false, false, LIMIT).await["body"], "ok");
}

#[tokio::test]
async fn a_cut_shows_as_incomplete_and_a_missing_answer_as_the_end() {
    let head = r#"{"send":"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npart\r\n"}"#;
    let routes =
        format!(r#"{{"/cut":[{head},{{"close":true}}],"/none":[{{"close":true}}],"/rst":[{{"reset":true}}]}}"#);
    let (port, _) = app("http1", &routes).await;
    let cut = ask(&mut conn(port).await, "GET /cut HTTP/1.1\r\n\r\n").await;
    assert_eq!(
        (&cut["body"], &cut["incomplete"], &cut["connection"]),
        (&json!("part"), &json!(true), &json!("closed"))
    );
    for target in ["/none", "/rst"] {
        let answer = ask(&mut conn(port).await, &format!("GET {target} HTTP/1.1\r\n\r\n")).await;
        assert_eq!((&answer["eof"], &answer["status"]), (&json!(true), &Value::Null), "{target}");
    }
    let mut raw = conn(port).await;
    raw.send(b"GET /rst HTTP/1.1\r\n\r\n", LIMIT).await.unwrap();
    assert_eq!(raw.recv_raw(None, LIMIT).await["reset"], true);
}

#[tokio::test]
async fn an_answer_before_the_rest_was_sent_is_told_apart() {
    let early =
        r#"{"/e":[{"before_body":true},{"send":"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"},{"read_body":true}]}"#;
    let (port, log) = app("http1", early).await;
    let mut conn = conn(port).await;
    conn.send(b"POST /e HTTP/1.1\r\nContent-Length: 4\r\n\r\nab", LIMIT).await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    let answer = ask(&mut conn, "cd").await;
    assert_eq!((&answer["before_last_send"], &answer["body"]), (&json!(true), &json!("x")));
    assert_eq!(log.requests()[0]["body"], "abcd");
    let late = ask(&mut conn, "GET / HTTP/1.1\r\n\r\n").await;
    assert_eq!(late["before_last_send"], Value::Null);
}

#[tokio::test]
async fn a_head_can_be_read_before_the_rest() {
    let slow = r#"{"/s":[{"send":"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab"},{"sleep_ms":150},{"send":"cd"}]}"#;
    let (port, _) = app("http1", slow).await;
    let mut conn = conn(port).await;
    conn.send(b"GET /s HTTP/1.1\r\n\r\n", LIMIT).await.unwrap();
    assert_eq!(conn.recv_head(LIMIT).await["status"], 200);
    assert_eq!(conn.recv(false, false, Duration::from_millis(40)).await["timeout"], true);
    let whole = conn.recv(false, false, LIMIT).await;
    assert_eq!((&whole["status"], &whole["body"]), (&json!(200), &json!("abcd")));
}

#[tokio::test]
async fn raw_bytes_are_echoed_and_the_end_is_seen_on_both_sides() {
    let (port, log) = app("http1", r#"{"/e":[{"echo_raw":true}],"/w":[{"wait_eof":true}]}"#).await;
    let mut echo = conn(port).await;
    echo.send(b"GET /e HTTP/1.1\r\n\r\nab", LIMIT).await.unwrap();
    assert_eq!(echo.recv_raw(Some(2), LIMIT).await["raw"], "ab");
    echo.half_close().await;
    assert_eq!(echo.recv_raw(None, LIMIT).await["eof"], true);
    let mut waits = conn(port).await;
    waits.send(b"GET /w HTTP/1.1\r\n\r\n", LIMIT).await.unwrap();
    assert_eq!(waits.recv_raw(None, Duration::from_millis(30)).await["timeout"], true);
    waits.close().await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(log.requests()[1]["connection_closed_by_proxy"], true);
}

#[tokio::test]
async fn a_connection_can_be_refused_its_second_request() {
    let (port, log) = app("http1", r#"{"/*":[{"close_if_nth":2},{"send":"HTTP/1.1 204 X\r\n\r\n"}]}"#).await;
    let mut conn = conn(port).await;
    assert_eq!(ask(&mut conn, "GET /1 HTTP/1.1\r\n\r\n").await["framing"], "none");
    assert_eq!(ask(&mut conn, "GET /2 HTTP/1.1\r\n\r\n").await["eof"], true);
    assert_eq!(log.count(), 2);
}

/// A stage whose main port is one of ours, since rows name ports by number.
async fn over_h2(routes: &str, requests: Value) -> (Value, Vec<Value>) {
    let (port, log) = app("h2", routes).await;
    let step = json!({ "op": "h2", "port": port, "requests": requests, "expect": {} });
    let case = json!({
        "name": "n", "group": "g", "about": "", "verdict": "match", "wait_for_ports": false, "steps": [step],
    });
    let case: Case = serde_json::from_value(case).unwrap();
    let sleeper = std::path::Path::new("/bin/true");
    let mut stage = Stage::set(&case, policy::compat::Compat::Strict, sleeper).await.unwrap();
    let got = crate::replay::cases::steps::take(&mut stage, &case.steps[0]).await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    (got, log.requests())
}

fn get(path: &str) -> Value {
    json!([
        [":method", "POST"],
        [":scheme", "http"],
        [":authority", "a.example"],
        [":path", path],
        ["x", "1"],
        ["x", "2"]
    ])
}

#[tokio::test]
async fn requests_over_http2_bring_headers_bodies_and_trailers_both_ways() {
    let routes =
        r#"{"/t":[{"headers":[[":status","200"],["a","1"]]},{"data_b64":"AAE="},{"trailers":[["late","1"]]}]}"#;
    let requests = json!([
        { "headers": get("/t?q"), "body": "hi", "trailers": [["t", "v"]] },
        { "headers": get("/none") },
    ]);
    let (got, seen) = over_h2(routes, requests).await;
    let first = &got["responses"][0];
    assert_eq!(first["headers"], json!([[":status", "200"], ["a", "1"]]));
    assert_eq!((&first["body"], &first["ended"]), (&json!("\0\u{1}"), &json!(true)));
    assert_eq!(first["trailers"], json!([["late", "1"]]));
    assert_eq!(got["responses"][1]["body"], "ok");
    let request = seen.iter().find(|request| request["target"] == "/t?q").unwrap();
    assert_eq!((&request["authority"], &request["body"]), (&json!("a.example"), &json!("hi")));
    assert_eq!(request["headers"], json!([["x", "1"], ["x", "2"]]));
    assert_eq!((&request["trailers"], &request["proto"]), (&json!([["t", "v"]]), &json!("HTTP/2.0")));
}

#[tokio::test]
async fn resets_over_http2_are_seen_on_both_sides() {
    let routes = r#"{"/rst":[{"headers":[[":status","200"]]},{"data":"x"},{"sleep_ms":50},{"rst":7}],
        "/early":[{"rst":8}],"/hang":[{"sleep_ms":3000}]}"#;
    let requests = json!([
        { "headers": get("/rst") },
        { "headers": get("/early") },
        { "headers": get("/hang"), "cancel_after_ms": 50 },
    ]);
    let (got, seen) = over_h2(routes, requests).await;
    let all = &got["responses"];
    assert_eq!((&all[0]["reset"], &all[0]["body"], &all[0]["ended"]), (&json!(7), &json!("x"), &Value::Null));
    assert_eq!((&all[1]["reset"], &all[1]["headers"]), (&json!(8), &Value::Null));
    assert_eq!((&all[2]["cancelled"], &all[2]["body"]), (&json!(true), &json!("")));
    let codes: Vec<&Value> = seen.iter().map(|request| &request["reset_by_proxy"]).collect();
    assert_eq!(codes, [&Value::Null, &Value::Null, &json!(8)]);
}

/// A server with the mounted certificate, for one connection.
async fn secured(mounted: &Mounted, versions: &'static [&'static rustls::SupportedProtocolVersion]) -> u16 {
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    let certificate = CertificateDer::from_pem_file(mounted.folder().join("tls.crt")).unwrap();
    let key = PrivateKeyDer::from_pem_file(mounted.folder().join("tls.key")).unwrap();
    let mut config = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_protocol_versions(versions)
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let accepted = tokio_rustls::TlsAcceptor::from(Arc::new(config)).accept(stream).await;
        tokio::time::sleep(LIMIT).await;
        drop(accepted);
    });
    port
}

#[tokio::test]
async fn the_mounted_certificate_serves_and_what_was_agreed_is_told() {
    let mounted = Mounted::new().unwrap();
    let port = secured(&mounted, rustls::ALL_VERSIONS).await;
    let wanted = Tls { max: None, alpn: vec!["h2".to_owned(), "http/1.1".to_owned()] };
    let (_, agreed) = Conn::open(port, Some(&wanted), Some(&mounted.trust)).await.unwrap();
    assert_eq!(agreed, json!({ "tls_version": "TLSv1.3", "alpn": "h2" }));
    let port = secured(&mounted, rustls::ALL_VERSIONS).await;
    let old = Tls { max: Some("1.2".to_owned()), alpn: Vec::new() };
    let (_, agreed) = Conn::open(port, Some(&old), Some(&mounted.trust)).await.unwrap();
    assert_eq!(agreed, json!({ "tls_version": "TLSv1.2", "alpn": null }));
}

#[tokio::test]
async fn a_refused_version_has_the_name_of_its_alert() {
    static NEW: &[&rustls::SupportedProtocolVersion] = &[&rustls::version::TLS13];
    let mounted = Mounted::new().unwrap();
    let port = secured(&mounted, NEW).await;
    let old = Tls { max: Some("1.2".to_owned()), alpn: Vec::new() };
    let Err(error) = Conn::open(port, Some(&old), Some(&mounted.trust)).await else {
        panic!("it was agreed");
    };
    assert_eq!(tls::error_name(&error), "TLSV1_ALERT_PROTOCOL_VERSION");
}
