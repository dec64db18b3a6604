//! HTTP/1 by hyper: what its requests, answers and upgrades are to us. The
//! connections themselves: `serve::by_hyper` and `forward::by_hyper`.

use crate::h1::{OnUpgrade, Upgraded};
use crate::headers;
use crate::incoming::Incoming;
use crate::socket::Socket;
use bytes::{Bytes, BytesMut};
use http::{Method, Request, Version};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::sync::oneshot;

/// A request's body, and its connection if that may be asked for.
pub struct Requested {
    pub(crate) body: hyper::body::Incoming,
    upgrade: Mutex<Option<hyper::upgrade::OnUpgrade>>,
}

impl Requested {
    /// The raw connection, if the request asks for another protocol and the
    /// answer grants it. The first call counts.
    pub(crate) fn on_upgrade(&self) -> Option<OnUpgrade> {
        let granted = self.upgrade.lock().take()?;
        let (sender, receiver) = oneshot::channel();
        tokio::spawn(async move {
            if let Some(upgraded) = granted.await.ok().and_then(of_client) {
                let _ = sender.send(upgraded);
            }
        });
        Some(OnUpgrade::by(receiver))
    }
}

/// A request as hyper gives it.
pub(crate) fn incoming(mut request: Request<hyper::body::Incoming>) -> Request<Incoming> {
    let asks = request.method() == Method::CONNECT
        || (request.version() == Version::HTTP_11 && headers::upgrade_protocol(request.headers()).is_some());
    let upgrade = Mutex::new(asks.then(|| hyper::upgrade::on(&mut request)));
    request.map(|body| Incoming::Hyper(Requested { body, upgrade }))
}

/// A client's connection, once hyper has let go of it.
fn of_client(upgraded: hyper::upgrade::Upgraded) -> Option<Upgraded> {
    let parts = upgraded.downcast::<TokioIo<Upgraded>>().ok()?;
    let (socket, unread) = parts.io.into_inner().into_parts();
    Some(Upgraded::new(socket, joined(parts.read_buf, unread)))
}

/// The same of a connection to an app or a pod.
pub(crate) fn of_server(upgraded: hyper::upgrade::Upgraded) -> Option<Upgraded> {
    let parts = upgraded.downcast::<TokioIo<TcpStream>>().ok()?;
    Some(Upgraded::new(Socket::Plain(parts.io.into_inner()), parts.read_buf))
}

fn joined(first: Bytes, second: Bytes) -> Bytes {
    if second.is_empty() {
        return first;
    }
    let mut both = BytesMut::from(&first[..]);
    both.extend_from_slice(&second);
    both.freeze()
}
