//! The sidecar as a kubelet runs it, without a kubelet: the environment of a
//! recorded Deployment, an unprivileged user on a read-only root, and a network
//! of its own that is reached over a veth.
//!
//! | job | module |
//! | --- | --- |
//! | what the recording says of the container | [`deployment`] |
//! | two network namespaces, and code that runs in them | [`network`] |
//! | the process in its container | [`container`] |
//! | the app behind it | [`app`] |
//! | what kubelet, activator and autoscaler ask | [`peers`] |

pub mod app;
pub mod container;
pub mod deployment;
pub mod network;
pub mod peers;
