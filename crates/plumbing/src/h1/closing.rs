//! Ending a connection so that what was answered arrives.
//!
//! A socket that is closed while its peer still sends answers with a reset,
//! and a reset may overtake the answer. So what the client still sends is read
//! away for a while.

use super::chunk::Piece;
use super::exchange::After;
use super::limits::{DRAIN_BYTES_MAX, DRAIN_TIME_MAX, LINGER_QUIET_MAX, LINGER_TIME_MAX};
use super::link::{Link, State};
use super::malformed::Malformed;
use super::outbox::Outbox;
use crate::wheel::Wheel;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

/// Answers a malformed request and ends the connection.
pub(super) async fn refuse(link: &Link, wheel: &Wheel, what: Malformed) -> After {
    let mut out = Outbox::default();
    out.flat(&what.answer());
    link.state().begin_answer();
    let mut late = pin!(wheel.sleep(LINGER_TIME_MAX));
    let written = poll_fn(|cx| {
        if late.as_mut().poll(cx).is_ready() {
            return Poll::Ready(false);
        }
        link.state().poll_flush_all(&mut out, cx).map(|written| written.is_ok())
    })
    .await;
    if written { linger(link, wheel).await } else { After::Closed }
}

/// Reads the rest of a request away. True: it is gone, and the next may come.
pub(super) async fn drain(link: &Link, wheel: &Wheel) -> bool {
    let mut late = pin!(wheel.sleep(DRAIN_TIME_MAX));
    let mut read = 0;
    if link.state().decoder.hint().lower() > DRAIN_BYTES_MAX {
        return false;
    }
    poll_fn(|cx| {
        let drained = poll_drain(&mut link.state(), &mut read, cx);
        if drained.is_pending() { late.as_mut().poll(cx).map(|()| false) } else { drained }
    })
    .await
}

fn poll_drain(state: &mut State, read: &mut u64, cx: &mut Context<'_>) -> Poll<bool> {
    loop {
        match state.decoder.decode(&mut state.inbox.bytes) {
            Ok(Piece::Data(data)) => {
                *read += data.len() as u64;
                if *read > DRAIN_BYTES_MAX {
                    return Poll::Ready(false);
                }
            }
            Ok(Piece::End | Piece::Trailers(_)) => return Poll::Ready(true),
            Err(_) => return Poll::Ready(false),
            Ok(Piece::More) => match std::task::ready!(state.poll_fill(cx)) {
                Ok(0) | Err(_) => return Poll::Ready(false),
                Ok(_) => {}
            },
        }
    }
}

/// Ends our direction, and reads away what comes until the client ends its own
/// or has been quiet, or sending, for long enough.
pub(super) async fn linger(link: &Link, wheel: &Wheel) -> After {
    let mut late = pin!(wheel.sleep(LINGER_TIME_MAX));
    let mut quiet = wheel.sleep(LINGER_QUIET_MAX);
    let mut shut = false;
    poll_fn(|cx| {
        let mut state = link.state();
        if !shut {
            let Some(socket) = &mut state.socket else { return Poll::Ready(()) };
            let _ = tokio::io::AsyncWrite::poll_shutdown(Pin::new(socket), cx);
            shut = true;
        }
        loop {
            state.inbox.bytes.clear();
            match state.poll_fill(cx) {
                Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(()),
                Poll::Ready(Ok(_)) => quiet.reset(tokio::time::Instant::now() + LINGER_QUIET_MAX),
                Poll::Pending => break,
            }
        }
        drop(state);
        if late.as_mut().poll(cx).is_ready() { Poll::Ready(()) } else { Pin::new(&mut quiet).poll(cx) }
    })
    .await;
    After::Closed
}
