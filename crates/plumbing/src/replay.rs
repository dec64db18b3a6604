//! A request body that is read while the request waits, and that can be sent
//! again as long as no more than its first 16 KiB have been passed on.
//!
//! Reading while waiting has a reason of its own: over HTTP/1 a server learns
//! that a client has left only by reading, and a client that promised a body
//! and left would otherwise keep its place.

use crate::body::BodyError;
use crate::incoming::Incoming;
use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body as HttpBody, Frame, SizeHint};
use parking_lot::Mutex;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

/// Bytes of a body that are kept, so that it can be sent again.
pub const PREFIX_BYTES_MAX: usize = 16 * 1024;

/// Memory that kept prefixes may take. Clones share it.
#[derive(Clone, Debug)]
pub struct PrefixBudget {
    used: Arc<AtomicUsize>,
    bytes_max: usize,
    /// A larger one that it is a part of.
    whole: Option<Arc<PrefixBudget>>,
}

impl PrefixBudget {
    /// With a limit in bytes (default of the local floor: 64 MiB).
    pub fn new(bytes_max: usize) -> PrefixBudget {
        PrefixBudget { used: Arc::default(), bytes_max, whole: None }
    }

    /// A part of it with a limit of its own: what is taken counts in both.
    pub fn part(&self, bytes_max: usize) -> PrefixBudget {
        PrefixBudget { used: Arc::default(), bytes_max, whole: Some(Arc::new(self.clone())) }
    }

    /// Bytes in use.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    fn take(&self, bytes: usize) -> bool {
        let before = self.used.fetch_add(bytes, Ordering::Relaxed);
        let fits = before.saturating_add(bytes) <= self.bytes_max;
        if fits && self.whole.as_ref().is_none_or(|whole| whole.take(bytes)) {
            return true;
        }
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        false
    }

    fn give(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(whole) = &self.whole {
            whole.give(bytes);
        }
    }
}

/// How far reading ahead has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filled {
    /// The whole body is here.
    Whole,
    /// The prefix is full; more of the body is to come.
    Prefix,
    /// The process's budget is used up.
    NoMemory,
}

/// The kept body. Clones share it.
#[derive(Clone)]
pub struct Kept {
    shared: Arc<Mutex<State>>,
}

struct State {
    source: Option<Incoming>,
    frames: Vec<Bytes>,
    kept_bytes: usize,
    trailers: Option<HeaderMap>,
    ended: bool,
    /// Set once something was passed on that is not kept: it cannot be sent again.
    spilled: bool,
    /// The view that may read; older ones have been taken back.
    turn: u64,
    hint: SizeHint,
    budget: PrefixBudget,
}

impl Drop for State {
    fn drop(&mut self) {
        self.budget.give(self.kept_bytes);
    }
}

impl Kept {
    /// Keeps the beginning of `source`.
    pub fn new(source: Incoming, budget: &PrefixBudget) -> Kept {
        let hint = source.size_hint();
        let state = State {
            source: Some(source),
            frames: Vec::new(),
            kept_bytes: 0,
            trailers: None,
            ended: false,
            spilled: false,
            turn: 0,
            hint,
            budget: budget.clone(),
        };
        Kept { shared: Arc::new(Mutex::new(state)) }
    }

    /// Counts what is kept from now on in `budget`; to be called before the
    /// first byte is kept.
    pub fn charge_to(&self, budget: &PrefixBudget) {
        let mut state = self.shared.lock();
        debug_assert_eq!(state.kept_bytes, 0, "nothing is kept yet");
        if state.kept_bytes == 0 {
            state.budget = budget.clone();
        }
    }

    /// Reads ahead. Ready once nothing more is to be read for now; an error
    /// means that the client is gone.
    pub fn poll_fill(&self, cx: &mut Context<'_>) -> Poll<Result<Filled, BodyError>> {
        let mut state = self.shared.lock();
        loop {
            if state.ended {
                return Poll::Ready(Ok(Filled::Whole));
            }
            if state.kept_bytes >= PREFIX_BYTES_MAX {
                return Poll::Ready(Ok(Filled::Prefix));
            }
            let frame = match state.poll_source(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(frame) => frame?,
            };
            // A copy, of just these bytes: the connection's read buffer, of which
            // they are a part, is larger and must not be kept for as long.
            if let Some(bytes) = frame
                && !state.keep(Bytes::copy_from_slice(&bytes))
            {
                return Poll::Ready(Ok(Filled::NoMemory));
            }
        }
    }

    /// True while the whole body is known to fit the prefix, so that it can
    /// be sent, and sent again, without asking.
    pub fn fits_prefix(&self) -> bool {
        let state = self.shared.lock();
        state.ended || state.hint.upper().is_some_and(|upper| upper <= PREFIX_BYTES_MAX as u64)
    }

    /// True while sending it again is possible.
    pub fn can_be_sent_again(&self) -> bool {
        !self.shared.lock().spilled
    }

    /// The body from its beginning. Views given out before read nothing more.
    pub fn view(&self) -> View {
        let mut state = self.shared.lock();
        state.turn += 1;
        View { kept: self.clone(), turn: state.turn, next: 0, done: false }
    }
}

impl State {
    /// The next data of the source; `None` at its end.
    fn poll_source(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, BodyError>> {
        loop {
            let Some(source) = &mut self.source else {
                self.ended = true;
                return Poll::Ready(Ok(None));
            };
            match Pin::new(source).poll_frame(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(error)),
                Poll::Ready(None) => self.source = None,
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(bytes) => {
                        if self.source.as_ref().is_some_and(HttpBody::is_end_stream) {
                            self.source = None;
                            self.ended = true;
                        }
                        return Poll::Ready(Ok(Some(bytes)));
                    }
                    Err(frame) => self.trailers = frame.into_trailers().ok(),
                },
            }
        }
    }

    fn keep(&mut self, bytes: Bytes) -> bool {
        if !self.budget.take(bytes.len()) {
            // It has been read, so it must not be lost: keep it uncounted, and say so.
            self.frames.push(bytes);
            return false;
        }
        self.kept_bytes += bytes.len();
        self.frames.push(bytes);
        true
    }

    fn spill(&mut self) {
        self.spilled = true;
        self.budget.give(self.kept_bytes);
        self.kept_bytes = 0;
    }
}

/// A reading of a [`Kept`] body.
pub struct View {
    kept: Kept,
    turn: u64,
    next: usize,
    done: bool,
}

impl View {
    pub(crate) fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if self.done {
            return Poll::Ready(None);
        }
        let mut state = self.kept.shared.lock();
        if state.turn != self.turn {
            return Poll::Ready(Some(Err(BodyError::TakenBack)));
        }
        if let Some(bytes) = state.frames.get(self.next) {
            let bytes = bytes.clone();
            self.next += 1;
            return Poll::Ready(Some(Ok(Frame::data(bytes))));
        }
        let frame = if state.ended { Ok(None) } else { std::task::ready!(state.poll_source(cx)) };
        match frame {
            Err(error) => {
                self.done = true;
                Poll::Ready(Some(Err(error)))
            }
            Ok(Some(bytes)) => {
                let room = state.kept_bytes + bytes.len() <= PREFIX_BYTES_MAX;
                if !state.spilled && room && state.keep(bytes.clone()) {
                    self.next += 1;
                } else {
                    state.spill();
                }
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            Ok(None) => {
                self.done = true;
                Poll::Ready(state.trailers.clone().map(|trailers| Ok(Frame::trailers(trailers))))
            }
        }
    }

    pub(crate) fn is_end_stream(&self) -> bool {
        let state = self.kept.shared.lock();
        self.done || (state.ended && self.next >= state.frames.len() && state.trailers.is_none())
    }

    pub(crate) fn size_hint(&self) -> SizeHint {
        self.kept.shared.lock().hint
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_counts_in_the_whole_and_neither_goes_beyond_its_limit() {
        let whole = PrefixBudget::new(10);
        let (a, b) = (whole.part(6), whole.part(6));
        assert!(a.take(6) && !a.take(1), "the part is used up");
        assert!(!b.take(5) && b.take(4), "so is the whole");
        assert_eq!((a.used(), b.used(), whole.used()), (6, 4, 10));
        a.give(6);
        b.give(4);
        assert_eq!((a.used(), b.used(), whole.used()), (0, 0, 0));
    }
}
