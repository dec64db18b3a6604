//! Spans as messages.

use super::messages::{ExportTraceServiceRequest, ResourceSpans, STATUS_ERROR, ScopeSpans, Span, Status};
use super::metrics::{nanos, pair, resource, scope};
use crate::metrics::Scope;
use crate::trace;

/// Flags say whether it is known if the parent is another process's, and whether it is.
const REMOTE_IS_KNOWN: u32 = 0x100;
const IS_REMOTE: u32 = 0x200;

pub(super) fn message(spans: &[trace::Span], attributes: &[(String, String)]) -> ExportTraceServiceRequest {
    let of = |scope: Scope| spans.iter().filter(move |span| span.scope == scope).map(span).collect::<Vec<_>>();
    let scope_spans = Scope::ALL
        .into_iter()
        .map(|of_scope| ScopeSpans { scope: Some(scope(of_scope)), spans: of(of_scope) })
        .filter(|scope| !scope.spans.is_empty())
        .collect();
    let resource_spans = vec![ResourceSpans { resource: Some(resource(attributes)), scope_spans }];
    ExportTraceServiceRequest { resource_spans }
}

fn span(span: &trace::Span) -> Span {
    let parent = if span.parent == [0; 8] { Vec::new() } else { span.parent.to_vec() };
    let remote = if span.remote_parent { IS_REMOTE } else { 0 };
    Span {
        trace_id: span.place.trace.to_vec(),
        span_id: span.place.span.to_vec(),
        trace_state: span.state.clone(),
        parent_span_id: parent,
        name: span.name.clone(),
        kind: span.kind as i32,
        start_time_unix_nano: nanos(span.start),
        end_time_unix_nano: nanos(span.end),
        attributes: span.attributes.iter().map(|(name, value)| pair(name, value)).collect(),
        status: Some(Status {
            message: span.failed.as_deref().unwrap_or("").to_owned(),
            code: if span.failed.is_some() { STATUS_ERROR } else { 0 },
        }),
        flags: u32::from(span.place.flags) | REMOTE_IS_KNOWN | remote,
    }
}
