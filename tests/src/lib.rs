//! Shared pieces of the tests.

pub mod replay;
