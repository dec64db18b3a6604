//! One look at all series, for whichever form they are shown in.

use super::Metrics;
use super::book::Entry;
use super::histogram::{self, Bytes, Seconds};
use super::instruments::{
    CLIENT_DURATION, CLIENT_REQUEST_SIZE, INVOCATION_DURATION, Instrument, QUEUE_DEPTH, SERVER_DURATION,
    SERVER_REQUEST_SIZE, SERVER_RESPONSE_SIZE,
};
use super::labels::Labels;
use crate::observe::facts::split_host;
use plumbing::clock;
use policy::moment::Moment;

/// All series at one time.
pub(crate) struct Reading {
    pub(crate) began: Moment,
    pub(crate) at: Moment,
    pub(crate) resource: Vec<(String, String)>,
    /// Sorted by their text names.
    pub(crate) families: Vec<Family>,
}

/// An instrument's series.
pub(crate) struct Family {
    pub(crate) instrument: &'static Instrument,
    pub(crate) points: Vec<Point>,
}

/// One series.
pub(crate) struct Point {
    /// Sorted by name; dotted names.
    pub(crate) attributes: Vec<(&'static str, Attribute)>,
    pub(crate) sample: Sample,
}

/// A label.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Attribute {
    Text(String),
    Int(i64),
    Bool(bool),
}

/// A value.
pub(crate) enum Sample {
    Gauge(u64),
    Histogram { bounds: &'static [f64], counts: Vec<u64>, sum: f64 },
}

impl Metrics {
    pub(crate) fn read(&self) -> Reading {
        let mut families = Vec::new();
        let client = self.book.client();
        let server = self.book.server();
        let of_client = |entry: &Entry<_>| self.client_labels(entry);
        push(&mut families, &CLIENT_REQUEST_SIZE, &client, of_client, |series| bytes(&series.request_size));
        push(&mut families, &CLIENT_DURATION, &client, of_client, |series| seconds(&series.duration));
        push(&mut families, &SERVER_REQUEST_SIZE, &server, server_labels, |series| bytes(&series.request_size));
        push(&mut families, &SERVER_DURATION, &server, server_labels, |series| seconds(&series.duration));
        push(&mut families, &SERVER_RESPONSE_SIZE, &server, server_labels, |series| bytes(&series.response_size));
        let mut invocations = self.book.invocations();
        invocations.sort_by_key(|(status, _)| *status);
        let status = |status: u16| ("http.response.status_code", Attribute::Int(i64::from(status)));
        let points = invocations
            .iter()
            .map(|(code, series)| Point { attributes: vec![status(*code)], sample: seconds(series) })
            .collect();
        push_family(&mut families, &INVOCATION_DURATION, points);
        let depth = self.depth().map(|depth| Point { attributes: Vec::new(), sample: Sample::Gauge(depth) });
        push_family(&mut families, &QUEUE_DEPTH, depth.into_iter().collect());
        Reading { began: self.began, at: clock::now(), resource: self.resource.clone(), families }
    }

    fn client_labels<S>(&self, entry: &Entry<S>) -> Vec<(&'static str, Attribute)> {
        let (host, port) = &self.app;
        common_labels(entry, host, Some(*port))
    }
}

fn push<S>(
    families: &mut Vec<Family>,
    instrument: &'static Instrument,
    entries: &[Entry<S>],
    labels: impl Fn(&Entry<S>) -> Vec<(&'static str, Attribute)>,
    sample: impl Fn(&S) -> Sample,
) {
    let point = |entry: &Entry<S>| Point { attributes: labels(entry), sample: sample(&entry.series) };
    let mut points: Vec<Point> = entries.iter().map(point).collect();
    points.sort_by(|a, b| a.attributes.cmp(&b.attributes));
    push_family(families, instrument, points);
}

/// An instrument that nothing was recorded with is not shown.
fn push_family(families: &mut Vec<Family>, instrument: &'static Instrument, points: Vec<Point>) {
    if !points.is_empty() {
        families.push(Family { instrument, points });
    }
}

fn server_labels<S>(entry: &Entry<S>) -> Vec<(&'static str, Attribute)> {
    let (host, port) = split_host(&entry.host);
    common_labels(entry, host, port)
}

fn common_labels<S>(entry: &Entry<S>, host: &str, port: Option<u16>) -> Vec<(&'static str, Attribute)> {
    let labels = entry.labels;
    if labels == Labels::OVERFLOW {
        return vec![("otel.metric.overflow", Attribute::Bool(true))];
    }
    let text = |text: &str| Attribute::Text(text.to_owned());
    let mut all = vec![("http.request.method", text(labels.method()))];
    // None when the app did not answer.
    if labels.status() > 0 {
        all.push(("http.response.status_code", Attribute::Int(i64::from(labels.status()))));
    }
    all.push(("kn.route.tag", text(&entry.tag)));
    all.push(("network.protocol.name", text("http")));
    all.push(("network.protocol.version", text(labels.version())));
    all.push(("server.address", text(host)));
    if let Some(port) = port {
        all.push(("server.port", Attribute::Int(i64::from(port))));
    }
    all.push(("url.scheme", text(labels.scheme())));
    all
}

fn seconds(histogram: &Seconds) -> Sample {
    sample(SERVER_DURATION.unit, histogram.read())
}

fn bytes(histogram: &Bytes) -> Sample {
    sample(SERVER_REQUEST_SIZE.unit, histogram.read())
}

fn sample(unit: super::instruments::Unit, (counts, sum): (Vec<u64>, u64)) -> Sample {
    Sample::Histogram { bounds: histogram::bounds(unit), counts, sum: histogram::shown(unit, sum) }
}
