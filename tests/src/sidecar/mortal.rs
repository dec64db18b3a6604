//! An app that is killed, and comes back at the same address.

use super::h1::Conn;
use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::{JoinHandle, JoinSet};

type Serve = Arc<dyn Fn(Conn) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// The app; it starts alive.
pub struct Mortal {
    /// Where it listens while it lives. A loopback address of its own, so that
    /// nobody else is given the port while it is down.
    pub address: SocketAddr,
    serve: Serve,
    life: Option<(Arc<Notify>, JoinHandle<()>)>,
}

impl Mortal {
    /// Each connection is given to `serve`.
    ///
    /// # Panics
    /// When it cannot listen.
    pub async fn new<F>(serve: impl Fn(Conn) -> F + Send + Sync + 'static) -> Mortal
    where
        F: Future<Output = ()> + Send + 'static,
    {
        static NEXT: AtomicU16 = AtomicU16::new(1);
        let [high, low] = (std::process::id() as u16).to_be_bytes();
        let own = Ipv4Addr::new(127, high | 1, low, NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes()[1]);
        let serve: Serve = Arc::new(move |conn| Box::pin(serve(conn)));
        let mut mortal = Mortal { address: (own, 0).into(), serve, life: None };
        mortal.revive().await;
        mortal
    }

    /// It listens again.
    ///
    /// # Panics
    /// When it cannot.
    pub async fn revive(&mut self) {
        let listener = TcpListener::bind(self.address).await.expect("its address is its own");
        self.address = listener.local_addr().expect("an address");
        let (serve, end) = (self.serve.clone(), Arc::new(Notify::new()));
        let ending = end.clone();
        let life = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                tokio::select! {
                    Ok((stream, _)) = listener.accept() => drop(connections.spawn(serve(Conn::over(stream)))),
                    Some(_) = connections.join_next() => {}
                    () = ending.notified() => break,
                }
            }
            drop(listener);
            connections.shutdown().await;
        });
        self.life = Some((end, life));
    }

    /// Its port is closed, and all its connections are, with whatever was
    /// unread or unsent; done when that is so.
    pub async fn kill(&mut self) {
        let Some((end, life)) = self.life.take() else { return };
        end.notify_one();
        let _ = life.await;
    }
}

impl Drop for Mortal {
    fn drop(&mut self) {
        if let Some((_, life)) = self.life.take() {
            life.abort();
        }
    }
}
