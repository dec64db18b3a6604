//! A connection to an app or a pod, driven by whoever sends on it: no task of
//! its own, no channel.

use super::answer::with_scratch;
use super::feed::{Fed, Feed};
use super::inbox::Inbox;
use super::limits::{ANSWER_HEAD_BYTES_MAX, INTERIM_MAX, UNREAD_BYTES_MAX};
use super::lines::Scan;
use super::outbox::Outbox;
use super::outgoing::{Break, Hold, Options, Outgoing, SendError, framing, write_head};
use super::received::Received;
use super::reply::{self, Head};
use super::start::{Start, Started};
use crate::socket::Socket;
use crate::unacked;
use bytes::Bytes;
use http::{Method, Response, StatusCode, Version};
use http_body::Body;
use std::fmt::Display;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use tokio::net::TcpStream;

/// A connection that carries one exchange at a time.
pub struct Connection<B>(pub(super) Box<Wire<B>>);

pub(super) struct Wire<B> {
    pub(super) socket: Socket,
    pub(super) inbox: Inbox,
    pub(super) out: Outbox,
    /// A request's body, until it has been sent.
    pub(super) feed: Option<Feed<B>>,
    /// One that was drawn in full for the first write, until the answer begins.
    spent: Option<Feed<B>>,
    pub(super) hold: Hold,
    /// Writing failed: what the other side had said before may still come.
    deaf: bool,
}

impl<B> Connection<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Display,
{
    /// Over a socket that nothing has been sent on. Set `TCP_NODELAY` before.
    pub fn new(socket: TcpStream) -> Connection<B> {
        let (inbox, out) = (Inbox::default(), Outbox::default());
        Connection(Box::new(Wire {
            socket: Socket::Plain(socket),
            inbox,
            out,
            feed: None,
            spent: None,
            hold: Hold::No,
            deaf: false,
        }))
    }

    /// True if the other side has closed an idle connection, or said something
    /// that nobody asked for. Costs no system call while nothing has come.
    pub fn is_stale(&self) -> bool {
        let socket = self.0.socket.tcp();
        if !self.0.socket.has_input() {
            return false;
        }
        // The flag may be left from a read that just fitted.
        !matches!(socket.try_read(&mut [0]), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Has `waker` called when an idle connection's other side closes it, or
    /// says something. False if it has done so already.
    pub fn watch(&self, waker: &Waker) -> bool {
        let mut cx = Context::from_waker(waker);
        // The flag may be left from a read that just fitted: the second look counts.
        self.0.socket.tcp().poll_read_ready(&mut cx).is_pending()
            || (!self.is_stale() && self.0.socket.tcp().poll_read_ready(&mut cx).is_pending())
    }

    /// Sends a request, and waits for the head of its answer. The answer's
    /// body carries the connection, and goes on sending the request's body if
    /// that has not ended. Dropping the future closes the connection.
    ///
    /// # Errors
    /// See [`SendError`].
    pub async fn send(
        mut self,
        request: impl Into<Outgoing<B>>,
        mut options: Options<'_>,
    ) -> Result<Response<Received<B>>, SendError<B>> {
        let outgoing = request.into();
        if self.is_stale() {
            return Err(not_sent(outgoing, "the connection is closed"));
        }
        let method = outgoing.parts.method.clone();
        let hold = options.hold_body.take();
        let mut no_hold = Hold::No;
        let hold = hold.unwrap_or(&mut no_hold);
        let mut start = Some(self.0.start(outgoing, std::mem::take(hold))?);
        let mut answer = Answering { scan: Scan::default(), method, interims: 0 };
        let mut sent = None;
        let head = poll_fn(|cx| {
            let wire = &mut *self.0;
            match start.as_mut().map(|start| start.poll(wire, cx)) {
                Some(Started::Sent) => {
                    sent = start.take();
                    wire.spent = wire.feed.take_if(|feed| feed.is_whole());
                }
                Some(Started::Waits) | None => {}
                Some(Started::Failed(error)) => {
                    *hold = std::mem::take(&mut wire.hold);
                    let failed = start.take().map(|start| start.failed(wire, error));
                    return Poll::Ready(Err(failed.unwrap_or_else(|| broken("EOF", Break::BeforeAnswer))));
                }
            }
            if start.is_none() {
                wire.pump(cx).map_err(|error| broken(&error, Break::RequestBody))?;
            }
            answer.poll(wire, &mut options, cx)
        })
        .await;
        match head {
            Ok(head) => Ok(self.respond(head)),
            Err(SendError::Broken { error, at, head: None }) => Err(self.0.undo(sent, error, at)),
            Err(failed) => Err(failed),
        }
    }

    /// Waits for the head of the answer to a plain request that has been sent.
    ///
    /// # Errors
    /// See [`SendError`].
    pub async fn answer(
        mut self,
        method: Method,
        mut options: Options<'_>,
    ) -> Result<Response<Received<B>>, SendError<B>> {
        let mut answer = Answering { scan: Scan::default(), method, interims: 0 };
        let head = poll_fn(|cx| {
            self.0.pump(cx).map_err(|error| broken(&error, Break::RequestBody))?;
            answer.poll(&mut self.0, &mut options, cx)
        });
        let head = head.await?;
        Ok(self.respond(head))
    }

    fn respond(mut self, head: Head) -> Response<Received<B>> {
        if !matches!(self.0.hold, Hold::No) {
            // It answered without asking for the body.
            (self.0.feed, self.0.deaf) = (None, true);
        }
        self.0.spent = None;
        let mut response = Response::new(Received::new(self, head.decoder, head.keep_alive, head.upgrade));
        *response.status_mut() = head.status;
        *response.version_mut() = Version::HTTP_11;
        *response.headers_mut() = head.fields;
        response
    }

    /// Ready for another exchange: holds no buffers.
    pub(super) fn rest(mut self) -> Connection<B> {
        self.0.inbox.rest();
        self.0.out.release();
        (self.0.feed, self.0.spent) = (None, None);
        self
    }
}

impl<B> Wire<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Display,
{
    fn start(&mut self, outgoing: Outgoing<B>, hold: Hold) -> Result<Start, SendError<B>> {
        let Outgoing { parts, begun, body } = outgoing;
        let encoder = framing(&parts, begun.as_ref(), &body);
        self.hold = hold.for_request(&parts.headers);
        (self.out.written, self.deaf) = (0, false);
        with_scratch(|head| {
            write_head(&parts, encoder, head);
            self.out.flat(head);
        });
        let mut encoder = encoder;
        let counted = begun.clone().map_or(Ok(()), |first| encoder.data(first, &mut self.out));
        let feed = counted.map_err(|error| error.to_string()).and_then(|()| Feed::new(body, encoder, &mut self.out));
        self.feed = Some(feed.map_err(|error| broken(&error, Break::RequestBody))?);
        Ok(Start::new(parts, begun))
    }

    /// Sends what there is of the request; an error is its body's.
    pub(super) fn pump(&mut self, cx: &mut Context<'_>) -> Result<(), String> {
        if self.deaf {
            return Ok(());
        }
        loop {
            let held = self.is_held(cx);
            let fed = match &mut self.feed {
                Some(feed) if !held || feed.is_whole() => feed.poll(&mut self.out, cx)?,
                Some(_) => Fed::Waiting,
                None => Fed::Whole,
            };
            match (self.out.poll_flush(&mut self.socket, cx), fed) {
                (Poll::Ready(Err(_)), _) => {
                    // It may have answered before it closed.
                    (self.deaf, self.feed) = (true, None);
                    self.out.clear();
                    return Ok(());
                }
                (Poll::Ready(Ok(())), Fed::Whole) => {
                    self.feed = None;
                    return Ok(());
                }
                (Poll::Ready(Ok(())), Fed::Full) => {}
                _ => return Ok(()),
            }
        }
    }

    /// What remains of a request that was not answered: all of it, if the other
    /// side has not read it.
    fn undo(&mut self, sent: Option<Start>, error: String, at: Break) -> SendError<B> {
        let Some(start) = sent else { return SendError::Broken { error, at, head: None } };
        let written = self.out.written;
        let unread = at == Break::BeforeAnswer && self.is_unread(written);
        let undone = match self.spent.take() {
            Some(feed) if unread => start.undone(feed.into_body()),
            _ => Err(Box::new(start.into_parts())),
        };
        match undone {
            Ok(unsent) => SendError::NotSent { unsent: Box::new(unsent), error },
            Err(head) => SendError::Broken { error, at, head: Some(head) },
        }
    }

    /// True if the other side ended without reading a request of which so much
    /// was written. Its end confirms all that it had before: what is not
    /// confirmed by it came too late. (A reset alone says nothing.)
    pub(super) fn is_unread(&self, written: u64) -> bool {
        self.inbox.ended && written <= UNREAD_BYTES_MAX && unacked::bytes(self.socket.tcp()) >= written
    }

    /// True once all of the request has been written.
    pub(super) fn is_sent(&self) -> bool {
        self.feed.is_none() && self.out.is_empty() && !self.deaf
    }

    /// What is left of a plain request goes on as part of any other.
    pub(super) fn take_over(&mut self, pieces: [&[u8]; 3], deaf: bool) {
        (self.out.written, self.deaf) = (0, deaf);
        if !deaf {
            pieces.into_iter().for_each(|piece| self.out.data(Bytes::copy_from_slice(piece)));
        }
    }

    fn is_held(&mut self, cx: &mut Context<'_>) -> bool {
        let held = match &mut self.hold {
            Hold::No => false,
            Hold::UntilContinue => true,
            Hold::UntilContinueOr(sleep) => Pin::new(sleep).poll(cx).is_pending(),
        };
        if !held {
            self.hold = Hold::No;
        }
        held
    }
}

/// The answer's head, on its way in.
struct Answering {
    scan: Scan,
    method: Method,
    interims: usize,
}

impl Answering {
    fn poll<B>(
        &mut self,
        wire: &mut Wire<B>,
        options: &mut Options<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Head, SendError<B>>>
    where
        B: Body<Data = Bytes> + Unpin,
        B::Error: Display,
    {
        let most = options.head_bytes_max.unwrap_or(ANSWER_HEAD_BYTES_MAX);
        loop {
            match reply::head(&mut wire.inbox.bytes, &mut self.scan, &self.method, most) {
                Err(_) if is_http2(&wire.inbox.bytes) => {
                    return Poll::Ready(Err(broken("the server speaks HTTP/2", Break::Version)));
                }
                Err(what) => return Poll::Ready(Err(broken(what, Break::Answer))),
                Ok(Some(head)) if head.is_interim() => {
                    self.interims += 1;
                    if self.interims > INTERIM_MAX {
                        return Poll::Ready(Err(broken("too many interim answers", Break::Answer)));
                    }
                    if head.status == StatusCode::CONTINUE && !matches!(wire.hold, Hold::No) {
                        wire.hold = Hold::No;
                        wire.pump(cx).map_err(|error| broken(&error, Break::RequestBody))?;
                    }
                    if let Some(on_interim) = &mut options.on_interim {
                        on_interim(head.status, head.fields);
                    }
                    continue;
                }
                Ok(Some(head)) => return Poll::Ready(Ok(head)),
                Ok(None) => {}
            }
            match std::task::ready!(wire.inbox.poll_fill(&mut wire.socket, cx)) {
                Ok(0) if wire.inbox.bytes.is_empty() => return Poll::Ready(Err(broken("EOF", Break::BeforeAnswer))),
                Ok(0) => return Poll::Ready(Err(broken("unexpected EOF", Break::Answer))),
                Ok(_) => {}
                Err(error) => return Poll::Ready(Err(broken(&error.to_string(), Break::BeforeAnswer))),
            }
        }
    }
}

/// A server of HTTP/2 begins with SETTINGS, a frame of the connection itself.
fn is_http2(input: &[u8]) -> bool {
    matches!(input, [_, _, _, 4, _, 0, 0, 0, 0, ..])
}

fn not_sent<B>(unsent: Outgoing<B>, error: &str) -> SendError<B> {
    SendError::NotSent { unsent: Box::new(unsent), error: error.to_owned() }
}

fn broken<B>(error: &str, at: Break) -> SendError<B> {
    SendError::Broken { error: error.to_owned(), at, head: None }
}
