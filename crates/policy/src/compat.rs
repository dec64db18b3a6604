//! Which of two answers to give where the reference has a flaw.

/// How to behave where the reference marks a *flaw* (`ZEROSCALE_COMPAT`).
///
/// Passed to whatever differs, so that each difference is visible where it is
/// made. Whatever does not take a `Compat` behaves the same in both modes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compat {
    /// As the reference does, flaws included.
    Strict,
    /// The better outcome.
    #[default]
    Better,
}
