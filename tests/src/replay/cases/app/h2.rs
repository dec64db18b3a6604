//! The app that speaks HTTP/2 with prior knowledge.

use super::super::case::{Act, App};
use super::super::latin;
use super::super::wire::Fields;
use super::{Log, Seen};
use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::Notify;

/// Serves one connection.
pub(super) async fn serve(stream: TcpStream, app: Arc<App>, log: Arc<Log>) {
    let Ok(mut connection) = h2::server::handshake(stream).await else {
        return;
    };
    let closed = Arc::new(Notify::new());
    loop {
        let next = tokio::select! {
            next = connection.accept() => next,
            () = closed.notified() => return,
        };
        let Some(Ok((request, respond))) = next else {
            return;
        };
        tokio::spawn(exchange(request, respond, app.clone(), log.clone(), closed.clone()));
    }
}

async fn exchange(
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    app: Arc<App>,
    log: Arc<Log>,
    closed: Arc<Notify>,
) {
    let (head, body) = request.into_parts();
    let target = head.uri.path_and_query().map_or("", |target| target.as_str()).to_owned();
    let acts = app.routes.of(&target).map_or_else(default_acts, <[Act]>::to_vec);
    let place = log.begin(Seen {
        proto: Some("HTTP/2.0".to_owned()),
        method: head.method.to_string(),
        target,
        authority: head.uri.authority().map(ToString::to_string),
        headers: fields(&head.headers),
        ..Seen::default()
    });
    let mut answer = Answer { stream: None, closed };
    read_body(body, &log, place).await;
    for act in &acts {
        if answer.act(act, &mut respond).await.is_none() {
            break;
        }
    }
    if acts.iter().any(|act| act.rst.is_some()) {
        return;
    }
    // Over now, or reset meanwhile: what the proxy made of the stream is known.
    let code = match &mut answer.stream {
        Some(stream) => now(poll_fn(|context| stream.poll_reset(context))).await,
        None => now(poll_fn(|context| respond.poll_reset(context))).await,
    };
    if let Some(Ok(code)) = code {
        log.change(place, |seen| seen.reset_by_proxy = Some(u32::from(code)));
    }
}

struct Answer {
    stream: Option<SendStream<Bytes>>,
    closed: Arc<Notify>,
}

impl Answer {
    /// One action; `None` ends the script.
    async fn act(&mut self, act: &Act, respond: &mut SendResponse<Bytes>) -> Option<()> {
        if let Some(headers) = &act.headers {
            self.stream = Some(respond.send_response(head(headers)?, act.end == Some(true)).ok()?);
        }
        if let Some(data) = data(act) {
            self.stream.as_mut()?.send_data(data.into(), act.end == Some(true)).ok()?;
        }
        if let Some(trailers) = &act.trailers {
            self.stream.as_mut()?.send_trailers(header_map(trailers)?).ok()?;
        }
        if let Some(code) = act.rst {
            match &mut self.stream {
                Some(stream) => stream.send_reset(Reason::from(code)),
                None => respond.send_reset(Reason::from(code)),
            }
        }
        if let Some(ms) = act.sleep_ms {
            self.sleep(Duration::from_millis(ms), respond).await?;
        }
        if act.close == Some(true) {
            self.closed.notify_one();
            return None;
        }
        Some(())
    }

    /// Ends early when the proxy resets the stream.
    async fn sleep(&mut self, time: Duration, respond: &mut SendResponse<Bytes>) -> Option<()> {
        let reset = poll_fn(|context| match &mut self.stream {
            Some(stream) => stream.poll_reset(context),
            None => respond.poll_reset(context),
        });
        tokio::time::timeout(time, reset).await.is_err().then_some(())
    }
}

async fn read_body(mut body: RecvStream, log: &Log, place: usize) {
    while let Some(piece) = body.data().await {
        let Ok(piece) = piece else {
            return log.change(place, |seen| seen.incomplete = true);
        };
        let _ = body.flow_control().release_capacity(piece.len());
        log.change(place, |seen| seen.body.extend_from_slice(&piece));
    }
    if let Ok(Some(trailers)) = body.trailers().await {
        log.change(place, |seen| seen.trailers = fields(&trailers));
    }
}

/// What is ready without waiting.
async fn now<T>(ready: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(Duration::ZERO, ready).await.ok()
}

fn default_acts() -> Vec<Act> {
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let headers = Some(vec![pair(":status", "200"), pair("content-type", "text/plain")]);
    let data = Some("ok".to_owned());
    vec![Act { headers, ..Act::default() }, Act { data, end: Some(true), ..Act::default() }]
}

fn data(act: &Act) -> Option<Vec<u8>> {
    match (&act.data, &act.data_b64) {
        (Some(text), _) => latin::bytes(text, act.fill).ok(),
        (None, Some(text)) => latin::base64(text).ok(),
        (None, None) => None,
    }
}

fn head(all: &[(String, String)]) -> Option<Response<()>> {
    let status = super::super::wire::get(all, ":status")?;
    let rest: Fields = all.iter().filter(|(name, _)| !name.starts_with(':')).cloned().collect();
    let mut answer = Response::builder().status(status).body(()).ok()?;
    *answer.headers_mut() = header_map(&rest)?;
    Some(answer)
}

/// Header fields as the HTTP library wants them.
pub(in super::super) fn header_map(fields: &[(String, String)]) -> Option<HeaderMap> {
    let mut all = HeaderMap::new();
    for (name, value) in fields {
        let value = HeaderValue::from_bytes(&latin::bytes(value, None).ok()?).ok()?;
        all.append(HeaderName::from_bytes(name.as_bytes()).ok()?, value);
    }
    Some(all)
}

/// Header fields as rows write them.
pub(in super::super) fn fields(all: &HeaderMap) -> Fields {
    all.iter().map(|(name, value)| (name.to_string(), latin::text(value.as_bytes()))).collect()
}
