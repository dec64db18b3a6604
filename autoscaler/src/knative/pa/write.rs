//! What there is to write for a PodAutoscaler.

use super::{PaStatus, PodAutoscaler};
use crate::knative::metric::MetricSpec;
use crate::knative::sks::SksSpec;
use serde_json::{Value, json};

/// One thing to write. Objects have the name of the PodAutoscaler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// A ServerlessService is to be made.
    CreateSks(SksSpec),
    /// It is to become this.
    UpdateSks(SksSpec),
    /// A Metric is to be made.
    CreateMetric(MetricSpec),
    /// It is to become this.
    UpdateMetric(MetricSpec),
    /// So many pods: for the subresource `scale` of the target.
    Scale(u32),
    /// The status, for the subresource `status`.
    Status(PaStatus),
}

impl Write {
    /// What is to be sent: an object to make, a merge patch, or for the scale
    /// a JSON patch.
    pub fn body(&self, pa: &PodAutoscaler) -> Value {
        match self {
            Write::CreateSks(spec) => spec.object(&pa.meta),
            Write::UpdateSks(spec) => json!({ "spec": spec.json() }),
            Write::CreateMetric(spec) => spec.object(&pa.meta),
            Write::UpdateMetric(spec) => json!({ "spec": spec.json() }),
            // `add` also replaces, and needs no value that was there.
            Write::Scale(pods) => json!([{ "op": "add", "path": "/spec/replicas", "value": pods }]),
            Write::Status(status) => json!({ "status": status.json() }),
        }
    }
}
