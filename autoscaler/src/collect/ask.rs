//! One question to one pod, or to whoever answers for a service.

use super::answer::{BODY_BYTES_MAX, CONTENT_TYPE, Fault, check_head, read_body};
use bytes::Bytes;
use http::header::{ACCEPT, CONNECTION, HOST, HeaderName, HeaderValue};
use http::{Method, Request, Uri};
use http_body::Body as _;
use plumbing::body::Body;
use plumbing::fds::Room;
use plumbing::forward::{Received, SendError, Trip};
use plumbing::worker::Worker;
use policy::compat::Compat;
use proto::stats::Stat;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::lookup_host;
use tokio::sync::Semaphore;

/// The whole question, connecting included (the reference's).
const ANSWER_MAX: Duration = Duration::from_secs(3);
/// Largest head of an answer, in bytes.
const HEAD_BYTES_MAX: usize = 8 << 10;
/// Names that are looked up at a time.
const LOOKUPS_MAX: usize = 32;
const PATH: &str = "/metrics";

/// What a pod is addressed as in a mesh that routes to single pods.
const PASSTHROUGH: HeaderName = HeaderName::from_static("k-passthrough-lb");
/// The same, as the reference calls it; nobody else does.
const PASSTHROUGH_STRICT: HeaderName = HeaderName::from_static("knative-direct-lb");

/// Where a question goes.
pub(super) enum Whom {
    /// To a pod, over a connection that is kept; under this host in a mesh.
    Pod(SocketAddr, Option<String>),
    /// To `HOST:PORT`, over a new one, so that another pod may answer.
    Service(String),
}

/// Asks. Clones share what they need for it.
#[derive(Clone)]
pub(super) struct Asker {
    pub(super) worker: Worker,
    compat: Compat,
    lookups: Arc<Semaphore>,
}

impl Asker {
    pub(super) fn new(worker: Worker, compat: Compat) -> Asker {
        Asker { worker, compat, lookups: Arc::new(Semaphore::new(LOOKUPS_MAX)) }
    }

    pub(super) async fn ask(self, whom: Whom) -> Result<Stat, Fault> {
        tokio::select! {
            answer = exchange(&self, whom) => answer,
            () = self.worker.wheel().sleep(ANSWER_MAX) => Err(Fault::Timeout),
        }
    }

    /// One address of a name. A look-up cannot be given up: it takes a thread
    /// until it ends, so there are few of them.
    async fn look_up(&self, host: String) -> Result<SocketAddr, Fault> {
        let permit = self.lookups.clone().try_acquire_owned().map_err(|_| Fault::Connect)?;
        let found = tokio::spawn(async move {
            let _permit = permit;
            lookup_host(host).await.ok().and_then(|mut found| found.next())
        });
        found.await.ok().flatten().ok_or(Fault::Connect)
    }
}

async fn exchange(asker: &Asker, whom: Whom) -> Result<Stat, Fault> {
    let Asker { worker, compat, .. } = asker;
    let (address, request) = match whom {
        Whom::Pod(address, host) => (address, to_pod(address, host, *compat)?),
        Whom::Service(host) => {
            let address = asker.look_up(host.clone()).await?;
            let mut request = question(&host)?;
            request.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            (address, request)
        }
    };
    let trip = Trip { repeatable: true, head_bytes_max: Some(HEAD_BYTES_MAX), ..Trip::default() };
    let answer = worker.pool().send(address, request, trip).await.map_err(fault)?;
    let checked = check_head(answer.status(), answer.headers());
    let mut received = answer.into_body();
    // Also the body of an answer that is of no use: read to its end the
    // connection can be used again.
    let (body, ended) = read(&mut received).await?;
    if ended && worker.fds().room() == Room::Free {
        received.put_back();
    }
    checked?;
    read_body(&body, *compat)
}

fn to_pod(address: SocketAddr, host: Option<String>, compat: Compat) -> Result<Request<Body>, Fault> {
    let Some(host) = host else { return question(&address.to_string()) };
    let mut request = question(&host)?;
    let name = if compat == Compat::Strict { PASSTHROUGH_STRICT } else { PASSTHROUGH };
    request.headers_mut().insert(name, HeaderValue::from_static("true"));
    Ok(request)
}

/// The question to a pod, under this host.
///
/// # Errors
/// [`Fault::Connect`] when that is no host.
pub fn question(host: &str) -> Result<Request<Body>, Fault> {
    let mut request = Request::new(Body::empty());
    *request.method_mut() = Method::GET;
    *request.uri_mut() = Uri::from_static(PATH);
    let fields = request.headers_mut();
    fields.insert(HOST, HeaderValue::try_from(host).map_err(|_| Fault::Connect)?);
    fields.insert(ACCEPT, HeaderValue::from_static(CONTENT_TYPE));
    Ok(request)
}

/// As much of a body as is looked at, and whether that is all of it.
async fn read(received: &mut Received) -> Result<(Vec<u8>, bool), Fault> {
    let mut body = Vec::new();
    while body.len() <= BODY_BYTES_MAX {
        if received.is_end_stream() {
            return Ok((body, true));
        }
        match poll_fn(|cx| Pin::new(&mut *received).poll_frame(cx)).await {
            None => return Ok((body, true)),
            Some(Ok(frame)) => {
                let data: Bytes = frame.into_data().unwrap_or_default();
                body.extend_from_slice(&data[..data.len().min(BODY_BYTES_MAX + 1)]);
            }
            Some(Err(_)) => return Err(Fault::Broken),
        }
    }
    Ok((body, false))
}

fn fault(error: SendError) -> Fault {
    match error {
        SendError::NotSent { .. } => Fault::Connect,
        SendError::Broken { .. } | SendError::OtherVersion { .. } => Fault::Broken,
    }
}
