//! The admin socket: what this instance does, for `status`, for Prometheus and
//! for whoever watches over it. A Unix socket that only its owner can open.
//!
//! | job | module |
//! | --- | --- |
//! | where sockets are, and that nobody else wrote there | [`folder`] |
//! | what is told | [`report`] |
//! | gauges that are set when they are asked for | [`gauges`] |
//!
//! GET `/status` (JSON), `/why/NAME` (JSON or text), `/metrics` (Prometheus
//! text), `/healthz`, `/record` (a recording of the autoscaler, which lasts until
//! its reader leaves).

pub(crate) mod folder;
mod gauges;
pub(crate) mod report;

use anyhow::Context;
use autoscaler::Autoscaler;
use autoscaler::record::answer::{self as recording, Body};
use autoscaler::why::api;
use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use plumbing::clock;
use plumbing::shutdown::Shutdown;
pub(crate) use report::Source;
use std::convert::Infallible;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;

/// Connections at a time; further ones wait in the socket's backlog.
const CONNECTIONS_MAX: usize = 64;
/// From accept to close: one request, whose body nobody reads. A recording
/// lasts longer.
const CONNECTION_LIFE: Duration = Duration::from_secs(10);
/// For the head of the request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(2);
/// Largest head, in bytes.
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// How long the last of a recording may take at the end.
const LAST_LINES: Duration = Duration::from_secs(1);
/// When accepting fails, which is for want of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A socket that is there, and not served yet.
pub(crate) struct Door {
    listener: UnixListener,
    file: SocketFile,
}

/// The admin socket while it is served.
pub(crate) struct Admin {
    shutdown: Shutdown,
    autoscaler: Autoscaler,
    // Dropped with this: the file goes.
    _file: SocketFile,
}

/// Removes its file when it is dropped.
struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Makes this process's socket, before anything else is started.
///
/// # Errors
/// When the folder is not safe, or the socket cannot be made.
pub(crate) fn open() -> anyhow::Result<Door> {
    let path = folder::own()?.join(folder::file_name(std::process::id()));
    clear(&path)?;
    let listener = UnixListener::bind(&path).with_context(|| format!("making the admin socket {}", path.display()))?;
    let file = SocketFile(path);
    // The folder is ours alone already; this is for whoever moves it.
    std::fs::set_permissions(&file.0, std::fs::Permissions::from_mode(0o600))?;
    Ok(Door { listener, file })
}

/// Removes what a process with our number left behind.
fn clear(path: &Path) -> anyhow::Result<()> {
    if path.symlink_metadata().is_err() {
        return Ok(());
    }
    if std::os::unix::net::UnixStream::connect(path).is_ok() {
        anyhow::bail!("the admin socket {} is in use", path.display());
    }
    std::fs::remove_file(path).with_context(|| format!("removing the stale admin socket {}", path.display()))
}

impl Door {
    /// Answers on it until the result is closed or dropped.
    pub(crate) fn serve(self, source: Source) -> Admin {
        let shutdown = Shutdown::new();
        let autoscaler = source.autoscaler().clone();
        let accepting = accept(self.listener, Arc::new(source), shutdown.clone());
        tokio::spawn(accepting);
        Admin { shutdown, autoscaler, _file: self.file }
    }
}

impl Admin {
    /// Ends all connections and removes the file. Whoever records gets what
    /// there is before.
    pub(crate) async fn close(self) {
        self.autoscaler.end_recordings();
        self.shutdown.drain();
        let _ = tokio::time::timeout(LAST_LINES, self.shutdown.finished()).await;
    }
}

impl Drop for Admin {
    fn drop(&mut self) {
        self.shutdown.stop();
    }
}

async fn accept(listener: UnixListener, source: Arc<Source>, shutdown: Shutdown) {
    let free = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(place) = free.clone().acquire_owned().await else { return };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shutdown.draining() => return,
        };
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let (source, ending) = (source.clone(), shutdown.clone());
        shutdown.spawn(async move {
            tokio::select! {
                () = connection(stream, source, &ending) => {}
                () = ending.stopping() => {}
            }
            drop(place);
        });
    }
}

async fn connection(stream: UnixStream, source: Arc<Source>, shutdown: &Shutdown) {
    let is_recording = AtomicBool::new(false);
    let service = service_fn(|request: Request<Incoming>| {
        let source = source.clone();
        let is_recording = &is_recording;
        async move {
            let uri = request.uri();
            let answer: Response<Body> = if uri.path() == recording::PATH && request.method() == Method::GET {
                is_recording.store(true, Ordering::Relaxed);
                recording::answer(source.autoscaler(), uri.query().unwrap_or_default())
            } else {
                answer(&source, request.method(), uri).await.map(Either::Left)
            };
            Ok::<_, Infallible>(answer)
        }
    });
    let mut served = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .max_buf_size(HEAD_BYTES_MAX)
            .keep_alive(false)
            .serve_connection(TokioIo::new(stream), service)
    );
    let mut life = pin!(tokio::time::sleep(CONNECTION_LIFE));
    let (mut drains, mut is_old) = (false, false);
    loop {
        tokio::select! {
            ended = &mut served => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "an admin connection ended with an error");
                }
                return;
            }
            () = shutdown.draining(), if !drains => {
                drains = true;
                served.as_mut().graceful_shutdown();
            }
            () = &mut life, if !is_old => {
                is_old = true;
                if !is_recording.load(Ordering::Relaxed) {
                    return;
                }
            }
        }
    }
}

async fn answer(source: &Source, method: &Method, uri: &Uri) -> Response<Full<Bytes>> {
    let path = uri.path();
    let known = matches!(path, "/status" | "/metrics" | "/healthz" | recording::PATH) || path.starts_with(api::PREFIX);
    if !known {
        return plain(StatusCode::NOT_FOUND, "there are /status, /why/NAME, /metrics, /healthz and /record\n");
    }
    if method != Method::GET {
        let mut refusal = plain(StatusCode::METHOD_NOT_ALLOWED, "GET only\n");
        refusal.headers_mut().insert(ALLOW, HeaderValue::from_static("GET"));
        return refusal;
    }
    match path {
        "/status" => json(StatusCode::OK, &source.instance()),
        path if path.starts_with(api::PREFIX) => why(source, uri).await,
        "/metrics" => {
            gauges::set(&source.instance());
            text(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", source.metrics())
        }
        _ => {
            let health = source.health();
            let code = if health.ok { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
            json(code, &health)
        }
    }
}

/// On a thread of its own: it may take a while, and decisions are made on this one.
async fn why(source: &Source, uri: &Uri) -> Response<Full<Bytes>> {
    let (autoscaler, uri, now) = (source.autoscaler().clone(), uri.clone(), clock::now());
    let asked = move || api::answer(&autoscaler, uri.path(), uri.query(), now);
    match tokio::task::spawn_blocking(asked).await {
        Ok(Some(answer)) => {
            let kind = if answer.json { "application/json" } else { "text/plain; charset=utf-8" };
            text(StatusCode::from_u16(answer.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), kind, answer.body)
        }
        Ok(None) => plain(StatusCode::NOT_FOUND, "there is no such path\n"),
        Err(error) => plain(StatusCode::INTERNAL_SERVER_ERROR, &format!("{error}\n")),
    }
}

fn json(code: StatusCode, value: &impl serde::Serialize) -> Response<Full<Bytes>> {
    match serde_json::to_string(value) {
        Ok(body) => text(code, "application/json", body + "\n"),
        Err(error) => plain(StatusCode::INTERNAL_SERVER_ERROR, &format!("{error}\n")),
    }
}

fn plain(code: StatusCode, words: &str) -> Response<Full<Bytes>> {
    text(code, "text/plain; charset=utf-8", words.to_owned())
}

fn text(code: StatusCode, kind: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::new(Bytes::from(body)));
    *answer.status_mut() = code;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}
