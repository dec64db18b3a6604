//! One accepted connection: request after request, until it ends.

use super::closing;
use super::exchange::{After, answered, handled};
use super::incoming::Incoming;
use super::limits::BUFFER_BYTES;
use super::lines::Scan;
use super::link::{Link, State};
use super::malformed::Malformed;
use super::plain::{self, Answered, Found, Plain, Rules};
use super::presence::{Doubt, Guess};
use super::request::{self, Head};
use super::upgrade::Upgraded;
use crate::socket::Socket;
use crate::wheel::{Sleep, Wheel};
use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use std::fmt::Display;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::Instant;

/// Limits of connections.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// A head must be complete this long after its first byte; the first one
    /// after the connection began. Then the connection ends without a word.
    pub head_timeout: Duration,
    /// Largest head, in bytes; beyond: 431.
    pub head_bytes_max: usize,
    /// An answer may end before its request has come in full. True: what is
    /// left is read away, within limits, and the connection goes on. False: it
    /// ends then, as the reference's does in full-duplex mode.
    pub reuse_after_early_answer: bool,
}

impl Default for Settings {
    /// The reference's: 60 s, 1 MiB.
    fn default() -> Settings {
        Settings { head_timeout: Duration::from_secs(60), head_bytes_max: 1 << 20, reuse_after_early_answer: true }
    }
}

/// What serving a connection needs of whoever owns it.
pub struct Conditions<G> {
    /// Its limits.
    pub settings: Settings,
    /// Timers of the worker that it runs on.
    pub wheel: Wheel,
    /// Asked at once when a client has ended its direction, and then every
    /// 25 ms while that or a backlog leaves its presence in doubt: is it gone?
    /// `|_| Guess::Here` goes on serving until writing fails.
    pub gone: G,
    /// What plain requests are made ready by; `None`: all go the whole way.
    pub plain: Option<Rules>,
}

/// Whoever answers the requests of a connection.
pub trait Handler<B> {
    /// Answers a request.
    fn whole(&self, request: Request<Incoming>) -> impl Future<Output = Response<B>>;

    /// Answers a plain one: whoever sets [`Conditions::plain`] does. `None`:
    /// the connection ends.
    fn plain(&self, request: Plain) -> impl Future<Output = Option<Answered<B>>> {
        drop(request);
        std::future::ready(None)
    }
}

impl<H, F, B> Handler<B> for H
where
    H: Fn(Request<Incoming>) -> F,
    F: Future<Output = Response<B>>,
{
    fn whole(&self, request: Request<Incoming>) -> impl Future<Output = Response<B>> {
        self(request)
    }
}

/// How a connection ended.
#[derive(Debug)]
pub enum End {
    /// It is closed.
    Closed,
    /// It went to an [`super::OnUpgrade`].
    Upgraded,
    /// It began with HTTP/2's preface, which is yet to be read from this.
    Http2(Upgraded),
}

/// With which HTTP/2 begins.
pub(crate) const H2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Serves a connection until it ends. `drain`: once it is ready, the request
/// that is served is the last; without one the connection ends at once.
///
/// The handler's future, and then its answer's body, are dropped as soon as
/// the client has gone. Set `TCP_NODELAY` before.
pub fn serve<H, B, G, D>(
    socket: impl Into<Socket>,
    conditions: Conditions<G>,
    drain: D,
    handler: H,
) -> impl Future<Output = End>
where
    H: Handler<B>,
    B: Body<Data = Bytes> + Unpin,
    B::Error: Display,
    G: Fn(Doubt) -> Guess,
    D: Future<Output = ()>,
{
    // Not an `async` function: that has room for what it is given twice.
    let link = Link::new(socket.into());
    async move {
        let _open = Open(&link);
        let drain = pin!(drain);
        let mut drain = Drain { signal: drain, begun: false };
        let mut since = Some(Instant::now());
        loop {
            let next = {
                let timer = None;
                let mut waiting = Waiting { link: &link, conditions: &conditions, since, timer, scan: Scan::default() };
                std::future::poll_fn(|cx| waiting.poll(&mut drain, cx)).await
            };
            // What an answer needs lives in one box, made when there is one: a
            // connection that is idle or waits for its handler is small.
            let after = match next {
                Next::Ended => return End::Closed,
                Next::Http2 => return preface(&link),
                Next::Malformed(what) => Box::pin(closing::refuse(&link, &conditions.wheel, what)).await,
                Next::Plain(found) => Box::pin(plain::exchange(&link, &conditions, &mut drain, found, &handler)).await,
                Next::Request(head) => {
                    let handled = handled(&link, &conditions, head, &handler).await;
                    Box::pin(answered(&link, &conditions, &mut drain, handled)).await
                }
            };
            match after {
                After::Next => since = None,
                After::Closed => return End::Closed,
                After::Upgraded => return End::Upgraded,
            }
        }
    }
}

/// A handler may have left parts of a request anywhere; the connection ends
/// with its driver all the same.
struct Open<'a>(&'a Link);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

fn preface(link: &Link) -> End {
    let mut state = link.state();
    let read = std::mem::take(&mut state.inbox.bytes).freeze();
    match state.socket.take() {
        Some(socket) => End::Http2(Upgraded::new(socket, read)),
        None => End::Closed,
    }
}

/// The owner's wish that the connection ends.
pub(super) struct Drain<'d, D> {
    signal: Pin<&'d mut D>,
    begun: bool,
}

impl<D: Future<Output = ()>> Drain<'_, D> {
    /// True once it was uttered.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> bool {
        self.begun = self.begun || self.signal.as_mut().poll(cx).is_ready();
        self.begun
    }
}

enum Next {
    Request(Box<Head>),
    Plain(Box<Found>),
    Malformed(Malformed),
    Http2,
    Ended,
}

/// Waits for a head.
struct Waiting<'a, G> {
    link: &'a Arc<Link>,
    conditions: &'a Conditions<G>,
    /// When the head began to come.
    since: Option<Instant>,
    timer: Option<Sleep>,
    scan: Scan,
}

impl<G> Waiting<'_, G> {
    fn poll<D: Future<Output = ()>>(&mut self, drain: &mut Drain<'_, D>, cx: &mut Context<'_>) -> Poll<Next> {
        let settings = &self.conditions.settings;
        let mut state = self.link.state();
        loop {
            if !state.inbox.bytes.is_empty()
                && let Some(next) = self.look(&mut state, cx)
            {
                return Poll::Ready(next);
            }
            if state.inbox.ended {
                return Poll::Ready(Next::Ended);
            }
            match state.poll_fill(cx) {
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(_)) => return Poll::Ready(Next::Ended),
                // Only now: a request that is in the socket already would be
                // lost, and its client told so by a reset.
                Poll::Pending if state.inbox.bytes.is_empty() && drain.poll(cx) && !state.has_unseen() => {
                    return Poll::Ready(Next::Ended);
                }
                Poll::Pending => break,
            }
        }
        state.inbox.rest();
        let idle = state.inbox.bytes.is_empty();
        drop(state);
        if idle && self.since.is_none() {
            return Poll::Pending;
        }
        let since = *self.since.get_or_insert_with(Instant::now);
        let timer = self.timer.get_or_insert_with(|| self.conditions.wheel.sleep_until(since + settings.head_timeout));
        Pin::new(timer).poll(cx).map(|()| Next::Ended)
    }

    /// What has come, if it is enough to say.
    fn look(&mut self, state: &mut State, cx: &mut Context<'_>) -> Option<Next> {
        let settings = &self.conditions.settings;
        if state.turn == 0
            && H2_PREFACE.starts_with(&state.inbox.bytes[..state.inbox.bytes.len().min(H2_PREFACE.len())])
        {
            return (state.inbox.bytes.len() >= H2_PREFACE.len()).then_some(Next::Http2);
        }
        if !self.scan.unfinished
            && settings.head_bytes_max >= plain::HEAD_BYTES_MAX
            && let Some(rules) = &self.conditions.plain
            && let Some(found) = take_plain(state, rules, cx)
        {
            return Some(Next::Plain(found));
        }
        match request::head(&mut state.inbox.bytes, &mut self.scan, settings.head_bytes_max) {
            Ok(head) => head.map(|head| Next::Request(Box::new(head))),
            Err(what) => Some(Next::Malformed(what)),
        }
    }
}

/// A plain request, if one is there.
fn take_plain(state: &mut State, rules: &Rules, cx: &mut Context<'_>) -> Option<Box<Found>> {
    let State { inbox, socket, .. } = state;
    let socket = socket.as_mut()?;
    plain::take(inbox, rules, |inbox| drop(inbox.poll_fill(socket, cx)))
}

const _: () = assert!(H2_PREFACE.len() < BUFFER_BYTES[0]);
