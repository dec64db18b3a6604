//! What the driver of an accepted connection and the request that it serves
//! share: the socket, and what was read from it.
//!
//! The driver alone is woken by the socket. A request's body reads for itself
//! while it is polled, in the driver's name; so a body may be read in another
//! task, and nobody's wake-up is lost.

use super::decode::Decoder;
use super::encode;
use super::inbox::Inbox;
use super::limits::READ_AHEAD_BYTES_MAX;
use super::malformed::Malformed;
use super::outbox::Outbox;
use super::presence::{Doubt, Seen};
use super::request::Head;
use super::upgrade::Upgraded;
use crate::socket::Socket;
use http::{HeaderMap, StatusCode, Version};
use parking_lot::{Mutex, MutexGuard};
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use tokio::io::Interest;
use tokio::sync::oneshot;

/// A connection's shared part.
pub(super) struct Link(Mutex<State>);

pub(super) struct State {
    /// `None` once it was handed over.
    pub(super) socket: Option<Socket>,
    pub(super) inbox: Inbox,
    pub(super) decoder: Decoder,
    /// Which request is served: a body of an earlier one reads nothing.
    pub(super) turn: u64,
    /// Waits for more of the body.
    pub(super) reader: Option<Waker>,
    /// The body has been asked for.
    pub(super) asked: bool,
    /// Interim answers that have not been written.
    interim: Outbox,
    interim_allowed: bool,
    /// The answer has begun. A client that ends its request half-way has
    /// given it up before; from here on it may only have given up sending.
    answering: bool,
    pub(super) awaits_continue: bool,
    /// It was told so: another 100, of the app's, says nothing new.
    continued: bool,
    pub(super) malformed: Option<Malformed>,
    pub(super) broken: bool,
    /// Set when the client's end was seen: what had come completes the request.
    whole: bool,
    driver: Option<Waker>,
    driving: bool,
    pub(super) upgrade: Option<oneshot::Sender<Upgraded>>,
}

impl Link {
    pub(super) fn new(socket: Socket) -> Arc<Link> {
        Arc::new(Link(Mutex::new(State {
            socket: Some(socket),
            inbox: Inbox::default(),
            decoder: Decoder::EMPTY,
            turn: 0,
            reader: None,
            asked: false,
            interim: Outbox::default(),
            interim_allowed: false,
            answering: false,
            awaits_continue: false,
            continued: false,
            malformed: None,
            broken: false,
            whole: false,
            driver: None,
            driving: false,
            upgrade: None,
        })))
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }

    /// The driver begins to poll the request, in whose course its body may
    /// read and interim answers may be given.
    pub(super) fn enter(&self, cx: &Context<'_>) {
        let mut state = self.0.lock();
        state.driving = true;
        match &mut state.driver {
            Some(waker) if waker.will_wake(cx.waker()) => {}
            waker => *waker = Some(cx.waker().clone()),
        }
    }

    pub(super) fn leave(&self) -> MutexGuard<'_, State> {
        let mut state = self.0.lock();
        state.driving = false;
        state
    }

    /// A new request is served from now on.
    pub(super) fn begin(&self, head: &Head) -> u64 {
        let mut state = self.0.lock();
        state.turn += 1;
        state.decoder = head.decoder.clone();
        (state.reader, state.asked) = (None, false);
        state.interim_allowed = head.version == Version::HTTP_11;
        state.awaits_continue = head.expects_continue;
        (state.upgrade, state.answering, state.continued) = (None, false, false);
        state.whole = state.inbox.ended && state.decoder.would_end_with(&state.inbox.bytes);
        state.turn
    }

    /// A new request is served from now on, which has been read in full.
    pub(super) fn begin_plain(&self) -> u64 {
        let mut state = self.0.lock();
        state.turn += 1;
        state.decoder = Decoder::EMPTY;
        (state.reader, state.asked, state.upgrade) = (None, false, None);
        (state.interim_allowed, state.awaits_continue) = (true, false);
        (state.answering, state.continued) = (false, false);
        state.whole = true;
        state.turn
    }

    /// Ends the connection, whoever still holds a part of it.
    pub(super) fn close(&self) {
        let mut state = self.0.lock();
        (state.broken, state.interim_allowed) = (true, false);
        let held = (state.socket.take(), state.reader.take(), state.driver.take(), state.upgrade.take());
        drop(state);
        let (socket, reader, ..) = held;
        drop(socket);
        if let Some(reader) = reader {
            reader.wake();
        }
    }

    /// The request that was served is over: its body reads nothing more.
    pub(super) fn finish(&self) {
        let mut state = self.0.lock();
        state.turn += 1;
        let reader = state.reader.take();
        drop(state);
        if let Some(reader) = reader {
            reader.wake();
        }
    }

    /// Queues an interim answer. False if none can be sent any more.
    pub(super) fn interim(&self, turn: u64, status: StatusCode, fields: &HeaderMap) -> bool {
        let mut state = self.0.lock();
        if state.turn != turn || !state.interim_allowed || state.broken {
            return false;
        }
        if status == StatusCode::CONTINUE && state.continued {
            return true;
        }
        state.queue_interim(status, fields);
        state.wake_driver();
        true
    }

    /// Looks at the socket: reads ahead while it may, and says what there is
    /// to say of the client.
    pub(super) fn poll_watch(&self, cx: &mut Context<'_>) -> Poll<Seen> {
        let mut reader = None;
        let seen = self.0.lock().poll_watch(&mut reader, cx);
        // Whoever is woken may run at once: not under the lock.
        if let Some(reader) = reader {
            reader.wake();
        }
        seen
    }
}

impl State {
    /// Reads once; 0 at the end. For the driver.
    pub(super) fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let Some(socket) = &mut self.socket else { return Poll::Ready(Err(io::ErrorKind::NotConnected.into())) };
        let read = self.inbox.poll_fill(socket, cx);
        self.note(&read);
        read
    }

    /// Reads once, for the body, in the driver's name.
    pub(super) fn poll_fill_for_reader(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let Some(socket) = &mut self.socket else { return Poll::Ready(Err(io::ErrorKind::NotConnected.into())) };
        let read = match &self.driver {
            Some(driver) => self.inbox.poll_fill(socket, &mut Context::from_waker(driver)),
            None => self.inbox.poll_fill(socket, cx),
        };
        self.note(&read);
        read
    }

    fn note(&mut self, read: &Poll<io::Result<usize>>) {
        match read {
            Poll::Ready(Ok(0)) => self.whole = self.decoder.would_end_with(&self.inbox.bytes),
            Poll::Ready(Err(_)) => self.broken = true,
            _ => {}
        }
    }

    /// Writes what there is of interim answers.
    pub(super) fn poll_flush_interim(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.interim.is_empty() {
            return Poll::Ready(Ok(()));
        }
        self.poll_flush_all(&mut Outbox::default(), cx)
    }

    /// Sends an interim answer that says nothing to a client that may be gone:
    /// one that has closed its socket answers with a reset, one that has ended
    /// its direction alone passes over it. An error: it is gone.
    pub(super) fn poll_knock(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        if !self.interim_allowed {
            return Ok(());
        }
        if self.interim.is_empty() {
            self.interim.flat(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
        match self.poll_flush_interim(cx) {
            Poll::Ready(written) => written,
            Poll::Pending => Ok(()),
        }
    }

    /// Writes interim answers, then `out`.
    pub(super) fn poll_flush_all(&mut self, out: &mut Outbox, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(socket) = &mut self.socket else { return Poll::Ready(Err(io::ErrorKind::NotConnected.into())) };
        std::task::ready!(self.interim.poll_flush(socket, cx))?;
        self.interim.release();
        out.poll_flush(socket, cx)
    }

    /// The final answer begins: no interim answer may follow.
    pub(super) fn begin_answer(&mut self) {
        self.answering = true;
        self.interim_allowed = false;
        self.awaits_continue = false;
    }

    /// The body is wanted: a client that waits to be asked is asked, once.
    pub(super) fn ask(&mut self) {
        self.asked = true;
        if self.awaits_continue {
            self.queue_interim(StatusCode::CONTINUE, &HeaderMap::new());
            self.wake_driver();
        }
    }

    fn queue_interim(&mut self, status: StatusCode, fields: &HeaderMap) {
        if status == StatusCode::CONTINUE {
            (self.awaits_continue, self.continued) = (false, self.awaits_continue);
        }
        let mut head = b"HTTP/1.1 ".to_vec();
        head.extend_from_slice(status.as_str().as_bytes());
        head.push(b' ');
        head.extend_from_slice(status.canonical_reason().unwrap_or("").as_bytes());
        head.extend_from_slice(b"\r\n");
        encode::fields(fields, |_| true, &mut head);
        head.extend_from_slice(b"\r\n");
        self.interim.flat(&head);
    }

    /// While the driver itself polls, it looks afterwards.
    fn wake_driver(&self) {
        if !self.driving
            && let Some(driver) = &self.driver
        {
            driver.wake_by_ref();
        }
    }

    fn poll_watch(&mut self, woken: &mut Option<Waker>, cx: &mut Context<'_>) -> Poll<Seen> {
        loop {
            if self.broken || (self.inbox.ended && !self.whole && !self.answering) {
                return Poll::Ready(Seen::Gone);
            }
            if self.inbox.ended {
                return Poll::Ready(Seen::Doubt(Doubt::Ended));
            }
            // Who has begun to read the body and does not read now is busy:
            // what comes meanwhile stays in the socket, to be read in large pieces.
            let busy = self.reader.is_none() && self.asked && !self.decoder.is_done();
            if busy || self.inbox.bytes.len() >= READ_AHEAD_BYTES_MAX {
                return Poll::Ready(Seen::Doubt(Doubt::Backlog { ended: false }));
            }
            if self.poll_fill(cx).is_pending() {
                return Poll::Pending;
            }
            if let Some(reader) = self.reader.take() {
                *woken = Some(reader);
            }
        }
    }

    /// True if the kernel holds what the runtime has not been told of yet.
    pub(super) fn has_unseen(&self) -> bool {
        self.socket.as_ref().is_some_and(Socket::has_unread)
    }

    /// True if more has come than the request that was served.
    pub(super) fn has_more(&mut self) -> bool {
        if !self.inbox.bytes.is_empty() || self.inbox.ended {
            return !self.inbox.bytes.is_empty();
        }
        let Some(socket) = &self.socket else { return false };
        socket.has_input()
    }

    /// What the socket's state says without reading: gone, or ended behind what
    /// is unread.
    pub(super) fn look(&self) -> Option<Seen> {
        let socket = self.socket.as_ref()?;
        let ready = pin!(socket.tcp().ready(Interest::READABLE | Interest::ERROR));
        match ready.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Err(_)) => Some(Seen::Gone),
            Poll::Ready(Ok(ready)) if ready.is_error() => Some(Seen::Gone),
            Poll::Ready(Ok(ready)) if ready.is_read_closed() => Some(Seen::Doubt(Doubt::Backlog { ended: true })),
            _ => None,
        }
    }
}
