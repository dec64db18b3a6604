//! How many pods a revision should have: the reference's decision, one call a
//! tick. Bounds, initial scale and the way to zero are not part of it; they
//! come after, in [`crate::zero`], so that the memories of panic and of the
//! delay window hold unbounded numbers.
//!
//! The shell keeps one [`Memory`] for each revision and gives it to every
//! [`decide`]; nothing else is remembered between ticks.

use crate::collect::Load;
use crate::compat::Compat;
use crate::limit::{LimitKind, Overrides, Steps};
use crate::moment::Moment;
use crate::overload::WishBounds;
use crate::revision::ScaleSpec;
use crate::steady::Steady;
use crate::window::DelayWindow;
use std::time::Duration;

/// Width of one bucket of the delay window: the reference's tick.
const TICK: Duration = Duration::from_secs(2);

/// The stable window is far behind the panic window from this ratio on.
const BEHIND: f64 = 1.25;

/// Ready pods of a revision, as far as they could be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// So many.
    Pods(u32),
    /// The revision has no list of pods yet: counts as none.
    NotFound,
    /// They could not be counted: no decision.
    Unknown,
}

/// What was seen of a revision just now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observed {
    /// Averages over the two windows, in the unit of [`ScaleSpec::metric`].
    pub load: Load,
    /// Pods that take new requests.
    pub ready: Ready,
    /// Pods that start ([`Compat::Better`] only).
    pub starting: u32,
    /// The most pods to wish for, where requests wait for pods that start
    /// ([`Compat::Better`] only).
    pub bounds: Option<WishBounds>,
}

impl Observed {
    /// Where nothing else is known.
    pub fn new(load: Load, ready: Ready) -> Observed {
        Observed { load, ready, starting: 0, bounds: None }
    }
}

/// Why no decision could be made. The earlier one stands, and nothing is
/// remembered of the attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undecided {
    /// The windows are empty.
    NoData,
    /// Nobody collects load for this revision.
    NotCollecting,
    /// The pods could not be counted.
    PodsUnknown,
    /// An average is infinite or no number ([`Compat::Better`] only).
    NotFinite,
}

impl Undecided {
    /// From its word.
    pub fn parse(word: &str) -> Option<Undecided> {
        let all = [Undecided::NoData, Undecided::NotCollecting, Undecided::PodsUnknown, Undecided::NotFinite];
        all.into_iter().find(|kind| kind.as_str() == word)
    }

    /// The word for it in `why`, in logs and in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Undecided::NoData => "no-data",
            Undecided::NotCollecting => "not-collecting",
            Undecided::PodsUnknown => "pods-unknown",
            Undecided::NotFinite => "not-finite",
        }
    }
}

/// All that is remembered from one decision to the next.
#[derive(Clone, Debug, PartialEq)]
pub struct Memory {
    panic_since: Option<Moment>,
    max_panic_pods: i32,
    /// What panic held when it ended, while the stable window has not caught
    /// up with the panic window.
    after_panic: Option<i32>,
    steady: Steady,
    delay: Option<DelayWindow>,
    delay_length: Duration,
    compat: Compat,
}

/// A [`Memory`] as plain values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SavedMemory {
    /// The last moment of excess; `None` = calm.
    pub panic_since: Option<Moment>,
    /// The most pods wished for since panic began.
    pub max_panic_pods: i32,
    /// What stays of a panic that is over.
    pub after_panic: Option<i32>,
    /// What holds the number against noise.
    pub steady: Steady,
    /// Bucket and value of each candidate of the delay window, oldest first.
    pub delay: Vec<(i64, i32)>,
}

/// How many pods, and why.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// Pods wished for, before bounds.
    pub desired: i32,
    /// Spare load beyond `target-burst-capacity`; the activator may leave the
    /// path only when it is not negative.
    pub excess_burst_capacity: i32,
    /// True while in panic.
    pub panic: bool,
    /// The most pods wished for since panic began; after it, what is left.
    pub max_panic_pods: i32,
    /// What led to it.
    pub why: Why,
}

/// Inputs of a decision and the limits that acted on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Why {
    /// Load averaged over the stable window.
    pub stable: f64,
    /// Load averaged over the panic window.
    pub panic: f64,
    /// Ready pods.
    pub ready: u32,
    /// Load that one pod should carry.
    pub target: f64,
    /// Pods that `stable` asks for, before any limit.
    pub wish_stable: f64,
    /// Pods that `panic` asks for, before any limit.
    pub wish_panic: f64,
    /// `wish_panic` over the ready pods (at least 1): panic from
    /// `panic-threshold-percentage` on.
    pub ratio: f64,
    /// Pods that start.
    pub starting: u32,
    /// True when the wish of the panic window was the one taken.
    pub by_panic_window: bool,
    /// The limits that acted on the wish, in order.
    pub steps: Steps,
}

impl Memory {
    /// Bytes held beside its own size.
    pub fn heap_bytes(&self) -> usize {
        self.delay.as_ref().map_or(0, DelayWindow::heap_bytes)
    }

    /// For a revision first seen `now` with `ready` pods (0 when they could
    /// not be counted). With two or more it starts in panic, so that a
    /// restarted autoscaler takes no pod away for a stable window.
    pub fn new(spec: &ScaleSpec, ready: u32, now: Moment, compat: Compat) -> Memory {
        Memory {
            panic_since: (ready > 1).then_some(now),
            max_panic_pods: i32::try_from(ready).unwrap_or(i32::MAX),
            after_panic: None,
            steady: Steady::default(),
            delay: delay_window(spec.scale_down_delay),
            delay_length: spec.scale_down_delay,
            compat,
        }
    }

    /// All of it, to go on with after a restart.
    pub fn save(&self) -> SavedMemory {
        SavedMemory {
            panic_since: self.panic_since,
            max_panic_pods: self.max_panic_pods,
            after_panic: self.after_panic,
            steady: self.steady,
            delay: self.delay.as_ref().map(DelayWindow::values).unwrap_or_default(),
        }
    }

    /// Goes on with what was saved; `delay`: the `scale-down-delay`.
    pub fn restore(delay: Duration, saved: &SavedMemory, compat: Compat) -> Memory {
        Memory {
            panic_since: saved.panic_since,
            max_panic_pods: saved.max_panic_pods,
            after_panic: saved.after_panic,
            steady: saved.steady,
            delay: delay_window(delay).map(|window| window.with_values(&saved.delay)),
            delay_length: delay,
            compat,
        }
    }

    /// The `scale-down-delay` that it follows: that of the last decision, or,
    /// in strict mode, of the first one.
    pub fn delay(&self) -> Duration {
        self.delay_length
    }

    /// Since when it is in panic: the last moment of excess; `None` = calm.
    pub fn panic_since(&self) -> Option<Moment> {
        self.panic_since
    }

    /// The most pods wished for since panic began.
    pub fn max_panic_pods(&self) -> i32 {
        self.max_panic_pods
    }

    /// The reference makes the delay window once and ignores later changes of
    /// the setting; the better way follows them and keeps what it has seen.
    fn follow_delay(&mut self, wanted: Duration) {
        if self.compat == Compat::Strict || wanted == self.delay_length {
            return;
        }
        self.delay_length = wanted;
        match &mut self.delay {
            Some(window) if !wanted.is_zero() => window.resize(wanted),
            place => *place = delay_window(wanted),
        }
    }
}

fn delay_window(delay: Duration) -> Option<DelayWindow> {
    (!delay.is_zero()).then(|| DelayWindow::new(delay, TICK))
}

/// One decision (`autoscaler.md`, section 7).
///
/// # Errors
/// [`Undecided`] when there is nothing to decide on; `memory` is then as before.
pub fn decide(
    spec: &ScaleSpec,
    seen: &Observed,
    overrides: &Overrides,
    memory: &mut Memory,
    now: Moment,
) -> Result<Decision, Undecided> {
    let (stable, panic, ready) = usable(seen, memory.compat)?;
    memory.follow_delay(spec.scale_down_delay);

    let pods = f64::from(ready.max(1));
    let better = memory.compat == Compat::Better;
    let bounds = seen.bounds.filter(|_| better);
    let wish_stable = (stable / spec.target).ceil();
    let wish_panic = (panic / spec.target).ceil();
    // What waits for pods that start is no reason for a panic either.
    let ratio = bounds.map_or(wish_panic, |bounds| lower(wish_panic, f64::from(bounds.panic))) / pods;
    panic_mode(spec, ratio, memory, now);

    let rates = Rates::of(spec, pods, if better { ready.saturating_add(seen.starting) } else { ready });
    let by_stable = rates.limit(wish_stable, bounds.map(|bounds| bounds.stable), spec, memory.compat);
    let by_panic = rates.limit(wish_panic, bounds.map(|bounds| bounds.panic), spec, memory.compat);
    let in_panic = memory.panic_since.is_some();
    let held = memory.after_panic.filter(|_| !in_panic).and_then(|held| after_panic(held, &by_stable, &by_panic));
    memory.after_panic = held;
    let by_panic_window = in_panic && by_panic.pods > by_stable.pods;
    let Limited { pods, mut steps } = if by_panic_window { by_panic } else { by_stable };

    let mut desired = pods;
    if in_panic {
        memory.max_panic_pods = memory.max_panic_pods.max(desired);
        desired = steps.change(LimitKind::PanicFloor, desired, memory.max_panic_pods);
    } else if let Some(held) = held {
        desired = steps.change(LimitKind::AfterPanic, desired, held);
    }
    if better {
        let after = (!in_panic && spec.reachable).then_some(spec.stable_window);
        desired = steps.change(
            LimitKind::Steady,
            desired,
            memory.steady.hold(desired, (stable / spec.target, panic / spec.target), after, now),
        );
    }
    if spec.reachable
        && let Some(delay) = &mut memory.delay
    {
        desired = steps.change(LimitKind::DelayWindow, desired, delay.record(now, desired));
    }
    desired = overrides.apply(desired, &mut steps);

    Ok(Decision {
        desired,
        excess_burst_capacity: excess_burst_capacity(spec, ready, panic, memory.compat),
        panic: in_panic,
        max_panic_pods: memory.max_panic_pods,
        why: Why {
            stable,
            panic,
            ready,
            target: spec.target,
            wish_stable,
            wish_panic,
            ratio,
            starting: if better { seen.starting } else { 0 },
            by_panic_window,
            steps,
        },
    })
}

/// The observation as numbers, or why it is none. Pods are judged first, as
/// the reference does.
fn usable(seen: &Observed, compat: Compat) -> Result<(f64, f64, u32), Undecided> {
    let ready = match seen.ready {
        Ready::Pods(pods) => pods,
        Ready::NotFound => 0,
        Ready::Unknown => return Err(Undecided::PodsUnknown),
    };
    match seen.load {
        Load::NoData => Err(Undecided::NoData),
        Load::NotCollecting => Err(Undecided::NotCollecting),
        Load::Average { stable, panic } => {
            let finite = stable.is_finite() && panic.is_finite();
            if compat == Compat::Better && !finite {
                return Err(Undecided::NotFinite);
            }
            Ok((stable, panic, ready))
        }
    }
}

/// Enters, extends or leaves panic.
fn panic_mode(spec: &ScaleSpec, ratio: f64, memory: &mut Memory, now: Moment) {
    if ratio >= spec.panic_threshold {
        memory.panic_since = Some(now);
    } else if let Some(since) = memory.panic_since
        && since + spec.stable_window < now
    {
        memory.panic_since = None;
        memory.after_panic = (memory.compat == Compat::Better).then_some(memory.max_panic_pods);
        memory.max_panic_pods = 0;
    }
}

/// What stays of a panic that is over, until the stable window has caught up:
/// as many pods as the panic window asks for, of those that are there; and more
/// only while the stable window is far behind, since then the load still rises.
fn after_panic(held: i32, by_stable: &Limited, by_panic: &Limited) -> Option<i32> {
    let asked = by_panic.pods;
    let rises = f64::from(asked) > f64::from(by_stable.pods) * BEHIND;
    (asked > by_stable.pods).then(|| if rises { asked } else { held.min(asked) }).filter(|&held| held > by_stable.pods)
}

/// How far one decision may go from the ready pods.
struct Rates {
    up: f64,
    down: f64,
}

/// A wish within the rates, and which of them acted.
struct Limited {
    pods: i32,
    steps: Steps,
}

impl Rates {
    /// `pods` are those that serve, `there` those that can be taken away. The
    /// reference limits by the former alone, so that pods that are starting
    /// all go at once.
    fn of(spec: &ScaleSpec, pods: f64, there: u32) -> Rates {
        let up = (spec.max_scale_up_rate * pods).ceil();
        // Nobody is led to an unreachable revision: it may go at once.
        let down = (f64::from(there.max(1)) / spec.max_scale_down_rate).floor();
        Rates { up, down: if spec.reachable { lower(down, up) } else { 0.0 } }
    }

    fn limit(&self, wish: f64, most: Option<i32>, spec: &ScaleSpec, compat: Compat) -> Limited {
        let mut steps = Steps::new();
        let wish = match most {
            Some(most) if wish > f64::from(most) => {
                steps.change(LimitKind::StartingPods, whole(wish, Compat::Better), most);
                f64::from(most)
            }
            _ => wish,
        };
        let mut pods = whole(lower(higher(wish, self.down), self.up), compat);
        if wish < self.down {
            steps.change(LimitKind::RateDown, whole(wish, Compat::Better), pods);
        } else if wish > self.up {
            steps.change(LimitKind::RateUp, whole(wish, Compat::Better), pods);
        }
        if spec.activation_scale > 1 && wish > 0.0 && spec.activation_scale > pods {
            pods = steps.change(LimitKind::ActivationScale, pods, spec.activation_scale);
        }
        Limited { pods, steps }
    }
}

/// The larger of two, no number if either is none (unlike [`f64::max`]).
fn higher(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) }
}

/// The smaller of two, no number if either is none (unlike [`f64::min`]).
fn lower(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.min(b) }
}

/// Spare load beyond the wished burst capacity; only its sign decides. What
/// is no number counts as negative: the activator stays in the path.
fn excess_burst_capacity(spec: &ScaleSpec, ready: u32, panic: f64, compat: Compat) -> i32 {
    let burst = spec.target_burst_capacity;
    if burst == 0.0 {
        0
    } else if burst > 0.0 {
        whole((f64::from(ready) * spec.total - burst - panic).floor(), compat)
    } else {
        -1
    }
}

/// To a whole number, rounding toward zero. What does not fit, or is no
/// number, becomes `i32::MIN` in the reference as recorded (its platform's
/// conversion); the better way takes the nearest that fits, and `i32::MIN`
/// only for no number, which later reads as "unknown".
pub(crate) fn whole(number: f64, compat: Compat) -> i32 {
    // One below i32::MIN, and one above i32::MAX: both exact as f64.
    let fits = number > -2_147_483_649.0 && number < 2_147_483_648.0;
    if number.is_nan() || (compat == Compat::Strict && !fits) { i32::MIN } else { number as i32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> ScaleSpec {
        ScaleSpec::KNATIVE
    }

    fn second(seconds: i64) -> Moment {
        Moment::from_unix_millis(seconds * 1000)
    }

    fn calm(spec: &ScaleSpec) -> Memory {
        Memory::new(spec, 1, second(0), Compat::Better)
    }

    fn seen(stable: f64, panic: f64, ready: u32) -> Observed {
        Observed::new(Load::Average { stable, panic }, Ready::Pods(ready))
    }

    fn at(spec: &ScaleSpec, seen: &Observed, memory: &mut Memory, now: i64) -> Decision {
        decide(spec, seen, &Overrides::NONE, memory, second(now)).unwrap()
    }

    fn limits(decision: &Decision) -> Vec<LimitKind> {
        decision.why.steps.iter().map(|step| step.limit).collect()
    }

    #[test]
    fn an_exact_multiple_of_the_target_may_ask_for_one_more() {
        let spec = ScaleSpec { target: 0.7, total: 1.0, ..spec() };
        assert_eq!(at(&spec, &seen(2.1, 2.1, 3), &mut calm(&spec), 0).desired, 4);
    }

    #[test]
    fn rates_limit_both_ways_and_say_so() {
        let spec = ScaleSpec { max_scale_up_rate: 2.0, panic_threshold: 1e9, ..spec() };
        let up = at(&spec, &seen(7000.0, 0.0, 3), &mut calm(&spec), 0);
        assert_eq!((up.desired, limits(&up)), (6, vec![LimitKind::RateUp]));
        let down = at(&spec, &seen(0.0, 0.0, 9), &mut calm(&spec), 0);
        assert_eq!((down.desired, limits(&down)), (4, vec![LimitKind::RateDown]));
        assert_eq!((down.why.steps.as_slice()[0].from, down.why.wish_stable), (0, 0.0));
    }

    #[test]
    fn an_unreachable_revision_may_go_at_once() {
        let spec = ScaleSpec { reachable: false, ..spec() };
        assert_eq!(at(&spec, &seen(0.0, 0.0, 9), &mut calm(&spec), 0).desired, 0);
    }

    #[test]
    fn activation_scale_goes_beyond_the_up_rate_but_wants_some_load() {
        let spec = ScaleSpec { activation_scale: 9, max_scale_up_rate: 1.5, ..spec() };
        let woken = at(&spec, &seen(1.0, 1.0, 0), &mut calm(&spec), 0);
        assert_eq!((woken.desired, limits(&woken)), (9, vec![LimitKind::ActivationScale]));
        assert_eq!(at(&spec, &seen(0.0, 0.0, 0), &mut calm(&spec), 0).desired, 0);
    }

    #[test]
    fn panic_never_lowers_and_ends_strictly_after_a_stable_window() {
        let spec = spec();
        let mut memory = calm(&spec);
        let burst = at(&spec, &seen(70.0, 700.0, 1), &mut memory, 0);
        assert!(burst.panic && burst.why.by_panic_window);
        assert_eq!((burst.desired, burst.why.ratio), (10, 10.0));
        let held = at(&spec, &seen(70.0, 70.0, 10), &mut memory, 60);
        assert_eq!((held.desired, limits(&held).last()), (10, Some(&LimitKind::PanicFloor)));
        let after = at(&spec, &seen(70.0, 70.0, 10), &mut memory, 61);
        assert_eq!((after.desired, after.panic, after.max_panic_pods), (5, false, 0));
    }

    #[test]
    fn a_revision_found_with_two_pods_starts_in_panic() {
        let spec = spec();
        let mut memory = Memory::new(&spec, 2, second(0), Compat::Better);
        assert_eq!(at(&spec, &seen(0.0, 0.0, 2), &mut memory, 2).desired, 2);
        assert_eq!(memory.panic_since(), Some(second(0)));
    }

    #[test]
    fn the_delay_window_holds_a_lower_number_back() {
        let spec = ScaleSpec { scale_down_delay: Duration::from_secs(10), ..spec() };
        let mut memory = calm(&spec);
        at(&spec, &seen(140.0, 140.0, 2), &mut memory, 0);
        let held = at(&spec, &seen(0.0, 0.0, 2), &mut memory, 8);
        assert_eq!((held.desired, limits(&held).last()), (2, Some(&LimitKind::DelayWindow)));
        assert_eq!(at(&spec, &seen(0.0, 0.0, 2), &mut memory, 10).desired, 1);
    }

    #[test]
    fn a_changed_delay_is_followed_unless_strict() {
        let delayed = ScaleSpec { scale_down_delay: Duration::from_secs(60), ..spec() };
        for (compat, expected) in [(Compat::Better, 1), (Compat::Strict, 2)] {
            let mut memory = Memory::new(&delayed, 1, second(0), compat);
            at(&delayed, &seen(140.0, 140.0, 2), &mut memory, 0);
            assert_eq!(at(&spec(), &seen(0.0, 0.0, 2), &mut memory, 8).desired, expected);
        }
        let mut memory = calm(&spec());
        at(&spec(), &seen(140.0, 140.0, 2), &mut memory, 0);
        at(&delayed, &seen(140.0, 140.0, 2), &mut memory, 2);
        assert_eq!(at(&delayed, &seen(0.0, 0.0, 2), &mut memory, 4).desired, 2);
    }

    #[test]
    fn an_override_acts_last_and_is_not_remembered() {
        let spec = ScaleSpec { scale_down_delay: Duration::from_secs(60), ..spec() };
        let mut memory = calm(&spec);
        let floor = Overrides { floor: Some(50), ceiling: None };
        let burst = seen(70.0, 700.0, 1);
        let raised = decide(&spec, &burst, &floor, &mut memory, second(0)).unwrap();
        assert_eq!((raised.desired, raised.max_panic_pods), (50, 10));
        assert_eq!(limits(&raised).last(), Some(&LimitKind::Override));
        assert_eq!(at(&spec, &burst, &mut memory, 2).desired, 10);
        let ceiling = Overrides { floor: None, ceiling: Some(3) };
        let lowered = decide(&spec, &burst, &ceiling, &mut memory, second(4)).unwrap();
        assert_eq!((lowered.desired, memory.max_panic_pods()), (3, 10));
    }

    #[test]
    fn nothing_is_remembered_of_an_attempt_without_data() {
        let spec = spec();
        let mut memory = calm(&spec);
        at(&spec, &seen(70.0, 700.0, 1), &mut memory, 0);
        let before = memory.clone();
        let average = Load::Average { stable: 1.0, panic: 1.0 };
        let endless = Load::Average { stable: f64::INFINITY, panic: 1.0 };
        for (load, ready, why) in [
            (Load::NoData, Ready::Pods(1), Undecided::NoData),
            (Load::NotCollecting, Ready::Pods(1), Undecided::NotCollecting),
            (average, Ready::Unknown, Undecided::PodsUnknown),
            (endless, Ready::Pods(1), Undecided::NotFinite),
        ] {
            let seen = Observed::new(load, ready);
            let result = decide(&spec, &seen, &Overrides::NONE, &mut memory, second(900));
            assert_eq!(result, Err(why));
        }
        assert_eq!(memory, before);
    }

    #[test]
    fn a_revision_without_a_list_of_pods_has_none() {
        let spec = spec();
        let seen = Observed::new(Load::Average { stable: 1.0, panic: 1.0 }, Ready::NotFound);
        let decision = at(&spec, &seen, &mut calm(&spec), 0);
        assert_eq!((decision.desired, decision.excess_burst_capacity), (1, -212));
    }

    #[test]
    fn only_the_sign_of_the_burst_setting_matters_at_its_ends() {
        for (burst, expected) in [(0.0, 0), (-1.0, -1), (f64::NAN, -1), (10.0, 35)] {
            let spec = ScaleSpec { target_burst_capacity: burst, ..spec() };
            let decision = at(&spec, &seen(55.0, 55.0, 1), &mut calm(&spec), 0);
            assert_eq!(decision.excess_burst_capacity, expected, "{burst}");
        }
    }

    #[test]
    fn numbers_that_do_not_fit_saturate_unless_strict() {
        for (number, better, strict) in [
            (1e300, i32::MAX, i32::MIN),
            (-1e300, i32::MIN, i32::MIN),
            (2_147_483_647.9, i32::MAX, i32::MAX),
            (-2.9, -2, -2),
            (f64::NAN, i32::MIN, i32::MIN),
        ] {
            let got = (whole(number, Compat::Better), whole(number, Compat::Strict));
            assert_eq!(got, (better, strict), "{number}");
        }
    }

    #[test]
    fn absurd_inputs_do_not_panic() {
        let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 0.0, 1e308];
        for compat in [Compat::Strict, Compat::Better] {
            for target in odd {
                for rate in odd {
                    let spec = ScaleSpec {
                        target,
                        max_scale_down_rate: rate,
                        max_scale_up_rate: rate,
                        panic_threshold: rate,
                        total: target,
                        scale_down_delay: Duration::MAX,
                        stable_window: Duration::MAX,
                        activation_scale: i32::MIN,
                        ..spec()
                    };
                    let mut memory = Memory::new(&spec, u32::MAX, Moment::MIN, compat);
                    for load in odd {
                        let seen = seen(load, load, u32::MAX);
                        let none = Overrides::NONE;
                        let _ = decide(&spec, &seen, &none, &mut memory, second(i64::MAX / 2000));
                    }
                }
            }
        }
    }
}
