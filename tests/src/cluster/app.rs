//! The app behind the sidecar: it answers everything with `ok` and writes down
//! what it was asked.

use super::network::Namespace;
use crate::rig::{OK, read_head};
use bytes::Bytes;
use http::{HeaderMap, Response};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

/// What it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Path and query.
    pub target: String,
    /// `Host`, or `:authority`.
    pub host: String,
    /// All fields, their names in lower case.
    pub fields: Vec<(String, String)>,
}

/// A running app; stopped when it is dropped.
pub struct App {
    seen: Arc<Mutex<Vec<Seen>>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Seen {
    /// The value of a field, if it is there.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(field, _)| field == name).map(|(_, value)| value.as_str())
    }
}

impl App {
    /// Listens on the pod's loopback; it does when this returns.
    ///
    /// # Panics
    /// When the port cannot be had.
    pub fn start(network: &Namespace, port: u16, h2c: bool) -> App {
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let (stop, mut stopped) = oneshot::channel();
        let (listening, listens) = std::sync::mpsc::channel();
        let into = seen.clone();
        let thread = network.spawn(move || async move {
            let listener = TcpListener::bind(("127.0.0.1", port)).await.expect("the app's port");
            let _ = listening.send(());
            loop {
                let stream = tokio::select! {
                    accepted = listener.accept() => accepted.expect("a connection").0,
                    _ = &mut stopped => return,
                };
                let into = into.clone();
                if h2c {
                    tokio::spawn(http2(stream, into));
                } else {
                    tokio::spawn(http1(stream, into));
                }
            }
        });
        listens.recv().expect("it listens");
        App { seen, stop: Some(stop), thread: Some(thread) }
    }

    /// What it was asked so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for App {
    fn drop(&mut self) {
        drop(self.stop.take());
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn note(seen: &Mutex<Vec<Seen>>, one: Seen) {
    seen.lock().unwrap_or_else(PoisonError::into_inner).push(one);
}

async fn http1(mut stream: TcpStream, seen: Arc<Mutex<Vec<Seen>>>) {
    loop {
        let head = read_head(&mut stream).await;
        let mut lines = head.lines();
        let Some(target) = lines.next().and_then(|line| line.split(' ').nth(1)) else { return };
        let fields: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        let host = fields.iter().find(|(name, _)| name == "host").map(|(_, host)| host.clone()).unwrap_or_default();
        note(&seen, Seen { target: target.to_owned(), host, fields });
        if stream.write_all(OK).await.is_err() {
            return;
        }
    }
}

async fn http2(stream: TcpStream, seen: Arc<Mutex<Vec<Seen>>>) {
    let Ok(mut connection) = h2::server::handshake(stream).await else { return };
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        let target = request.uri().path_and_query().map_or("", |target| target.as_str()).to_owned();
        let host = request.uri().authority().map(ToString::to_string).unwrap_or_default();
        note(&seen, Seen { target, host, fields: pairs(request.headers()) });
        if let Ok(mut body) = respond.send_response(Response::new(()), false) {
            let _ = body.send_data(Bytes::from_static(b"ok"), true);
        }
    }
}

fn pairs(fields: &HeaderMap) -> Vec<(String, String)> {
    let pair = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
        (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    fields.iter().map(pair).collect()
}
