//! The I/O that two or three components share.
//!
//! | job | module |
//! | --- | --- |
//! | time | [`clock`], [`wheel`] (timers), [`alarm`], [`deadline`] (a request's limits), [`duration`] (as text) |
//! | threads and their state | [`worker`] |
//! | HTTP/1.1, both sides | [`h1`] |
//! | HTTP/2, both sides | [`http2`] |
//! | connections in | [`listen`], [`socket`], [`serve`], [`conn`], [`fds`]; [`side`] (small ports); [`tls`] |
//! | what a request says | [`head`], [`headers`], [`trust`] |
//! | waiting for a slot | [`limiter`] |
//! | requests out | [`target`], [`forward`], [`idle`]; [`grpc`] (single calls) |
//! | upgraded connections | [`tunnel`], [`websocket`] (where frames end), [`farewell`] |
//! | bodies | [`incoming`], [`body`], [`replay`], [`meter`] (told of what passes) |
//! | answers of our own | [`reason`], [`refuse`], [`grpc_status`], [`probe`] |
//! | stopping | [`signals`], [`shutdown`], [`drain`] |
//! | settings | [`mod@env`], [`fault`] |
//! | stats between components | [`stats`] |
//! | logs and metrics | [`telemetry`], [`metrics`], [`trace_context`] |
//!
//! Nothing here ends the process, reads the environment, or spawns a task
//! that a [`shutdown::Shutdown`] does not track.

pub mod alarm;
pub mod body;
pub mod clock;
pub mod conn;
pub mod deadline;
pub mod drain;
pub use policy::duration;
pub mod env;
pub mod farewell;
pub mod fault;
pub mod fds;
pub mod forward;
pub mod forwarded;
pub mod grpc;
pub mod grpc_status;
pub mod h1;
pub mod head;
pub mod headers;
pub mod http1;
pub mod http2;
#[cfg(feature = "hyper-http1")]
mod hyper1;
pub mod idle;
pub mod incoming;
pub mod limiter;
pub mod listen;
pub mod marks;
pub mod meter;
pub mod metrics;
mod peer;
pub mod probe;
pub mod reason;
pub mod refuse;
pub mod replay;
pub mod serve;
pub mod shutdown;
pub mod side;
pub mod signals;
pub mod socket;
pub mod stats;
pub mod target;
pub mod telemetry;
pub mod tls;
pub mod trace_context;
pub mod trust;
pub mod tunnel;
mod unacked;
pub mod websocket;
pub mod wheel;
pub mod worker;

#[cfg(not(target_os = "linux"))]
compile_error!("zeroscale runs on Linux only (process groups, /proc, child subreapers)");
