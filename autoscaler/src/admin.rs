//! Health, status and metrics of the program: GET `/livez`, `/healthz`,
//! `/status` (JSON), `/metrics` (Prometheus text), `/why/NAME` (JSON or text),
//! `/record` (a recording).

use autoscaler::Autoscaler;
use autoscaler::record::answer::{self, Body};
use autoscaler::status::RevisionStatus;
use autoscaler::why::api;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use metrics_exporter_prometheus::PrometheusHandle;
use platform::file::{Health, Snapshots};
use plumbing::clock;
use policy::world::Snapshot;
use serde::Serialize;
use std::sync::Arc;
use tokio::sync::watch;

/// Changes of the snapshot file that were taken in.
const FILE_CHANGES: &str = "zeroscale_file_changes_total";
/// Changes that were of no use.
const FILE_FAULTS: &str = "zeroscale_file_faults_total";
/// 1 while the file is good.
const FILE_GOOD: &str = "zeroscale_file_good";

/// What is told, and where it is known from. Clones share it.
#[derive(Clone)]
pub(crate) struct Source {
    autoscaler: Autoscaler,
    world: watch::Receiver<Arc<Snapshot>>,
    file: watch::Receiver<Health>,
    recorder: PrometheusHandle,
}

#[derive(Serialize)]
struct Status {
    version: &'static str,
    snapshot: SnapshotStatus,
    revisions: Vec<RevisionStatus>,
}

#[derive(Serialize)]
struct SnapshotStatus {
    /// 0 until the file was good once.
    version: u64,
    /// What is wrong with the file as it is now.
    fault: Option<Arc<str>>,
    good: u64,
    bad: u64,
}

#[derive(Serialize)]
struct Healthy {
    ok: bool,
    /// Set too while the last good file does.
    fault: Option<Arc<str>>,
}

impl Source {
    pub(crate) fn new(autoscaler: Autoscaler, snapshots: &Snapshots, recorder: PrometheusHandle) -> Source {
        Source { autoscaler, world: snapshots.world.clone(), file: snapshots.health.clone(), recorder }
    }

    /// What may be long is put together on a thread of its own: decisions and
    /// stats go on meanwhile.
    pub(crate) async fn answer(self, request: Request<Incoming>) -> Response<Body> {
        if request.uri().path() == answer::PATH && request.method() == Method::GET {
            return answer::answer(&self.autoscaler, request.uri().query().unwrap_or_default());
        }
        let answer = tokio::task::spawn_blocking(move || self.answer_to(&request)).await;
        let answer = answer.unwrap_or_else(|error| {
            text(StatusCode::INTERNAL_SERVER_ERROR, "text/plain; charset=utf-8", format!("{error}\n"))
        });
        answer.map(Either::Left)
    }

    fn answer_to(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        let mut answer = match (request.method(), request.uri().path()) {
            (_, "/livez") => text(StatusCode::OK, "text/plain; charset=utf-8", "alive\n".to_owned()),
            (_, "/healthz") => self.health(),
            (_, "/status") => json(StatusCode::OK, &self.status()),
            (_, path) if path.starts_with(api::PREFIX) => self.why(request.uri()),
            (_, "/metrics") => text(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", self.metrics()),
            (_, answer::PATH) => Response::default(),
            _ => return not_found(),
        };
        if request.method() != Method::GET {
            answer = text(StatusCode::METHOD_NOT_ALLOWED, "text/plain; charset=utf-8", "GET only\n".to_owned());
        }
        answer
    }

    fn why(&self, uri: &Uri) -> Response<Full<Bytes>> {
        let Some(answer) = api::answer(&self.autoscaler, uri.path(), uri.query(), clock::now()) else {
            return not_found();
        };
        let kind = if answer.json { "application/json" } else { "text/plain; charset=utf-8" };
        let code = StatusCode::from_u16(answer.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        text(code, kind, answer.body)
    }

    fn health(&self) -> Response<Full<Bytes>> {
        let ok = self.world.borrow().version > 0;
        let code = if ok { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        json(code, &Healthy { ok, fault: self.file.borrow().fault.clone() })
    }

    fn status(&self) -> Status {
        let Health { fault, good, bad } = self.file.borrow().clone();
        let version = self.world.borrow().version;
        Status {
            version: env!("CARGO_PKG_VERSION"),
            snapshot: SnapshotStatus { version, fault, good, bad },
            revisions: self.autoscaler.status(),
        }
    }

    fn metrics(&self) -> String {
        let Health { fault, good, bad } = self.file.borrow().clone();
        metrics::counter!(FILE_CHANGES).absolute(good);
        metrics::counter!(FILE_FAULTS).absolute(bad);
        metrics::gauge!(FILE_GOOD).set(if fault.is_none() { 1.0 } else { 0.0 });
        self.recorder.render() + &self.autoscaler.own_exposition() + &self.autoscaler.exposition()
    }
}

fn json(code: StatusCode, value: &impl Serialize) -> Response<Full<Bytes>> {
    match serde_json::to_string(value) {
        Ok(body) => text(code, "application/json", body + "\n"),
        Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, "text/plain; charset=utf-8", format!("{error}\n")),
    }
}

fn text(code: StatusCode, kind: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::from(body));
    *answer.status_mut() = code;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

fn not_found() -> Response<Full<Bytes>> {
    text(StatusCode::NOT_FOUND, "text/plain; charset=utf-8", "404 page not found\n".to_owned())
}
