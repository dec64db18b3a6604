//! The scripted apps, and what they saw.

pub(super) mod h2;
mod http1;

use super::case::{App, Speaks};
use super::latin;
use super::wire::Fields;
use serde_json::{Map, Value, json};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// One request, as an app saw it.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Unless it is HTTP/1.1.
    pub proto: Option<String>,
    /// Its method.
    pub method: String,
    /// Its target, byte for byte.
    pub target: String,
    /// `:authority`, over HTTP/2.
    pub authority: Option<String>,
    /// All header fields.
    pub headers: Fields,
    /// What was read of the body.
    pub body: Vec<u8>,
    /// How the end of the body was known, over HTTP/1.
    pub framing: Option<&'static str>,
    /// What followed the body.
    pub trailers: Fields,
    /// The body ended before its framing said so.
    pub incomplete: bool,
    /// The app waited for the proxy to close, and it did.
    pub closed_by_proxy: bool,
    /// The code with which the proxy reset the stream.
    pub reset_by_proxy: Option<u32>,
}

/// What all apps of a case saw.
#[derive(Debug, Default)]
pub struct Log(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    requests: Vec<Seen>,
    connections: usize,
}

/// A running app.
#[derive(Debug)]
pub struct Running {
    task: JoinHandle<()>,
}

impl Log {
    /// A request has begun; its place in the log.
    fn begin(&self, seen: Seen) -> usize {
        self.with(|entries| {
            entries.requests.push(seen);
            entries.requests.len() - 1
        })
    }

    /// More became known about a request.
    fn change(&self, place: usize, change: impl FnOnce(&mut Seen)) {
        self.with(|entries| {
            if let Some(seen) = entries.requests.get_mut(place) {
                change(seen);
            }
        });
    }

    fn connected(&self) {
        self.with(|entries| entries.connections += 1);
    }

    fn with<T>(&self, what: impl FnOnce(&mut Entries) -> T) -> T {
        what(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// All requests so far, as rows write them.
    pub fn requests(&self) -> Vec<Value> {
        self.with(|entries| entries.requests.iter().map(written).collect())
    }

    /// How many connections were accepted.
    pub fn connections(&self) -> usize {
        self.with(|entries| entries.connections)
    }

    /// How many requests were seen.
    pub fn count(&self) -> usize {
        self.with(|entries| entries.requests.len())
    }
}

impl Running {
    /// Starts an app. When it starts at once, it listens when this returns.
    ///
    /// # Errors
    /// When its port cannot be had.
    pub async fn start(app: &App, log: &Arc<Log>) -> anyhow::Result<Option<Running>> {
        if app.speaks == Speaks::None {
            return Ok(None);
        }
        let (listening, told) = oneshot::channel();
        let delay = Duration::from_millis(app.start_after_ms);
        let (app, log) = (Arc::new(app.clone()), log.clone());
        let now = delay.is_zero();
        let task = tokio::spawn(async move {
            tokio::time::sleep(delay).await;
            let listener = TcpListener::bind(("127.0.0.1", app.port)).await;
            let listener = match listener {
                Ok(listener) => listener,
                Err(error) => return drop(listening.send(Err(error))),
            };
            let _ = listening.send(Ok(()));
            accept(&listener, &app, &log).await;
        });
        if now {
            told.await??;
        }
        Ok(Some(Running { task }))
    }

    /// Stops listening; open connections stay.
    pub fn stop(&self) {
        self.task.abort();
    }
}

async fn accept(listener: &TcpListener, app: &Arc<App>, log: &Arc<Log>) {
    while let Ok((stream, _)) = listener.accept().await {
        log.connected();
        tokio::spawn(serve(stream, app.clone(), log.clone()));
    }
}

/// Serves one connection as the app of a case does.
pub(super) async fn serve(stream: TcpStream, app: Arc<App>, log: Arc<Log>) {
    let _ = stream.set_nodelay(true);
    match app.speaks {
        Speaks::Http1 => http1::serve(stream, &app.routes, &log).await,
        Speaks::H2 => h2::serve(stream, app.clone(), log).await,
        Speaks::None => {}
    }
}

fn written(seen: &Seen) -> Value {
    let mut all = Map::new();
    all.insert("method".into(), json!(seen.method));
    all.insert("target".into(), json!(seen.target));
    all.insert("headers".into(), json!(seen.headers));
    all.insert("body".into(), json!(latin::text(&seen.body)));
    let mut also = |key: &str, value: Option<Value>| value.map(|value| all.insert(key.to_owned(), value));
    also("proto", seen.proto.as_ref().map(|proto| json!(proto)));
    also("authority", seen.authority.as_ref().map(|authority| json!(authority)));
    also("framing", seen.framing.map(|framing| json!(framing)));
    also("trailers", Some(&seen.trailers).filter(|trailers| !trailers.is_empty()).map(|trailers| json!(trailers)));
    also("incomplete", seen.incomplete.then_some(json!(true)));
    also("connection_closed_by_proxy", seen.closed_by_proxy.then_some(json!(true)));
    also("reset_by_proxy", seen.reset_by_proxy.map(|code| json!(code)));
    Value::Object(all)
}
