//! A connection to each side, in this process: a pair of sockets without a
//! network between them.

use super::heard::{Heard, Served, Step};
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use plumbing::h1::{Conditions, Doubt, End, Guess, Settings};
use plumbing::wheel::Wheel;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::cell::RefCell;
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};

/// Neither waits for anything but the input, which has an end.
const PATIENCE: Duration = Duration::from_secs(20);

struct Place {
    runtime: Runtime,
    wheel: Wheel,
}

thread_local! {
    static PLACE: io::Result<Place> = Place::new();
}

impl Place {
    fn new() -> io::Result<Place> {
        let (runtime, wheel) = (Builder::new_current_thread().enable_all().build()?, Wheel::new());
        runtime.spawn(wheel.clone().drive());
        Ok(Place { runtime, wheel })
    }
}

/// What came of an input at our side, and at hyper's.
///
/// # Errors
/// When one of them does not come to an end.
pub(super) fn both(input: &[u8]) -> Result<(Heard, Heard), String> {
    PLACE.with(|place| {
        let Place { runtime, wheel } = place.as_ref().map_err(|error| error.to_string())?;
        runtime.block_on(async {
            let ours = within("ours", ours(input, wheel.clone())).await?;
            Ok((ours, within("hyper's", hypers(input)).await?))
        })
    })
}

async fn within(whose: &str, side: impl Future<Output = io::Result<Heard>>) -> Result<Heard, String> {
    let ended = tokio::time::timeout(PATIENCE, side).await.map_err(|_| format!("{whose} does not come to an end"))?;
    ended.map_err(|error| format!("{whose}: {error}"))
}

type Steps = Rc<RefCell<Vec<Step>>>;

async fn ours(input: &[u8], wheel: Wheel) -> io::Result<Heard> {
    let steps = Steps::default();
    let (client, server) = pair()?;
    let conditions = Conditions { settings: Settings::default(), wheel, gone: |_: Doubt| Guess::Here, plain: None };
    let served = async {
        let end = plumbing::h1::serve(server, conditions, std::future::pending(), |request| handle(&steps, request));
        // Its socket is with what it ended with, if it is anywhere.
        matches!(end.await, End::Http2(_))
    };
    let (got, http2) = tokio::join!(exchange(client, input), served);
    let mut heard = Heard { steps: steps.take(), refusal: None };
    heard.answered(&got);
    if http2 {
        heard.refusal = Some("HTTP/2".to_owned());
    }
    Ok(heard)
}

async fn hypers(input: &[u8]) -> io::Result<Heard> {
    let steps = Steps::default();
    let (client, server) = pair()?;
    let service = hyper::service::service_fn(|request| async { Ok::<_, Infallible>(handle(&steps, request).await) });
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.half_close(true).max_headers(plumbing::h1::limits::FIELDS_MAX);
    let served = async { builder.serve_connection(TokioIo::new(server), service).await };
    let (got, _) = tokio::join!(exchange(client, input), served);
    let mut heard = Heard { steps: steps.take(), refusal: None };
    heard.answered(&got);
    Ok(heard)
}

fn pair() -> io::Result<(TcpStream, TcpStream)> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (one, other) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    Ok((TcpStream::from_std(one.into())?, TcpStream::from_std(other.into())?))
}

/// Sends the input, in one piece or in some, and its end; then reads to the end.
async fn exchange(mut client: TcpStream, input: &[u8]) -> Vec<u8> {
    let length = input.iter().map(|byte| *byte as usize).sum::<usize>() % (2 * input.len().max(1));
    for piece in input.chunks(length.max(1)) {
        if client.write_all(piece).await.is_err() {
            break;
        }
        if length < input.len() {
            tokio::task::yield_now().await;
        }
    }
    let _ = client.shutdown().await;
    let mut got = Vec::new();
    let _ = client.read_to_end(&mut got).await;
    got
}

async fn handle<B>(steps: &Steps, request: Request<B>) -> Response<Full<Bytes>>
where
    B: Body,
{
    let (parts, body) = request.into_parts();
    let (step, status) = match body.collect().await {
        Ok(collected) => {
            let trailers = collected.trailers().cloned();
            (Step::Served(Served::new(parts, collected.to_bytes().to_vec(), trailers)), StatusCode::OK)
        }
        Err(_) => (Step::Broken, StatusCode::from_u16(599).unwrap_or(StatusCode::BAD_GATEWAY)),
    };
    steps.borrow_mut().push(step);
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}
