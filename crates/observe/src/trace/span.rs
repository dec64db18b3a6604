//! A finished span.

use crate::metrics::{Attribute, Scope};
use plumbing::trace_context::{Context, SpanId};
use policy::moment::Moment;
use std::borrow::Cow;

/// What a span stands for; the numbers are OpenTelemetry's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Internal = 1,
    Server = 2,
    Client = 3,
}

/// One of them, ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) scope: Scope,
    pub(crate) place: Context,
    /// All zeros for a root.
    pub(crate) parent: SpanId,
    /// True when the parent is another process's.
    pub(crate) remote_parent: bool,
    /// `tracestate`, as it came.
    pub(crate) state: String,
    pub(crate) start: Moment,
    pub(crate) end: Moment,
    pub(crate) attributes: Vec<(&'static str, Attribute)>,
    /// Set when it failed: why, or nothing.
    pub(crate) failed: Option<Cow<'static, str>>,
    /// Spans below it.
    pub(crate) children: u32,
}
