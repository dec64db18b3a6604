//! Which limits acted on a number of pods, in order: what `status` and `why`
//! tell people. Also [`Overrides`], a limit of our own.

/// Everything that can change, or hold back, a number of pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitKind {
    /// `max-scale-up-rate`: at most so many times the ready pods.
    RateUp,
    /// `max-scale-down-rate`: at least a share of the ready pods.
    RateDown,
    /// `activation-scale`: so many pods when any is wanted.
    ActivationScale,
    /// What waits only because pods are still starting is left out.
    StartingPods,
    /// While in panic the number never falls.
    PanicFloor,
    /// Panic is over, and the panic window still asks for more than the stable
    /// one has seen.
    AfterPanic,
    /// The load lies at the edge of one pod less.
    Steady,
    /// `scale-down-delay`: a lower number must have held for that long.
    DelayWindow,
    /// An [`Overrides`] bound.
    Override,
    /// `initial-scale`, until it has been reached once.
    InitialScale,
    /// `min-scale`.
    MinScale,
    /// `max-scale`.
    MaxScale,
    /// `enable-scale-to-zero` is off.
    ScaleToZeroOff,
    /// A start is in progress; the number is left alone until it ends.
    Starting,
    /// `progress-deadline` has passed without enough ready pods.
    StartTimedOut,
    /// Not yet active for a whole `stable-window`: the last pod stays.
    StableWindow,
    /// Counts as idle from now on; the pods go in a later step.
    MarkedIdle,
    /// The activator has not been seen in the path, so the last pod stays.
    ActivatorMissing,
    /// `scale-to-zero-pod-retention-period`.
    Retention,
    /// `scale-to-zero-grace-period`.
    Grace,
}

impl LimitKind {
    /// All of them.
    pub const ALL: [LimitKind; 20] = [
        LimitKind::RateUp,
        LimitKind::RateDown,
        LimitKind::ActivationScale,
        LimitKind::StartingPods,
        LimitKind::PanicFloor,
        LimitKind::AfterPanic,
        LimitKind::Steady,
        LimitKind::DelayWindow,
        LimitKind::Override,
        LimitKind::InitialScale,
        LimitKind::MinScale,
        LimitKind::MaxScale,
        LimitKind::ScaleToZeroOff,
        LimitKind::Starting,
        LimitKind::StartTimedOut,
        LimitKind::StableWindow,
        LimitKind::MarkedIdle,
        LimitKind::ActivatorMissing,
        LimitKind::Retention,
        LimitKind::Grace,
    ];

    /// From its word.
    pub fn parse(word: &str) -> Option<LimitKind> {
        LimitKind::ALL.into_iter().find(|kind| kind.as_str() == word)
    }

    /// The word for it in `why`, in logs and in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            LimitKind::RateUp => "rate-up",
            LimitKind::RateDown => "rate-down",
            LimitKind::ActivationScale => "activation-scale",
            LimitKind::StartingPods => "starting-pods",
            LimitKind::PanicFloor => "panic-floor",
            LimitKind::AfterPanic => "after-panic",
            LimitKind::Steady => "steady",
            LimitKind::DelayWindow => "delay-window",
            LimitKind::Override => "override",
            LimitKind::InitialScale => "initial-scale",
            LimitKind::MinScale => "min-scale",
            LimitKind::MaxScale => "max-scale",
            LimitKind::ScaleToZeroOff => "scale-to-zero-off",
            LimitKind::Starting => "starting",
            LimitKind::StartTimedOut => "start-timed-out",
            LimitKind::StableWindow => "stable-window",
            LimitKind::MarkedIdle => "marked-idle",
            LimitKind::ActivatorMissing => "activator-missing",
            LimitKind::Retention => "retention",
            LimitKind::Grace => "grace",
        }
    }
}

/// One limit that acted. `from == to` when it left the number alone and only
/// held back its execution (grace, retention).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Which one.
    pub limit: LimitKind,
    /// Pods before it.
    pub from: i32,
    /// Pods after it.
    pub to: i32,
}

/// The limits that acted, in order. Fixed in size, so that a decision
/// allocates nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Steps {
    list: [Step; Steps::CAPACITY],
    len: usize,
}

impl Steps {
    /// The most that one decision or one verdict can produce.
    pub const CAPACITY: usize = 8;

    /// None yet.
    pub const fn new() -> Steps {
        let unused = Step { limit: LimitKind::Override, from: 0, to: 0 };
        Steps { list: [unused; Steps::CAPACITY], len: 0 }
    }

    /// Notes a limit that took the number `from` somewhere `to`.
    pub fn push(&mut self, limit: LimitKind, from: i32, to: i32) {
        debug_assert!(self.len < Steps::CAPACITY, "more limits than there are");
        if let Some(place) = self.list.get_mut(self.len) {
            *place = Step { limit, from, to };
            self.len += 1;
        }
    }

    /// Notes a limit only when it changed the number; returns `to`.
    pub fn change(&mut self, limit: LimitKind, from: i32, to: i32) -> i32 {
        if from != to {
            self.push(limit, from, to);
        }
        to
    }

    /// In the order in which they acted.
    pub fn as_slice(&self) -> &[Step] {
        &self.list[..self.len]
    }

    /// In the order in which they acted.
    pub fn iter(&self) -> impl Iterator<Item = &Step> {
        self.as_slice().iter()
    }

    /// True when the limit is among them.
    pub fn contains(&self, limit: LimitKind) -> bool {
        self.iter().any(|step| step.limit == limit)
    }
}

impl Default for Steps {
    fn default() -> Steps {
        Steps::new()
    }
}

impl std::fmt::Debug for Steps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Bounds from outside the reference's rules (a person, a schedule, a
/// forecast). They act last, and leave no trace in the memory of panic and of
/// the delay window. When they contradict each other the floor wins, as
/// `min-scale` wins over `max-scale`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// At least so many pods; `None` = no bound.
    pub floor: Option<i32>,
    /// At most so many pods; `None` = no bound.
    pub ceiling: Option<i32>,
}

impl Overrides {
    /// No bound at all.
    pub const NONE: Overrides = Overrides { floor: None, ceiling: None };

    /// The number of pods within these bounds.
    pub fn apply(&self, pods: i32, steps: &mut Steps) -> i32 {
        let mut bounded = pods;
        if let Some(ceiling) = self.ceiling {
            bounded = bounded.min(ceiling);
        }
        if let Some(floor) = self.floor {
            bounded = bounded.max(floor);
        }
        steps.change(LimitKind::Override, pods, bounded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_keep_their_order_and_skip_limits_that_changed_nothing() {
        let mut steps = Steps::new();
        assert_eq!(steps.change(LimitKind::RateUp, 9, 4), 4);
        assert_eq!(steps.change(LimitKind::MaxScale, 4, 4), 4);
        steps.push(LimitKind::Grace, 0, 0);
        let kinds: Vec<_> = steps.iter().map(|step| step.limit).collect();
        assert_eq!(kinds, [LimitKind::RateUp, LimitKind::Grace]);
        assert!(!steps.contains(LimitKind::MaxScale));
    }

    #[test]
    fn each_word_is_one_limit() {
        for kind in LimitKind::ALL {
            assert_eq!(LimitKind::parse(kind.as_str()), Some(kind));
        }
        assert_eq!(LimitKind::parse("none"), None);
    }

    #[test]
    fn the_floor_wins_over_a_lower_ceiling() {
        let both = Overrides { floor: Some(5), ceiling: Some(2) };
        assert_eq!(both.apply(9, &mut Steps::new()), 5);
        assert_eq!(both.apply(1, &mut Steps::new()), 5);
        assert_eq!(Overrides::NONE.apply(9, &mut Steps::new()), 9);
    }
}
