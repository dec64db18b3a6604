//! Lines on their way to a reader: written by the decisions, which never wait,
//! and read as the body of an answer.

use bytes::Bytes;
use http_body::{Body, Frame};
use parking_lot::Mutex;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// Bytes that one reader may leave unread.
pub const UNREAD_MAX: usize = 8 << 20;

#[derive(Default)]
struct Unread {
    lines: Vec<u8>,
    /// No more will come, or nobody reads any more.
    ended: bool,
    reader: Option<Waker>,
}

/// The end that is written to.
pub(super) struct Lines(Arc<Mutex<Unread>>);

/// The end that is read: whole lines, each a JSON object. It ends when the
/// autoscaler does; whoever drops it ends the recording.
pub struct Recording(Arc<Mutex<Unread>>);

pub(super) fn pair() -> (Lines, Recording) {
    let unread = Arc::new(Mutex::new(Unread::default()));
    (Lines(unread.clone()), Recording(unread))
}

impl Lines {
    /// False when there is no room for it.
    pub(super) fn put(&self, line: &[u8]) -> bool {
        let mut unread = self.0.lock();
        if unread.lines.len() + line.len() + 1 > UNREAD_MAX {
            return false;
        }
        unread.lines.extend_from_slice(line);
        unread.lines.push(b'\n');
        if let Some(reader) = unread.reader.take() {
            reader.wake();
        }
        true
    }

    /// Nobody reads any more.
    pub(super) fn are_unheard(&self) -> bool {
        self.0.lock().ended
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        let mut unread = self.0.lock();
        unread.ended = true;
        if let Some(reader) = unread.reader.take() {
            reader.wake();
        }
    }
}

impl Recording {
    /// The lines that have come since it was read last.
    pub fn read(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0.lock().lines)
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        let mut unread = self.0.lock();
        (unread.ended, unread.lines) = (true, Vec::new());
    }
}

impl Body for Recording {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let mut unread = self.0.lock();
        if !unread.lines.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut unread.lines).into()))));
        }
        if unread.ended {
            return Poll::Ready(None);
        }
        unread.reader = Some(context.waker().clone());
        Poll::Pending
    }
}
