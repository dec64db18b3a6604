//! Cipher suites and curves by the names that the reference takes.
//!
//! A name that the reference knows and this build does not have is passed
//! over while others are left, since the list is often one for a whole
//! cluster; one that nobody knows is a fault.

use super::Version;
use rustls::crypto::{SupportedKxGroup, ring};
use rustls::{NamedGroup, SupportedCipherSuite};

/// Suites of the reference that are not here: those without forward secrecy or
/// without authenticated encryption.
const SUITES_ELSEWHERE: [&str; 16] = [
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA",
    "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_RC4_128_SHA",
    "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA",
    "TLS_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_RSA_WITH_RC4_128_SHA",
];

/// Suites of TLS 1.3: there is no choosing among them.
const SUITES_13: [&str; 3] = ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"];

/// Names of curves that are here.
const CURVES: [(&str, NamedGroup); 5] = [
    ("X25519", NamedGroup::X25519),
    ("P-256", NamedGroup::secp256r1),
    ("CurveP256", NamedGroup::secp256r1),
    ("P-384", NamedGroup::secp384r1),
    ("CurveP384", NamedGroup::secp384r1),
];

/// Curves of the reference that are not.
const CURVES_ELSEWHERE: [&str; 3] = ["P-521", "CurveP521", "X25519MLKEM768"];

/// What a list of names comes to.
#[derive(Clone, Debug)]
pub struct Chosen<T> {
    /// What is used.
    pub found: Vec<T>,
    /// Names that are known and not here.
    pub missing: Vec<String>,
}

/// Suites for the versions from `min` to `max`; an empty list means all.
///
/// # Errors
/// The name that is unknown, or that none is left.
pub fn suites(names: &[String], min: Version, max: Version) -> Result<Chosen<SupportedCipherSuite>, String> {
    let mut chosen = Chosen { found: Vec::new(), missing: Vec::new() };
    let own = |suite: &&SupportedCipherSuite| suite.tls13().is_none();
    for name in names {
        let known = ring::ALL_CIPHER_SUITES.iter().filter(own).find(|suite| suite.suite().as_str() == Some(name));
        match known {
            Some(suite) if chosen.found.contains(suite) => {}
            Some(suite) => chosen.found.push(*suite),
            None if SUITES_ELSEWHERE.contains(&name.as_str()) => chosen.missing.push(name.clone()),
            None if SUITES_13.contains(&name.as_str()) => {}
            None => return Err(format!("there is no cipher suite `{name}`")),
        }
    }
    if names.is_empty() {
        chosen.found.extend(ring::ALL_CIPHER_SUITES.iter().filter(own));
    } else if chosen.found.is_empty() && min == Version::Tls12 {
        return Err("none of these cipher suites is there for TLS 1.2".to_owned());
    }
    if max == Version::Tls13 {
        chosen.found.extend(ring::ALL_CIPHER_SUITES.iter().filter(|suite| !own(suite)));
    }
    Ok(chosen)
}

/// Curves; an empty list means all.
///
/// # Errors
/// The name that is unknown, or that none is left.
pub fn curves(names: &[String]) -> Result<Chosen<&'static dyn SupportedKxGroup>, String> {
    let mut chosen: Chosen<&'static dyn SupportedKxGroup> = Chosen { found: Vec::new(), missing: Vec::new() };
    for name in names {
        match CURVES.iter().find(|(known, _)| known == name) {
            Some((_, group)) if chosen.found.iter().any(|found| found.name() == *group) => {}
            Some((_, group)) => chosen.found.extend(ring::ALL_KX_GROUPS.iter().filter(|known| known.name() == *group)),
            None if CURVES_ELSEWHERE.contains(&name.as_str()) => chosen.missing.push(name.clone()),
            None => return Err(format!("there is no curve `{name}`")),
        }
    }
    if names.is_empty() {
        chosen.found.extend(ring::ALL_KX_GROUPS);
    } else if chosen.found.is_empty() {
        return Err("none of these curves is there; X25519, P-256 and P-384 are".to_owned());
    }
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Version::{Tls12, Tls13};

    fn list(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn suites_are_chosen_for_the_old_version_alone() {
        let gcm = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256";
        let chosen = suites(&list(&[gcm, gcm, SUITES_ELSEWHERE[0], SUITES_13[0]]), Tls12, Tls13).unwrap();
        let old: Vec<_> = chosen.found.iter().filter(|suite| suite.tls13().is_none()).collect();
        assert_eq!((old.len(), old[0].suite().as_str()), (1, Some(gcm)));
        assert_eq!((chosen.found.len(), chosen.missing), (1 + 3, list(&SUITES_ELSEWHERE[..1])));
        assert_eq!(suites(&[], Tls12, Tls12).unwrap().found.len(), 6);
        assert_eq!(suites(&[], Tls13, Tls13).unwrap().found.len(), 9);
    }

    #[test]
    fn names_that_nobody_knows_and_lists_of_which_nothing_is_left_are_faults() {
        assert!(suites(&list(&["TLS_X"]), Tls12, Tls13).unwrap_err().contains("`TLS_X`"));
        assert!(suites(&list(&SUITES_ELSEWHERE), Tls12, Tls13).unwrap_err().contains("none of these"));
        assert!(suites(&list(&SUITES_ELSEWHERE), Tls13, Tls13).is_ok(), "they do not matter there");
        assert!(curves(&list(&["X25519", "P-255"])).unwrap_err().contains("`P-255`"));
        assert!(curves(&list(&CURVES_ELSEWHERE)).unwrap_err().contains("X25519, P-256 and P-384"));
    }

    #[test]
    fn curves_have_two_names_each_and_stand_in_the_order_given() {
        let chosen = curves(&list(&["P-384", "CurveP384", "X25519MLKEM768", "CurveP256"])).unwrap();
        let groups: Vec<_> = chosen.found.iter().map(|group| group.name()).collect();
        assert_eq!(groups, [NamedGroup::secp384r1, NamedGroup::secp256r1]);
        assert_eq!(chosen.missing, ["X25519MLKEM768"]);
        assert_eq!(curves(&[]).unwrap().found.len(), 3);
    }
}
