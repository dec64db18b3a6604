//! The app that the demo serves: slow to start, slow to answer, and nothing
//! else. It knows nothing of Zeroscale but `PORT`.

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::process::ExitCode;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};

/// What an app does before it opens its port.
const START_WORK: Duration = Duration::from_millis(150);
/// What a request costs.
const ANSWER_WORK: Duration = Duration::from_millis(40);

pub(crate) fn main() -> ExitCode {
    let port = std::env::var("PORT").ok().and_then(|port| port.parse().ok());
    let Some(port) = port else {
        eprintln!("zeroscale: the sample app needs a port in $PORT");
        return ExitCode::from(crate::EXIT_USAGE);
    };
    std::thread::sleep(START_WORK);
    match crate::run::on_runtime(serve(port)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("zeroscale: the sample app: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Until somebody ends the process.
async fn serve(port: u16) -> anyhow::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::spawn(connection(stream));
    }
}

async fn connection(stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(|_: Request<Incoming>| async {
        tokio::time::sleep(ANSWER_WORK).await;
        let body = format!("served by process {}\n", std::process::id());
        Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(body))))
    });
    // A caller that goes away is its own affair.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}
