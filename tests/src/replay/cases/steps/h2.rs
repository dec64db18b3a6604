//! Requests over one HTTP/2 connection.

use super::super::app::h2::{fields, header_map};
use super::super::case::{H2, H2Request, Port, TIMEOUT_MS};
use super::super::latin;
use super::super::stage::Stage;
use super::super::tls;
use super::super::wire;
use anyhow::Context;
use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::{Reason, SendStream};
use http::{HeaderMap, Request};
use serde_json::{Map, Value, json};
use std::future::poll_fn;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

/// A client's HTTP/2 connection.
pub struct H2Conn {
    send: SendRequest<Bytes>,
    driver: JoinHandle<Option<u32>>,
}

/// One request under way.
struct Exchange {
    told: Arc<Mutex<Map<String, Value>>>,
    task: JoinHandle<()>,
}

/// Sends all requests, then reads all answers.
pub(super) async fn requests(stage: &mut Stage, name: &str, step: &H2) -> anyhow::Result<Value> {
    if !stage.h2.contains_key(name) {
        match open(stage, step).await {
            Ok(conn) => stage.h2.insert(name.to_owned(), conn),
            Err(error) => {
                let responses: Vec<Value> =
                    step.requests.iter().map(|_| json!({ "unfinished": true, "error": error.to_string() })).collect();
                return Ok(json!({ "conn_closed": true, "responses": responses }));
            }
        };
    }
    let conn = stage.h2.get_mut(name).context("the connection was opened just now")?;
    let deadline = Instant::now() + Duration::from_millis(step.timeout_ms.unwrap_or(TIMEOUT_MS));
    let mut exchanges = Vec::new();
    for request in &step.requests {
        exchanges.push(conn.begin(request).await?);
    }
    let mut responses = Vec::new();
    for exchange in exchanges {
        responses.push(exchange.end(deadline).await);
    }
    let mut told = json!({ "responses": responses });
    if conn.driver.is_finished() {
        told["conn_closed"] = json!(true);
        told["goaway"] = json!((&mut conn.driver).await.unwrap_or_default());
        stage.h2.remove(name);
    }
    Ok(told)
}

async fn open(stage: &Stage, step: &H2) -> io::Result<H2Conn> {
    let port = Port::number(step.port.as_ref()).map_err(io::Error::other)?;
    let stream = TcpStream::connect(("127.0.0.1", port)).await?;
    stream.set_nodelay(true)?;
    match &step.tls {
        None => H2Conn::over(stream).await,
        Some(wanted) => {
            let trust = stage.mounted.as_ref().map(|mounted| &mounted.trust);
            let (stream, _) = tls::secure(stream, wanted, trust).await?;
            H2Conn::over(stream).await
        }
    }
}

impl H2Conn {
    async fn over(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) -> io::Result<H2Conn> {
        let (send, connection) = h2::client::handshake(stream).await.map_err(io::Error::other)?;
        let driver = tokio::spawn(async move {
            let ended = connection.await;
            ended.err().filter(h2::Error::is_go_away).and_then(|error| error.reason()).map(u32::from)
        });
        Ok(H2Conn { send, driver })
    }

    /// Sends one request; its answer is read in a task of its own.
    async fn begin(&mut self, wanted: &H2Request) -> anyhow::Result<Exchange> {
        let outgoing = Outgoing::of(wanted)?;
        let told = Arc::new(Mutex::new(Map::new()));
        let sent = match self.send.clone().ready().await {
            Ok(mut send) => send.send_request(outgoing.head, outgoing.rest.is_none()),
            Err(error) => Err(error),
        };
        let reading = Reading { told: told.clone(), began: Instant::now() };
        let cancel = wanted.cancel_after_ms.map(Duration::from_millis);
        let task = tokio::spawn(async move {
            let read = match sent {
                Ok((answer, stream)) => reading.exchange(answer, stream, outgoing.rest, cancel).await,
                Err(error) => Err(error),
            };
            if let Err(error) = read {
                reading.failed(&error);
            }
        });
        Ok(Exchange { told, task })
    }
}

/// A request as the library wants it.
struct Outgoing {
    head: Request<()>,
    rest: Option<Rest>,
}

/// What follows a head.
struct Rest {
    body: Bytes,
    trailers: Option<HeaderMap>,
}

impl Outgoing {
    fn of(wanted: &H2Request) -> anyhow::Result<Outgoing> {
        let body = match (&wanted.body, &wanted.body_b64) {
            (Some(text), _) => latin::bytes(text, None)?,
            (None, Some(text)) => latin::base64(text)?,
            (None, None) => Vec::new(),
        };
        let trailers = wanted.trailers.as_deref().map(|all| header_map(all).context("malformed row: trailers"));
        let trailers = trailers.transpose()?;
        let bare = body.is_empty() && trailers.is_none();
        let pseudo = |name: &str| wire::get(&wanted.headers, name).unwrap_or_default();
        let target = format!("{}://{}{}", pseudo(":scheme"), pseudo(":authority"), pseudo(":path"));
        let mut head = Request::new(());
        *head.method_mut() = pseudo(":method").parse()?;
        *head.uri_mut() = target.parse()?;
        *head.version_mut() = http::Version::HTTP_2;
        let plain: Vec<_> = wanted.headers.iter().filter(|(name, _)| !name.starts_with(':')).cloned().collect();
        *head.headers_mut() = header_map(&plain).context("malformed row: headers")?;
        Ok(Outgoing { head, rest: (!bare).then(|| Rest { body: body.into(), trailers }) })
    }
}

/// An answer that is being read.
struct Reading {
    told: Arc<Mutex<Map<String, Value>>>,
    began: Instant,
}

impl Reading {
    async fn exchange(
        &self,
        mut answer: ResponseFuture,
        mut stream: SendStream<Bytes>,
        rest: Option<Rest>,
        cancel: Option<Duration>,
    ) -> Result<(), h2::Error> {
        if let Some(Rest { body, trailers }) = rest {
            stream.send_data(body, trailers.is_none())?;
            if let Some(trailers) = trailers {
                stream.send_trailers(trailers)?;
            }
        }
        let Some(after) = cancel else {
            return self.read(&mut answer).await;
        };
        match tokio::time::timeout(after, self.read(&mut answer)).await {
            Ok(read) => read,
            Err(_) => {
                stream.send_reset(Reason::CANCEL);
                self.tell("cancelled", json!(true));
                Ok(())
            }
        }
    }

    async fn read(&self, answer: &mut ResponseFuture) -> Result<(), h2::Error> {
        let mut early = Vec::new();
        while let Some(hint) = poll_fn(|context| answer.poll_informational(context)).await {
            let hint = hint?;
            early.push(json!([hint.status().as_u16(), fields(hint.headers())]));
            self.tell("informational", json!(early));
        }
        let (head, mut body) = answer.await?.into_parts();
        let mut all = vec![(":status".to_owned(), head.status.as_str().to_owned())];
        all.extend(fields(&head.headers));
        self.tell("headers", json!(all));
        let mut data = Vec::new();
        while let Some(piece) = body.data().await {
            let piece = piece?;
            body.flow_control().release_capacity(piece.len())?;
            data.extend_from_slice(&piece);
            self.tell("body", json!(latin::text(&data)));
        }
        if let Some(trailers) = body.trailers().await? {
            self.tell("trailers", json!(fields(&trailers)));
        }
        self.tell("elapsed_ms", json!(self.began.elapsed().as_millis()));
        self.tell("ended", json!(true));
        Ok(())
    }

    fn failed(&self, error: &h2::Error) {
        self.tell("elapsed_ms", json!(self.began.elapsed().as_millis()));
        match error.reason().filter(|_| error.is_reset()) {
            Some(code) => self.tell("reset", json!(u32::from(code))),
            None => {
                self.tell("unfinished", json!(true));
                self.tell("error", json!(error.to_string()));
            }
        }
    }

    fn tell(&self, key: &str, value: Value) {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).insert(key.to_owned(), value);
    }
}

impl Exchange {
    /// What came until the deadline.
    async fn end(self, deadline: Instant) -> Value {
        let ended = tokio::time::timeout_at(deadline.into(), self.task).await;
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner).clone();
        told.entry("body").or_insert_with(|| json!(""));
        if ended.is_err() {
            told.insert("unfinished".into(), json!(true));
        }
        Value::Object(told)
    }
}
