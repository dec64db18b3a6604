//! Our server, with a handler for the test at hand.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body::{Body, Frame};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use plumbing::h1::{Conditions, Doubt, End, Guess, Incoming, Settings, serve};
use plumbing::wheel::Wheel;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};

/// A body of any kind.
pub(crate) type Out = UnsyncBoxBody<Bytes, String>;

pub(crate) fn full(text: impl Into<Bytes>) -> Response<Out> {
    Response::new(Full::new(text.into()).map_err(|never| match never {}).boxed_unsync())
}

pub(crate) fn with_status(status: u16, text: impl Into<Bytes>) -> Response<Out> {
    let mut response = full(text);
    *response.status_mut() = http::StatusCode::from_u16(status).unwrap();
    response
}

type Receiver = mpsc::UnboundedReceiver<Result<Frame<Bytes>, String>>;

/// Gives a streamed body its frames; dropped, it ends the body.
pub(crate) struct Frames(mpsc::UnboundedSender<Result<Frame<Bytes>, String>>);

impl Frames {
    pub(crate) fn data(&self, text: impl Into<Bytes>) {
        let _ = self.0.send(Ok(Frame::data(text.into())));
    }

    pub(crate) fn trailer(&self, name: &'static str, value: &'static str) {
        let mut trailers = HeaderMap::new();
        trailers.insert(name, HeaderValue::from_static(value));
        let _ = self.0.send(Ok(Frame::trailers(trailers)));
    }

    pub(crate) fn fail(&self) {
        let _ = self.0.send(Err("it broke".to_owned()));
    }

    /// True once nobody reads any more.
    pub(crate) async fn dropped(&self) {
        self.0.closed().await;
    }
}

pub(crate) struct Streamed(Receiver);

impl Body for Streamed {
    type Data = Bytes;
    type Error = String;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, String>>> {
        self.0.poll_recv(cx)
    }
}

/// A body whose frames are given one by one.
pub(crate) fn streamed() -> (Frames, Out) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (Frames(sender), Streamed(receiver).boxed_unsync())
}

/// All of a body, as text.
pub(crate) async fn text_of(incoming: Incoming) -> Result<String, String> {
    let collected = incoming.collect().await.map_err(|error| error.to_string())?;
    let trailers = collected.trailers().cloned();
    let mut text = String::from_utf8_lossy(&collected.to_bytes()).into_owned();
    for (name, value) in trailers.iter().flatten() {
        text += &format!("|{name}={}", value.to_str().unwrap());
    }
    Ok(text)
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) drain: watch::Sender<bool>,
    /// One for each connection that has ended.
    pub(crate) ended: mpsc::UnboundedReceiver<String>,
}

pub(crate) fn wheel() -> Wheel {
    let wheel = Wheel::new();
    tokio::spawn(wheel.clone().drive());
    wheel
}

pub(crate) async fn server<H, F>(handler: H) -> Server
where
    H: Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<Out>> + Send + 'static,
{
    server_with(Settings::default(), |_| false, handler).await
}

pub(crate) async fn server_with<H, F>(
    settings: Settings,
    gone: impl Fn(Doubt) -> bool + Send + Sync + 'static,
    handler: H,
) -> Server
where
    H: Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<Out>> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (drain, draining) = watch::channel(false);
    let (end, ended) = mpsc::unbounded_channel();
    let (wheel, gone) = (wheel(), Arc::new(gone));
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            socket.set_nodelay(true).unwrap();
            let gone = gone.clone();
            let conditions = Conditions {
                settings,
                wheel: wheel.clone(),
                plain: None,
                gone: move |doubt| if gone(doubt) { Guess::Gone } else { Guess::Here },
            };
            let (mut draining, handler, end) = (draining.clone(), handler.clone(), end.clone());
            tokio::spawn(async move {
                let drain = async move {
                    if draining.wait_for(|drain| *drain).await.is_err() {
                        std::future::pending().await
                    }
                };
                let how = match serve(socket, conditions, drain, handler).await {
                    End::Closed => "closed".to_owned(),
                    End::Upgraded => "upgraded".to_owned(),
                    End::Http2(socket) => format!("http2 {}", socket.into_parts().1.escape_ascii()),
                };
                let _ = end.send(how);
            });
        }
    });
    Server { address, drain, ended }
}
