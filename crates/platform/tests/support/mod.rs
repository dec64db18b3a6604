//! A platform with real processes, and ways to wait for what it does.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]

pub mod apps;
mod spec;

pub use spec::spec;

use platform::Platform;
use platform::process::{self, Config, GuardCommand, Links, Seat, SeatRequest, Service, Stream};
use policy::moment::Moment;
use policy::revision::RevisionId;
use policy::world::{Holding, Order, Path, Pod, PodPhase, RevisionView, Routes, Snapshot};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};
use tempfile::TempDir;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

/// Nothing in these tests takes this long unless it is broken.
pub const DEADLINE: Duration = Duration::from_secs(20);

/// What happened, in order: lines of apps and doings of sidecars.
pub type Story = Arc<Mutex<Vec<String>>>;

/// A platform with one revision, `default/web`.
pub struct Floor {
    pub platform: Platform,
    pub holding: watch::Sender<Arc<Holding>>,
    pub shutdown: CancellationToken,
    pub story: Story,
    /// The working directory of the apps.
    pub dir: TempDir,
}

/// The revision of a floor.
pub fn web() -> RevisionId {
    RevisionId::new("default", "web")
}

/// A command line from words.
pub fn command(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

/// The test guard.
pub fn guard() -> GuardCommand {
    GuardCommand {
        program: PathBuf::from(env!("CARGO_BIN_EXE_platform-host")),
        args: vec!["__guard".into()],
        soft_nofile: None,
    }
}

fn now() -> Moment {
    let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    Moment::from_unix_nanos(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}

impl Floor {
    /// Of this command; `{dir}` stands for the working directory.
    pub fn start(command: Vec<OsString>) -> Floor {
        Floor::with(command, |_| {})
    }

    /// The same, with a changed configuration.
    pub fn with(command: Vec<OsString>, change: impl FnOnce(&mut Config)) -> Floor {
        let dir = tempfile::tempdir().unwrap();
        let story = Story::default();
        let mut service = Service::new(web(), spec(), command);
        service.cwd = Some(dir.path().to_owned());
        let mut config = Config::new(vec![service], Routes::default(), guard());
        let lines = Arc::clone(&story);
        config.output.sink = Arc::new(move |line| {
            let kind = match line.stream {
                Stream::Stdout => "out",
                Stream::Stderr => "err",
                Stream::Note => "note",
            };
            lines.lock().unwrap().push(format!("{kind}: {}", line.text));
        });
        change(&mut config);
        let (seats, requests) = mpsc::channel(16);
        tokio::spawn(make_seats(requests, Arc::clone(&story)));
        let (holding, seen) = watch::channel(Arc::default());
        let shutdown = CancellationToken::new();
        let links = Links { seats, holding: seen, now };
        let platform = process::start(config, links, shutdown.clone()).unwrap();
        Floor { platform, holding, shutdown, story, dir }
    }

    pub async fn want(&self, wanted: u32) {
        self.order(wanted, Path::Activator, &[]).await;
    }

    pub async fn order(&self, wanted: u32, path: Path, go_first: &[&Pod]) {
        let go_first = go_first.iter().map(|pod| Arc::clone(&pod.name)).collect();
        let order = Order { revision: web(), wanted, path, reason: "a test", go_first };
        self.platform.orders.send(order).await.unwrap();
    }

    pub fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.platform.world.borrow())
    }

    pub fn view(&self) -> Arc<RevisionView> {
        Arc::clone(&self.snapshot().revisions[&web()])
    }

    /// Waits for a snapshot of which this holds.
    pub async fn until(&self, what: &str, is: impl Fn(&RevisionView) -> bool) -> Arc<RevisionView> {
        let mut world = self.platform.world.clone();
        let seen = world.wait_for(|snapshot| is(&snapshot.revisions[&web()]));
        match tokio::time::timeout(DEADLINE, seen).await {
            Ok(seen) => Arc::clone(&seen.unwrap().revisions[&web()]),
            Err(_) => panic!("not seen: {what}; there is {:#?}", self.view()),
        }
    }

    /// Waits until there are exactly so many pods, all ready.
    pub async fn until_ready(&self, count: usize) -> Vec<Pod> {
        let is =
            |view: &RevisionView| view.pods.len() == count && view.pods.iter().all(|pod| pod.phase == PodPhase::Ready);
        self.until(&format!("{count} ready pods"), is).await.pods.clone()
    }

    /// Says that whoever sends requests has seen all and holds these pods.
    pub fn hold(&self, pods: &[&Pod]) {
        let pods = pods.iter().map(|pod| Arc::clone(&pod.name)).collect();
        self.holding.send_replace(Arc::new(Holding { version: u64::MAX, pods }));
    }

    /// Waits until the story holds a line with this text.
    pub async fn until_told(&self, text: &str) {
        let told = || self.story.lock().unwrap().iter().any(|line| line.contains(text));
        eventually(&format!("{text:?} in {:#?}", self.story), told).await;
    }

    /// The whole story so far.
    pub fn told(&self) -> Vec<String> {
        self.story.lock().unwrap().clone()
    }

    /// Stops everything and waits for the end.
    pub async fn end(self) {
        self.shutdown.cancel();
        tokio::time::timeout(DEADLINE, self.platform.ended).await.unwrap().unwrap();
    }

    /// The process id that an app wrote to this file.
    pub async fn pid_in(&self, file: &str) -> i32 {
        apps::pid_in(&self.dir.path().join(file)).await
    }
}

/// Sidecars of no substance: they are where the app is, and tell when they close.
async fn make_seats(mut requests: mpsc::Receiver<SeatRequest>, story: Story) {
    while let Some(SeatRequest { app, reply, .. }) = requests.recv().await {
        let shutdown = CancellationToken::new();
        let (closed, ended) = oneshot::channel();
        let (told, story) = (shutdown.clone(), Arc::clone(&story));
        story.lock().unwrap().push(format!("seat: {} opened", app.port()));
        tokio::spawn(async move {
            told.cancelled().await;
            story.lock().unwrap().push(format!("seat: {} closed", app.port()));
            let _ = closed.send(());
        });
        let _ = reply.send(Ok(Seat { address: app, shutdown, ended }));
    }
}

/// Waits until `is` holds.
pub async fn eventually(what: &str, is: impl Fn() -> bool) {
    let began = Instant::now();
    while !is() {
        assert!(began.elapsed() < DEADLINE, "never came true: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
