//! The backend: one thread, answers that were built beforehand, so that it is
//! never what is measured.
//!
//! | path | answer |
//! | --- | --- |
//! | `/0`, `/1k`, `/64k`, `/1m` | a body of that size |
//! | `/sink` | takes any body, answers 0 B |
//! | `/5ms` | 1 KiB, after 5 ms |
//! | `/hold` | nothing, ever |
//! | `/bench/Unary`, `/bench/Stream` (HTTP/2) | gRPC: one message of 1 KiB, or 100 of 128 B |

pub(crate) mod http1;
pub(crate) mod http2;

use std::time::Duration;

/// How long `/5ms` takes.
pub(crate) const WORK: Duration = Duration::from_millis(5);

/// What a path asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// A body of so many bytes.
    Bytes(usize),
    /// The same, after [`WORK`].
    Slow(usize),
    /// No answer.
    Hold,
    /// One gRPC message of so many bytes.
    Unary(usize),
    /// So many of so many bytes.
    Stream(usize, usize),
    /// 404.
    Unknown,
}

impl Route {
    pub(crate) fn of(path: &str) -> Route {
        match path {
            "/" | "/0" | "/sink" => Route::Bytes(0),
            "/1k" => Route::Bytes(1 << 10),
            "/64k" => Route::Bytes(64 << 10),
            "/1m" => Route::Bytes(1 << 20),
            "/5ms" => Route::Slow(1 << 10),
            "/hold" => Route::Hold,
            "/bench/Unary" => Route::Unary(1 << 10),
            "/bench/Stream" => Route::Stream(100, 128),
            _ => Route::Unknown,
        }
    }
}
