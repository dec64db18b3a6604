//! The shipped sidecar between raw clients and raw apps: what must hold of it
//! whatever stands on its two sides.
//!
//! | job | module |
//! | --- | --- |
//! | HTTP/1 on one connection, as client and as app | [`h1`] |
//! | HTTP/2 without TLS, as client | [`h2c`] |
//! | HTTP/2 frame by frame, right or wrong | [`frames`] |
//! | an app that speaks both | [`dual`] |
//! | an app that dies and comes back | [`mortal`] |
//! | answers that come before the body has been read | [`early_answer`] |
//! | apps that close idle connections | [`reuse`] |
//! | crowds that leave the queue | [`waves`] |
//! | an app that is killed under load | [`restart`] |
//! | clients that ask for too much | [`floods`] |
//! | requests that two parsers may take for different ones | [`smuggling`] |
//!
//! `cargo test` runs the experiments small (`tests/tests/queue_proxy_*.rs`),
//! the campaigns at full size.

pub mod dual;
pub mod early_answer;
pub mod floods;
pub mod frames;
pub mod h1;
pub mod h2c;
pub mod mortal;
pub mod restart;
pub mod reuse;
pub mod smuggling;
pub mod waves;

use std::time::Duration;

/// How long one exchange may take before it is given up.
pub const PATIENCE: Duration = Duration::from_secs(20);
