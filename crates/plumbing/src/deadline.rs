//! The three limits of one request: whole, first byte, idle.

use crate::reason::Reason;
use crate::wheel::{Sleep, Wheel};
use policy::revision::Timeouts;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::time::Instant;

/// Watches the limits of one request. All three start when it is made.
pub struct Limits {
    total: Instant,
    /// `None` once the answer has begun, or when it is off.
    first_byte: Option<Instant>,
    idle: Option<std::time::Duration>,
    last_write: Instant,
    sleep: Sleep,
}

impl Limits {
    /// Starts the limits.
    pub fn start(wheel: &Wheel, timeouts: &Timeouts) -> Limits {
        Limits::since(wheel, timeouts, Instant::now())
    }

    /// Limits that began before.
    pub fn since(wheel: &Wheel, timeouts: &Timeouts, began: Instant) -> Limits {
        let mut limits = Limits {
            total: began + timeouts.total,
            first_byte: timeouts.response_start.map(|span| began + span),
            idle: timeouts.idle,
            last_write: began,
            sleep: wheel.sleep_until(began),
        };
        limits.sleep.reset(limits.next().0);
        limits
    }

    /// The answer has begun: the first-byte limit is spent.
    pub fn answered(&mut self) {
        self.first_byte = None;
        self.wrote();
    }

    /// Something went towards the client: the idle limit starts anew.
    pub fn wrote(&mut self) {
        if self.idle.is_some() {
            self.last_write = Instant::now();
        }
    }

    /// The answer to a plain request began then.
    pub fn answered_at(&mut self, at: Instant) {
        self.first_byte = None;
        self.last_write = at;
    }

    /// Ready with the limit that has passed.
    pub fn poll_passed(&mut self, cx: &mut Context<'_>) -> Poll<Reason> {
        loop {
            let (due, reason) = self.next();
            // A limit that has moved away leaves an early timer; set it anew
            // only when it fires. One that came nearer is set at once.
            if due < self.sleep.deadline() {
                self.sleep.reset(due);
            }
            if Pin::new(&mut self.sleep).poll(cx).is_pending() {
                return Poll::Pending;
            }
            if due <= Instant::now() {
                return Poll::Ready(reason);
            }
            self.sleep.reset(due);
        }
    }

    /// Ready with the limit that has passed.
    pub async fn passed(&mut self) -> Reason {
        std::future::poll_fn(|cx| self.poll_passed(cx)).await
    }

    /// The limit that passes next, and when, if nothing goes to the client.
    pub fn next(&self) -> (Instant, Reason) {
        let mut next = (self.total, Reason::TotalTimeout);
        if let Some(at) = self.first_byte.filter(|at| *at < next.0) {
            next = (at, Reason::FirstByteTimeout);
        }
        if let Some(at) = self.idle.map(|span| self.last_write + span).filter(|at| *at < next.0) {
            next = (at, Reason::IdleTimeout);
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn timeouts(total: u64, first: Option<u64>, idle: Option<u64>) -> Timeouts {
        let seconds = Duration::from_secs;
        Timeouts { total: seconds(total), response_start: first.map(seconds), idle: idle.map(seconds), upgrade: None }
    }

    async fn outcome(timeouts: Timeouts, writes_every: Option<Duration>) -> (Reason, u64) {
        let wheel = Wheel::new();
        tokio::spawn(wheel.clone().drive());
        let began = Instant::now();
        let mut limits = Limits::start(&wheel, &timeouts);
        loop {
            let write = async {
                match writes_every {
                    Some(span) => tokio::time::sleep(span).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                reason = limits.passed() => return (reason, began.elapsed().as_secs()),
                () = write => limits.answered(),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_earliest_limit_fires_and_is_named() {
        assert_eq!(outcome(timeouts(10, None, None), None).await, (Reason::TotalTimeout, 10));
        assert_eq!(outcome(timeouts(10, Some(3), None), None).await, (Reason::FirstByteTimeout, 3));
        assert_eq!(outcome(timeouts(10, None, Some(2)), None).await, (Reason::IdleTimeout, 2));
    }

    #[tokio::test(start_paused = true)]
    async fn writes_keep_idle_away_and_spend_the_first_byte_limit() {
        let often = Some(Duration::from_millis(700));
        assert_eq!(outcome(timeouts(10, Some(3), Some(2)), often).await, (Reason::TotalTimeout, 10));
    }
}
