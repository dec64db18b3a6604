//! All series, and for each thread a sheet that knows where they are.

use super::histogram::{Bytes, Seconds};
use super::labels::{Labels, Method};
use super::names::{Known, Names};
use crate::component::Component;
use crate::facts::RequestFacts;
use parking_lot::Mutex;
use policy::compat::Compat;
use std::cell::Cell;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Distinct hosts that get a label of their own. The reference has no bound,
/// so a client that makes hosts up fills its memory.
const HOSTS: u16 = 20;
/// In strict mode: as good as none for honest clients.
const HOSTS_STRICT: u16 = 1000;
/// Distinct route tags; a revision rarely has more than a handful.
const TAGS: u16 = 20;
const TAGS_STRICT: u16 = 1000;

/// Label sets of one instrument, OpenTelemetry's own limit.
const SETS: usize = 2000;
/// The same of one of many revisions.
const SETS_EACH: usize = 200;
/// In strict mode.
const SETS_STRICT: usize = 20_000;

/// Sheets; threads share one only beyond this number of them.
const SHEETS: usize = 8;

/// What is counted of requests that came in.
#[derive(Default)]
pub(super) struct ServerSeries {
    pub(super) duration: Seconds,
    pub(super) request_size: Bytes,
    pub(super) response_size: Bytes,
}

/// What is counted of requests that went to the app.
#[derive(Default)]
pub(super) struct ClientSeries {
    pub(super) duration: Seconds,
    pub(super) request_size: Bytes,
}

/// All series, of a sidecar or of one revision.
pub(crate) struct Book {
    sheets: [Mutex<Sheet>; SHEETS],
    master: Mutex<Master>,
    /// Label sets of one instrument, at most.
    sets: usize,
}

#[derive(Default)]
struct Sheet {
    hosts: Known,
    tags: Known,
    server: Index<Labels, ServerSeries>,
    client: Index<Labels, ClientSeries>,
    invocation: Index<u16, Seconds>,
}

struct Master {
    hosts: Names,
    tags: Names,
    server: Index<Labels, ServerSeries>,
    client: Index<Labels, ClientSeries>,
    invocation: Index<u16, Seconds>,
}

/// Keys are small numbers of ours: a client cannot choose them to collide.
type Index<K, S> = HashMap<K, Arc<S>, foldhash::fast::RandomState>;

/// A series with its name in full, for readers.
pub(super) struct Entry<S> {
    pub(super) labels: Labels,
    pub(super) tag: String,
    pub(super) host: String,
    pub(super) series: Arc<S>,
}

thread_local! {
    static SHEET: Cell<usize> = Cell::new({
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        NEXT.fetch_add(1, Ordering::Relaxed) % SHEETS
    });
}

impl Book {
    pub(super) fn new(compat: Compat, component: Component) -> Book {
        let (hosts, tags, sets) = match (compat, component) {
            (Compat::Better, Component::Sidecar) => (HOSTS, TAGS, SETS),
            (Compat::Better, Component::Activator) => (HOSTS, TAGS, SETS_EACH),
            (Compat::Strict, _) => (HOSTS_STRICT, TAGS_STRICT, SETS_STRICT),
        };
        let master = Master {
            hosts: Names::new(hosts),
            tags: Names::new(tags),
            server: Index::default(),
            client: Index::default(),
            invocation: Index::default(),
        };
        Book { sheets: std::array::from_fn(|_| Mutex::default()), master: Mutex::new(master), sets }
    }

    fn sheet(&self) -> &Mutex<Sheet> {
        &self.sheets[SHEET.get()]
    }

    pub(super) fn labels(&self, facts: &RequestFacts<'_>) -> Labels {
        let parts = facts.parts;
        self.labels_of((&parts.method, parts.version, facts.tls), facts.host(), facts.route_tag())
    }

    /// Labels of a request, but for its status.
    pub(super) fn labels_of(
        &self,
        (method, version, tls): (&http::Method, http::Version, bool),
        host: &str,
        tag: &str,
    ) -> Labels {
        let mut sheet = self.sheet().lock();
        let (host, tag) = match (sheet.hosts.number(host), sheet.tags.number(tag)) {
            (Some(host), Some(tag)) => (host, tag),
            _ => {
                let mut master = self.master.lock();
                let numbers = (master.hosts.number(host), master.tags.number(tag));
                sheet.hosts.learn(&master.hosts);
                sheet.tags.learn(&master.tags);
                numbers
            }
        };
        drop(sheet);
        Labels::new(Method::of(method), version, tls, tag, host)
    }

    /// The number of a host, or of whatever else stands in its place.
    fn host(&self, host: &str) -> u16 {
        let mut sheet = self.sheet().lock();
        if let Some(number) = sheet.hosts.number(host) {
            return number;
        }
        let mut master = self.master.lock();
        let number = master.hosts.number(host);
        sheet.hosts.learn(&master.hosts);
        number
    }

    /// The same labels of a request to this host.
    pub(crate) fn name_host(&self, labels: Labels, host: &str) -> Labels {
        labels.with_host(self.host(host))
    }

    /// A request has ended.
    pub(crate) fn served(&self, labels: Labels, status: u16, took: Duration, request: u64, response: u64) {
        self.record_served(labels.with_status(status), |series| {
            series.duration.record(nanos(took));
            series.request_size.record(request);
            series.response_size.record(response);
        });
    }

    /// The app, or the pod of this address, has answered, or has failed to (status 0).
    pub(crate) fn called(&self, labels: Labels, pod: Option<&str>, status: u16, took: Duration, request: u64) {
        let labels = labels.with_status(status).of_client();
        let labels = pod.map_or(labels, |pod| self.name_host(labels, pod));
        self.record_called(labels, |series| {
            series.duration.record(nanos(took));
            series.request_size.record(request);
        });
    }

    /// A request that had a place at the app has ended.
    pub(crate) fn invoked(&self, status: u16, took: Duration) {
        self.record_invoked(status, |duration| duration.record(nanos(took)));
    }

    fn record_served(&self, labels: Labels, record: impl FnOnce(&ServerSeries)) {
        let fetch = || share(&mut self.master.lock().server, labels, Labels::OVERFLOW, self.sets);
        with(&mut self.sheet().lock().server, labels, self.sets, fetch, record);
    }

    fn record_called(&self, labels: Labels, record: impl FnOnce(&ClientSeries)) {
        let fetch = || share(&mut self.master.lock().client, labels, Labels::OVERFLOW, self.sets);
        with(&mut self.sheet().lock().client, labels, self.sets, fetch, record);
    }

    fn record_invoked(&self, status: u16, record: impl FnOnce(&Seconds)) {
        let fetch = || share(&mut self.master.lock().invocation, status, 0, self.sets);
        with(&mut self.sheet().lock().invocation, status, self.sets, fetch, record);
    }

    pub(super) fn server(&self) -> Vec<Entry<ServerSeries>> {
        let master = self.master.lock();
        master.server.iter().map(|(labels, series)| master.entry(*labels, series)).collect()
    }

    pub(super) fn client(&self) -> Vec<Entry<ClientSeries>> {
        let master = self.master.lock();
        master.client.iter().map(|(labels, series)| master.entry(*labels, series)).collect()
    }

    pub(super) fn invocations(&self) -> Vec<(u16, Arc<Seconds>)> {
        self.master.lock().invocation.iter().map(|(status, series)| (*status, series.clone())).collect()
    }
}

impl Master {
    fn entry<S>(&self, labels: Labels, series: &Arc<S>) -> Entry<S> {
        let tag = self.tags.name(labels.tag()).to_owned();
        let host = self.hosts.name(labels.host()).to_owned();
        Entry { labels, tag, host, series: series.clone() }
    }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// Records in the series that the thread's own index has, or will have.
fn with<K: Copy + Eq + Hash, S>(
    index: &mut Index<K, S>,
    key: K,
    limit: usize,
    fetch: impl FnOnce() -> Arc<S>,
    record: impl FnOnce(&S),
) {
    if let Some(series) = index.get(&key) {
        return record(series);
    }
    let series = fetch();
    record(&series);
    // Beyond the limit it is that of the overflow: not worth a place each.
    if index.len() < limit {
        index.insert(key, series);
    }
}

/// The series that all threads share; beyond the limit that of the overflow.
fn share<K: Copy + Eq + Hash, S: Default>(all: &mut Index<K, S>, key: K, overflow: K, limit: usize) -> Arc<S> {
    let key = if all.len() < limit || all.contains_key(&key) { key } else { overflow };
    all.entry(key).or_default().clone()
}
