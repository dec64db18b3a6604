//! Spans as lines, in the form of OpenTelemetry's stdout exporter for Go.

use super::span::Span;
use crate::go_text;
use crate::metrics::Attribute;
use plumbing::trace_context::{SpanId, hex};
use policy::moment::Moment;
use std::fmt::Write;

const NO_TRACE: &str = "00000000000000000000000000000000";

/// One span as a line, with its end.
pub(crate) fn line(span: &Span, resource: &[(String, String)]) -> String {
    let mut out = String::with_capacity(2048);
    out.push_str("{\"Name\":\"");
    go_text::json(&mut out, &span.name);
    out.push_str("\",\"SpanContext\":");
    write_context(&mut out, span, span.place.span, false);
    out.push_str(",\"Parent\":");
    write_context(&mut out, span, span.parent, span.remote_parent);
    let _ = write!(out, ",\"SpanKind\":{},\"StartTime\":\"", span.kind as u8);
    write_time(&mut out, span.start);
    out.push_str("\",\"EndTime\":\"");
    write_time(&mut out, span.end);
    out.push_str("\",\"Attributes\":");
    if span.attributes.is_empty() {
        out.push_str("null");
    } else {
        write_attributes(&mut out, span.attributes.iter().map(|(name, value)| (*name, value.clone())));
    }
    let status = if span.failed.is_some() { "Error" } else { "Unset" };
    let mut description = String::new();
    go_text::json(&mut description, span.failed.as_deref().unwrap_or(""));
    let _ = write!(
        out,
        ",\"Events\":null,\"Links\":null,\"Status\":{{\"Code\":\"{status}\",\"Description\":\"{description}\"}},\
         \"DroppedAttributes\":0,\"DroppedEvents\":0,\"DroppedLinks\":0,\"ChildSpanCount\":{},\"Resource\":",
        span.children
    );
    let resource = resource.iter().map(|(name, value)| (name.as_str(), Attribute::Text(value.clone())));
    write_attributes(&mut out, resource);
    for key in ["InstrumentationScope", "InstrumentationLibrary"] {
        let (name, version) = (span.scope.name(), span.scope.version());
        let scope = format!("{{\"Name\":\"{name}\",\"Version\":\"{version}\",\"SchemaURL\":\"\",\"Attributes\":null}}");
        let _ = write!(out, ",\"{key}\":{scope}");
    }
    out.push_str("}\n");
    out
}

fn write_context(out: &mut String, span: &Span, id: SpanId, remote: bool) {
    let absent = id == [0; 8];
    out.push_str("{\"TraceID\":\"");
    if absent {
        out.push_str(NO_TRACE);
    } else {
        hex(out, &span.place.trace);
    }
    out.push_str("\",\"SpanID\":\"");
    hex(out, &id);
    let flags = if absent { 0 } else { span.place.flags };
    let _ = write!(out, "\",\"TraceFlags\":\"{flags:02x}\",\"TraceState\":\"");
    if !absent {
        go_text::json(out, &span.state);
    }
    let _ = write!(out, "\",\"Remote\":{remote}}}");
}

fn write_attributes<'a>(out: &mut String, all: impl Iterator<Item = (&'a str, Attribute)>) {
    out.push('[');
    for (at, (name, value)) in all.enumerate() {
        if at > 0 {
            out.push(',');
        }
        out.push_str("{\"Key\":\"");
        go_text::json(out, name);
        out.push_str("\",\"Value\":{\"Type\":");
        match value {
            Attribute::Text(text) => {
                out.push_str("\"STRING\",\"Value\":\"");
                go_text::json(out, &text);
                out.push('"');
            }
            Attribute::Int(number) => {
                let _ = write!(out, "\"INT64\",\"Value\":{number}");
            }
            Attribute::Bool(value) => {
                let _ = write!(out, "\"BOOL\",\"Value\":{value}");
            }
        }
        out.push_str("}}");
    }
    out.push(']');
}

fn write_time(out: &mut String, at: Moment) {
    crate::go_time::rfc3339_nanos(out, at);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Scope;
    use crate::trace::span::Kind;
    use plumbing::trace_context::Context;

    /// Recorded from `stdouttrace` 1.47 of OpenTelemetry for Go, but for the scope's version.
    const GOLDEN: &str = r#"{"Name":"HTTP GET","SpanContext":{"TraceID":"7ed46786f940cb8935e162db55e39549","SpanID":"c9ba8eedae32d245","TraceFlags":"01","TraceState":"","Remote":false},"Parent":{"TraceID":"7ed46786f940cb8935e162db55e39549","SpanID":"8602840099880e9b","TraceFlags":"01","TraceState":"","Remote":false},"SpanKind":3,"StartTime":"2026-11-30T04:19:49.063448397Z","EndTime":"2026-11-30T04:19:49.06397Z","Attributes":[{"Key":"http.request.method","Value":{"Type":"STRING","Value":"GET"}},{"Key":"server.port","Value":{"Type":"INT64","Value":38259}}],"Events":null,"Links":null,"Status":{"Code":"Unset","Description":""},"DroppedAttributes":0,"DroppedEvents":0,"DroppedLinks":0,"ChildSpanCount":0,"Resource":[{"Key":"service.name","Value":{"Type":"STRING","Value":"svc1"}}],"InstrumentationScope":{"Name":"knative.dev/serving/pkg/queue","Version":"","SchemaURL":"","Attributes":null},"InstrumentationLibrary":{"Name":"knative.dev/serving/pkg/queue","Version":"","SchemaURL":"","Attributes":null}}"#;

    fn span() -> Span {
        let place = Context::parse(b"00-7ed46786f940cb8935e162db55e39549-c9ba8eedae32d245-01").unwrap();
        Span {
            name: "HTTP GET".to_owned(),
            kind: Kind::Client,
            scope: Scope::Queue,
            place,
            parent: [0x86, 0x02, 0x84, 0x00, 0x99, 0x88, 0x0e, 0x9b],
            remote_parent: false,
            state: String::new(),
            start: Moment::from_unix_nanos(1_796_012_389_063_448_397),
            end: Moment::from_unix_nanos(1_796_012_389_063_970_000),
            attributes: vec![
                ("http.request.method", Attribute::Text("GET".to_owned())),
                ("server.port", Attribute::Int(38_259)),
            ],
            failed: None,
            children: 0,
        }
    }

    #[test]
    fn a_span_reads_as_gos_exporter_writes_it() {
        assert_eq!(line(&span(), &[("service.name".to_owned(), "svc1".to_owned())]), format!("{GOLDEN}\n"));
    }

    #[test]
    fn a_root_has_no_parent() {
        let root = line(&Span { parent: [0; 8], ..span() }, &[]);
        let parent = r#""Parent":{"TraceID":"00000000000000000000000000000000","SpanID":"0000000000000000","TraceFlags":"00","TraceState":"","Remote":false}"#;
        assert!(root.contains(parent));
    }
}
