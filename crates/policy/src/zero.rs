//! From a wished number of pods to an order: bounds, and the way to zero.
//!
//! Zero is reached in two steps. A revision that nobody asks for is first
//! marked idle, which puts the activator in its path; only when the activator
//! is known to be there do the pods go. [`verdict`] is the reference's rule
//! for one moment; [`ZeroState::step`] drives it, tick by tick.

use crate::active::{Active, Activity, Standing};
use crate::compat::Compat;
use crate::limit::{LimitKind, Steps};
use crate::moment::Moment;
use crate::revision::{Bounds, ScaleSpec};
use crate::world::Path;
use std::time::Duration;

/// How much longer than `progress-deadline` a start may take before it is
/// given up: the deadline is the platform's, which should speak first.
const START_SLACK: Duration = Duration::from_secs(30);

/// When to look again after a revision was marked idle with the activator
/// already wanted in its path.
const IDLE_RECHECK: Duration = Duration::from_secs(3);

/// Whether a verdict used the probe of the activator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// It played no part.
    Unused,
    /// It was asked for, and passed.
    Passed,
    /// It was asked for, and failed: probe again, and look again after that.
    Failed,
}

/// What to do with the pods at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Pods wanted; -1 = unknown. It can be 0 while the pods still stay.
    pub want: i32,
    /// Tell the platform this many pods; `None` = leave the last order.
    pub order: Option<u32>,
    /// Look again after that long, if nothing else happens before.
    pub recheck_after: Option<Duration>,
    /// Whether the probe was used.
    pub probe: Probe,
    /// The limits that acted, in order.
    pub steps: Steps,
}

/// What one step of [`ZeroState`] results in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZeroVerdict {
    /// Pods wanted; -1 = unknown. It can be 0 while the pods still stay.
    pub want: i32,
    /// Tell the platform this many pods; `None` = leave the last order.
    pub order: Option<u32>,
    /// How requests should reach the revision from now on.
    pub path: Path,
    /// Activators that should serve the revision (0 is never answered).
    pub activators: u32,
    /// Look again after that long, if nothing else happens before; zero = at once.
    pub recheck_after: Option<Duration>,
    /// Whether the probe was used.
    pub probe: Probe,
    /// True when the revision turned active, idle or starting in this step.
    pub changed: bool,
    /// The limits that acted, in order.
    pub steps: Steps,
}

/// Input of one step.
#[derive(Clone, Copy, Debug)]
pub struct ZeroInput<'a> {
    /// Pods wished for by the decision; -1 = none was made yet.
    pub desired: i32,
    /// Spare load of the decision ([`crate::scale::Decision::excess_burst_capacity`]).
    pub excess_burst_capacity: i32,
    /// Ready pods.
    pub ready: u32,
    /// Bounds and rules of the way to zero.
    pub bounds: &'a Bounds,
    /// Input of the decision.
    pub spec: &'a ScaleSpec,
    /// Since how long requests go through the activator; `None` = they don't,
    /// or it is not known.
    pub path_through_activator_for: Option<Duration>,
    /// True when a probe through the front is answered by the activator.
    pub probe_ok: bool,
}

/// A revision on its way to zero and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZeroState {
    activity: Activity,
    path: Path,
    desired_scale: Option<i32>,
    compat: Compat,
}

impl ZeroState {
    /// Of a revision just made: starting, never started, behind the activator.
    pub fn new(now: Moment, compat: Compat) -> ZeroState {
        ZeroState::restore(Activity::new(now), Path::Activator, compat)
    }

    /// Of a revision that was there before us.
    pub fn restore(activity: Activity, path: Path, compat: Compat) -> ZeroState {
        ZeroState { activity, path, desired_scale: None, compat }
    }

    /// Whether it is starting, active or idle.
    pub fn activity(&self) -> &Activity {
        &self.activity
    }

    /// The number of pods to show as wanted; `None` before the first step.
    pub fn desired_scale(&self) -> Option<i32> {
        self.desired_scale
    }

    /// One step: what to order now, and how the state changes by it.
    pub fn step(&mut self, input: &ZeroInput<'_>, now: Moment) -> ZeroVerdict {
        let verdict = verdict(input, &self.activity, self.path, now, self.compat);
        self.path = next_path(self.path, verdict.want, input.excess_burst_capacity, input.ready, self.compat);
        let standing = Standing {
            want: verdict.want,
            ready: input.ready,
            min_scale: lower_bound(input),
            initial_scale: input.spec.initial_scale,
        };
        let changed = self.activity.settle(&standing, now, self.compat);
        self.desired_scale = Some(shown_scale(self.desired_scale, verdict.want));
        let turned_idle = changed && matches!(self.activity.active(), Active::No(_));
        let recheck_after = match self.compat {
            // The rest of the way is open: go on at once, not at the next tick.
            Compat::Better if turned_idle => Some(Duration::ZERO),
            _ => verdict.recheck_after,
        };
        ZeroVerdict {
            want: verdict.want,
            order: verdict.order,
            path: self.path,
            activators: num_activators(input.ready, input.spec),
            recheck_after,
            probe: verdict.probe,
            changed,
            steps: verdict.steps,
        }
    }
}

/// How requests should reach a revision from now on, of which `want` pods are
/// wanted and `ready` are there, when `path` was asked for last.
///
/// The reference puts every revision behind the activator while its number of
/// pods is unknown, so each restart of the autoscaler moves them all; and it
/// leaves to others that a path without pods leads nowhere.
pub fn next_path(path: Path, want: i32, excess_burst_capacity: i32, ready: u32, compat: Compat) -> Path {
    match compat {
        Compat::Strict => wanted_path(want, excess_burst_capacity),
        Compat::Better if ready == 0 => Path::Activator,
        Compat::Better if want < 0 => path,
        Compat::Better => wanted_path(want, excess_burst_capacity),
    }
}

/// How requests should reach a revision of `want` pods with that much excess
/// burst capacity.
pub fn wanted_path(want: i32, excess_burst_capacity: i32) -> Path {
    if want > 0 && excess_burst_capacity >= 0 { Path::Direct } else { Path::Activator }
}

/// How many activators should serve a revision: enough for what its pods can
/// carry and the burst on top (`activator-capacity`), at least 2.
pub fn num_activators(ready: u32, spec: &ScaleSpec) -> u32 {
    const FEWEST: u32 = 2;
    let burst = spec.target_burst_capacity;
    if burst == 0.0 {
        return FEWEST;
    }
    let load = f64::from(ready) * spec.total + burst.max(0.0);
    // `as` takes the nearest that fits, and 0 for no number.
    FEWEST.max((load / spec.activator_capacity).ceil() as u32)
}

/// The number of pods to show as wanted: an unknown one does not hide what
/// was known before.
pub fn shown_scale(before: Option<i32>, want: i32) -> i32 {
    match before {
        Some(known) if want < 0 && known >= 0 => known,
        _ => want,
    }
}

/// How many pods the object that is to be scaled asks for at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// There is no such object.
    Missing,
    /// It does not say, which means 1.
    Unset,
    /// So many.
    Pods(i32),
}

/// The object to be scaled does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetMissing;

/// What has to be written so that `target` asks for what was ordered; `None` =
/// nothing.
///
/// # Errors
/// [`TargetMissing`] when something was ordered of what does not exist.
pub fn patch(order: Option<u32>, target: Target) -> Result<Option<u32>, TargetMissing> {
    let current = match (order, target) {
        (None, _) => return Ok(None),
        (Some(_), Target::Missing) => return Err(TargetMissing),
        (Some(_), Target::Unset) => 1,
        (Some(_), Target::Pods(pods)) => i64::from(pods),
    };
    Ok(order.filter(|&ordered| i64::from(ordered) != current))
}

/// The scaler's rule at one moment (`autoscaler.md`, section 13). `ordered` is
/// the path that was last asked for.
pub fn verdict(input: &ZeroInput<'_>, activity: &Activity, ordered: Path, now: Moment, compat: Compat) -> Verdict {
    let starting = matches!(activity.active(), Active::Starting(_));
    if input.desired < 0 && !starting {
        return Verdict::hold(input.desired, Steps::new());
    }
    let mut steps = Steps::new();
    let want = within_bounds(input, activity, compat, &mut steps);
    if want > 0 {
        return Verdict::go(want, steps);
    }
    if !input.bounds.scale_to_zero {
        steps.push(LimitKind::ScaleToZeroOff, 0, 1);
        return Verdict::go(1, steps);
    }
    let lasts = activity.lasts(now);
    match activity.active() {
        Active::Starting(_) => start_in_progress(input, lasts, compat, steps),
        Active::Yes => still_active(input, lasts, ordered, steps),
        Active::No(_) => last_pods(input, lasts, steps),
    }
}

/// Lower bound; nobody needs pods of a revision to which no route leads.
fn lower_bound(input: &ZeroInput<'_>) -> i32 {
    if input.spec.reachable { input.bounds.min_scale } else { 0 }
}

/// The wish within the bounds, never negative. Where they contradict each
/// other the lower one wins; in the reference only over a wish below both.
fn within_bounds(input: &ZeroInput<'_>, activity: &Activity, compat: Compat, steps: &mut Steps) -> i32 {
    let (mut least, mut kind) = (lower_bound(input).max(0), LimitKind::MinScale);
    let initial = input.spec.initial_scale;
    if initial > least.max(1) && !activity.initialized() && input.spec.reachable {
        (least, kind) = (initial, LimitKind::InitialScale);
    }
    if input.desired < least {
        // An unknown wish that becomes none is no limit at work.
        if least > 0 {
            steps.push(kind, input.desired, least);
        }
        return least;
    }
    let most = match (input.bounds.max_scale, compat) {
        (..=0, _) => i32::MAX,
        (most, Compat::Strict) => most,
        (most, Compat::Better) => most.max(least),
    };
    steps.change(LimitKind::MaxScale, input.desired, input.desired.min(most))
}

/// Nothing is wanted, but a start is in progress: it gets its time, whatever
/// load is seen meanwhile.
fn start_in_progress(input: &ZeroInput<'_>, lasts: Duration, compat: Compat, mut steps: Steps) -> Verdict {
    let limit = input.bounds.progress_deadline.saturating_add(START_SLACK);
    let over = match compat {
        Compat::Strict => lasts > limit,
        Compat::Better => lasts >= limit,
    };
    if over {
        steps.push(LimitKind::StartTimedOut, 0, 0);
        return Verdict::go(0, steps);
    }
    steps.push(LimitKind::Starting, 0, -1);
    let recheck = match compat {
        Compat::Strict => limit,
        Compat::Better => limit - lasts,
    };
    Verdict { recheck_after: Some(recheck), ..Verdict::hold(-1, steps) }
}

/// Nothing is wanted of an active revision: down to one pod at once, and idle
/// when it was active for a stable window.
fn still_active(input: &ZeroInput<'_>, lasts: Duration, ordered: Path, mut steps: Steps) -> Verdict {
    let window = input.spec.stable_window;
    if lasts < window {
        steps.push(LimitKind::StableWindow, 0, 1);
        return Verdict { recheck_after: Some(window - lasts), ..Verdict::go(1, steps) };
    }
    steps.push(LimitKind::MarkedIdle, 0, 0);
    let recheck_after = (ordered == Path::Activator).then_some(IDLE_RECHECK);
    Verdict { recheck_after, ..Verdict::hold(0, steps) }
}

/// An idle revision: its last pods go when the activator is in the path, or
/// had its time to get there, and the retention is over.
fn last_pods(input: &ZeroInput<'_>, lasts: Duration, mut steps: Steps) -> Verdict {
    // The activator never leaves the path of such a revision.
    let probe = match (input.spec.target_burst_capacity == -1.0, input.probe_ok) {
        (true, _) => Probe::Unused,
        (false, true) => Probe::Passed,
        (false, false) => {
            steps.push(LimitKind::ActivatorMissing, 0, 0);
            return Verdict { probe: Probe::Failed, ..Verdict::hold(0, steps) };
        }
    };
    let grace = input.bounds.grace;
    let retention = if input.spec.reachable { input.bounds.retention } else { Duration::ZERO };
    let in_path = input.path_through_activator_for.unwrap_or_default();
    let (held_by, remaining) = if lasts >= grace.max(retention) {
        return Verdict { probe, ..Verdict::go(0, steps) };
    } else if lasts < retention {
        (LimitKind::Retention, retention - lasts)
    } else if in_path >= grace {
        return Verdict { probe, ..Verdict::go(0, steps) };
    } else {
        (LimitKind::Grace, grace - in_path)
    };
    steps.push(held_by, 0, 0);
    Verdict { probe, recheck_after: Some(remaining), ..Verdict::hold(0, steps) }
}

impl Verdict {
    fn hold(want: i32, steps: Steps) -> Verdict {
        Verdict { want, order: None, recheck_after: None, probe: Probe::Unused, steps }
    }

    fn go(want: i32, steps: Steps) -> Verdict {
        debug_assert!(want >= 0, "an unknown number is never ordered");
        Verdict { order: u32::try_from(want).ok(), ..Verdict::hold(want, steps) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::active::{Idle, Starting};

    const BOUNDS: Bounds = Bounds {
        min_scale: 0,
        max_scale: 0,
        scale_to_zero: true,
        grace: Duration::from_secs(30),
        retention: Duration::ZERO,
        progress_deadline: Duration::from_secs(600),
    };

    const SPEC: ScaleSpec = ScaleSpec::KNATIVE;

    const IDLE: Active = Active::No(Idle::NoTraffic);
    const BUSY_START: Active = Active::Starting(Starting::Queued);

    fn second(seconds: i64) -> Moment {
        Moment::from_unix_millis(seconds * 1000)
    }

    fn input<'a>(desired: i32, bounds: &'a Bounds, spec: &'a ScaleSpec) -> ZeroInput<'a> {
        ZeroInput {
            desired,
            excess_burst_capacity: -1,
            ready: 1,
            bounds,
            spec,
            path_through_activator_for: None,
            probe_ok: true,
        }
    }

    /// The verdict for a started revision that is `active` for that long.
    fn after(active: Active, lasts: i64, input: &ZeroInput<'_>, compat: Compat) -> Verdict {
        let activity = Activity::restore(active, second(0), true);
        verdict(input, &activity, Path::Activator, second(lasts), compat)
    }

    fn kinds(verdict: &Verdict) -> Vec<LimitKind> {
        verdict.steps.iter().map(|step| step.limit).collect()
    }

    #[test]
    fn an_unknown_wish_changes_nothing_once_started() {
        let verdict = after(Active::Yes, 0, &input(-1, &BOUNDS, &SPEC), Compat::Better);
        assert_eq!((verdict.want, verdict.order, kinds(&verdict)), (-1, None, vec![]));
    }

    #[test]
    fn bounds_hold_and_name_themselves() {
        let bounds = Bounds { min_scale: 2, max_scale: 5, ..BOUNDS };
        for (desired, want, kind) in
            [(1, 2, Some(LimitKind::MinScale)), (9, 5, Some(LimitKind::MaxScale)), (3, 3, None)]
        {
            let verdict = after(Active::Yes, 0, &input(desired, &bounds, &SPEC), Compat::Better);
            assert_eq!((verdict.order, kinds(&verdict).pop()), (Some(want), kind));
        }
    }

    #[test]
    fn the_initial_scale_holds_until_it_was_reached_once() {
        let spec = ScaleSpec { initial_scale: 4, ..SPEC };
        let fresh = Activity::restore(BUSY_START, second(0), false);
        let input = input(1, &BOUNDS, &spec);
        let first = verdict(&input, &fresh, Path::Activator, second(1), Compat::Better);
        assert_eq!((first.want, kinds(&first)), (4, vec![LimitKind::InitialScale]));
        assert_eq!(after(BUSY_START, 1, &input, Compat::Better).want, 1);
    }

    #[test]
    fn a_lower_bound_above_the_upper_one_wins_always_unless_strict() {
        let bounds = Bounds { min_scale: 5, max_scale: 3, ..BOUNDS };
        let want = |desired, compat| after(Active::Yes, 0, &input(desired, &bounds, &SPEC), compat).want;
        assert_eq!((want(1, Compat::Better), want(9, Compat::Better)), (5, 5));
        assert_eq!((want(1, Compat::Strict), want(9, Compat::Strict)), (5, 3));
    }

    #[test]
    fn nobody_keeps_pods_of_an_unreachable_revision() {
        let spec = ScaleSpec { reachable: false, ..SPEC };
        let day = Duration::from_secs(86_400);
        let bounds = Bounds { min_scale: 3, retention: day, ..BOUNDS };
        let verdict = after(IDLE, 30, &input(0, &bounds, &spec), Compat::Better);
        assert_eq!(verdict.order, Some(0));
    }

    #[test]
    fn scale_to_zero_can_be_off() {
        let bounds = Bounds { scale_to_zero: false, ..BOUNDS };
        let verdict = after(IDLE, 999, &input(0, &bounds, &SPEC), Compat::Better);
        assert_eq!((verdict.order, kinds(&verdict)), (Some(1), vec![LimitKind::ScaleToZeroOff]));
    }

    #[test]
    fn a_start_gets_its_time_and_then_ends() {
        let zero = input(0, &BOUNDS, &SPEC);
        let early = after(BUSY_START, 100, &zero, Compat::Better);
        assert_eq!((early.want, early.order), (-1, None));
        assert_eq!(early.recheck_after, Some(Duration::from_secs(530)));
        let strict = after(BUSY_START, 100, &zero, Compat::Strict);
        assert_eq!(strict.recheck_after, Some(Duration::from_secs(630)));
        let late = after(BUSY_START, 630, &zero, Compat::Better);
        assert_eq!((late.order, kinds(&late)), (Some(0), vec![LimitKind::StartTimedOut]));
    }

    #[test]
    fn an_active_revision_keeps_one_pod_for_a_stable_window() {
        let zero = input(0, &BOUNDS, &SPEC);
        let young = after(Active::Yes, 59, &zero, Compat::Strict);
        assert_eq!((young.order, young.recheck_after), (Some(1), Some(Duration::from_secs(1))));
        let old = after(Active::Yes, 60, &zero, Compat::Strict);
        assert_eq!((old.want, old.order, old.recheck_after), (0, None, Some(IDLE_RECHECK)));
    }

    #[test]
    fn the_last_pod_waits_for_the_activator_the_grace_and_the_retention() {
        let bounds = Bounds { retention: Duration::from_secs(10), ..BOUNDS };
        let seen = |lasts, in_path: u64, probe_ok| {
            let mut input = input(0, &bounds, &SPEC);
            input.path_through_activator_for = Some(Duration::from_secs(in_path));
            input.probe_ok = probe_ok;
            let verdict = after(IDLE, lasts, &input, Compat::Better);
            (verdict.order, kinds(&verdict).pop(), verdict.recheck_after.map(|d| d.as_secs()))
        };
        assert_eq!(seen(90, 90, false), (None, Some(LimitKind::ActivatorMissing), None));
        assert_eq!(seen(4, 90, true), (None, Some(LimitKind::Retention), Some(6)));
        assert_eq!(seen(12, 13, true), (None, Some(LimitKind::Grace), Some(17)));
        assert_eq!(seen(12, 30, true), (Some(0), None, None));
        assert_eq!(seen(30, 0, true), (Some(0), None, None));
    }

    #[test]
    fn no_probe_is_needed_where_the_activator_never_leaves() {
        let spec = ScaleSpec { target_burst_capacity: -1.0, ..SPEC };
        let input = ZeroInput { probe_ok: false, ..input(0, &BOUNDS, &spec) };
        let verdict = after(IDLE, 30, &input, Compat::Better);
        assert_eq!((verdict.order, verdict.probe), (Some(0), Probe::Unused));
    }

    /// The local floor: initial scale 0, no grace, and a path that switches
    /// with the next snapshot.
    #[test]
    fn a_local_revision_wakes_serves_and_goes_back_to_zero() {
        let bounds = Bounds { grace: Duration::ZERO, ..BOUNDS };
        let spec = ScaleSpec { initial_scale: 0, target_burst_capacity: 0.0, ..SPEC };
        let mut state = ZeroState::new(second(0), Compat::Better);
        let mut step = |now, desired, ready, through: Option<u64>| {
            let input = ZeroInput {
                excess_burst_capacity: 0,
                ready,
                path_through_activator_for: through.map(Duration::from_secs),
                probe_ok: through.is_some(),
                ..input(desired, &bounds, &spec)
            };
            let got = state.step(&input, second(now));
            (got.order, got.path, state.activity().active())
        };
        assert_eq!(step(0, -1, 0, Some(0)), (None, Path::Activator, IDLE));
        assert_eq!(step(1, 0, 0, Some(1)), (Some(0), Path::Activator, IDLE));
        assert_eq!(step(2, 1, 0, Some(2)), (Some(1), Path::Activator, BUSY_START));
        // The load may be gone before the pod is there: it starts all the same.
        assert_eq!(step(3, 0, 0, Some(3)), (None, Path::Activator, BUSY_START));
        assert_eq!(step(4, 1, 1, Some(4)), (Some(1), Path::Direct, Active::Yes));
        assert_eq!(step(30, 0, 1, None), (Some(1), Path::Direct, Active::Yes));
        // Idle first: the path switches while the pod still stays.
        assert_eq!(step(64, 0, 1, None), (None, Path::Activator, IDLE));
        assert_eq!(step(64, 0, 1, None), (None, Path::Activator, IDLE));
        assert_eq!(step(65, 0, 1, Some(0)), (Some(0), Path::Activator, IDLE));
        // Traffic that comes back meanwhile finds it active at once.
        assert_eq!(step(66, 1, 1, Some(1)), (Some(1), Path::Direct, Active::Yes));
    }

    #[test]
    fn turning_idle_asks_for_the_next_step_at_once() {
        let activity = Activity::restore(Active::Yes, second(0), true);
        let mut state = ZeroState::restore(activity, Path::Direct, Compat::Better);
        let got = state.step(&input(0, &BOUNDS, &SPEC), second(60));
        assert_eq!((got.changed, got.recheck_after), (true, Some(Duration::ZERO)));
        let got = state.step(&input(0, &BOUNDS, &SPEC), second(60));
        assert_eq!((got.changed, got.recheck_after), (false, Some(Duration::from_secs(30))));
    }

    #[test]
    fn a_restart_moves_no_path_unless_strict() {
        for (compat, path) in [(Compat::Better, Path::Direct), (Compat::Strict, Path::Activator)] {
            let activity = Activity::restore(Active::Yes, second(0), true);
            let mut state = ZeroState::restore(activity, Path::Direct, compat);
            assert_eq!(state.step(&input(-1, &BOUNDS, &SPEC), second(1)).path, path);
        }
    }

    #[test]
    fn an_unknown_number_does_not_hide_the_one_shown_before() {
        let activity = Activity::restore(Active::Yes, second(0), true);
        let mut state = ZeroState::restore(activity, Path::Activator, Compat::Strict);
        assert_eq!(state.desired_scale(), None);
        state.step(&input(3, &BOUNDS, &SPEC), second(1));
        state.step(&input(-1, &BOUNDS, &SPEC), second(2));
        assert_eq!(state.desired_scale(), Some(3));
    }

    #[test]
    fn a_patch_is_written_only_where_it_changes_something() {
        assert_eq!(patch(Some(1), Target::Unset), Ok(None));
        assert_eq!(patch(Some(2), Target::Pods(3)), Ok(Some(2)));
        assert_eq!(patch(None, Target::Missing), Ok(None));
        assert_eq!(patch(Some(0), Target::Missing), Err(TargetMissing));
    }

    #[test]
    fn activators_follow_what_pods_can_carry_and_absurd_input_does_not_panic() {
        assert_eq!(num_activators(4, &SPEC), 7);
        assert_eq!(num_activators(4, &ScaleSpec { target_burst_capacity: 0.0, ..SPEC }), 2);
        for odd in [f64::NAN, f64::INFINITY, 0.0, -1.0] {
            let spec = ScaleSpec { activator_capacity: odd, total: odd, ..SPEC };
            assert!(num_activators(u32::MAX, &spec) >= 2);
        }
        let bounds = Bounds { min_scale: i32::MIN, max_scale: i32::MIN, progress_deadline: Duration::MAX, ..BOUNDS };
        for desired in [i32::MIN, -1, 0, i32::MAX] {
            for active in [BUSY_START, Active::Yes, IDLE] {
                let activity = Activity::restore(active, Moment::MIN, false);
                let mut state = ZeroState::restore(activity, Path::Direct, Compat::Better);
                state.step(&input(desired, &bounds, &SPEC), second(0));
            }
        }
    }
}
