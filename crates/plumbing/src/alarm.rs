//! A clock that wakes once: for the few things that happen each second in a
//! process that should otherwise sleep.
//!
//! The runtime's own timers wake twice for a time that is more than 64 ms
//! away, once near it and once at it. That is nothing under load, and half of
//! all wake-ups of an idle sidecar, of which a machine may have hundreds.

use rustix::io::read;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use std::os::fd::OwnedFd;
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A timer of the kernel; where there is none to be had, the runtime's.
pub struct Alarm {
    timer: Option<AsyncFd<OwnedFd>>,
}

impl Alarm {
    /// Not set.
    #[expect(deprecated, reason = "what stands in for it is unsafe; an `OwnedFd` is what the old one is sound for")]
    pub fn new() -> Alarm {
        let made = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC).ok();
        Alarm { timer: made.and_then(|timer| AsyncFd::with_interest(timer, Interest::READABLE).ok()) }
    }

    /// A timer of the runtime, which stands still where tests pause time.
    pub fn of_the_runtime() -> Alarm {
        Alarm { timer: None }
    }

    /// Ready after `span`.
    pub async fn after(&self, span: Duration) {
        let Some(timer) = self.timer.as_ref().filter(|timer| set(timer.get_ref(), span)) else {
            return tokio::time::sleep(span).await;
        };
        loop {
            let Ok(mut ready) = timer.readable().await else { return tokio::time::sleep(span).await };
            let mut expirations = [0_u8; 8];
            match ready.try_io(|timer| Ok(read(timer.get_ref(), &mut expirations)?)) {
                Ok(_) => return,
                // It had been set anew.
                Err(_would_block) => {}
            }
        }
    }
}

impl Default for Alarm {
    fn default() -> Self {
        Alarm::new()
    }
}

/// Zero would switch it off: the shortest time stands for it.
fn set(timer: &OwnedFd, span: Duration) -> bool {
    let span = span.max(Duration::from_nanos(1));
    let Ok(seconds) = i64::try_from(span.as_secs()) else { return false };
    let once = Timespec { tv_sec: 0, tv_nsec: 0 };
    let value = Timespec { tv_sec: seconds, tv_nsec: span.subsec_nanos().into() };
    timerfd_settime(timer, TimerfdTimerFlags::empty(), &Itimerspec { it_interval: once, it_value: value }).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[tokio::test]
    async fn it_wakes_after_its_time_each_time_and_can_be_set_anew() {
        let alarm = Alarm::new();
        for millis in [0, 5, 80] {
            let began = Instant::now();
            alarm.after(Duration::from_millis(millis)).await;
            let took = began.elapsed().as_millis();
            assert!((u128::from(millis)..u128::from(millis) + 500).contains(&took), "{millis}: {took}");
        }
        let cut_short = tokio::time::timeout(Duration::from_millis(20), alarm.after(Duration::from_millis(10_000)));
        assert!(cut_short.await.is_err());
        let began = Instant::now();
        alarm.after(Duration::from_millis(30)).await;
        assert!((30..500).contains(&began.elapsed().as_millis()));
    }
}
