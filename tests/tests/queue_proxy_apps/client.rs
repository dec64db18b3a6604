//! A client that keeps its connection.

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How long an answer may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Client(SendRequest<Full<Bytes>>);

impl Client {
    /// `None` when nobody listens.
    pub(crate) async fn open(address: SocketAddr) -> Option<Client> {
        let stream = TcpStream::connect(address).await.ok()?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await.ok()?;
        tokio::spawn(connection);
        Some(Client(sender))
    }

    /// The head of an answer, and its body as it comes.
    pub(crate) async fn begin(
        &mut self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<Response<Incoming>, hyper::Error> {
        let request = Request::builder().method(method).uri(path).header("host", "apps.example");
        let exchange = async {
            self.0.ready().await?;
            self.0.send_request(request.body(Full::new(body)).expect("a request")).await
        };
        timeout(PATIENCE, exchange).await.expect("an answer in time")
    }

    /// Status and body.
    pub(crate) async fn ask(&mut self, method: Method, path: &str, body: Bytes) -> Result<(u16, Bytes), hyper::Error> {
        let answer = self.begin(method, path, body).await?;
        let status = answer.status().as_u16();
        let body = timeout(PATIENCE, answer.into_body().collect()).await.expect("the whole answer in time")?;
        Ok((status, body.to_bytes()))
    }

    pub(crate) async fn get(&mut self, path: &str) -> Result<(u16, Bytes), hyper::Error> {
        self.ask(Method::GET, path, Bytes::new()).await
    }
}
