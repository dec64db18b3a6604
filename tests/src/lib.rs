//! Shared pieces of the tests.

pub mod bench;
pub mod campaign;
pub mod cluster;
pub mod cost;
pub mod floor;
pub mod fuzz;
pub mod program;
pub mod replay;
pub mod rig;
pub mod simulation;
pub mod testapp;
