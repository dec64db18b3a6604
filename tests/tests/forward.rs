//! Stats between replicas.

use autoscaler::forward::{self, Links, Owner, Owners};
use autoscaler::stat_server::{self, Limits, Settings, Sinks};
use plumbing::clock;
use plumbing::shutdown::Shutdown;
use plumbing::stats::{self, StatSink, StatSource};
use policy::compat::Compat;
use policy::revision::RevisionId;
use policy::stat::{Stat, StatBatch};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tests::rig::PATIENCE;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

/// A replica: its stat server, and what sends on.
struct Replica {
    address: SocketAddr,
    /// What comes as of activators.
    into: StatSink,
    /// What its decisions get.
    decided: StatSource,
    owners: watch::Sender<Arc<Owners>>,
    shutdown: Shutdown,
}

impl Replica {
    fn start(address: &str) -> Replica {
        let listener = plumbing::listen::listen(address.parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        let ((into, direct), (forwarded, of_replicas)) = (stats::link(), stats::link());
        let (local, decided) = stats::link();
        let (owners, owned) = watch::channel(Arc::new(Owners::default()));
        let shutdown = Shutdown::new();
        let settings = Settings { limits: Limits::default(), compat: Compat::Better, owners: owned.clone() };
        let sinks = Sinks { direct: into.clone(), forwarded };
        tokio::spawn(stat_server::serve(listener, sinks, settings, shutdown.clone()));
        let links = Links { direct, forwarded: of_replicas, local };
        tokio::spawn(forward::run(links, owned, shutdown.clone()));
        Replica { address, into, decided, owners, shutdown }
    }

    fn told(&self, buckets: &[Option<Owner>]) {
        let named = buckets.iter().enumerate().map(|(n, owner)| (Arc::from(bucket(n)), owner.clone()));
        self.owners.send_replace(Arc::new(Owners::new(named)));
    }

    /// Revisions and counts that the decisions get, until there are so many.
    async fn decided(&mut self, most: usize) -> BTreeMap<String, f64> {
        let mut all = BTreeMap::new();
        let coming = async {
            while all.len() < most {
                let batch = self.decided.next().await.expect("it runs");
                all.extend(batch.stats.iter().map(|(revision, stat)| (revision.name.to_string(), stat.request_count)));
            }
        };
        let _ = timeout(3 * PATIENCE, coming).await;
        all
    }
}

fn bucket(number: usize) -> String {
    format!("autoscaler-bucket-{number:02}-of-03")
}

fn at(address: SocketAddr) -> Option<Owner> {
    Some(Owner::At(vec![address.to_string()]))
}

const REVISIONS: usize = 90;

fn revision(number: usize) -> RevisionId {
    RevisionId::new("ns", format!("rev-{number}"))
}

fn batch() -> StatBatch {
    let stat = |count: usize| Stat {
        pod_name: "activator".into(),
        average_concurrency: 1.0,
        average_proxied_concurrency: 0.0,
        request_count: count as f64,
        proxied_request_count: 0.0,
    };
    StatBatch { at: clock::now(), stats: (0..REVISIONS).map(|n| (revision(n), stat(n))).collect(), poke: false }
}

/// Names of the revisions of a bucket.
fn of(number: usize) -> Vec<String> {
    let owners = Owners::new((0..3).map(|n| (Arc::from(bucket(n)), None)));
    let own = |n: &usize| owners.bucket_of(&revision(*n)).is_some_and(|of| **of == *bucket(number));
    let mut names: Vec<String> = (0..REVISIONS).filter(own).map(|n| format!("rev-{n}")).collect();
    names.sort_unstable();
    assert!(names.len() > REVISIONS / 9);
    names
}

fn names(decided: &BTreeMap<String, f64>) -> Vec<String> {
    assert!(decided.iter().all(|(name, count)| *name == format!("rev-{count}")), "{decided:?}");
    decided.keys().cloned().collect()
}

#[tokio::test]
async fn each_stat_comes_to_who_owns_it_and_one_that_is_not_there_holds_up_nobody() {
    let (mut here, mut there) = (Replica::start("127.0.0.1:0"), Replica::start("127.0.0.1:0"));
    // Takes connections, and says nothing.
    let mute = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nowhere = at(mute.local_addr().unwrap());
    here.told(&[Some(Owner::Here), at(there.address), nowhere.clone()]);
    there.told(&[at(here.address), Some(Owner::Here), nowhere]);
    let sent = clock::now();
    here.into.send(batch());
    assert_eq!(names(&here.decided(of(0).len()).await), of(0));
    let began = Instant::now();
    let first = timeout(PATIENCE, there.decided.next()).await.expect("in time").expect("it runs");
    assert_eq!(first.at, sent.truncated_to_second(), "the time is that of who took it in first");
    assert_eq!(first.stats.len(), of(1).len());
    println!("it was there {:?} after", began.elapsed());
    // And on the same connection.
    here.into.send(batch());
    assert_eq!(names(&there.decided(of(1).len()).await), of(1));
    here.shutdown.drain();
    timeout(3 * PATIENCE, here.shutdown.finished()).await.expect("it ends");
}

#[tokio::test]
async fn what_cannot_be_sent_waits_for_its_owner_wherever_that_turns_out_to_be() {
    let mut here = Replica::start("127.0.0.1:0");
    // An address of its own, so that nobody takes the port meanwhile.
    let gone = Replica::start("127.0.0.84:0");
    let address = gone.address;
    gone.shutdown.stop();
    gone.shutdown.finished().await;
    here.told(&[Some(Owner::Here), at(address), None]);
    here.into.send(batch());
    assert_eq!(names(&here.decided(of(0).len()).await), of(0));
    sleep(Duration::from_millis(1200)).await;
    let mut back = Replica::start(&address.to_string());
    back.told(&[None, Some(Owner::Here), None]);
    assert_eq!(names(&back.decided(of(1).len()).await), of(1), "its owner is back");
    here.told(&[Some(Owner::Here), at(address), Some(Owner::Here)]);
    assert_eq!(names(&here.decided(of(2).len()).await), of(2), "nobody's bucket became this replica's");
}

#[tokio::test]
async fn replicas_that_disagree_do_not_pass_stats_in_circles() {
    let (one, other) = (Replica::start("127.0.0.1:0"), Replica::start("127.0.0.1:0"));
    let (mut there, back) = (at(other.address), at(one.address));
    one.told(&[there.clone(), there.clone(), there.take()]);
    other.told(&[back.clone(), back.clone(), back]);
    let recorder = plumbing::metrics::install().unwrap();
    let before = forwarded(&recorder.render());
    one.into.send(batch());
    sleep(Duration::from_secs(3)).await;
    let sent = forwarded(&recorder.render()) - before;
    // At once, and then each half second.
    let rounds = sent / REVISIONS as u64;
    println!("{sent} stats were sent, {rounds} times each");
    assert!((1..=12).contains(&rounds), "{rounds}");
}

/// Counted in the whole process: what other tests send at the same time is
/// little beside a circle.
fn forwarded(page: &str) -> u64 {
    let line = page.lines().find_map(|line| line.strip_prefix("zeroscale_autoscaler_forwarded_stats_total "));
    line.and_then(|count| count.parse().ok()).unwrap_or(0)
}
