//! The Prometheus text form, as the reference's exporter writes it.

use super::Metrics;
use super::counters::Dropped;
use super::instruments::Scope;
use super::process;
use super::reading::{Attribute, Family, Point, Sample};
use crate::go_text;
use std::fmt::Write;

/// All of a component's, as text.
pub fn page(metrics: &Metrics) -> String {
    let reading = metrics.read();
    let mut out = families(&reading.families);
    process::render(&mut out);
    write_target(&mut out, &reading.resource);
    write_dropped(&mut out, &metrics.dropped);
    out
}

/// Series alone, as text.
pub fn families(all: &[Family]) -> String {
    let mut out = String::with_capacity(16 * 1024);
    for family in all {
        write_family(&mut out, family);
    }
    out
}

fn header(out: &mut String, name: &str, help: &str, kind: &str) {
    let _ = write!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
}

fn write_family(out: &mut String, family: &Family) {
    let name = family.instrument.text_name;
    let Some(first) = family.points.first() else { return };
    header(out, name, family.instrument.help, first.sample.kind());
    let mut labels = String::new();
    for point in &family.points {
        labels.clear();
        write_labels(&mut labels, point, family.instrument.scope);
        match &point.sample {
            Sample::Gauge(value) | Sample::UpDown(value) | Sample::Count(value) => {
                let _ = writeln!(out, "{name}{{{labels}}} {value}");
            }
            Sample::Measure(value) => {
                let _ = write!(out, "{name}{{{labels}}} ");
                go_text::float(out, *value);
                out.push('\n');
            }
            Sample::Histogram { bounds, counts, sum } => write_histogram(out, name, &labels, (bounds, counts, *sum)),
        }
    }
}

fn write_histogram(out: &mut String, name: &str, labels: &str, (bounds, counts, sum): (&[f64], &[u64], f64)) {
    let mut total = 0;
    let bounds = bounds.iter().copied().chain([f64::INFINITY]);
    for (bound, count) in bounds.zip(counts) {
        total += count;
        let _ = write!(out, "{name}_bucket{{{labels},le=\"");
        go_text::float(out, bound);
        out.push_str("\"} ");
        write_count(out, total);
    }
    let _ = write!(out, "{name}_sum{{{labels}}} ");
    go_text::float(out, sum);
    let _ = write!(out, "\n{name}_count{{{labels}}} ");
    write_count(out, total);
}

#[expect(clippy::cast_precision_loss, reason = "the text form has only floats")]
fn write_count(out: &mut String, count: u64) {
    go_text::float(out, count as f64);
    out.push('\n');
}

/// Labels in the order of their names, which is that of the dotted ones; the
/// scope's stand where they belong.
fn write_labels(out: &mut String, point: &Point, scope: Scope) {
    let mut all: Vec<(String, String)> =
        point.attributes.iter().map(|(name, value)| (underscored(name), shown(value))).collect();
    all.push(("otel_scope_name".to_owned(), scope.name().to_owned()));
    all.push(("otel_scope_schema_url".to_owned(), String::new()));
    all.push(("otel_scope_version".to_owned(), scope.version().to_owned()));
    all.sort();
    write_pairs(out, all.iter().map(|(name, value)| (name.as_str(), value.as_str())));
}

fn write_pairs<'a>(out: &mut String, pairs: impl Iterator<Item = (&'a str, &'a str)>) {
    for (at, (name, value)) in pairs.enumerate() {
        if at > 0 {
            out.push(',');
        }
        out.push_str(name);
        out.push_str("=\"");
        for c in value.chars() {
            match c {
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '"' => out.push_str("\\\""),
                c => out.push(c),
            }
        }
        out.push('"');
    }
}

fn shown(value: &Attribute) -> String {
    match value {
        Attribute::Text(text) => text.clone(),
        Attribute::Int(number) => number.to_string(),
        Attribute::Bool(value) => value.to_string(),
    }
}

/// A name as the text form allows it.
fn underscored(name: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' };
    name.chars().map(allowed).collect()
}

fn write_target(out: &mut String, resource: &[(String, String)]) {
    header(out, "target_info", "Target metadata", "gauge");
    let names: Vec<String> = resource.iter().map(|(name, _)| underscored(name)).collect();
    out.push_str("target_info{");
    write_pairs(out, names.iter().map(String::as_str).zip(resource.iter().map(|(_, value)| value.as_str())));
    out.push_str("} 1\n");
}

fn write_dropped(out: &mut String, dropped: &Dropped) {
    let name = "zeroscale_telemetry_dropped_total";
    header(out, name, "What telemetry let go of for want of room or of a collector.", "counter");
    for (what, count) in [("exports", dropped.exports()), ("lines", dropped.lines()), ("spans", dropped.spans())] {
        let _ = writeln!(out, "{name}{{what=\"{what}\"}} {count}");
    }
}
