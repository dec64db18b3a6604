//! Settings of a TLS port from variables. Both of our ports that speak it
//! have the same, under a prefix of their own.

use super::{CHECK_EVERY_STRICT, HANDSHAKE_TIMEOUT_STRICT, Settings, Version, names};
use crate::env::Env;
use policy::compat::Compat;
use std::path::Path;

/// Reads `PREFIX_TLS_MIN_VERSION` and its like; the certificate is in `folder`.
pub fn read(env: &mut Env, prefix: &str, folder: &Path, compat: Compat) -> Settings {
    let name = |rest: &str| format!("{prefix}_TLS_{rest}");
    let mut tls = Settings::of(folder);
    tls.min = env.own(&name("MIN_VERSION"), version).unwrap_or(tls.min);
    tls.max = env.own(&name("MAX_VERSION"), version).unwrap_or(tls.max);
    if tls.max < tls.min {
        let (max, min) = (name("MAX_VERSION"), name("MIN_VERSION"));
        env.fault(format!("{max}: is below the minimum, which is 1.3 unless {min} says otherwise"));
    }
    let (suites, curves) = (name("CIPHER_SUITES"), name("CURVE_PREFERENCES"));
    tls.cipher_suites = list(env, &suites);
    tls.curves = list(env, &curves);
    if let Err(fault) = names::suites(&tls.cipher_suites, tls.min, tls.max) {
        env.fault(format!("{suites}: {fault}"));
    }
    if let Err(fault) = names::curves(&tls.curves) {
        env.fault(format!("{curves}: {fault}"));
    }
    if compat == Compat::Strict {
        tls.check_every = CHECK_EVERY_STRICT;
        tls.handshake_timeout = HANDSHAKE_TIMEOUT_STRICT;
    }
    tls
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
