//! Pods behind a mesh that keeps addresses: they are asked for by the name of
//! their private service, and the mesh is told to leave the address alone.

use http::header::HeaderValue;
use http::request::Parts;
use plumbing::headers::PASSTHROUGH;
use plumbing::target;
use policy::names::passthrough_host;
use policy::revision::RevisionId;

/// Marks a request to a pod of this revision.
pub(crate) fn mark(parts: &mut Parts, revision: &RevisionId) {
    let host = passthrough_host(&revision.name, &revision.namespace);
    if let Ok(host) = HeaderValue::from_str(&host) {
        target::to_host(parts, host);
    }
    // What a client has said stays beside it, as in the reference.
    parts.headers.append(PASSTHROUGH, HeaderValue::from_static("true"));
}
