//! Timers for things that nearly always end before their time is up.
//!
//! A request has up to three limits and is over in milliseconds, so arming a
//! timer of the runtime for each costs more than all our accounting. Here a
//! timer is a list entry; one task per wheel sleeps until the next entry that
//! may be due, and sleeps for good while there is none.
//!
//! Two levels: 256 slots of 10 ms (2.56 s), and 256 of 2.56 s (11 minutes).
//! Later times stand in the last slot and are placed again when it comes up.
//! A timer fires up to one tick late, never early.

use parking_lot::Mutex;
use policy::list::{Arena, Key, List};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Resolution of a timer.
pub const TICK: Duration = Duration::from_millis(10);

const SLOTS: u64 = 256;
const HORIZON_TICKS: u64 = SLOTS * SLOTS;

/// A set of timers. Clones share it; one per worker, so its lock is not
/// contended.
#[derive(Clone)]
pub struct Wheel {
    shared: Arc<Shared>,
}

struct Shared {
    start: Instant,
    state: Mutex<State>,
    rearm: Notify,
}

struct State {
    entries: Arena<Entry>,
    near: Vec<List>,
    far: Vec<List>,
    /// All ticks up to this one have been swept.
    swept: u64,
    /// What the driver sleeps until; `u64::MAX` = nothing.
    armed: u64,
}

struct Entry {
    due: u64,
    place: Option<(Level, usize)>,
    waker: Option<Waker>,
}

#[derive(Clone, Copy)]
enum Level {
    Near,
    Far,
}

impl Wheel {
    /// An empty wheel. Its timers fire while [`Wheel::drive`] runs.
    pub fn new() -> Wheel {
        let lists = || (0..SLOTS).map(|_| List::default()).collect();
        let state = State { entries: Arena::default(), near: lists(), far: lists(), swept: 0, armed: u64::MAX };
        let shared = Shared { start: Instant::now(), state: Mutex::new(state), rearm: Notify::new() };
        Wheel { shared: Arc::new(shared) }
    }

    /// Fires timers until it is dropped. Run it as one task, on the runtime
    /// whose tasks use the wheel.
    pub async fn drive(self) {
        loop {
            let next = {
                let mut state = self.shared.state.lock();
                state.armed = state.next_due();
                state.armed
            };
            if next == u64::MAX {
                self.shared.rearm.notified().await;
                continue;
            }
            let at = self.shared.start + TICK * u32::try_from(next).unwrap_or(u32::MAX);
            tokio::select! {
                () = tokio::time::sleep_until(at) => self.sweep(),
                () = self.shared.rearm.notified() => {}
            }
        }
    }

    /// A timer that is due at `at`.
    pub fn sleep_until(&self, at: Instant) -> Sleep {
        Sleep { wheel: self.clone(), at, entry: None }
    }

    /// A timer that is due after `span`.
    pub fn sleep(&self, span: Duration) -> Sleep {
        self.sleep_until(Instant::now() + span)
    }

    /// Timers that are set.
    pub fn len(&self) -> usize {
        self.shared.state.lock().entries.len()
    }

    /// True when no timer is set.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn sweep(&self) {
        let now = self.tick_before(Instant::now());
        let mut due = Vec::new();
        self.shared.state.lock().advance(now, &mut due);
        due.into_iter().for_each(Waker::wake);
    }

    /// The last tick that has begun at `at`.
    fn tick_before(&self, at: Instant) -> u64 {
        let passed = at.saturating_duration_since(self.shared.start);
        u64::try_from(passed.as_nanos() / TICK.as_nanos()).unwrap_or(u64::MAX)
    }
}

impl Default for Wheel {
    fn default() -> Self {
        Wheel::new()
    }
}

impl State {
    fn place(&mut self, key: Key, due: u64) {
        let ahead = due.saturating_sub(self.swept).max(1);
        let place = if ahead < SLOTS {
            (Level::Near, ((self.swept + ahead) % SLOTS) as usize)
        } else {
            // The block of the far level in which it is due, the last one at most.
            let tick = self.swept + ahead.min(HORIZON_TICKS - SLOTS);
            (Level::Far, (tick / SLOTS % SLOTS) as usize)
        };
        if let Some(entry) = self.entries.get_mut(key) {
            entry.place = Some(place);
        }
        let list = match place {
            (Level::Near, slot) => &mut self.near[slot],
            (Level::Far, slot) => &mut self.far[slot],
        };
        list.push_back(&mut self.entries, key);
    }

    fn remove(&mut self, key: Key) {
        let Some(place) = self.entries.get(key).map(|entry| entry.place) else { return };
        match place {
            Some((Level::Near, slot)) => self.near[slot].unlink(&mut self.entries, key),
            Some((Level::Far, slot)) => self.far[slot].unlink(&mut self.entries, key),
            None => {}
        }
        self.entries.remove(key);
    }

    /// The first tick at which something has to be done; `u64::MAX` = never.
    fn next_due(&self) -> u64 {
        if self.entries.is_empty() {
            return u64::MAX;
        }
        let near =
            (1..SLOTS).map(|ahead| self.swept + ahead).find(|tick| !self.near[(tick % SLOTS) as usize].is_empty());
        let block = self.swept / SLOTS;
        let far = (1..SLOTS).map(|ahead| block + ahead).find(|block| !self.far[(block % SLOTS) as usize].is_empty());
        near.unwrap_or(u64::MAX).min(far.map_or(u64::MAX, |block| block * SLOTS))
    }

    /// Takes out what is due up to tick `now`.
    fn advance(&mut self, now: u64, due: &mut Vec<Waker>) {
        while self.swept < now {
            // Jump over ticks with nothing in them.
            let next = self.next_due();
            if next > now {
                self.swept = now;
                return;
            }
            self.swept = next;
            if self.swept.is_multiple_of(SLOTS) {
                let mut block = std::mem::take(&mut self.far[(self.swept / SLOTS % SLOTS) as usize]);
                while let Some(key) = block.pop_front(&mut self.entries) {
                    let at = self.entries.get(key).map_or(0, |entry| entry.due);
                    if at <= self.swept { self.fire(key, due) } else { self.place(key, at) }
                }
            }
            let slot = (self.swept % SLOTS) as usize;
            while let Some(key) = self.near[slot].pop_front(&mut self.entries) {
                self.fire(key, due);
            }
        }
    }

    fn fire(&mut self, key: Key, due: &mut Vec<Waker>) {
        due.extend(self.entries.remove(key).and_then(|entry| entry.waker));
    }
}

/// A timer; ready once its time has come. Costs nothing until it is polled.
pub struct Sleep {
    wheel: Wheel,
    at: Instant,
    entry: Option<Key>,
}

impl Sleep {
    /// When it is due.
    pub fn deadline(&self) -> Instant {
        self.at
    }

    /// Sets another time.
    pub fn reset(&mut self, at: Instant) {
        self.cancel();
        self.at = at;
    }

    fn cancel(&mut self) {
        if let Some(key) = self.entry.take() {
            self.wheel.shared.state.lock().remove(key);
        }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let shared = &this.wheel.shared;
        let mut state = shared.state.lock();
        // One that is still in the wheel is not due, by the wheel's clock.
        if let Some(entry) = this.entry.and_then(|key| state.entries.get_mut(key)) {
            match &mut entry.waker {
                Some(waker) if waker.will_wake(cx.waker()) => {}
                waker => *waker = Some(cx.waker().clone()),
            }
            return Poll::Pending;
        }
        let now = Instant::now();
        if now >= this.at {
            this.entry = None;
            return Poll::Ready(());
        }
        // The tick after the one the time lies in: late rather than early.
        let due = this.wheel.tick_before(this.at) + 1;
        // A wheel that stood still has not swept the ticks that passed.
        if state.entries.is_empty() {
            state.swept = state.swept.max(this.wheel.tick_before(now));
        }
        let key = state.entries.insert(Entry { due, place: None, waker: Some(cx.waker().clone()) });
        state.place(key, due);
        this.entry = Some(key);
        if due < state.armed {
            // The driver itself works out the tick to sleep until.
            state.armed = due;
            drop(state);
            shared.rearm.notify_one();
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.cancel();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn timers_fire_in_time_near_and_far_and_beyond_the_horizon() {
        let wheel = Wheel::new();
        tokio::spawn(wheel.clone().drive());
        for span_ms in [1, 9, 10, 11, 2_559, 2_560, 2_561, 60_000, 655_000, 2_000_000, 7_000_000] {
            let span = Duration::from_millis(span_ms);
            let before = Instant::now();
            wheel.sleep(span).await;
            let took = before.elapsed();
            assert!(took >= span && took <= span + 2 * TICK, "{span:?} took {took:?}");
        }
        assert!(wheel.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn many_timers_set_together_fire_each_at_its_own_time() {
        let wheel = Wheel::new();
        tokio::spawn(wheel.clone().drive());
        let tasks: Vec<_> = (0..500u64)
            .map(|n| {
                let wheel = wheel.clone();
                let span = Duration::from_millis(n * n % 40_000);
                tokio::spawn(async move {
                    let before = Instant::now();
                    wheel.sleep(span).await;
                    (span, before.elapsed())
                })
            })
            .collect();
        for task in tasks {
            let (span, took) = task.await.unwrap();
            assert!(took >= span && took <= span + 2 * TICK, "{span:?} took {took:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_timer_called_off_leaves_nothing_behind() {
        let wheel = Wheel::new();
        tokio::spawn(wheel.clone().drive());
        let mut sleep = Box::pin(wheel.sleep(Duration::from_secs(300)));
        tokio::select! {
            () = &mut sleep => unreachable!("five minutes have not passed"),
            () = wheel.sleep(Duration::from_millis(50)) => {}
        }
        assert_eq!(wheel.len(), 1);
        drop(sleep);
        assert!(wheel.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_timer_can_be_moved_both_ways() {
        let wheel = Wheel::new();
        tokio::spawn(wheel.clone().drive());
        let before = Instant::now();
        let mut sleep = Box::pin(wheel.sleep(Duration::from_secs(5)));
        assert!(std::future::poll_fn(|cx| Poll::Ready(sleep.as_mut().poll(cx).is_pending())).await);
        sleep.reset(before + Duration::from_secs(1));
        sleep.as_mut().await;
        assert!(before.elapsed() < Duration::from_millis(1_050));
    }
}
