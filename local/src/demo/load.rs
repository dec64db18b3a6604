//! The demo's load: open loop, so a slow answer delays no other request and
//! hides in no average. On a thread and a runtime of its own.

use super::schedule::Schedule;
use super::tally::Tally;
use bytes::Bytes;
use http::header::HOST;
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use plumbing::headers::{COLD_START, REASON};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Connections at a time; requests beyond wait for one, and their latency
/// says so.
const CONNECTIONS_MAX: usize = 256;
/// A request without an answer for so long is lost.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);

type Client = SendRequest<Empty<Bytes>>;

/// Starts to ask; the result resolves when the last request has ended.
///
/// # Errors
/// When the thread or its runtime cannot be made.
pub(crate) fn start(
    address: SocketAddr,
    schedule: Schedule,
    tally: Arc<Tally>,
    stop: CancellationToken,
) -> io::Result<oneshot::Receiver<()>> {
    let (over, ended) = oneshot::channel();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new().name("load".to_owned()).spawn(move || {
        runtime.block_on(async {
            tokio::select! {
                () = drive(address, schedule, tally) => drop(over.send(())),
                () = stop.cancelled() => {}
            }
        });
    })?;
    Ok(ended)
}

async fn drive(address: SocketAddr, schedule: Schedule, tally: Arc<Tally>) {
    let clients = Arc::new(Clients::new(address));
    let begin = Instant::now();
    let mut asking = JoinSet::new();
    for after in schedule.arrivals() {
        let due = begin + after;
        tokio::time::sleep_until(due.into()).await;
        tally.offer();
        asking.spawn(one(clients.clone(), tally.clone(), due));
        while asking.try_join_next().is_some() {}
    }
    while asking.join_next().await.is_some() {}
}

/// One request, counted once.
async fn one(clients: Arc<Clients>, tally: Arc<Tally>, due: Instant) {
    match tokio::time::timeout(ANSWER_LIMIT, clients.ask()).await {
        Ok(Ok(Answer { good: true, cold_start, .. })) => tally.answer(due, cold_start),
        Ok(Ok(Answer { words, .. })) => tally.lose(words),
        Ok(Err(error)) => tally.lose(format!("{error:#}")),
        Err(_) => tally.lose(format!("no answer within {ANSWER_LIMIT:?}")),
    }
}

struct Answer {
    good: bool,
    /// The status, and our reason where there is one.
    words: String,
    cold_start: Option<Duration>,
}

/// Keep-alive connections.
struct Clients {
    address: SocketAddr,
    places: Semaphore,
    idle: Mutex<Vec<Client>>,
}

impl Clients {
    fn new(address: SocketAddr) -> Clients {
        Clients { address, places: Semaphore::new(CONNECTIONS_MAX), idle: Mutex::default() }
    }

    async fn ask(&self) -> anyhow::Result<Answer> {
        let _place = self.places.acquire().await?;
        let mut client = match self.take_idle() {
            Some(client) => client,
            None => self.connect().await?,
        };
        let request = Request::get("/").header(HOST, self.address.to_string()).body(Empty::new())?;
        let (head, mut body) = client.send_request(request).await?.into_parts();
        while let Some(frame) = body.frame().await {
            frame?;
        }
        self.idle().push(client);
        let reason = text(&head.headers, &REASON).unwrap_or_default();
        let cold_start = text(&head.headers, &COLD_START).and_then(|millis| millis.parse().ok());
        Ok(Answer {
            good: head.status.is_success(),
            words: format!("{} {reason}", head.status).trim_end().to_owned(),
            cold_start: cold_start.map(Duration::from_millis),
        })
    }

    async fn connect(&self) -> anyhow::Result<Client> {
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        let (client, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // Its errors come to the request that is on it.
        tokio::spawn(connection);
        Ok(client)
    }

    /// The one that was used last, so that those beyond the need stay idle.
    fn take_idle(&self) -> Option<Client> {
        let mut idle = self.idle();
        idle.retain(|client| !client.is_closed());
        let ready = idle.iter().rposition(Client::is_ready)?;
        Some(idle.remove(ready))
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Client>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn text<'a>(fields: &'a HeaderMap, name: &http::HeaderName) -> Option<&'a str> {
    fields.get(name)?.to_str().ok()
}
