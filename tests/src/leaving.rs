//! Crowds that leave, one after the other, while the only pod is busy: a wave
//! each second, with a body each, and every client leaves a second later.

use crate::floor::trial::Report;
use crate::front::{Chain, Load, Through};
use crate::rig;
use crate::sidecar::h1::Conn;
use crate::soak::memory::Memory;
use anyhow::Context;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::{sleep, sleep_until};

/// Clients of a wave.
const WAVE: usize = 200;
const EVERY: Duration = Duration::from_secs(1);
const STAYS: Duration = Duration::from_secs(1);
const BODY_BYTES: usize = 10_000;
const APP_TAKES: Duration = Duration::from_secs(30);
/// How soon the activator knows who is there, and that one has left.
const KNOWN: Duration = Duration::from_millis(100);
/// Memory may end higher than it was once warm by the bodies of one wave, which
/// is what an allocator keeps back.
const GROWTH_MAX: u64 = (WAVE * BODY_BYTES) as u64;
const LOOK: Duration = Duration::from_millis(20);

/// How long it goes.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// In all.
    pub time: Duration,
    /// From here on memory has to be flat.
    pub warm: Duration,
    /// See [`Report`].
    pub slack: u32,
}

/// What clients and app know.
#[derive(Default)]
struct Known {
    present: usize,
    /// Clients that are on their way in or out.
    moving: usize,
    changed: Option<Instant>,
    left: HashMap<String, Instant>,
    /// What the app got, and when.
    seen: Vec<(String, Instant)>,
    over: bool,
}

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Known>>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn moves(&self) {
        let mut known = self.lock();
        known.moving += 1;
        known.changed = Some(Instant::now());
    }

    fn came(&self) {
        let mut known = self.lock();
        known.present += 1;
        known.moving -= 1;
        known.changed = Some(Instant::now());
    }

    fn left(&self, id: String) {
        let mut known = self.lock();
        known.present -= 1;
        known.moving -= 1;
        let now = Instant::now();
        known.changed = Some(now);
        known.left.insert(id, now);
    }
}

/// Sends wave after wave.
///
/// # Errors
/// When something cannot be tried at all.
pub async fn run(size: Size) -> anyhow::Result<Report> {
    let mut report = Report::new(size.slack);
    let shared = Shared::default();
    let app = app(shared.clone()).await;
    let chain = Chain::start(Through::Both, app, &[("CONTAINER_CONCURRENCY", "2")]);
    let address = chain.main;
    let watching = watch(chain, size, shared.clone());
    let began = tokio::time::Instant::now();
    let mut wave = 0;
    while began.elapsed() < size.time {
        for number in 0..WAVE {
            let shared = shared.clone();
            tokio::spawn(client(address, format!("{wave}-{number}"), shared));
        }
        wave += 1;
        sleep_until(began + EVERY * wave).await;
    }
    sleep(STAYS + KNOWN * size.slack * 2).await;
    shared.lock().over = true;
    let watched = tokio::task::spawn_blocking(move || watching.join().ok().flatten()).await?;
    let Watched { looks, wrong, memory, end } = watched.context("the activator was not there")?;
    report.tell("waves, and clients in each", format!("{wave} x {WAVE}"));
    let known = shared.lock();
    report.count("clients that came and left", known.left.len(), wave as usize * WAVE);
    report.holds("looks at a crowd that stood still, some in each wave", looks >= wave as usize, looks);
    report.count("looks that found another number than there were", wrong.len(), 0);
    if let Some((there, load)) = wrong.first() {
        report.tell("first of them", format!("{there}: {load:?}"));
    }
    let allowed = KNOWN * size.slack;
    let late = |(id, at): &&(String, Instant)| known.left.get(id).is_some_and(|left| *at > *left + allowed);
    report.holds("requests that the app got, some of each wave", known.seen.len() >= wave as usize, known.seen.len());
    report.count("of them for clients that had left", known.seen.iter().filter(late).count(), 0);
    report.count("held or in flight at the end", end.held + end.in_flight, 0);
    report.tell(
        "resident memory once warm, and at the end, KiB",
        format!("{} {}", memory.early() / 1024, memory.late() / 1024),
    );
    report.at_most("growth, bytes", memory.late().saturating_sub(memory.early()), GROWTH_MAX);
    Ok(report)
}

struct Watched {
    looks: usize,
    wrong: Vec<(usize, Load)>,
    memory: Memory,
    end: Load,
}

/// Compares what the activator counts with who is there, on a thread of its
/// own: the clients are not to wait for it.
fn watch(mut chain: Chain, size: Size, shared: Shared) -> JoinHandle<Option<Watched>> {
    std::thread::spawn(move || {
        let began = Instant::now();
        let front = chain.front.as_mut()?;
        let mut memory = Memory::new(size.warm, size.time);
        let (mut looks, mut wrong) = (0, Vec::new());
        let steady = |known: &Known| {
            let stands = known.moving == 0 && known.changed.is_some_and(|at| at.elapsed() > KNOWN * size.slack);
            stands.then_some(known.present)
        };
        while !shared.lock().over {
            std::thread::sleep(LOOK);
            memory.look(began.elapsed(), front.pid());
            let before = steady(&shared.lock());
            let load = front.load().ok()?;
            let after = steady(&shared.lock());
            let (Some(there), true) = (before, before == after) else { continue };
            looks += 1;
            if load.held + load.in_flight != there {
                wrong.push((there, load));
            }
        }
        let end = front.load().ok()?;
        // Also what is not looked at has to live until here.
        drop(chain);
        Some(Watched { looks, wrong, memory, end })
    })
}

async fn client(address: SocketAddr, id: String, shared: Shared) {
    shared.moves();
    let Ok(mut stream) = TcpStream::connect(address).await else { return };
    let head = format!("POST / HTTP/1.1\r\nhost: a\r\nx-id: {id}\r\ncontent-length: {BODY_BYTES}\r\n\r\n");
    let request = [head.as_bytes(), &[b'x'; BODY_BYTES]].concat();
    if stream.write_all(&request).await.is_err() {
        return;
    }
    shared.came();
    sleep(STAYS).await;
    shared.moves();
    drop(stream);
    shared.left(id);
}

/// Answers after a time that nobody waits for.
async fn app(shared: Shared) -> SocketAddr {
    rig::app(move |stream| {
        let shared = shared.clone();
        async move {
            let mut conn = Conn::over(stream);
            if let Ok(head) = conn.head().await {
                let id = head.get("x-id").unwrap_or_default().to_owned();
                shared.lock().seen.push((id, Instant::now()));
                // Reads on, to see when it is given up.
                tokio::select! {
                    () = sleep(APP_TAKES) => {}
                    () = async { while matches!(conn.more().await, Ok(1..)) {} } => {}
                }
            }
        }
    })
    .await
}
