//! TLS in: one acceptor, whose certificate is read anew when its files change.
//!
//! | job | module |
//! | --- | --- |
//! | the certificate that is shown, and when its files are looked at | `current` |
//! | reading a certificate and its key | `pair` |
//! | cipher suites and curves by their names | [`names`] |
//! | a client that speaks HTTP to a TLS port | `plain` |
//! | settings from variables | [`variables`] |

mod current;
pub mod names;
mod pair;
mod plain;
#[cfg(test)]
mod tests;
pub mod variables;

use crate::wheel::Wheel;
use current::Current;
use rustls::crypto::{CryptoProvider, ring};
use rustls::server::NoServerSessionStorage;
use rustls::version::{TLS12, TLS13};
use rustls::{ServerConfig, SupportedProtocolVersion};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Handshakes that may be under way at once.
pub const HANDSHAKES_MAX: usize = 256;
/// How long a handshake may take.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// The reference's: that of its heads of requests.
pub const HANDSHAKE_TIMEOUT_STRICT: Duration = Duration::from_secs(60);
/// How often the files are looked at, at most.
pub const CHECK_EVERY: Duration = Duration::from_secs(1);
/// The reference's.
pub const CHECK_EVERY_STRICT: Duration = Duration::from_secs(60);

/// What is offered to clients, in order of preference.
const ALPN: [&[u8]; 2] = [b"h2", b"http/1.1"];
/// Tickets by which a client can resume; the reference sends one.
const TICKETS: usize = 1;

/// A version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// 1.2
    Tls12,
    /// 1.3
    Tls13,
}

/// Settings of an acceptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The certificate chain, its own first (PEM).
    pub certificate: PathBuf,
    /// Its key (PEM).
    pub key: PathBuf,
    /// Lowest version.
    pub min: Version,
    /// Highest version.
    pub max: Version,
    /// Cipher suites of TLS 1.2 by their IANA names; empty = all that are safe.
    pub cipher_suites: Vec<String>,
    /// Curves by name; empty = all.
    pub curves: Vec<String>,
    /// The files are looked at when a client comes, at most this often.
    pub check_every: Duration,
    /// How long a handshake may take.
    pub handshake_timeout: Duration,
    /// Handshakes that may be under way at once; beyond, clients are cut off.
    pub handshakes_max: usize,
}

impl Settings {
    /// For `tls.crt` and `tls.key` in a folder; TLS 1.3 alone.
    pub fn of(folder: &Path) -> Settings {
        Settings {
            certificate: folder.join("tls.crt"),
            key: folder.join("tls.key"),
            min: Version::Tls13,
            max: Version::Tls13,
            cipher_suites: Vec::new(),
            curves: Vec::new(),
            check_every: CHECK_EVERY,
            handshake_timeout: HANDSHAKE_TIMEOUT,
            handshakes_max: HANDSHAKES_MAX,
        }
    }
}

/// Makes TLS of connections. Clones share it.
#[derive(Clone)]
pub struct Acceptor {
    shared: Arc<Shared>,
}

struct Shared {
    tls: TlsAcceptor,
    current: Arc<Current>,
    under_way: AtomicUsize,
    handshake_timeout: Duration,
    handshakes_max: usize,
}

impl Acceptor {
    /// Reads the certificate.
    ///
    /// # Errors
    /// When it cannot be read, its key is another's, or there is nothing that
    /// could be agreed on; in words.
    pub fn new(settings: &Settings) -> Result<Acceptor, String> {
        let suites = names::suites(&settings.cipher_suites, settings.min, settings.max)?;
        let curves = names::curves(&settings.curves)?;
        for name in suites.missing.iter().chain(&curves.missing) {
            tracing::warn!(name, "this build has no such cipher suite or curve; the others are used");
        }
        let base = ring::default_provider();
        let provider = Arc::new(CryptoProvider { cipher_suites: suites.found, kx_groups: curves.found, ..base });
        let (certificate, key) = (settings.certificate.clone(), settings.key.clone());
        let current = Arc::new(Current::new(certificate, key, settings.check_every, provider.clone())?);
        let fault = |error: rustls::Error| error.to_string();
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&versions(settings.min, settings.max))
            .map_err(fault)?
            .with_no_client_auth()
            .with_cert_resolver(current.clone());
        config.alpn_protocols = ALPN.iter().map(|protocol| protocol.to_vec()).collect();
        // Nothing is kept here for clients that may come back: they keep it.
        config.ticketer = ring::Ticketer::new().map_err(fault)?;
        config.send_tls13_tickets = TICKETS;
        config.session_storage = Arc::new(NoServerSessionStorage {});
        let shared = Shared {
            tls: TlsAcceptor::from(Arc::new(config)),
            current,
            under_way: AtomicUsize::new(0),
            handshake_timeout: settings.handshake_timeout,
            handshakes_max: settings.handshakes_max,
        };
        Ok(Acceptor { shared: Arc::new(shared) })
    }

    /// Handshakes; the timer is one of `wheel`. On an error the connection is
    /// closed, after an alert where the protocol has one.
    ///
    /// # Errors
    /// When the client speaks no TLS or none that is allowed, is too slow, or
    /// there are too many handshakes under way.
    pub async fn accept(&self, stream: TcpStream, wheel: &Wheel) -> io::Result<TlsStream<TcpStream>> {
        let Some(_place) = self.shared.enter() else {
            return Err(io::Error::new(ErrorKind::ResourceBusy, "too many TLS handshakes are under way"));
        };
        tokio::select! {
            done = self.handshake(stream) => done,
            () = wheel.sleep(self.shared.handshake_timeout) => {
                Err(io::Error::new(ErrorKind::TimedOut, "the TLS handshake took too long"))
            }
        }
    }

    async fn handshake(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        if plain::suspected(&stream).await? {
            return Err(plain::refuse(stream).await);
        }
        self.shared.current.look();
        self.shared.tls.accept(stream).await
    }

    /// Handshakes that are under way now.
    pub fn under_way(&self) -> usize {
        self.shared.under_way.load(Ordering::Relaxed)
    }
}

impl Shared {
    fn enter(&self) -> Option<Place<'_>> {
        let place = Place(&self.under_way);
        let before = self.under_way.fetch_add(1, Ordering::Relaxed);
        (before < self.handshakes_max).then_some(place)
    }
}

/// A handshake that is counted.
struct Place<'a>(&'a AtomicUsize);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn versions(min: Version, max: Version) -> Vec<&'static SupportedProtocolVersion> {
    let all = [(Version::Tls13, &TLS13), (Version::Tls12, &TLS12)];
    all.into_iter().filter(|(version, _)| (min..=max).contains(version)).map(|(_, known)| known).collect()
}
