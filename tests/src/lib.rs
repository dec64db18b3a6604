//! Shared pieces of the tests.

pub mod campaign;
pub mod replay;
pub mod rig;
pub mod simulation;
