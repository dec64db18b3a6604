//! Who owns which bucket of revisions.

use policy::own;
use policy::revision::RevisionId;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The owner of a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// This replica.
    Here,
    /// Another one, at the first of these that answers (`HOST:PORT`): its own
    /// address, then the bucket's, for meshes.
    At(Vec<String>),
}

/// All buckets, each with its owner; `None` while it has none. Without buckets
/// this replica owns every revision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owners {
    buckets: BTreeMap<Arc<str>, Option<Owner>>,
}

impl Owners {
    /// As told.
    pub fn new(buckets: impl IntoIterator<Item = (Arc<str>, Option<Owner>)>) -> Owners {
        Owners { buckets: buckets.into_iter().collect() }
    }

    /// The bucket that a revision falls into.
    pub fn bucket_of(&self, revision: &RevisionId) -> Option<&Arc<str>> {
        if self.buckets.len() < 2 {
            return self.buckets.keys().next();
        }
        let bucket = own::bucket_of(revision, self.buckets.keys().map(|bucket| &**bucket))?;
        self.buckets.get_key_value(bucket).map(|(bucket, _)| bucket)
    }

    /// Who owns a bucket; `None` = nobody does.
    pub fn of(&self, bucket: &str) -> Option<&Owner> {
        self.buckets.get(bucket)?.as_ref()
    }

    /// Whether a revision is this replica's.
    pub fn are_here(&self, revision: &RevisionId) -> bool {
        self.bucket_of(revision).is_none_or(|bucket| self.of(bucket) == Some(&Owner::Here))
    }

    /// True for the host of a bucket that is not this replica's: what stands
    /// before its first dot names the bucket.
    pub(crate) fn is_for_another(&self, host: &str) -> bool {
        let bucket = own::bucket_in_host(host).filter(|_| !self.buckets.is_empty());
        bucket.is_some_and(|bucket| self.of(bucket) != Some(&Owner::Here))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> Owners {
        let there = Owner::At(vec!["10.0.0.2:8080".into()]);
        Owners::new([
            ("autoscaler-bucket-00-of-02".into(), Some(Owner::Here)),
            ("autoscaler-bucket-01-of-02".into(), Some(there)),
        ])
    }

    #[test]
    fn revisions_spread_over_the_buckets_and_stay_where_they_are() {
        let owners = two();
        let ids: Vec<_> = (0..1000).map(|n| RevisionId::new("ns", format!("rev-{n}"))).collect();
        let here = ids.iter().filter(|id| owners.are_here(id)).count();
        assert!((300..700).contains(&here), "{here}");
        assert!(ids.iter().all(|id| owners.bucket_of(id) == two().bucket_of(id)));
        assert!(ids.iter().all(|id| Owners::default().are_here(id)), "without buckets all are here");
    }

    #[test]
    fn hosts_of_other_buckets_are_known_and_no_other_host_is() {
        let owners = two();
        for (host, another) in [
            ("autoscaler-bucket-01-of-02.ns", true),
            ("autoscaler-bucket-00-of-02.ns:8080", false),
            ("autoscaler-bucket-00-of-02", false),
            ("autoscaler-bucket-00-of-02:8080", true),
            ("autoscaler.ns", false),
            ("", false),
        ] {
            assert_eq!(owners.is_for_another(host), another, "{host}");
            assert!(!Owners::default().is_for_another(host));
        }
    }
}
