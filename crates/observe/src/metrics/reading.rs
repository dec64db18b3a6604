//! One look at all series, for whichever form they are shown in.

use super::Metrics;
use super::book::Entry;
use super::histogram::{self, Bytes, Seconds};
use super::instruments::{
    CLIENT_DURATION, CLIENT_REQUEST_SIZE, INVOCATION_DURATION, Instrument, QUEUE_DEPTH, SERVER_DURATION,
    SERVER_REQUEST_SIZE, SERVER_RESPONSE_SIZE,
};
use super::labels::Labels;
use crate::component::Component;
use crate::facts::split_host;
use plumbing::clock;
use policy::compat::Compat;
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
pub struct Family {
    /// Which.
    pub instrument: &'static Instrument,
    /// None: it is not shown.
    pub points: Vec<Point>,
}

/// One series.
pub struct Point {
    /// Sorted by name; dotted names.
    pub attributes: Vec<(&'static str, Attribute)>,
    /// Its value.
    pub sample: Sample,
}

/// A label.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Attribute {
    /// Text.
    Text(String),
    /// A whole number.
    Int(i64),
    /// A truth.
    Bool(bool),
}

/// A value.
pub enum Sample {
    /// A number of things now.
    Gauge(u64),
    /// A measure of now.
    Measure(f64),
    /// What was added and taken away since the start.
    UpDown(u64),
    /// What was counted since the start.
    Count(u64),
    /// How values lie.
    Histogram {
        /// Upper bounds of all buckets but the last.
        bounds: &'static [f64],
        /// Of each bucket, not added up.
        counts: Vec<u64>,
        /// Of all values.
        sum: f64,
    },
}

impl Sample {
    /// Its kind in the text form.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Sample::Gauge(_) | Sample::Measure(_) | Sample::UpDown(_) => "gauge",
            Sample::Count(_) => "counter",
            Sample::Histogram { .. } => "histogram",
        }
    }
}

type Attributes = Vec<(&'static str, Attribute)>;

/// Series of one kind, each with what stands in it beside its own labels.
type Entries<'a, S> = Vec<(&'a Attributes, Entry<S>)>;

impl Metrics {
    pub(crate) fn read(&self) -> Reading {
        let more = self.more.get().map(|more| more()).unwrap_or_default();
        let own = Vec::new();
        let mut client: Entries<_> = self.own.client().into_iter().map(|entry| (&own, entry)).collect();
        let mut server: Entries<_> = self.own.server().into_iter().map(|entry| (&own, entry)).collect();
        for (names, series) in &more.revisions {
            let Some(book) = series.begun() else { continue };
            client.extend(book.client().into_iter().map(|entry| (names, entry)));
            server.extend(book.server().into_iter().map(|entry| (names, entry)));
        }
        let mut families = Vec::new();
        let of_client = |entry: &Entry<_>| self.client_labels(entry);
        let of_server = |entry: &Entry<_>| self.server_labels(entry);
        push(&mut families, &CLIENT_REQUEST_SIZE, &client, of_client, |series| bytes(&series.request_size));
        push(&mut families, &CLIENT_DURATION, &client, of_client, |series| seconds(&series.duration));
        push(&mut families, &SERVER_REQUEST_SIZE, &server, of_server, |series| bytes(&series.request_size));
        push(&mut families, &SERVER_DURATION, &server, of_server, |series| seconds(&series.duration));
        push(&mut families, &SERVER_RESPONSE_SIZE, &server, of_server, |series| bytes(&series.response_size));
        let mut invocations = self.own.invocations();
        invocations.sort_by_key(|(status, _)| *status);
        let status = |status: u16| ("http.response.status_code", Attribute::Int(i64::from(status)));
        let points = invocations
            .iter()
            .map(|(code, series)| Point { attributes: vec![status(*code)], sample: seconds(series) })
            .collect();
        push_family(&mut families, &INVOCATION_DURATION, points);
        let depth = self.depth().map(|depth| Point { attributes: Vec::new(), sample: Sample::Gauge(depth) });
        push_family(&mut families, &QUEUE_DEPTH, depth.into_iter().collect());
        families.extend(more.families.into_iter().filter(|family| !family.points.is_empty()));
        Reading { began: self.began, at: clock::now(), resource: self.resource.clone(), families }
    }

    /// Of the app; of pods, which come and go, the address in strict mode alone.
    fn client_labels<S>(&self, entry: &Entry<S>) -> Attributes {
        match (&self.app, self.compat) {
            (Some((host, port)), _) => self.labels_of(entry, Some((host, Some(*port)))),
            (None, Compat::Better) => self.labels_of(entry, None),
            (None, Compat::Strict) => self.labels_of(entry, Some(split_host(&entry.host))),
        }
    }

    fn server_labels<S>(&self, entry: &Entry<S>) -> Attributes {
        self.labels_of(entry, Some(split_host(&entry.host)))
    }

    fn labels_of<S>(&self, entry: &Entry<S>, server: Option<(&str, Option<u16>)>) -> Attributes {
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
        if self.component == Component::Sidecar {
            all.push(("kn.route.tag", text(&entry.tag)));
        }
        all.push(("network.protocol.name", text("http")));
        all.push(("network.protocol.version", text(labels.version())));
        if let Some((host, port)) = server {
            all.push(("server.address", text(host)));
            all.extend(port.map(|port| ("server.port", Attribute::Int(i64::from(port)))));
        }
        all.push(("url.scheme", text(labels.scheme())));
        all
    }
}

fn push<S>(
    families: &mut Vec<Family>,
    instrument: &'static Instrument,
    entries: &Entries<'_, S>,
    labels: impl Fn(&Entry<S>) -> Attributes,
    sample: impl Fn(&S) -> Sample,
) {
    let point = |(names, entry): &(&Attributes, Entry<S>)| {
        let mut attributes = labels(entry);
        attributes.extend(names.iter().cloned());
        attributes.sort();
        Point { attributes, sample: sample(&entry.series) }
    };
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

fn seconds(histogram: &Seconds) -> Sample {
    sample(SERVER_DURATION.unit, histogram.read())
}

fn bytes(histogram: &Bytes) -> Sample {
    sample(SERVER_REQUEST_SIZE.unit, histogram.read())
}

fn sample(unit: super::instruments::Unit, (counts, sum): (Vec<u64>, u64)) -> Sample {
    Sample::Histogram { bounds: histogram::bounds(unit), counts, sum: histogram::shown(unit, sum) }
}
