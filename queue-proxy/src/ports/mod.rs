//! The ports beside the main one.

pub(crate) mod admin;
pub(crate) mod autometric;
pub(crate) mod lease;
pub(crate) mod usermetric;
