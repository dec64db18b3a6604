//! TLS of the main port: on when certificates are there.

use plumbing::env::Env;
use std::path::{Path, PathBuf};

/// Where the controller mounts certificates.
const CERT_DIR: &str = "/var/lib/knative/certs";

/// Names of curves that may be asked for.
const CURVES: [&str; 8] =
    ["X25519", "X25519MLKEM768", "P-256", "CurveP256", "P-384", "CurveP384", "P-521", "CurveP521"];

/// Settings of the TLS listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// The certificate chain (`tls.crt` in `ZEROSCALE_CERT_DIR`).
    pub certificate: PathBuf,
    /// Its key (`tls.key`).
    pub key: PathBuf,
    /// Lowest version (`QUEUE_PROXY_TLS_MIN_VERSION`).
    pub min: TlsVersion,
    /// Highest version (`QUEUE_PROXY_TLS_MAX_VERSION`).
    pub max: TlsVersion,
    /// Cipher suites of TLS 1.2 by their IANA names; empty = all that are safe.
    pub cipher_suites: Vec<String>,
    /// Curves in order of preference; empty = the library's.
    pub curves: Vec<String>,
}

/// A version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TlsVersion {
    /// 1.2
    Tls12,
    /// 1.3
    Tls13,
}

/// The variables count only where TLS is on, as in the reference.
pub(super) fn read(env: &mut Env, exists: impl Fn(&Path) -> bool) -> Option<Tls> {
    let folder = PathBuf::from(env.raw("ZEROSCALE_CERT_DIR").filter(|text| !text.is_empty()).unwrap_or(CERT_DIR));
    let (certificate, key) = (folder.join("tls.crt"), folder.join("tls.key"));
    if !exists(&certificate) || !exists(&key) {
        return None;
    }
    let min = env.own("QUEUE_PROXY_TLS_MIN_VERSION", version).unwrap_or(TlsVersion::Tls13);
    let max = env.own("QUEUE_PROXY_TLS_MAX_VERSION", version).unwrap_or(TlsVersion::Tls13);
    if max < min {
        env.fault("QUEUE_PROXY_TLS_MAX_VERSION: is below the minimum, which is 1.3 unless QUEUE_PROXY_TLS_MIN_VERSION says otherwise");
    }
    let cipher_suites = list(env, "QUEUE_PROXY_TLS_CIPHER_SUITES");
    let curves = list(env, "QUEUE_PROXY_TLS_CURVE_PREFERENCES");
    for curve in curves.iter().filter(|curve| !CURVES.contains(&curve.as_str())) {
        env.fault(format!("QUEUE_PROXY_TLS_CURVE_PREFERENCES: there is no curve `{curve}`"));
    }
    Some(Tls { certificate, key, min, max, cipher_suites, curves })
}

fn version(text: &str) -> Result<TlsVersion, String> {
    match text {
        "1.2" => Ok(TlsVersion::Tls12),
        "1.3" => Ok(TlsVersion::Tls13),
        _ => Err(format!("`{text}` is neither 1.2 nor 1.3")),
    }
}

fn list(env: &Env, name: &str) -> Vec<String> {
    let text = env.raw(name).unwrap_or_default();
    text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}
