//! The file platform with everything around it: programs that follow one
//! snapshot file, and a small host that carries the orders out.
//!
//! | job | module |
//! | --- | --- |
//! | the snapshot file as tests write it | [`world`] |
//! | starting and stopping pods as ordered | [`host`] |
//! | one of them: app and sidecar | [`pod`] |
//! | a program that runs beside the test | [`daemon`] |
//! | an activator as a program | [`activator`] |

pub mod activator;
pub mod daemon;
pub mod host;
pub mod pod;
pub mod world;
