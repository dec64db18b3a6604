//! The contract with Knative, as far as it needs no Kubernetes client: what
//! its objects say goes in, what is to be written comes out. Reading and
//! writing is the work of others.
//!
//! | words | module |
//! | --- | --- |
//! | values as settings write them | [`text`] |
//! | config maps | [`config`] |
//! | annotations, and what follows from them | [`annotations`] |
//! | what objects have in common | [`object`], [`conditions`] |
//! | a revision that we scale | [`pa`] |
//! | a revision that Kubernetes scales | [`hpa`] |
//! | the service of a revision, and who is behind it | [`sks`] |
//! | what is collected of a revision | [`metric`] |
//! | the pods of a revision, counted | [`pods`] |
//! | where the owner of a bucket is reached | [`bucket`] |

pub mod annotations;
pub mod bucket;
pub mod conditions;
pub mod config;
pub mod hpa;
pub mod metric;
pub mod object;
pub mod pa;
pub mod pods;
pub mod sks;
pub mod text;
