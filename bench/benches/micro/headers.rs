//! Headers on their way through the sidecar.

use criterion::{BatchSize, Criterion};
use http::header::{HeaderMap, HeaderName, HeaderValue};
use plumbing::headers;
use plumbing::trust::Trust;
use policy::compat::Compat;
use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};

/// As a browser sends them by way of an ingress.
const REQUEST: [(&str, &str); 12] = [
    ("host", "hello.default.example.com"),
    ("user-agent", "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"),
    ("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
    ("accept-language", "en-GB,en;q=0.5"),
    ("accept-encoding", "gzip, deflate, br, zstd"),
    ("cookie", "session=0123456789abcdef; theme=dark"),
    ("cache-control", "max-age=0"),
    ("x-forwarded-for", "203.0.113.7"),
    ("x-forwarded-proto", "https"),
    ("x-request-id", "8d3c6a0e-6e0a-4f6e-9d1c-3f1b8f0f6a52"),
    ("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
    ("k-proxy-request", "activator"),
];
const ANSWER: [(&str, &str); 5] = [
    ("content-type", "text/html; charset=utf-8"),
    ("content-length", "1024"),
    ("date", "Thu, 01 Jan 1970 00:00:00 GMT"),
    ("cache-control", "no-store"),
    ("connection", "keep-alive"),
];
const PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 7));

pub(crate) fn run(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("headers");
    let (request, answer) = (fields(&REQUEST), fields(&ANSWER));
    let trust = Trust::everybody();
    group.bench_function("to the app, 12", |bencher| {
        let there = |mut fields: HeaderMap| {
            headers::receive(&mut fields, black_box(PEER), &trust);
            headers::to_app(&mut fields, black_box(PEER), Compat::Better);
            fields
        };
        bencher.iter_batched(|| request.clone(), there, BatchSize::SmallInput);
    });
    group.bench_function("to the client, 5", |bencher| {
        let back = |mut fields: HeaderMap| {
            headers::to_client(&mut fields, true, false);
            fields
        };
        bencher.iter_batched(|| answer.clone(), back, BatchSize::SmallInput);
    });
    group.finish();
}

fn fields(all: &[(&'static str, &'static str)]) -> HeaderMap {
    let field = |&(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value));
    all.iter().map(field).collect()
}
