//! The snapshot file as tests write it.

use std::fmt::Write;
use std::net::SocketAddr;
use std::path::Path;

/// One pod's line.
#[derive(Clone, Debug)]
pub struct Line {
    /// Its name.
    pub name: String,
    /// Where its sidecar listens.
    pub address: SocketAddr,
    /// `starting`, `ready` or `terminating`.
    pub phase: &'static str,
}

/// A whole file with one revision, `default/rev`; `settings` are further lines
/// of it, each indented by two.
pub fn text(settings: &str, pods: &[Line]) -> String {
    let mut text = format!("revisions:\n- name: default/rev\n  fallback: true\n{settings}  pods:");
    if pods.is_empty() {
        text.push_str(" []");
    }
    for Line { name, address, phase } in pods {
        let _ = write!(text, "\n  - {{name: {name}, address: '{address}', phase: {phase}}}");
    }
    text.push_str("\n...\n");
    text
}

/// Puts a file in place in one step.
///
/// # Panics
/// When it cannot be written.
pub fn put(path: &Path, text: &str) {
    let beside = path.with_extension("new");
    std::fs::write(&beside, text).expect("the file is written");
    std::fs::rename(&beside, path).expect("the file is put in place");
}
