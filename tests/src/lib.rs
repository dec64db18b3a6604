//! Shared pieces of the tests.

pub mod apps;
pub mod bench;
pub mod campaign;
pub mod cluster;
pub mod cost;
pub mod filehost;
pub mod floor;
pub mod front;
pub mod fuzz;
pub mod held;
pub mod lags;
pub mod leaving;
pub mod loads;
pub mod pod_end;
pub mod program;
pub mod replay;
pub mod rig;
pub mod sidecar;
pub mod simulation;
pub mod soak;
pub mod testapp;
pub mod wake_signal;
pub mod websocket;
