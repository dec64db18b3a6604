//! An autoscaler of ours as the activator sees it: one that takes calls.

use bytes::Bytes;
use http::{HeaderMap, Response};
use proto::push::{PUSH, PushReply};
use proto::stats::WireStatMessages;
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use tokio::runtime::Builder;

/// What it has taken, over all connections.
#[derive(Clone, Default)]
pub(crate) struct Taken {
    entries: Arc<Mutex<Vec<String>>>,
    /// Calls that are read and then not answered: the connection ends instead.
    pub(crate) dies_on: Arc<AtomicUsize>,
}

impl Taken {
    /// Names of revisions, in order.
    pub(crate) fn names(&self) -> Vec<String> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Serves on a thread of its own, for as long as the test runs.
    pub(crate) fn serve(&self, listener: TcpListener) {
        let taken = self.clone();
        listener.set_nonblocking(true).unwrap();
        thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                while let Ok((stream, _)) = listener.accept().await {
                    let taken = taken.clone();
                    tokio::spawn(async move { taken.connection(stream).await });
                }
            });
        });
    }

    async fn connection(&self, stream: tokio::net::TcpStream) -> Option<()> {
        let mut connection = h2::server::handshake(stream).await.ok()?;
        while let Some(call) = connection.accept().await {
            let (request, mut answer) = call.ok()?;
            assert_eq!(request.uri().path(), PUSH);
            let mut body = request.into_body();
            let mut bytes = Vec::new();
            // The connection moves only while it is asked for the next call.
            while let Some(chunk) = tokio::select! {
                chunk = body.data() => chunk,
                _ = connection.accept() => None,
            } {
                let chunk = chunk.ok()?;
                let _ = body.flow_control().release_capacity(chunk.len());
                bytes.extend_from_slice(&chunk);
            }
            if self.dies_on.load(Ordering::SeqCst) > 0 {
                self.dies_on.fetch_sub(1, Ordering::SeqCst);
                return None;
            }
            let stats: WireStatMessages = proto::decode(&bytes[5..], 16 << 20).unwrap();
            let names = stats.messages.iter().map(|message| message.revision().name.to_string());
            self.entries.lock().unwrap_or_else(PoisonError::into_inner).extend(names);
            let head = Response::builder().header("content-type", "application/grpc").body(()).unwrap();
            let mut out = answer.send_response(head, false).ok()?;
            let message = proto::encode(&PushReply {});
            let framed = [&[0][..], &(message.len() as u32).to_be_bytes(), &message].concat();
            out.send_data(Bytes::from(framed), false).ok()?;
            let trailers: HeaderMap = [("grpc-status".parse().unwrap(), "0".parse().unwrap())].into_iter().collect();
            out.send_trailers(trailers).ok()?;
        }
        Some(())
    }
}
