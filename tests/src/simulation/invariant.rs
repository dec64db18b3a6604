//! What has to hold after every step, by name.

/// One of the things that have to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Invariant {
    /// A pod has at most its capacity, but for what was there when it was lowered.
    Limit,
    /// Nobody waits while a slot is free.
    FreeSlot,
    /// Slots are granted in the order of arrival, and nobody overtakes.
    Order,
    /// Each slot is with exactly one request, and comes back exactly once.
    Slots,
    /// A request is refused when the bounds say so, and only then.
    Refusal,
    /// A removed or suspended pod gets no new request.
    Blocked,
    /// A removed pod is let go of once, with its last request.
    LetGo,
    /// A ticket says what has become of its request, once.
    Ticket,
    /// The load that is counted is the load that is there.
    Load,
    /// The number of pods is within the bounds, and 0 only where it may be.
    Wanted,
    /// The direct path only leads to pods, and only with spare load.
    Path,
    /// [`policy::admit::Admission::check`] agrees.
    SelfCheck,
    /// The core does not panic.
    Panic,
}

impl Invariant {
    /// The word for it in reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Invariant::Limit => "limit",
            Invariant::FreeSlot => "free-slot",
            Invariant::Order => "order",
            Invariant::Slots => "slots",
            Invariant::Refusal => "refusal",
            Invariant::Blocked => "blocked",
            Invariant::LetGo => "let-go",
            Invariant::Ticket => "ticket",
            Invariant::Load => "load",
            Invariant::Wanted => "wanted",
            Invariant::Path => "path",
            Invariant::SelfCheck => "self-check",
            Invariant::Panic => "panic",
        }
    }
}

/// That one of them does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which one.
    pub invariant: Invariant,
    /// What was seen, in words.
    pub what: String,
}

impl Violation {
    pub(super) fn new(invariant: Invariant, what: impl Into<String>) -> Violation {
        Violation { invariant, what: what.into() }
    }
}
