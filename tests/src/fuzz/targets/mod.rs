//! The readers, each with its property.

pub(super) mod answer;
pub(super) mod differential;
pub(super) mod forwarded;
mod http1;
pub(super) mod readiness;
pub(super) mod request;
pub(super) mod settings;
pub(super) mod stat;
pub(super) mod template;
