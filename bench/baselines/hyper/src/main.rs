//! `baseline-hyper http1|http2 LISTEN APP`: forwards everything to one app.
//! One thread. HTTP/1 takes a connection from a stack for each request;
//! HTTP/2 has one connection to the app.

use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper::header::{CONNECTION, HOST, HeaderMap, HeaderName, HeaderValue, TE, TRAILER, TRANSFER_ENCODING, UPGRADE};
use hyper::service::service_fn;
use hyper::{Request, Response, Uri};
use hyper_util::rt::TokioIo;
use std::cell::RefCell;
use std::error::Error;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{LocalSet, spawn_local};

type Failure = Box<dyn Error + Send + Sync>;

const WINDOW: u32 = 1 << 20;
const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// Tasks stay on the thread.
#[derive(Clone, Copy)]
struct Here;

impl<F: Future<Output = ()> + 'static> hyper::rt::Executor<F> for Here {
    fn execute(&self, task: F) {
        spawn_local(task);
    }
}

struct App {
    address: SocketAddr,
    /// Connections without a request, the last used on top.
    idle: RefCell<Vec<http1::SendRequest<Incoming>>>,
    http2: RefCell<Option<http2::SendRequest<Incoming>>>,
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, protocol, listen, app] = &arguments[..] else { return Err("http1|http2 LISTEN APP".into()) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, serve(protocol == "http2", listen.parse()?, app.parse()?))
}

async fn serve(is_http2: bool, listen: SocketAddr, address: SocketAddr) -> Result<(), Failure> {
    let app = Rc::new(App { address, idle: RefCell::default(), http2: RefCell::default() });
    let listener = TcpListener::bind(listen).await?;
    loop {
        let (socket, from) = listener.accept().await?;
        socket.set_nodelay(true)?;
        let app = app.clone();
        let from = from.ip();
        spawn_local(async move {
            let service = service_fn(move |request| forward(app.clone(), is_http2, from, request));
            let io = TokioIo::new(socket);
            // A connection that breaks off is the client's matter.
            if is_http2 {
                let mut builder = hyper::server::conn::http2::Builder::new(Here);
                builder.initial_stream_window_size(WINDOW).initial_connection_window_size(WINDOW);
                let _ = builder.max_concurrent_streams(1000).serve_connection(io, service).await;
            } else {
                let _ = hyper::server::conn::http1::Builder::new().serve_connection(io, service).await;
            }
        });
    }
}

async fn forward(
    app: Rc<App>,
    is_http2: bool,
    from: IpAddr,
    mut request: Request<Incoming>,
) -> Result<Response<Incoming>, Failure> {
    if let Some(authority) = request.uri().authority() {
        let host = HeaderValue::from_str(authority.as_str())?;
        if !is_http2 {
            request.headers_mut().insert(HOST, host.clone());
        }
        request.headers_mut().insert(FORWARDED_HOST, host);
    } else if let Some(host) = request.headers().get(HOST).cloned() {
        request.headers_mut().insert(FORWARDED_HOST, host);
    }
    strip(request.headers_mut());
    request.headers_mut().insert(FOR, HeaderValue::from_str(&from.to_string())?);
    request.headers_mut().insert(PROTO, HeaderValue::from_static("http"));
    let mut response = if is_http2 {
        let mut sender = app.http2().await?;
        let answer = sender.send_request(request);
        answer.await?
    } else {
        if let Some(path) = request.uri().path_and_query().cloned() {
            *request.uri_mut() = Uri::from(path);
        }
        let mut sender = app.http1().await?;
        let response = sender.send_request(request).await?;
        // Free again when the answer has been read.
        spawn_local(async move {
            if sender.ready().await.is_ok() {
                app.idle.borrow_mut().push(sender);
            }
        });
        response
    };
    strip(response.headers_mut());
    Ok(response)
}

fn strip(headers: &mut HeaderMap) {
    for name in [CONNECTION, KEEP_ALIVE, TRANSFER_ENCODING, UPGRADE, TRAILER] {
        headers.remove(name);
    }
    if headers.get(TE).is_some_and(|value| value != "trailers") {
        headers.remove(TE);
    }
}

impl App {
    async fn http1(&self) -> Result<http1::SendRequest<Incoming>, Failure> {
        loop {
            let idle = self.idle.borrow_mut().pop();
            match idle {
                Some(sender) if sender.is_ready() => return Ok(sender),
                Some(_) => {}
                None => break,
            }
        }
        let (sender, connection) = http1::handshake(self.connect().await?).await?;
        spawn_local(connection);
        Ok(sender)
    }

    async fn http2(&self) -> Result<http2::SendRequest<Incoming>, Failure> {
        if let Some(sender) = self.http2.borrow().as_ref().filter(|sender| !sender.is_closed()) {
            return Ok(sender.clone());
        }
        let mut builder = http2::Builder::new(Here);
        builder.initial_stream_window_size(WINDOW).initial_connection_window_size(WINDOW);
        let (sender, connection) = builder.handshake(self.connect().await?).await?;
        spawn_local(connection);
        *self.http2.borrow_mut() = Some(sender.clone());
        Ok(sender)
    }

    async fn connect(&self) -> Result<TokioIo<TcpStream>, Failure> {
        let socket = TcpStream::connect(self.address).await?;
        socket.set_nodelay(true)?;
        Ok(TokioIo::new(socket))
    }
}
