//! Shared pieces of the tests.

pub mod bench;
pub mod campaign;
pub mod floor;
pub mod program;
pub mod replay;
pub mod rig;
pub mod sidecar;
pub mod simulation;
pub mod testapp;
