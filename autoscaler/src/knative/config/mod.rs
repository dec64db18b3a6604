//! The config maps that the autoscaler reads: text to values, with the
//! reference's defaults, bounds and error texts (autoscaler reference,
//! section 3).
//!
//! A key that is not known is passed over. A map with a fault is refused as a
//! whole: at start that is fatal, later the one before stays.

mod autoscaler;
mod bounds;
mod deployment;
mod election;
mod map;
mod network;

pub use autoscaler::{
    AutoscalerConfig, NOT_CONCURRENCY_UTILIZATION, PANIC_WINDOW_PERCENTAGE, TARGET_LOWEST, WINDOW_LONGEST,
    WINDOW_SHORTEST,
};
pub use deployment::progress_deadline;
pub use election::ElectionConfig;
pub use network::MeshConfig;

use std::collections::BTreeMap;

/// What a config map holds.
pub type Data = BTreeMap<String, String>;

/// Why a config map is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigFault {
    /// A value does not read.
    Parse(String),
    /// A value reads, but is not allowed.
    Validate(String),
}

impl ConfigFault {
    /// The sentence.
    pub fn as_str(&self) -> &str {
        match self {
            ConfigFault::Parse(text) | ConfigFault::Validate(text) => text,
        }
    }
}
