//! Decisions without a world.
//!
//! Nothing here has a clock, a lock, a thread, a log, a metric or randomness:
//! time is an argument ([`moment::Moment`]), draws are arguments, and every
//! result is a value. The shells around it (activator, autoscaler,
//! queue-proxy, platform) do the waiting and the sockets.
//!
//! | words | module |
//! | --- | --- |
//! | a revision, its limits | [`revision`] |
//! | what is, what is wanted | [`world`] |
//! | one second of load | [`stat`], [`timeline`] |
//! | who may go to which pod | [`admit`], [`pick`], [`eject`], over [`list`] |
//! | which pods are an activator's | [`endpoints`], [`backends`], [`assign`] |
//! | which pods of a revision answer | [`probing`], by [`mesh`] |
//! | which activators serve a revision | [`subset`], [`names`] |
//! | how long a wake-up takes | [`wake`] |
//! | which autoscaler works for a revision | [`own`] |
//! | averages of load | [`window`], [`collect`] |
//! | asking pods for their load | [`scrape`] |
//! | stats for another replica | [`forward`] |
//! | reports that do not come, pods that push, pods without work | [`reporters`] |
//! | is an app ready, how a sidecar ends | [`probe`], [`drain`] |
//! | how many pods | [`scale`], [`decider`], [`zero`], [`active`], all of it: [`judge`] |
//! | load, queues and noise told apart | [`overload`], [`steady`] |
//! | what is kept over a restart | [`saved`] |
//! | what acted on that number, for people | [`limit`] |
//! | the reference's answer or the better one | [`compat`] |
//! | durations as text | [`duration`] |

pub mod active;
pub mod admit;
pub mod assign;
pub mod backends;
pub mod collect;
pub mod compat;
pub mod decider;
pub mod drain;
pub mod duration;
pub mod eject;
pub mod endpoints;
pub mod forecast;
pub mod forward;
pub mod judge;
pub mod limit;
pub mod list;
mod md5;
pub mod mesh;
pub mod moment;
pub mod names;
pub mod overload;
pub mod own;
pub mod pick;
pub mod probe;
pub mod probing;
pub mod reporters;
pub mod revision;
pub mod saved;
pub mod scale;
pub mod scrape;
pub mod stat;
pub mod steady;
pub mod subset;
pub mod timeline;
pub mod wake;
pub mod window;
pub mod world;
pub mod zero;
