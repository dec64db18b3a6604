//! A worker: one thread, one runtime, and state that its requests share
//! without contention.

use crate::fds::Budget;
use crate::forward::Pool;
use crate::http1::Http1;
use crate::peer::Sockets;
use crate::shutdown::Shutdown;
use crate::wheel::Wheel;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Handle};

/// What a request task needs of the thread it runs on.
#[derive(Clone)]
pub struct Worker {
    shared: Arc<Shared>,
}

struct Shared {
    runtime: Handle,
    wheel: Wheel,
    pool: Pool,
    sockets: Sockets,
    fds: Budget,
    http1: Http1,
    connections: AtomicUsize,
    thread: std::thread::ThreadId,
}

impl Worker {
    /// A worker on the current runtime; its timers run as a task of `shutdown`.
    /// `fds` is the process's budget of descriptors.
    pub fn here(shutdown: &Shutdown, fds: Budget) -> Worker {
        Worker::with(shutdown, fds, Http1::default())
    }

    /// The same, with the HTTP/1 that its connections speak.
    pub fn with(shutdown: &Shutdown, fds: Budget, http1: Http1) -> Worker {
        let wheel = Wheel::new();
        let driver = wheel.clone().drive();
        let stop = shutdown.clone();
        tokio::spawn(async move {
            tokio::select! { () = driver => {}, () = stop.stopping() => {} }
        });
        let pool = Pool::new(wheel.clone(), fds.clone(), http1);
        let (sweeper, stop) = (pool.clone().sweep(), shutdown.clone());
        tokio::spawn(async move {
            tokio::select! { () = sweeper => {}, () = stop.stopping() => {} }
        });
        let shared = Shared {
            runtime: Handle::current(),
            wheel,
            pool,
            sockets: Sockets::default(),
            fds,
            http1,
            connections: AtomicUsize::new(0),
            thread: std::thread::current().id(),
        };
        Worker { shared: Arc::new(shared) }
    }

    /// True on the worker's own thread.
    pub fn is_here(&self) -> bool {
        self.shared.thread == std::thread::current().id()
    }

    /// The worker's timers.
    pub fn wheel(&self) -> &Wheel {
        &self.shared.wheel
    }

    /// The worker's connections to pods or to the app.
    pub fn pool(&self) -> &Pool {
        &self.shared.pool
    }

    /// The process's budget of descriptors.
    pub fn fds(&self) -> &Budget {
        &self.shared.fds
    }

    /// Whose HTTP/1 its connections speak.
    pub fn http1(&self) -> Http1 {
        self.shared.http1
    }

    pub(crate) fn sockets(&self) -> &Sockets {
        &self.shared.sockets
    }

    /// A socket that is registered with this thread's runtime, registered with
    /// the worker's: it belongs to the thread that polls it.
    pub(crate) fn adopt(&self, socket: TcpStream) -> io::Result<TcpStream> {
        if self.is_here() {
            return Ok(socket);
        }
        let socket = socket.into_std()?;
        let _entered = self.shared.runtime.enter();
        TcpStream::from_std(socket)
    }

    /// Runs a task on the worker's thread.
    pub fn spawn<F>(&self, task: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.shared.runtime.spawn(task);
    }

    /// Counts a connection that the worker serves, until the guard is dropped.
    pub fn count_connection(&self) -> ConnectionCount {
        self.shared.connections.fetch_add(1, Ordering::Relaxed);
        ConnectionCount { worker: self.clone() }
    }

    /// Connections that the worker serves now.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::Relaxed)
    }
}

/// See [`Worker::count_connection`].
pub struct ConnectionCount {
    worker: Worker,
}

impl Drop for ConnectionCount {
    fn drop(&mut self) {
        self.worker.shared.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// All workers of a process.
#[derive(Clone)]
pub struct Workers {
    all: Arc<[Worker]>,
}

impl Workers {
    /// Starts `count` threads (at least one), each with a current-thread
    /// runtime that runs until `shutdown`'s second stage. They share the
    /// budget of descriptors.
    ///
    /// # Errors
    /// When a thread or a runtime cannot be made.
    pub fn start(count: usize, shutdown: &Shutdown, fds: &Budget, http1: Http1) -> std::io::Result<Workers> {
        let mut all = Vec::new();
        for index in 0..count.max(1) {
            let runtime = Builder::new_current_thread().enable_all().build()?;
            let (send, receive) = std::sync::mpsc::sync_channel(1);
            let (shutdown, fds) = (shutdown.clone(), fds.clone());
            std::thread::Builder::new().name(format!("worker-{index}")).spawn(move || {
                runtime.block_on(async move {
                    let _ = send.send(Worker::with(&shutdown, fds, http1));
                    shutdown.stopping().await;
                });
            })?;
            all.push(receive.recv().map_err(|_| std::io::Error::other("a worker thread ended at its start"))?);
        }
        Ok(Workers { all: all.into() })
    }

    /// Only the current runtime.
    pub fn only(worker: Worker) -> Workers {
        Workers { all: Arc::from([worker]) }
    }

    /// The process's budget of descriptors.
    pub fn fds(&self) -> &Budget {
        self.all[0].fds()
    }

    /// The worker with the fewest connections.
    pub fn least_busy(&self) -> &Worker {
        let mut best = &self.all[0];
        for worker in &self.all[1..] {
            if worker.connections() < best.connections() {
                best = worker;
            }
        }
        best
    }
}
