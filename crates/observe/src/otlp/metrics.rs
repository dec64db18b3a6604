//! Metrics as messages.

use super::messages::{
    AnyKind, AnyValue, CUMULATIVE, Data, ExportMetricsServiceRequest, Gauge, Histogram, HistogramDataPoint,
    InstrumentationScope, KeyValue, Metric, NumberDataPoint, Resource, ResourceMetrics, ScopeMetrics, Sum,
};
use crate::component::Component;
use crate::metrics::{Attribute, Dropped, Family, Point, Reading, Sample, Scope};
use policy::moment::Moment;

pub(super) fn message(component: Component, reading: &Reading, dropped: &Dropped) -> ExportMetricsServiceRequest {
    let of = |scope: Scope| {
        let families = reading.families.iter().filter(move |family| family.instrument.scope == scope);
        families.map(|family| metric(family, reading)).collect::<Vec<_>>()
    };
    let mut scope_metrics: Vec<ScopeMetrics> = Scope::ALL
        .into_iter()
        .map(|of_scope| ScopeMetrics { scope: Some(scope(of_scope)), metrics: of(of_scope) })
        .filter(|scope| !scope.metrics.is_empty())
        .collect();
    scope_metrics.push(own(component, reading, dropped));
    let resource = Some(resource(&reading.resource));
    ExportMetricsServiceRequest { resource_metrics: vec![ResourceMetrics { resource, scope_metrics }] }
}

/// Our own counters: nobody else's scope.
fn own(component: Component, reading: &Reading, dropped: &Dropped) -> ScopeMetrics {
    let all = [("exports", dropped.exports()), ("lines", dropped.lines()), ("spans", dropped.spans())];
    let point = |(what, count): (&str, u64)| NumberDataPoint {
        start_time_unix_nano: nanos(reading.began),
        time_unix_nano: nanos(reading.at),
        as_int: Some(whole(count)),
        as_double: None,
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
    let scope = InstrumentationScope {
        name: format!("zeroscale/{}", component.name()),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    ScopeMetrics { scope: Some(scope), metrics: vec![metric] }
}

fn metric(family: &Family, reading: &Reading) -> Metric {
    let instrument = family.instrument;
    let numbers = || family.points.iter().filter_map(|point| number(point, reading)).collect();
    let sum = |is_monotonic: bool| {
        Data::Sum(Sum { data_points: numbers(), aggregation_temporality: CUMULATIVE, is_monotonic })
    };
    let data = match family.points.first().map(|point| &point.sample) {
        Some(Sample::Count(_)) => sum(true),
        Some(Sample::UpDown(_)) => sum(false),
        Some(Sample::Gauge(_) | Sample::Measure(_)) => Data::Gauge(Gauge { data_points: numbers() }),
        Some(Sample::Histogram { .. }) | None => Data::Histogram(Histogram {
            data_points: family.points.iter().filter_map(|point| histogram(point, reading)).collect(),
            aggregation_temporality: CUMULATIVE,
        }),
    };
    Metric {
        name: instrument.name.to_owned(),
        description: instrument.help.to_owned(),
        unit: instrument.unit.otlp().to_owned(),
        data: Some(data),
    }
}

fn number(point: &Point, reading: &Reading) -> Option<NumberDataPoint> {
    let (as_int, as_double) = match &point.sample {
        Sample::Gauge(value) | Sample::UpDown(value) | Sample::Count(value) => (Some(whole(*value)), None),
        Sample::Measure(value) => (None, Some(*value)),
        Sample::Histogram { .. } => return None,
    };
    // A gauge is of now.
    let since_start = matches!(point.sample, Sample::UpDown(_) | Sample::Count(_));
    Some(NumberDataPoint {
        start_time_unix_nano: if since_start { nanos(reading.began) } else { 0 },
        time_unix_nano: nanos(reading.at),
        as_double,
        as_int,
        attributes: attributes(point),
    })
}

fn histogram(point: &Point, reading: &Reading) -> Option<HistogramDataPoint> {
    let Sample::Histogram { bounds, counts, sum } = &point.sample else { return None };
    Some(HistogramDataPoint {
        start_time_unix_nano: nanos(reading.began),
        time_unix_nano: nanos(reading.at),
        count: counts.iter().sum(),
        sum: Some(*sum),
        bucket_counts: counts.clone(),
        explicit_bounds: bounds.to_vec(),
        attributes: attributes(point),
    })
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
