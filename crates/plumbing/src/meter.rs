//! Looking at a body as it passes: how many bytes, and how it ends.

use crate::body::BodyError;
use crate::reason::Reason;
use bytes::Bytes;
use http_body::Frame;
use std::task::Poll;
use tokio::time::Instant;

/// How a body ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// With its last byte.
    Whole,
    /// Whoever sent it broke off.
    Broken,
    /// A limit of its request passed.
    Limit(Reason),
    /// Whoever read it has left.
    Left,
}

/// Is told of a body that passes.
pub trait Meter: Send {
    /// So many bytes more have passed.
    fn passed(&mut self, bytes: usize);

    /// It has ended, then; told once.
    fn ended(self: Box<Self>, how: Ended, at: Instant);
}

/// The place of a meter at a body; empty for most.
#[derive(Default)]
pub(crate) struct Metered(Option<Box<dyn Meter>>);

impl Metered {
    pub(crate) fn by(meter: Box<dyn Meter>) -> Metered {
        Metered(Some(meter))
    }

    pub(crate) fn is_there(&self) -> bool {
        self.0.is_some()
    }

    /// So many bytes more have passed.
    pub(crate) fn passed(&mut self, bytes: usize) {
        if let Some(meter) = &mut self.0 {
            meter.passed(bytes);
        }
    }

    /// What the body gave; `last`: it says that nothing follows.
    pub(crate) fn look(&mut self, polled: &Poll<Option<Result<Frame<Bytes>, BodyError>>>, last: bool) {
        let (Some(meter), Poll::Ready(given)) = (&mut self.0, polled) else { return };
        match given {
            Some(Ok(frame)) => {
                meter.passed(frame.data_ref().map_or(0, Bytes::len));
                if last {
                    self.end(Ended::Whole);
                }
            }
            Some(Err(BodyError::Limit(reason))) => self.end(Ended::Limit(*reason)),
            Some(Err(_)) => self.end(Ended::Broken),
            None => self.end(Ended::Whole),
        }
    }

    pub(crate) fn end(&mut self, how: Ended) {
        if self.is_there() {
            self.end_at(how, Instant::now());
        }
    }

    pub(crate) fn end_at(&mut self, how: Ended, at: Instant) {
        if let Some(meter) = self.0.take() {
            meter.ended(how, at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::Body;
    use http_body_util::BodyExt;
    use std::sync::mpsc::{Sender, channel};

    struct Told {
        bytes: usize,
        to: Sender<(usize, Ended)>,
    }

    impl Meter for Told {
        fn passed(&mut self, bytes: usize) {
            self.bytes += bytes;
        }

        fn ended(self: Box<Self>, how: Ended, _: Instant) {
            self.to.send((self.bytes, how)).unwrap();
        }
    }

    #[tokio::test]
    async fn a_body_tells_its_bytes_and_its_end_once() {
        let (to, told) = channel();
        let metered = |body: Body| body.metered(Box::new(Told { bytes: 0, to: to.clone() }));
        let _ = metered(Body::full(Bytes::from_static(b"hello"))).collect().await;
        drop(metered(Body::empty()));
        drop(metered(Body::full(Bytes::from_static(b"unread"))));
        let all: Vec<_> = told.try_iter().collect();
        assert_eq!(all, [(5, Ended::Whole), (0, Ended::Whole), (0, Ended::Left)]);
    }
}
