//! The recorded Deployments: what the controller wrote for the sidecar.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// The name of the sidecar's container.
const SIDECAR: &str = "queue-proxy";
/// What the pod is called where the recording shows a Deployment at zero.
const NOBODY: &str = "x";

/// A Deployment, as far as its sidecar is concerned.
#[derive(Clone, Debug, PartialEq)]
pub struct Deployment {
    /// Its name.
    pub name: String,
    /// The sidecar's container.
    pub sidecar: Value,
    /// The app's.
    pub app: Value,
    /// `terminationGracePeriodSeconds`.
    pub grace_seconds: u64,
    /// The name of one of its pods.
    pub pod: String,
}

/// All recorded steps: file, and the Deployment in it.
///
/// # Panics
/// When a file is not as recorded.
pub fn recorded() -> Vec<(PathBuf, Deployment)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors/knative-cluster/objects");
    let mut files: Vec<PathBuf> = fs::read_dir(folder).expect("the folder").flatten().map(|file| file.path()).collect();
    files.sort();
    let read = |file: PathBuf| {
        let objects: Vec<Value> =
            serde_json::from_slice(&fs::read(&file).expect("the file")).expect("a list of objects");
        let found = Deployment::in_objects(&objects);
        (file, found)
    };
    files.into_iter().map(read).collect()
}

impl Deployment {
    fn in_objects(objects: &[Value]) -> Deployment {
        let of_kind = |kind: &'static str| objects.iter().filter(move |object| object["kind"] == kind);
        let deployment = of_kind("Deployment").next().expect("a Deployment");
        let pod = of_kind("Pod").next().map_or(NOBODY, |pod| text(&pod["metadata"]["name"]));
        let spec = &deployment["spec"]["template"]["spec"];
        let containers = spec["containers"].as_array().expect("containers");
        let (sidecars, apps): (Vec<&Value>, Vec<&Value>) =
            containers.iter().partition(|container| container["name"] == SIDECAR);
        Deployment {
            name: text(&deployment["metadata"]["name"]).to_owned(),
            sidecar: sidecars[0].clone(),
            app: apps[0].clone(),
            grace_seconds: spec["terminationGracePeriodSeconds"].as_u64().expect("a number"),
            pod: pod.to_owned(),
        }
    }

    /// The sidecar's environment as the kubelet makes it: an entry without a
    /// value is the empty string, references to fields are filled in.
    ///
    /// # Panics
    /// For a reference to a field that is not known here.
    pub fn environment(&self, pod: IpAddr, node: IpAddr) -> BTreeMap<String, String> {
        let field = |path: &str| match path {
            "metadata.name" => self.pod.clone(),
            "status.podIP" => pod.to_string(),
            "status.hostIP" => node.to_string(),
            other => panic!("a reference to {other}"),
        };
        let entries = self.sidecar["env"].as_array().expect("variables");
        let value = |entry: &Value| match entry["valueFrom"]["fieldRef"]["fieldPath"].as_str() {
            Some(path) => field(path),
            None => entry["value"].as_str().unwrap_or_default().to_owned(),
        };
        entries.iter().map(|entry| (text(&entry["name"]).to_owned(), value(entry))).collect()
    }

    /// A variable of the sidecar that has a value.
    ///
    /// # Panics
    /// When there is none.
    pub fn variable(&self, name: &str) -> &str {
        let entries = self.sidecar["env"].as_array().expect("variables");
        let entry = entries.iter().find(|entry| entry["name"] == name).expect("the variable");
        text(&entry["value"])
    }

    /// The number of one of the sidecar's ports, by its name.
    ///
    /// # Panics
    /// When it has none of that name.
    pub fn port(&self, name: &str) -> u16 {
        let ports = self.sidecar["ports"].as_array().expect("ports");
        number(&ports.iter().find(|port| port["name"] == name).expect("the port")["containerPort"])
    }

    /// The app's port.
    ///
    /// # Panics
    /// When it is none.
    pub fn user_port(&self) -> u16 {
        self.variable("USER_PORT").parse().expect("a port")
    }

    /// Whether the app speaks HTTP/2 without TLS.
    pub fn speaks_h2c(&self) -> bool {
        self.variable("QUEUE_SERVING_PORT") == "8013"
    }
}

/// Port of a handler in a container's spec.
///
/// # Panics
/// When it is none.
pub fn number(port: &Value) -> u16 {
    port.as_u64().and_then(|port| u16::try_from(port).ok()).expect("a port")
}

/// A string in a container's spec.
///
/// # Panics
/// When it is none.
pub fn text(value: &Value) -> &str {
    value.as_str().expect("text")
}
