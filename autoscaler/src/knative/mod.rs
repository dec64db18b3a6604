//! The contract with Knative, as far as it needs no Kubernetes client: what
//! its objects say goes in, what is to be written comes out. Reading and
//! writing is the work of others.
//!
//! | words | module |
//! | --- | --- |
//! | values as settings write them | [`text`] |
//! | config maps | [`config`] |
//! | annotations, and what follows from them | [`annotations`] |

pub mod annotations;
pub mod config;
pub mod text;
