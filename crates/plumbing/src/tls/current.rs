//! The certificate that is shown to clients, read anew when its files change.
//!
//! Nothing wakes for that: whoever comes to shake hands looks at the files
//! first, now and then. So an idle process sleeps, and a new certificate is
//! shown to the first client that could see the difference.

use super::pair::{Files, Stamp};
use parking_lot::Mutex;
use rustls::crypto::CryptoProvider;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

pub(super) struct Current {
    certificate: PathBuf,
    key: PathBuf,
    every: Duration,
    provider: Arc<CryptoProvider>,
    shown: Mutex<Arc<CertifiedKey>>,
    seen: Mutex<Seen>,
}

/// The files as they were when somebody looked.
struct Seen {
    next_look: Instant,
    stamp: Stamp,
    /// Of what was read last, whether it was of use or not.
    digest: u64,
}

/// What a look has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// It was too early, or nothing has changed.
    Same,
    /// Another pair, which is shown from now on.
    Another,
    /// Something of no use; the pair from before stays.
    Broken,
}

impl Current {
    /// Reads the files for the first time.
    ///
    /// # Errors
    /// Why they are of no use.
    pub(super) fn new(
        certificate: PathBuf,
        key: PathBuf,
        every: Duration,
        provider: Arc<CryptoProvider>,
    ) -> Result<Current, String> {
        let files = Files::read(&certificate, &key);
        let seen = Seen { next_look: Instant::now() + every, stamp: files.stamp, digest: files.digest() };
        let shown = Arc::new(files.parse(&provider)?);
        Ok(Current { certificate, key, every, provider, shown: Mutex::new(shown), seen: Mutex::new(seen) })
    }

    /// Looks whether the files have changed, unless somebody has just done so.
    pub(super) fn look(&self) -> Found {
        // Who does not get it comes while another looks.
        let Some(mut seen) = self.seen.try_lock() else { return Found::Same };
        let now = Instant::now();
        if now < seen.next_look {
            return Found::Same;
        }
        seen.next_look = now + self.every;
        if seen.stamp == Stamp::of(&self.certificate, &self.key) && !seen.stamp.is_young() {
            return Found::Same;
        }
        let files = Files::read(&self.certificate, &self.key);
        seen.stamp = files.stamp;
        let digest = files.digest();
        if std::mem::replace(&mut seen.digest, digest) == digest {
            return Found::Same;
        }
        let certificate = self.certificate.display().to_string();
        match files.parse(&self.provider) {
            Ok(pair) => {
                *self.shown.lock() = Arc::new(pair);
                tracing::info!(certificate, "the certificate has changed; the new one is used from now on");
                Found::Another
            }
            Err(error) => {
                tracing::error!(certificate, error, "the certificate has changed and is of no use; the old one stays");
                Found::Broken
            }
        }
    }
}

impl ResolvesServerCert for Current {
    /// Whatever name the client asks for.
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.shown.lock().clone())
    }
}

impl fmt::Debug for Current {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Current").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}
