//! Telling load from the queue that pods leave behind while they start.
//!
//! While too few pods are there, requests wait, and count as requests in
//! progress; so the longer pods take to start, the more of them seem to be
//! needed, many times what the arrivals need. But pods that are starting are
//! capacity on its way. So after a jump of the arrivals that stays where it
//! is, no more is asked for than those arrivals need, with a margin that also
//! drains the queue: arrivals a second, times the seconds that a request takes
//! at a pod (Little's law).
//!
//! It says something only after a jump, while requests wait, and where pods
//! have a limit; otherwise, and while arrivals go on rising, every request
//! counts as it always did. It only ever lowers a wish.

use crate::moment::Moment;
use crate::window::DelayWindow;
use std::time::Duration;

/// What is asked for, of what the arrivals need.
const MARGIN: f64 = 1.2;
/// Arrivals jump when they were below this share of it two seconds before.
const JUMP: f64 = 0.6;
/// They stay where they are up to this much of it.
const SAME: f64 = 1.25;
/// What is known of how long requests take halves in so many seconds.
const HALF_LIFE: f64 = 60.0;
/// It is learned when no queue was left out for so many seconds.
const UNDISTURBED: i64 = 5;
/// So many requests must have ended for that to be known.
const ENDED_MIN: f64 = 1.0;
/// A queue that does not get shorter for so long, though no pod is on its way,
/// is load after all.
const STUCK: u32 = 10;
/// The same, once the arrivals are what they were before.
const STUCK_AFTER: u32 = 3;
/// A pause of more seconds than this is a new beginning.
const PAUSE_MAX: i64 = 10;

/// One second of a revision, as it was reported.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Second {
    /// Which one: whole seconds since 1970.
    pub index: i64,
    /// Requests in progress on average, waiting ones included.
    pub inside: f64,
    /// Requests that arrived.
    pub arrived: f64,
}

/// What pods there are for them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Capacity {
    /// Requests that all ready pods serve at a time.
    pub slots: f64,
    /// Load that they should carry.
    pub carried: f64,
    /// Pods that start.
    pub starting: u32,
    /// Load that one pod should carry.
    pub target: f64,
}

/// The most pods to wish for, by window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WishBounds {
    /// For the wish of the stable window.
    pub stable: i32,
    /// For the wish of the panic window.
    pub panic: i32,
}

/// Arrivals a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Jump {
    /// In the first second after a jump.
    pub first: f64,
    /// At most since.
    pub most: f64,
}

/// All that an [`Overload`] holds, as plain values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SavedOverload {
    /// The last two seconds, the older one first.
    pub last: [Option<Second>; 2],
    /// Request-seconds at pods of late.
    pub served: f64,
    /// Requests that ended of late.
    pub ended: f64,
    /// Set while arrivals stay where a jump has brought them.
    pub jump: Option<Jump>,
    /// Seconds for which the queue has not got shorter.
    pub stuck: u32,
    /// The last second with a queue that was left out.
    pub left_out: Option<i64>,
    /// Pods that seconds asked for without their queue, by second: the largest
    /// of the stable window.
    pub stable: Vec<(i64, i32)>,
    /// The same of the panic window.
    pub panic: Vec<(i64, i32)>,
}

/// A revision's arrivals and its queue.
#[derive(Clone, Debug, PartialEq)]
pub struct Overload {
    /// The last two seconds, the older one first.
    last: [Option<Second>; 2],
    /// Request-seconds at pods, and requests that ended, of late.
    served: f64,
    ended: f64,
    /// Set while arrivals stay where a jump has brought them.
    jump: Option<Jump>,
    stuck: u32,
    /// Pods that each second asked for without its queue: the most of a window.
    stable: DelayWindow,
    panic: DelayWindow,
    /// The last second with a queue that was left out.
    left_out: Option<i64>,
    window: Duration,
}

impl Overload {
    /// Nothing is known yet.
    pub fn new(stable: Duration, panic: Duration) -> Overload {
        let of = |window| DelayWindow::new(window, Duration::from_secs(1));
        Overload {
            last: [None; 2],
            served: 0.0,
            ended: 0.0,
            jump: None,
            stuck: 0,
            stable: of(stable),
            panic: of(panic),
            left_out: None,
            window: stable,
        }
    }

    /// All that it holds.
    pub fn save(&self) -> SavedOverload {
        let Overload { last, served, ended, jump, stuck, stable, panic, left_out, window: _ } = self;
        SavedOverload {
            last: *last,
            served: *served,
            ended: *ended,
            jump: *jump,
            stuck: *stuck,
            left_out: *left_out,
            stable: stable.values(),
            panic: panic.values(),
        }
    }

    /// One for windows of these lengths that goes on with what another has held.
    pub fn restore(stable: Duration, panic: Duration, saved: &SavedOverload) -> Overload {
        let Overload { stable: by_stable, panic: by_panic, window, .. } = Overload::new(stable, panic);
        let SavedOverload { last, served, ended, jump, stuck, left_out, stable, panic } = saved;
        Overload {
            last: *last,
            served: *served,
            ended: *ended,
            jump: *jump,
            stuck: *stuck,
            left_out: *left_out,
            stable: by_stable.with_values(stable),
            panic: by_panic.with_values(panic),
            window,
        }
    }

    /// The windows have other lengths from now on.
    pub fn resize(&mut self, stable: Duration, panic: Duration) {
        self.stable.resize(stable);
        self.panic.resize(panic);
        self.window = stable;
    }

    /// Gives up what says nothing any more.
    pub fn release(&mut self, now: Moment) {
        self.stable.release(now);
        self.panic.release(now);
    }

    /// Bytes held beside its own size.
    pub fn heap_bytes(&self) -> usize {
        self.stable.heap_bytes() + self.panic.heap_bytes()
    }

    /// The first second that was not seen yet.
    pub fn next(&self) -> Option<i64> {
        self.last[1].map(|last| last.index + 1)
    }

    /// Takes in a second that is over.
    pub fn see(&mut self, second: Second, capacity: &Capacity) {
        if self.next().is_some_and(|next| second.index < next) {
            return;
        }
        if self.next().is_some_and(|next| second.index - next > PAUSE_MAX) {
            (self.last, self.jump, self.stuck) = ([None; 2], None, 0);
        }
        self.learn(&second, capacity);
        self.follow(second.arrived);
        let waits = second.inside > capacity.slots;
        let shorter = self.last[1].is_some_and(|last| second.inside < last.inside);
        // After a burst of arrivals its queue gets shorter; clients that wait for
        // their answers before they ask again make one that stays.
        let over = self.jump.is_some_and(|jump| second.arrived * SAME < jump.first);
        self.stuck = if waits && !shorter && (over || capacity.starting == 0) { self.stuck + 1 } else { 0 };
        if self.stuck > if over { STUCK_AFTER } else { STUCK } {
            self.jump = None;
        }
        let load = self.load(second.index, second.inside, capacity);
        if load < second.inside {
            self.left_out = Some(second.index);
        } else if !waits && self.jump.is_some_and(|jump| second.arrived * SAME < jump.first) {
            // The queue is gone, and so is what made it.
            self.jump = None;
        }
        let (at, pods) = (Moment::from_unix_millis(second.index.saturating_mul(1000)), pods(load, capacity));
        self.stable.record(at, pods);
        self.panic.record(at, pods);
        self.last = [self.last[1], Some(second)];
    }

    /// The most pods to wish for in the second of which so far `inside` is
    /// known; `None` = no bound.
    pub fn bounds(&self, index: i64, inside: f64, capacity: &Capacity) -> Option<WishBounds> {
        let window = i64::try_from(self.window.as_secs()).unwrap_or(i64::MAX);
        self.left_out.filter(|&last| index.saturating_sub(last) <= window)?;
        let now = pods(self.load(index, inside, capacity), capacity);
        Some(WishBounds { stable: now.max(self.stable.largest()?), panic: now.max(self.panic.largest()?) })
    }

    /// The load of which so much is inside. Requests wait, or did a second ago,
    /// and are all at pods now.
    fn load(&self, index: i64, inside: f64, capacity: &Capacity) -> f64 {
        let queue = inside > capacity.slots || self.left_out == Some(index.saturating_sub(1));
        match (self.jump, self.service()) {
            (Some(jump), Some(service)) if queue => inside.min((jump.most * service * MARGIN).max(capacity.carried)),
            _ => inside,
        }
    }

    /// Seconds that a request takes at a pod.
    fn service(&self) -> Option<f64> {
        (self.ended >= ENDED_MIN).then(|| self.served / self.ended)
    }

    /// From seconds in which nobody waits: all that are inside are at pods.
    fn learn(&mut self, second: &Second, capacity: &Capacity) {
        // What a queue looks like while it grows and goes says little of that.
        let disturbed = self.left_out.is_some_and(|last| second.index - last < UNDISTURBED);
        if disturbed || second.inside > capacity.slots {
            return;
        }
        let fading = 0.5_f64.powf(1.0 / HALF_LIFE);
        (self.served, self.ended) = (self.served * fading, self.ended * fading);
        let [Some(before), Some(last)] = self.last else { return };
        // What was inside at the end of a second, from averages over seconds.
        let end = |before: f64, now: f64| now + (now - before) / 2.0;
        let grown = end(last.inside, second.inside) - end(before.inside, last.inside);
        self.served += second.inside.max(0.0);
        // With its sign: what one second has too much of, another has too little.
        self.ended += second.arrived - grown;
    }

    fn follow(&mut self, arrived: f64) {
        if let Some(jump) = self.jump.as_mut().filter(|jump| arrived <= jump.first * SAME) {
            jump.most = jump.most.max(arrived);
            return;
        }
        let known = self.last.iter().flatten().map(|last| last.arrived);
        let before = known.fold(f64::INFINITY, f64::min);
        self.jump = (arrived > 0.0 && before < arrived * JUMP).then_some(Jump { first: arrived, most: arrived });
    }
}

fn pods(load: f64, capacity: &Capacity) -> i32 {
    // `as` takes the nearest that fits, and 0 for no number.
    (load / capacity.target).ceil() as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: f64 = 7.0;

    fn capacity(ready: u32, starting: u32) -> Capacity {
        Capacity { slots: f64::from(ready) * 10.0, carried: f64::from(ready) * TARGET, starting, target: TARGET }
    }

    /// Requests of a second each, `arrivals` a second, at `ready` pods that
    /// serve ten at a time: seconds `from..to`.
    fn course(of: &mut Overload, from: i64, to: i64, inside: &mut f64, arrivals: f64, pods: &Capacity) {
        for index in from..to {
            let before = *inside;
            *inside += arrivals - inside.min(pods.slots);
            of.see(Second { index, inside: (before + *inside) / 2.0, arrived: arrivals }, pods);
        }
    }

    fn settled() -> (Overload, f64) {
        let mut of = Overload::new(Duration::from_secs(60), Duration::from_secs(6));
        let mut inside = 7.0;
        course(&mut of, 0, 100, &mut inside, 7.0, &capacity(1, 0));
        (of, inside)
    }

    #[test]
    fn steady_load_is_never_bounded() {
        let (of, inside) = settled();
        assert_eq!(of.bounds(100, inside, &capacity(1, 0)), None);
    }

    #[test]
    fn after_a_jump_the_queue_is_left_out() {
        let (mut of, mut inside) = settled();
        course(&mut of, 100, 120, &mut inside, 70.0, &capacity(1, 9));
        assert!(inside > 1000.0);
        let bounds = of.bounds(120, inside, &capacity(1, 9)).unwrap();
        assert!((10..=13).contains(&bounds.panic) && bounds.stable == bounds.panic, "{bounds:?}");
        // The jump is over, the queue is not.
        course(&mut of, 120, 125, &mut inside, 7.0, &capacity(1, 9));
        assert!(of.bounds(125, inside, &capacity(1, 9)).unwrap().panic <= 13);
    }

    #[test]
    fn arrivals_that_go_on_rising_count_in_full() {
        let (mut of, mut inside) = settled();
        for second in 0..20 {
            let arrivals = 7.0 + 6.0 * second as f64;
            course(&mut of, 100 + second, 101 + second, &mut inside, arrivals, &capacity(1, 9));
        }
        let bound = of.bounds(120, inside, &capacity(1, 9)).map_or(i32::MAX, |bounds| bounds.panic);
        assert!(f64::from(bound) >= (inside / TARGET).ceil(), "{bound} of {inside}");
    }

    #[test]
    fn a_queue_that_stays_though_no_pod_is_on_its_way_is_load() {
        let (mut of, mut inside) = settled();
        course(&mut of, 100, 130, &mut inside, 70.0, &capacity(1, 0));
        let bound = of.bounds(130, inside, &capacity(1, 0)).map_or(i32::MAX, |bounds| bounds.panic);
        assert!(f64::from(bound) >= (inside / TARGET).ceil(), "{bound} of {inside}");
    }

    #[test]
    fn without_a_limit_of_the_pods_or_history_there_is_no_bound() {
        let mut of = Overload::new(Duration::from_secs(60), Duration::from_secs(6));
        let mut inside = 0.0;
        course(&mut of, 0, 20, &mut inside, 70.0, &capacity(0, 3));
        assert_eq!(of.bounds(20, inside, &capacity(0, 3)), None);
        let (mut of, mut inside) = settled();
        let endless = Capacity { slots: f64::INFINITY, ..capacity(1, 0) };
        course(&mut of, 100, 120, &mut inside, 70.0, &endless);
        assert_eq!(of.bounds(120, inside, &endless), None);
    }

    #[test]
    fn absurd_seconds_do_not_panic() {
        let odd = [f64::NAN, f64::INFINITY, -1.0, 0.0, 1e308];
        for inside in odd {
            for arrived in odd {
                let mut of = Overload::new(Duration::MAX, Duration::ZERO);
                for index in [0, 1, 2, i64::MAX - 1, i64::MIN, 3] {
                    let capacity = Capacity { slots: inside, carried: inside, starting: 0, target: arrived };
                    of.see(Second { index, inside, arrived }, &capacity);
                    let _ = of.bounds(index, inside, &capacity);
                }
            }
        }
    }
}
