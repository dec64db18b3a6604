//! Which autoscaler replica works for a revision.
//!
//! Revisions are divided over buckets by a hash of their `namespace/name`;
//! each bucket has one owner at a time, named in the lease of that bucket
//! (autoscaler reference, section 11).

use crate::revision::RevisionId;
use crate::subset;

/// How the names of all buckets begin, and the hosts by which they are reached.
const PREFIX: &str = "autoscaler-bucket";

/// The names of so many buckets, in order: `autoscaler-bucket-00-of-02`, and
/// so on.
pub fn bucket_names(count: u32) -> Vec<String> {
    (0..count).map(|ordinal| format!("{PREFIX}-{ordinal:02}-of-{count:02}")).collect()
}

/// The bucket that a revision belongs to; `None` without buckets.
///
/// All replicas come to the same one, whatever the order of the names.
pub fn bucket_of<'a>(revision: &RevisionId, buckets: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    subset::choose(buckets, &revision.to_string(), 1).into_iter().next()
}

/// True when a request for this host means one bucket, and not just any
/// replica.
pub fn is_bucket_host(host: &str) -> bool {
    host.starts_with(PREFIX)
}

/// The bucket that a host means: its name up to the first dot. A host without
/// dots keeps its port, and so names no bucket that there is.
pub fn bucket_in_host(host: &str) -> Option<&str> {
    let named = is_bucket_host(host).then(|| host.split('.').next());
    named.flatten()
}

/// Who holds a lease: a replica, by its pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder<'a> {
    /// Name of the pod.
    pub pod: &'a str,
    /// IP address of the pod.
    pub ip: &'a str,
}

impl<'a> Holder<'a> {
    /// From a lease's `holderIdentity`; `None` when it is not of an autoscaler.
    pub fn parse(identity: &'a str) -> Option<Holder<'a>> {
        let (pod, ip) = identity.split_once('_')?;
        Some(Holder { pod, ip })
    }

    /// As a lease's `holderIdentity`.
    pub fn identity(&self) -> String {
        format!("{}_{}", self.pod, self.ip)
    }
}

/// Replicas that are the pods of a StatefulSet: each owns one bucket, for as
/// long as it is there, and nobody holds a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatefulSet<'a> {
    /// Name of the set.
    pub name: &'a str,
    /// Name of its service.
    pub service: &'a str,
    /// Its namespace.
    pub namespace: &'a str,
    /// Domain of the cluster, such as `cluster.local`.
    pub domain: &'a str,
    /// What is spoken with the others; `ws` for stats to arrive.
    pub protocol: &'a str,
    /// Port of the others.
    pub port: u16,
}

impl StatefulSet<'_> {
    /// The names of so many buckets, in order: each is where its owner is
    /// reached.
    pub fn bucket_names(&self, count: u32) -> Vec<String> {
        let StatefulSet { name, service, namespace, domain, protocol, port } = self;
        let bucket = |ordinal| format!("{protocol}://{name}-{ordinal}.{service}.{namespace}.svc.{domain}:{port}");
        (0..count).map(bucket).collect()
    }
}

/// Name of the set and ordinal of the replica, from the name of a pod of a
/// StatefulSet.
pub fn ordinal(pod: &str) -> Option<(&str, u32)> {
    let (set, ordinal) = pod.rsplit_once('-')?;
    Some((set, ordinal.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_has_one_bucket_whatever_the_order_of_the_names() {
        let names = bucket_names(7);
        assert_eq!(
            (names[0].as_str(), names[6].as_str()),
            ("autoscaler-bucket-00-of-07", "autoscaler-bucket-06-of-07")
        );
        let revision = RevisionId::new("ns-36", "rev-14489");
        let forwards = bucket_of(&revision, names.iter().map(String::as_str));
        let backwards = bucket_of(&revision, names.iter().rev().map(String::as_str));
        assert_eq!((forwards, backwards), (Some(names[6].as_str()), forwards));
        assert_eq!(bucket_of(&revision, []), None);
    }

    #[test]
    fn a_host_names_a_bucket_up_to_its_first_dot() {
        let host = "autoscaler-bucket-00-of-02.knative-serving.svc.cluster.local:8080";
        assert_eq!(bucket_in_host(host), Some("autoscaler-bucket-00-of-02"));
        assert_eq!(bucket_in_host("autoscaler-bucket-00-of-02:8080"), Some("autoscaler-bucket-00-of-02:8080"));
        assert_eq!(bucket_in_host("autoscaler.knative-serving.svc.cluster.local"), None);
    }

    #[test]
    fn a_holder_is_read_as_it_is_written() {
        let holder = Holder { pod: "autoscaler-abc", ip: "10.0.0.1" };
        assert_eq!(Holder::parse(&holder.identity()), Some(holder));
        assert_eq!(Holder::parse("nobody"), None);
    }

    #[test]
    fn a_bucket_of_a_stateful_set_is_where_its_owner_is() {
        assert_eq!(ordinal("autoscaler-1"), Some(("autoscaler", 1)));
        assert_eq!((ordinal("autoscaler"), ordinal("autoscaler-x")), (None, None));
        let set = StatefulSet {
            name: "autoscaler",
            service: "autoscaler-set",
            namespace: "knative-serving",
            domain: "cluster.local",
            protocol: "ws",
            port: 8080,
        };
        let names = set.bucket_names(2);
        assert_eq!(names[1], "ws://autoscaler-1.autoscaler-set.knative-serving.svc.cluster.local:8080");
        assert!(bucket_of(&RevisionId::new("ns", "rev"), names.iter().map(String::as_str)).is_some());
    }
}
