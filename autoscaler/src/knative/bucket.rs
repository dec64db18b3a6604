//! How the owner of a bucket makes known where it is reached: a service without
//! a selector, of the bucket's name, and its one endpoint.

use serde_json::{Value, json};
use std::net::IpAddr;

/// Port of the stat server.
const PORT: u16 = 8080;

/// The service to make; that there is one already is no fault.
pub fn service(bucket: &str, namespace: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": { "name": bucket, "namespace": namespace },
        "spec": { "ports": [{ "name": "http", "protocol": "TCP", "port": PORT, "targetPort": PORT }] },
    })
}

/// Its endpoint: the pod that owns the bucket now.
pub fn endpoint_slice(bucket: &str, namespace: &str, owner: IpAddr) -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": bucket,
            "namespace": namespace,
            "labels": { "kubernetes.io/service-name": bucket },
        },
        "addressType": if owner.is_ipv4() { "IPv4" } else { "IPv6" },
        "endpoints": [{
            "addresses": [owner.to_string()],
            "conditions": { "ready": true, "serving": true, "terminating": false },
        }],
        "ports": [{ "name": "http", "protocol": "TCP", "port": PORT }],
    })
}

/// Where stats for a bucket go: to its owner, and if that does not work by its
/// service, since a mesh may not route to single pods.
pub fn addresses(bucket: &str, namespace: &str, domain: &str, owner: IpAddr) -> [String; 2] {
    let host = if owner.is_ipv4() { owner.to_string() } else { format!("[{owner}]") };
    [format!("ws://{host}:{PORT}"), format!("ws://{bucket}.{namespace}.svc.{domain}:{PORT}")]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_reached_by_address_or_by_name() {
        let [direct, by_name] = addresses("b", "ns", "cluster.local", "10.0.0.1".parse().unwrap());
        assert_eq!((direct.as_str(), by_name.as_str()), ("ws://10.0.0.1:8080", "ws://b.ns.svc.cluster.local:8080"));
        assert_eq!(addresses("b", "ns", "d", "fd00::1".parse().unwrap())[0], "ws://[fd00::1]:8080");
        assert_eq!(endpoint_slice("b", "ns", "fd00::1".parse().unwrap())["addressType"], "IPv6");
    }
}
