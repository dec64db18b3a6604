//! Metrics as messages.

use super::messages::{
    AnyKind, AnyValue, CUMULATIVE, Data, ExportMetricsServiceRequest, Gauge, Histogram, HistogramDataPoint,
    InstrumentationScope, KeyValue, Metric, NumberDataPoint, Resource, ResourceMetrics, ScopeMetrics, Sum,
};
use crate::observe::metrics::{Attribute, Dropped, Family, Point, Reading, Sample, Scope};
use policy::moment::Moment;

/// Our own counters: nobody else's scope.
const OWN_SCOPE: &str = "zeroscale/queue-proxy";

pub(super) fn message(reading: &Reading, dropped: &Dropped) -> ExportMetricsServiceRequest {
    let of = |scope: Scope| {
        let families = reading.families.iter().filter(move |family| family.instrument.scope == scope);
        families.map(|family| metric(family, reading)).collect::<Vec<_>>()
    };
    let mut scope_metrics: Vec<ScopeMetrics> = [Scope::Queue, Scope::Http]
        .into_iter()
        .map(|of_scope| ScopeMetrics { scope: Some(scope(of_scope)), metrics: of(of_scope) })
        .filter(|scope| !scope.metrics.is_empty())
        .collect();
    scope_metrics.push(own(reading, dropped));
    let resource = Some(resource(&reading.resource));
    ExportMetricsServiceRequest { resource_metrics: vec![ResourceMetrics { resource, scope_metrics }] }
}

fn own(reading: &Reading, dropped: &Dropped) -> ScopeMetrics {
    let all = [("exports", dropped.exports()), ("lines", dropped.lines()), ("spans", dropped.spans())];
    let point = |(what, count): (&str, u64)| NumberDataPoint {
        start_time_unix_nano: nanos(reading.began),
        time_unix_nano: nanos(reading.at),
        as_int: Some(whole(count)),
        attributes: vec![pair("what", &Attribute::Text(what.to_owned()))],
    };
    let data_points = all.into_iter().map(point).collect();
    let sum = Sum { data_points, aggregation_temporality: CUMULATIVE, is_monotonic: true };
    let metric = Metric {
        name: "zeroscale.telemetry.dropped".to_owned(),
        description: "What telemetry let go of for want of room or of a collector.".to_owned(),
        unit: "{item}".to_owned(),
        data: Some(Data::Sum(sum)),
    };
    let scope = InstrumentationScope { name: OWN_SCOPE.to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
    ScopeMetrics { scope: Some(scope), metrics: vec![metric] }
}

fn metric(family: &Family, reading: &Reading) -> Metric {
    let instrument = family.instrument;
    let mut gauge = Gauge::default();
    let mut histogram = Histogram { data_points: Vec::new(), aggregation_temporality: CUMULATIVE };
    for point in &family.points {
        match &point.sample {
            Sample::Gauge(value) => gauge.data_points.push(NumberDataPoint {
                // A gauge is of now.
                start_time_unix_nano: 0,
                time_unix_nano: nanos(reading.at),
                as_int: Some(whole(*value)),
                attributes: attributes(point),
            }),
            Sample::Histogram { bounds, counts, sum } => histogram.data_points.push(HistogramDataPoint {
                start_time_unix_nano: nanos(reading.began),
                time_unix_nano: nanos(reading.at),
                count: counts.iter().sum(),
                sum: Some(*sum),
                bucket_counts: counts.clone(),
                explicit_bounds: bounds.to_vec(),
                attributes: attributes(point),
            }),
        }
    }
    let data = if gauge.data_points.is_empty() { Data::Histogram(histogram) } else { Data::Gauge(gauge) };
    Metric {
        name: instrument.name.to_owned(),
        description: instrument.help.to_owned(),
        unit: instrument.unit.otlp().to_owned(),
        data: Some(data),
    }
}

fn attributes(point: &Point) -> Vec<KeyValue> {
    point.attributes.iter().map(|(name, value)| pair(name, value)).collect()
}

pub(super) fn pair(name: &str, value: &Attribute) -> KeyValue {
    let value = match value {
        Attribute::Text(text) => AnyKind::Text(text.clone()),
        Attribute::Int(number) => AnyKind::Int(*number),
        Attribute::Bool(value) => AnyKind::Bool(*value),
    };
    KeyValue { key: name.to_owned(), value: Some(AnyValue { value: Some(value) }) }
}

pub(super) fn resource(attributes: &[(String, String)]) -> Resource {
    let text = |text: &String| Attribute::Text(text.clone());
    Resource { attributes: attributes.iter().map(|(name, value)| pair(name, &text(value))).collect() }
}

pub(super) fn scope(scope: Scope) -> InstrumentationScope {
    InstrumentationScope { name: scope.name().to_owned(), version: scope.version().to_owned() }
}

pub(super) fn nanos(at: Moment) -> u64 {
    u64::try_from(at.unix_nanos()).unwrap_or_default()
}

fn whole(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
