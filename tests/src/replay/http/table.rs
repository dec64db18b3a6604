//! Where the default mode differs from the original on purpose, and what
//! cannot be judged.

/// Its stub in place of the queue sets a deadline, which the original itself
/// never does: the request's limits answer first (504).
pub const CANNOT_HAPPEN: &str = "htp-040";

/// Every row that is to be matched passes in the default mode too, but for
/// these. A row that is named and does not differ is reported.
pub const DIFFERENT_BY_DEFAULT: &[(&str, &str)] = &[
    ("htp-020", "the pod's sidecar asks for the body, or has it already: a pod is not told to expect it"),
    ("htp-021", "the pod's sidecar asks for the body, or has it already: a pod is not told to expect it"),
    ("htp-041", "requests that wait for a removed revision are told so: 503 with the reason"),
    ("htp-042", "the wait has a limit of its own and is not charged to the app's"),
    ("htp-051", "the part that came is delivered before the cut"),
    ("htp-053", "answers of known length go on piece by piece"),
];

/// Why a row differs in the default mode.
pub fn reason(row: &str) -> Option<&'static str> {
    DIFFERENT_BY_DEFAULT.iter().find(|(id, _)| *id == row).map(|(_, reason)| *reason)
}
