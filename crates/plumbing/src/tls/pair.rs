//! A certificate and its key, as they stand in files.

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use std::fs::{self, Metadata};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The times of files are as coarse as the kernel's clock; some file systems
/// have whole seconds. A file that changed just now may change again unseen.
const YOUNG: Duration = Duration::from_secs(2);

/// Tries to read both files of one state.
const TRIES: u32 = 3;

/// What tells that files have changed, without reading them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp([Option<Mark>; 2]);

/// Of one file: device, number, length, and when it or its place changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    file: (u64, u64),
    bytes: u64,
    changed: (i64, i64),
    written: (i64, i64),
}

impl Stamp {
    /// Symbolic links are followed: where Kubernetes swaps a folder, the file
    /// behind the name is another one.
    pub(super) fn of(certificate: &Path, key: &Path) -> Stamp {
        Stamp([certificate, key].map(|path| fs::metadata(path).ok().map(Mark::of)))
    }

    /// True when a further change might not show.
    pub(super) fn is_young(&self) -> bool {
        let latest = self.0.iter().flatten().map(|mark| mark.changed.0.max(mark.written.0)).max();
        let Some(latest) = latest.and_then(|seconds| u64::try_from(seconds).ok()) else { return false };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        latest + YOUNG.as_secs() >= now
    }
}

impl Mark {
    fn of(found: Metadata) -> Mark {
        Mark {
            file: (found.dev(), found.ino()),
            bytes: found.len(),
            changed: (found.ctime(), found.ctime_nsec()),
            written: (found.mtime(), found.mtime_nsec()),
        }
    }
}

/// What was read: bytes, or why there are none.
pub(super) struct Files {
    /// When they were this.
    pub(super) stamp: Stamp,
    content: Result<(Vec<u8>, Vec<u8>), String>,
}

impl Files {
    /// Reads both; again, where they were replaced meanwhile.
    pub(super) fn read(certificate: &Path, key: &Path) -> Files {
        let mut tries = 1;
        loop {
            let stamp = Stamp::of(certificate, key);
            let content = read(certificate).and_then(|chain| Ok((chain, read(key)?)));
            if stamp == Stamp::of(certificate, key) || tries == TRIES {
                return Files { stamp, content };
            }
            tries += 1;
        }
    }

    /// Differs when what was read differs.
    pub(super) fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.content.hash(&mut hasher);
        hasher.finish()
    }

    /// The certificate with its key.
    pub(super) fn parse(self, provider: &CryptoProvider) -> Result<CertifiedKey, String> {
        let (chain, key) = self.content?;
        let chain: Vec<_> = CertificateDer::pem_slice_iter(&chain)
            .collect::<Result<_, _>>()
            .map_err(|error| format!("the certificate cannot be read: {error}"))?;
        if chain.is_empty() {
            return Err("there is no certificate in its file".to_owned());
        }
        let key = PrivateKeyDer::from_pem_slice(&key).map_err(|error| format!("the key cannot be read: {error}"))?;
        CertifiedKey::from_der(chain, key, provider)
            .map_err(|error| format!("certificate and key do not make a pair: {error}"))
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}
