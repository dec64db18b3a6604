//! How many messages one connection may send: a bucket that fills by so many
//! a second.

use parking_lot::Mutex;
use std::time::Duration;
use tokio::time::Instant;

pub(crate) struct Rate {
    per_second: f64,
    state: Mutex<(f64, Instant)>,
}

impl Rate {
    pub(crate) fn new(per_second: u32) -> Rate {
        let per_second = f64::from(per_second.max(1));
        Rate { per_second, state: Mutex::new((per_second, Instant::now())) }
    }

    /// Takes one; false when there is none.
    pub(crate) fn take(&self) -> bool {
        let mut state = self.state.lock();
        let now = Instant::now();
        let filled = state.0 + (now - state.1).as_secs_f64() * self.per_second;
        *state = (filled.min(self.per_second), now);
        let some = state.0 >= 1.0;
        if some {
            state.0 -= 1.0;
        }
        some
    }

    /// How long until there is one; nothing when there is.
    pub(crate) fn wait(&self) -> Duration {
        let (level, since) = *self.state.lock();
        let filled = level + since.elapsed().as_secs_f64() * self.per_second;
        Duration::from_secs_f64(((1.0 - filled) / self.per_second).max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn so_many_at_once_and_then_so_many_a_second() {
        let rate = Rate::new(10);
        assert_eq!(rate.wait(), Duration::ZERO);
        assert_eq!((0..20).filter(|_| rate.take()).count(), 10);
        assert_eq!(rate.wait(), Duration::from_millis(100));
        tokio::time::advance(Duration::from_millis(350)).await;
        assert_eq!((0..20).filter(|_| rate.take()).count(), 3);
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!((0..20).filter(|_| rate.take()).count(), 10);
    }
}
