//! Pod by pod, or through the service: `mesh-compatibility-mode`.

use super::ScrapeError;
use crate::mesh::MeshMode;

/// How the pods of one revision are reached, and what was learned of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    mode: MeshMode,
    passthrough: bool,
    addressable: bool,
}

impl Way {
    /// Nothing is learned yet. `passthrough`: pods can be addressed in a mesh
    /// too (`enable-mesh-pod-addressability`).
    pub fn new(mode: MeshMode, passthrough: bool) -> Way {
        Way { mode, passthrough, addressable: true }
    }

    /// True while pods are taken to be addressable.
    pub fn pods_are_addressable(&self) -> bool {
        self.addressable
    }

    /// Pods are asked one by one.
    pub fn asks_pods(&self) -> bool {
        match self.mode {
            MeshMode::Auto => self.addressable || self.passthrough,
            MeshMode::Enabled => false,
            MeshMode::Disabled => true,
        }
    }

    /// After this the service is asked at once.
    pub(super) fn falls_back(&self, error: Option<&ScrapeError>) -> bool {
        let hidden = error == Some(&ScrapeError::DirectNotAvailable);
        hidden && self.mode == MeshMode::Auto && !self.passthrough
    }

    pub(super) fn learn_that_pods_are_hidden(&mut self) {
        self.addressable = false;
    }
}
