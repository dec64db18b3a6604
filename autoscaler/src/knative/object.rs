//! Kubernetes objects: what is common to all, and their JSON.

use super::conditions::{Condition, Conditions};
use policy::moment::Moment;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// What any object says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Unique among all objects that there ever were.
    pub uid: String,
    /// Counts changes of the spec.
    pub generation: i64,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
}

/// Which object of which kind, in the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectRef {
    /// Group and version of the kind.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
}

impl ObjectRef {
    /// As it stands in a spec.
    pub fn json(&self) -> Value {
        json!({ "apiVersion": self.api_version, "kind": self.kind, "name": self.name })
    }
}

/// An object that is there, where one is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Existing<T> {
    /// What it says.
    pub is: T,
    /// It belongs to the object that is looked at, and not to somebody else.
    pub owned: bool,
}

/// A kind of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Group and version.
    pub api_version: &'static str,
    /// Name.
    pub name: &'static str,
}

/// `PodAutoscaler`.
pub const POD_AUTOSCALER: Kind =
    Kind { api_version: "autoscaling.internal.knative.dev/v1alpha1", name: "PodAutoscaler" };
/// `Metric`.
pub const METRIC: Kind = Kind { api_version: "autoscaling.internal.knative.dev/v1alpha1", name: "Metric" };
/// `ServerlessService`.
pub const SERVERLESS_SERVICE: Kind =
    Kind { api_version: "networking.internal.knative.dev/v1alpha1", name: "ServerlessService" };
/// `HorizontalPodAutoscaler`.
pub const HORIZONTAL_POD_AUTOSCALER: Kind = Kind { api_version: "autoscaling/v2", name: "HorizontalPodAutoscaler" };
/// `Service`.
pub const SERVICE: Kind = Kind { api_version: "v1", name: "Service" };
/// `Endpoints`.
pub const ENDPOINTS: Kind = Kind { api_version: "v1", name: "Endpoints" };

/// An object that is to be made: all but its body.
#[derive(Clone, Debug)]
pub struct Child<'a> {
    /// What it is.
    pub kind: Kind,
    /// Its name.
    pub name: &'a str,
    /// What its owner is.
    pub owner_kind: Kind,
    /// Its owner, whose labels and annotations it has.
    pub owner: &'a Meta,
    /// Labels besides.
    pub labels: &'a [(&'a str, &'a str)],
    /// An annotation that it does not have.
    pub without: Option<&'a str>,
}

impl Child<'_> {
    /// As JSON, with `value` under the key `body`.
    pub fn json(&self, body: &str, value: Value) -> Value {
        let mut labels = self.owner.labels.clone();
        labels.extend(self.labels.iter().map(|(key, value)| (key.to_string(), value.to_string())));
        let mut annotations = self.owner.annotations.clone();
        if let Some(key) = self.without {
            annotations.remove(key);
        }
        json!({
            "apiVersion": self.kind.api_version,
            "kind": self.kind.name,
            "metadata": {
                "name": self.name,
                "namespace": self.owner.namespace,
                "labels": labels,
                "annotations": annotations,
                "ownerReferences": [{
                    "apiVersion": self.owner_kind.api_version,
                    "kind": self.owner_kind.name,
                    "name": self.owner.name,
                    "uid": self.owner.uid,
                    "controller": true,
                    "blockOwnerDeletion": true,
                }],
            },
            body: value,
        })
    }
}

/// Conditions as they stand in a status. Times are whole seconds there.
pub fn conditions_json(conditions: &Conditions) -> Value {
    conditions.iter().map(condition_json).collect()
}

fn condition_json(condition: &Condition) -> Value {
    let mut json = Map::new();
    let mut put = |key: &str, value: &str| {
        if !value.is_empty() {
            json.insert(key.to_owned(), value.into());
        }
    };
    put("type", &condition.kind);
    put("status", condition.truth.as_str());
    put("severity", if condition.info { "Info" } else { "" });
    put("reason", &condition.reason);
    put("message", &condition.message);
    put("lastTransitionTime", &timestamp(condition.since));
    Value::Object(json)
}

/// A moment as Kubernetes writes it: `2026-08-01T12:00:00Z`.
fn timestamp(moment: Moment) -> String {
    let seconds = moment.unix_seconds();
    let (days, of_day) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = date(days);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The date so many days after 1970-01-01, by years that begin in March: then
/// the odd day of a leap year is the last.
fn date(days: i64) -> (i64, i64, i64) {
    const ERA: i64 = 146_097; // days in 400 years
    let days = days + 719_468; // since 0000-03-01
    let (era, of_era) = (days.div_euclid(ERA), days.rem_euclid(ERA));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_in_utc_to_the_second() {
        let text = |millis| timestamp(Moment::from_unix_millis(millis));
        assert_eq!(text(0), "1970-01-01T00:00:00Z");
        assert_eq!(text(951_782_400_999), "2000-02-29T00:00:00Z");
        assert_eq!(text(1_767_225_599_000), "2025-12-31T23:59:59Z");
        assert_eq!(text(-1), "1969-12-31T23:59:59Z");
        assert_eq!(text(4_107_542_400_000), "2100-03-01T00:00:00Z");
    }
}
