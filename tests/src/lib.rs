//! Shared pieces of the tests.

pub mod bench;
pub mod campaign;
pub mod replay;
pub mod rig;
pub mod simulation;
