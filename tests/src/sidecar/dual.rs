//! An app that speaks HTTP/1 and HTTP/2 on one port, known by the preface.

use super::h1::Conn;
use crate::rig;
use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode, Version};
use std::future::Future;
use std::net::SocketAddr;
use tokio::net::TcpStream;

/// What the app is asked; its body has been read.
#[derive(Clone, Debug)]
pub struct Call {
    /// The method.
    pub method: String,
    /// The path, with its query.
    pub path: String,
    /// The fields.
    pub fields: HeaderMap,
    /// The body.
    pub body: Vec<u8>,
    /// The version.
    pub version: Version,
}

/// What it answers.
#[derive(Clone, Debug, Default)]
pub struct Reply {
    /// The head.
    pub head: Response<()>,
    /// The body.
    pub body: Bytes,
    /// What follows it.
    pub trailers: HeaderMap,
}

impl Reply {
    /// 200 with a body.
    pub fn ok(body: impl Into<Bytes>) -> Reply {
        Reply { head: Response::new(()), body: body.into(), trailers: HeaderMap::new() }
    }

    /// With another status.
    pub fn with_status(mut self, status: StatusCode) -> Reply {
        *self.head.status_mut() = status;
        self
    }

    /// With a field.
    ///
    /// # Panics
    /// When it is none.
    pub fn with(mut self, name: &'static str, value: &str) -> Reply {
        self.head.headers_mut().append(name, value.parse().expect("a value"));
        self
    }

    /// With a field after the body.
    ///
    /// # Panics
    /// When it is none.
    pub fn trailing(mut self, name: &'static str, value: &str) -> Reply {
        self.trailers.append(name, value.parse().expect("a value"));
        self
    }
}

/// Starts it; each request is given to `handle`.
pub async fn app<F, S>(handle: S) -> SocketAddr
where
    S: Fn(Call) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Reply> + Send + 'static,
{
    rig::app(move |stream| serve(stream, handle.clone())).await
}

/// Serves one connection.
pub async fn serve<F, S>(stream: TcpStream, handle: S)
where
    S: Fn(Call) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Reply> + Send + 'static,
{
    let mut first = [0];
    // No method that is used here begins like the preface, but for POST and PUT.
    let mut preface = [0; 3];
    match stream.peek(&mut first).await {
        Ok(1..) => {}
        _ => return,
    }
    while first == *b"P" && stream.peek(&mut preface).await.is_ok_and(|seen| seen < preface.len()) {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    if preface == *b"PRI" { serve_http2(stream, handle).await } else { serve_http1(stream, handle).await }
}

async fn serve_http1<F, S>(stream: TcpStream, handle: S)
where
    S: Fn(Call) -> F,
    F: Future<Output = Reply>,
{
    let mut conn = Conn::over(stream);
    while let Some((head, body)) = conn.request().await {
        let mut words = head.start.split(' ');
        let mut word = || words.next().unwrap_or_default().to_owned();
        let (method, path) = (word(), word());
        let mut fields = HeaderMap::new();
        for (name, value) in &head.fields {
            if let (Ok(name), Ok(value)) = (name.parse::<http::HeaderName>(), value.parse()) {
                fields.append(name, value);
            }
        }
        let reply = handle(Call { method, path, fields, body, version: Version::HTTP_11 }).await;
        if conn.send(&on_the_wire(&reply)).await.is_err() {
            return;
        }
    }
}

fn on_the_wire(reply: &Reply) -> Vec<u8> {
    let line = |name: &http::HeaderName, value: &http::HeaderValue| {
        [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat()
    };
    let mut out = format!("HTTP/1.1 {} x\r\n", reply.head.status().as_u16()).into_bytes();
    reply.head.headers().iter().for_each(|(name, value)| out.extend(line(name, value)));
    if reply.trailers.is_empty() {
        out.extend(format!("content-length: {}\r\n\r\n", reply.body.len()).into_bytes());
        out.extend_from_slice(&reply.body);
        return out;
    }
    out.extend(format!("transfer-encoding: chunked\r\n\r\n{:x}\r\n", reply.body.len()).into_bytes());
    out.extend_from_slice(&reply.body);
    out.extend_from_slice(b"\r\n0\r\n");
    reply.trailers.iter().for_each(|(name, value)| out.extend(line(name, value)));
    out.extend_from_slice(b"\r\n");
    out
}

async fn serve_http2<F, S>(stream: TcpStream, handle: S)
where
    S: Fn(Call) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Reply> + Send + 'static,
{
    let mut builder = h2::server::Builder::new();
    builder.max_header_list_size(4 << 20).initial_window_size(1 << 20);
    let Ok(mut connection) = builder.handshake::<_, Bytes>(stream).await else { return };
    while let Some(Ok((request, answer))) = connection.accept().await {
        let handle = handle.clone();
        tokio::spawn(async move {
            let _ = exchange(request, answer, handle).await;
        });
    }
}

async fn exchange<F, S>(
    request: http::Request<h2::RecvStream>,
    mut answer: h2::server::SendResponse<Bytes>,
    handle: S,
) -> Result<(), h2::Error>
where
    S: Fn(Call) -> F,
    F: Future<Output = Reply>,
{
    let (head, mut content) = request.into_parts();
    let mut body = Vec::new();
    while let Some(piece) = content.data().await {
        let piece = piece?;
        content.flow_control().release_capacity(piece.len())?;
        body.extend_from_slice(&piece);
    }
    let path = head.uri.path_and_query().map_or("", |path| path.as_str()).to_owned();
    let method = head.method.as_str().to_owned();
    let reply = handle(Call { method, path, fields: head.headers, body, version: Version::HTTP_2 });
    let reply = tokio::select! {
        reply = reply => reply,
        // The other side has given up.
        _ = std::future::poll_fn(|cx| answer.poll_reset(cx)) => return Ok(()),
    };
    let mut stream = answer.send_response(reply.head, false)?;
    let bare = reply.trailers.is_empty();
    stream.send_data(reply.body, bare)?;
    if !bare {
        stream.send_trailers(reply.trailers)?;
    }
    Ok(())
}
