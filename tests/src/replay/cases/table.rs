//! Where the default mode differs from the original on purpose.
//!
//! Every row that is to be matched passes in the default mode too, but for
//! these. A row that is named and does not differ is reported, so that the
//! table stays as short as it can be.

/// One difference.
pub struct Difference {
    /// The row.
    pub row: &'static str,
    /// The step at which it shows first; anything before it is a failure.
    pub step: usize,
    /// Why the default mode does otherwise.
    pub reason: &'static str,
}

const fn differs(row: &'static str, step: usize, reason: &'static str) -> Difference {
    Difference { row, step, reason }
}

/// All of them.
pub const DIFFERENT_BY_DEFAULT: &[Difference] = &[
    differs("request-log-aborted", 1, "the head and the part that came are delivered before the cut, and logged so"),
    differs("stat-excludes-probes", 11, "K-Kubelet-Probe from anyone is a request like others, and counted"),
    differs("request-log-probe-off", 10, "K-Kubelet-Probe from anyone is a request like others, and logged"),
    differs("probe-grpc-not-serving", 2, "the reason of a failed probe is a JSON line like all others"),
    differs("probe-empty-object", 2, "the reason of a failed probe is a JSON line like all others"),
];

/// How this row may differ in the default mode.
pub fn difference(row: &str) -> Option<&'static Difference> {
    DIFFERENT_BY_DEFAULT.iter().find(|difference| difference.row == row)
}
