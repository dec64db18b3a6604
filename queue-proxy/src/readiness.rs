//! Is the app ready?

use crate::config::{Config, Readiness};
use http::header::{HOST, HeaderValue};
use http::{Request, Uri};
use plumbing::body::Body;
use plumbing::worker::Worker;
use std::time::Duration;
use tokio::net::TcpStream;

/// Longest one attempt may take.
const ATTEMPT_MAX: Duration = Duration::from_secs(1);

/// One attempt.
pub(crate) async fn ask(config: &Config, worker: &Worker) -> bool {
    let attempt = async {
        match &config.readiness {
            Readiness::Tcp => TcpStream::connect(config.app).await.is_ok(),
            Readiness::Http(path) => get(config, worker, path).await,
        }
    };
    tokio::select! {
        ready = attempt => ready,
        () = worker.wheel().sleep(ATTEMPT_MAX) => false,
    }
}

async fn get(config: &Config, worker: &Worker, path: &str) -> bool {
    let Ok(uri) = path.parse::<Uri>() else { return false };
    let mut request = Request::new(Body::empty());
    *request.uri_mut() = uri;
    if let Ok(host) = HeaderValue::from_str(&config.app.to_string()) {
        request.headers_mut().insert(HOST, host);
    }
    match worker.pool().send(config.app, request, true).await {
        Ok((response, _)) => (200..400).contains(&response.status().as_u16()),
        Err(_) => false,
    }
}
