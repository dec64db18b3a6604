//! The first bytes of a request: until one of them is written, nothing has
//! happened, and all can be given back.

use super::client::Wire;
use super::outgoing::{Break, Hold, Outgoing, SendError};
use bytes::Bytes;
use http::request;
use http_body::Body;
use std::fmt::Display;
use std::task::{Context, Poll};

/// What has to be given back if not even the first byte can be written.
pub(super) struct Start {
    pub(super) parts: request::Parts,
    /// What was drawn from the body.
    pub(super) begun: Option<Bytes>,
    drawn: bool,
    /// Something was drawn that cannot be given back.
    spoilt: bool,
}

/// How the start went.
pub(super) enum Started {
    Sent,
    Waits,
    Failed(String),
}

impl Start {
    pub(super) fn new(parts: request::Parts, begun: Option<Bytes>) -> Start {
        let drawn = begun.is_some();
        Start { parts, begun, drawn, spoilt: false }
    }

    /// Writes the head, and with it the first of the body if that is here.
    pub(super) fn poll<B>(&mut self, wire: &mut Wire<B>, cx: &mut Context<'_>) -> Started
    where
        B: Body<Data = Bytes> + Unpin,
        B::Error: Display,
    {
        if !self.drawn && matches!(wire.hold, Hold::No) {
            self.drawn = true;
            if let Some(feed) = &mut wire.feed {
                match feed.poll_one(&mut wire.out, cx) {
                    Ok(Poll::Ready(data)) => self.begun = data,
                    Ok(Poll::Pending) => {}
                    // Drawn again, it says the same.
                    Err(_) => self.spoilt = true,
                }
                self.spoilt |= feed.has_trailers();
            }
        }
        match wire.out.poll_flush(&mut wire.socket, cx) {
            _ if wire.out.written > 0 => Started::Sent,
            Poll::Pending => Started::Waits,
            Poll::Ready(Ok(())) => Started::Sent,
            Poll::Ready(Err(error)) => Started::Failed(error.to_string()),
        }
    }

    /// The head, once it has been sent.
    pub(super) fn into_parts(self) -> request::Parts {
        self.parts
    }

    /// The request as it was, if all of it was drawn for the start.
    pub(super) fn undone<B>(self, body: B) -> Result<Outgoing<B>, Box<request::Parts>> {
        match self.spoilt {
            false => Ok(Outgoing { parts: self.parts, begun: self.begun, body }),
            true => Err(Box::new(self.parts)),
        }
    }

    pub(super) fn failed<B>(self, wire: &mut Wire<B>, error: String) -> SendError<B>
    where
        B: Body<Data = Bytes> + Unpin,
        B::Error: Display,
    {
        match wire.feed.take() {
            Some(feed) if !self.spoilt => {
                let unsent = Outgoing { parts: self.parts, begun: self.begun, body: feed.into_body() };
                SendError::NotSent { unsent: Box::new(unsent), error }
            }
            _ => SendError::Broken { error, at: Break::BeforeAnswer, head: Some(Box::new(self.parts)) },
        }
    }
}
