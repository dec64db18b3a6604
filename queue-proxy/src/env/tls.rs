//! TLS of the main port: on when certificates are there.

use plumbing::env::Env;
use plumbing::tls::{CHECK_EVERY_STRICT, HANDSHAKE_TIMEOUT_STRICT, Settings, Version, names};
use policy::compat::Compat;
use std::path::Path;

/// Where the controller mounts certificates.
const CERT_DIR: &str = "/var/lib/knative/certs";

const SUITES: &str = "QUEUE_PROXY_TLS_CIPHER_SUITES";
const CURVES: &str = "QUEUE_PROXY_TLS_CURVE_PREFERENCES";

/// The variables count only where TLS is on, as in the reference.
pub(super) fn read(env: &mut Env, compat: Compat, exists: impl Fn(&Path) -> bool) -> Option<Settings> {
    let folder = env.raw("ZEROSCALE_CERT_DIR").filter(|text| !text.is_empty()).unwrap_or(CERT_DIR);
    let mut tls = Settings::of(Path::new(folder));
    if !exists(&tls.certificate) || !exists(&tls.key) {
        return None;
    }
    tls.min = env.own("QUEUE_PROXY_TLS_MIN_VERSION", version).unwrap_or(tls.min);
    tls.max = env.own("QUEUE_PROXY_TLS_MAX_VERSION", version).unwrap_or(tls.max);
    if tls.max < tls.min {
        env.fault("QUEUE_PROXY_TLS_MAX_VERSION: is below the minimum, which is 1.3 unless QUEUE_PROXY_TLS_MIN_VERSION says otherwise");
    }
    tls.cipher_suites = list(env, SUITES);
    tls.curves = list(env, CURVES);
    if let Err(fault) = names::suites(&tls.cipher_suites, tls.min, tls.max) {
        env.fault(format!("{SUITES}: {fault}"));
    }
    if let Err(fault) = names::curves(&tls.curves) {
        env.fault(format!("{CURVES}: {fault}"));
    }
    if compat == Compat::Strict {
        tls.check_every = CHECK_EVERY_STRICT;
        tls.handshake_timeout = HANDSHAKE_TIMEOUT_STRICT;
    }
    Some(tls)
}

fn version(text: &str) -> Result<Version, String> {
    match text {
        "1.2" => Ok(Version::Tls12),
        "1.3" => Ok(Version::Tls13),
        _ => Err(format!("`{text}` is neither 1.2 nor 1.3")),
    }
}

fn list(env: &Env, name: &str) -> Vec<String> {
    let text = env.raw(name).unwrap_or_default();
    text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}
