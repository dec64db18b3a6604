//! A pod with the reference's sidecar, as an activator sees it: it answers
//! probes without a mark of ours, and serves whatever comes.

use crate::rig::{OK, read_head};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

const READY: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nqueue";
const UNREADY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n";

/// One that runs until it is dropped.
pub struct Stock {
    /// Where it listens.
    pub address: SocketAddr,
    seen: Arc<Seen>,
    end: CancellationToken,
}

#[derive(Default)]
struct Seen {
    unready: AtomicBool,
    probes: AtomicUsize,
    /// Requests inside, the most at once, and all: by the first part of the path.
    by_path: Mutex<BTreeMap<String, [usize; 3]>>,
}

impl Stock {
    /// On a free port; each request takes `work`.
    pub async fn start(work: Duration) -> Stock {
        Stock::at(TcpListener::bind("127.0.0.1:0").await.expect("a free port"), work)
    }

    /// The same, on that listener.
    ///
    /// # Panics
    /// Without an address.
    pub fn at(listener: TcpListener, work: Duration) -> Stock {
        let address = listener.local_addr().expect("an address");
        let (seen, end) = (Arc::new(Seen::default()), CancellationToken::new());
        let (told, over) = (seen.clone(), end.clone());
        tokio::spawn(end.clone().run_until_cancelled_owned(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(over.clone().run_until_cancelled_owned(serve(stream, told.clone(), work)));
            }
        }));
        Stock { address, seen, end }
    }

    /// What probes are told from now on.
    pub fn set_ready(&self, ready: bool) {
        self.seen.unready.store(!ready, Ordering::SeqCst);
    }

    /// Probes that came.
    pub fn probes(&self) -> usize {
        self.seen.probes.load(Ordering::SeqCst)
    }

    /// How many requests came, by the first part of their path.
    pub fn requests(&self) -> BTreeMap<String, usize> {
        self.by_path(2)
    }

    /// The most that were inside at once, by the same.
    pub fn most(&self) -> BTreeMap<String, usize> {
        self.by_path(1)
    }

    /// Requests inside now.
    pub fn inside(&self) -> usize {
        self.by_path(0).values().sum()
    }

    fn by_path(&self, which: usize) -> BTreeMap<String, usize> {
        let by_path = self.seen.by_path.lock().unwrap_or_else(|held| held.into_inner());
        by_path.iter().map(|(path, counts)| (path.clone(), counts[which])).collect()
    }

    /// Nobody listens there any more, and all connections are gone.
    pub fn stop(&self) {
        self.end.cancel();
    }
}

impl Drop for Stock {
    fn drop(&mut self) {
        self.stop();
    }
}

async fn serve(mut stream: TcpStream, seen: Arc<Seen>, work: Duration) {
    loop {
        let head = read_head(&mut stream).await;
        if head.is_empty() {
            return;
        }
        let answer = if head.contains("k-network-probe: queue") {
            seen.probes.fetch_add(1, Ordering::SeqCst);
            if seen.unready.load(Ordering::SeqCst) { UNREADY } else { READY }
        } else {
            assert!(!head.contains("x-zeroscale-offer"), "it is no sidecar of ours: {head}");
            let path = head.split(' ').nth(1).and_then(|path| path.split('/').nth(1)).unwrap_or_default();
            let _inside = Inside::enter(&seen, path);
            sleep(work).await;
            OK
        };
        if stream.write_all(answer).await.is_err() {
            return;
        }
    }
}

struct Inside<'a> {
    seen: &'a Seen,
    path: &'a str,
}

impl Inside<'_> {
    fn enter<'a>(seen: &'a Seen, path: &'a str) -> Inside<'a> {
        let mut by_path = seen.by_path.lock().unwrap_or_else(|held| held.into_inner());
        let [inside, most, all] = by_path.entry(path.to_owned()).or_default();
        (*inside, *all) = (*inside + 1, *all + 1);
        *most = (*most).max(*inside);
        Inside { seen, path }
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        let mut by_path = self.seen.by_path.lock().unwrap_or_else(|held| held.into_inner());
        if let Some([inside, ..]) = by_path.get_mut(self.path) {
            *inside -= 1;
        }
    }
}
