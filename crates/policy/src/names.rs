//! Names that Knative gives to what belongs to a revision.

use crate::md5;

/// Longest name of a service: a label of DNS.
const LONGEST: usize = 63;

/// How the private service's name ends.
const PRIVATE: &str = "-private";

/// The private service of a revision: the one whose Endpoints are its pods. A
/// name that would get too long is cut, with a digest of the whole in its
/// place (`sks.jsonl`; activator reference, section 6.3).
pub fn private_service(revision: &str) -> String {
    const DIGEST: usize = 32;
    if revision.len() + PRIVATE.len() <= LONGEST {
        return format!("{revision}{PRIVATE}");
    }
    let mut kept = LONGEST - PRIVATE.len() - DIGEST;
    while !revision.is_char_boundary(kept) {
        kept -= 1;
    }
    format!("{}{}{PRIVATE}", &revision[..kept], md5::hex(revision))
}

/// The host under which a pod is asked where a mesh routes to single pods
/// (`enable-mesh-pod-addressability`).
pub fn passthrough_host(revision: &str, namespace: &str) -> String {
    format!("{}.{namespace}", private_service(revision))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_name_is_whole_and_a_long_one_is_told_by_its_digest() {
        assert_eq!(private_service("rev"), "rev-private");
        let (fits, long) = ("a".repeat(55), "a".repeat(56));
        assert_eq!(private_service(&fits), format!("{fits}-private"));
        let name = private_service(&long);
        assert_eq!((name.len(), &name[..23], &name[55..]), (63, &long[..23], "-private"));
        assert_eq!(&name[23..55], "3b0c8ac703f828b04c6c197006d17218");
        assert_ne!(name, private_service(&"a".repeat(57)));
        assert_eq!(private_service(&"é".repeat(40)).len(), 62, "no letter is cut in two");
    }

    #[test]
    fn the_host_for_single_pods_is_that_of_the_private_service() {
        assert_eq!(passthrough_host("hello-00001", "demo"), "hello-00001-private.demo");
    }
}
