//! The way that the requests of a test go: to a sidecar, or to an activator
//! with that sidecar behind it.

use super::Front;
use crate::program::Program;
use std::net::SocketAddr;

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Through {
    /// Straight to the sidecar.
    Sidecar,
    /// To an activator whose pod is ready.
    Both,
    /// To an activator whose pod becomes ready once somebody waits for it.
    BothFromZero,
}

/// How long a pod takes to be there, where it has to be woken.
const WAKES_AFTER_MS: u64 = 100;

/// What runs; killed when it is dropped.
pub struct Chain {
    /// Where requests go.
    pub main: SocketAddr,
    /// The activator, if there is one.
    pub front: Option<Front>,
    /// The sidecar.
    pub sidecar: Program,
}

impl Chain {
    /// In front of `app`, with changes to the sidecar's stock environment.
    ///
    /// # Panics
    /// When something does not come up.
    pub fn start(through: Through, app: SocketAddr, changes: &[(&str, &str)]) -> Chain {
        let sidecar = Program::start(app, changes);
        let limit = changes.iter().find(|(name, _)| *name == "CONTAINER_CONCURRENCY").map_or("0", |(_, limit)| limit);
        let start = |more: &str| Front::start(&format!("--limit {limit} {more}")).expect("an activator");
        let front = match through {
            Through::Sidecar => None,
            Through::Both => {
                let mut front = start("");
                front.pods(&[sidecar.main]).expect("it takes a pod in");
                Some(front)
            }
            Through::BothFromZero => Some(start(&format!("--wake {} --after {WAKES_AFTER_MS}", sidecar.main))),
        };
        let main = front.as_ref().map_or(sidecar.main, |front| front.address);
        Chain { main, front, sidecar }
    }

    /// Numbers of the processes.
    pub fn pids(&self) -> Vec<i32> {
        self.front.iter().map(Front::pid).chain([self.sidecar.pid()]).collect()
    }

    /// True while all of them run.
    pub fn is_running(&mut self) -> bool {
        self.sidecar.is_running() && self.front.as_mut().is_none_or(Front::is_running)
    }
}
