//! What each component may be built of (rules, section 6): checked on the tree
//! that cargo resolves, with default features.

use std::collections::BTreeSet;
use std::process::Command;

/// Packages that `package` needs to run, itself not among them.
fn needs(package: &str) -> BTreeSet<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let tree = Command::new(cargo)
        .args(["tree", "--package", package, "--edges", "normal", "--prefix", "none", "--locked"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let text = String::from_utf8(tree.stdout).unwrap();
    let names = text.lines().filter_map(|line| line.split(' ').next()).filter(|name| !name.is_empty());
    names.filter(|name| *name != package).map(str::to_owned).collect()
}

#[test]
fn the_sidecar_has_no_kubernetes_client_no_web_framework_and_no_telemetry_sdk() {
    let needs = needs("queue-proxy");
    assert!(needs.contains("hyper"), "cargo tree was read: {needs:?}");
    let barred = |name: &&String| {
        let exact = ["kube", "k8s-openapi", "tonic", "axum", "warp", "reqwest", "actix-web", "rocket"];
        exact.contains(&name.as_str()) || name.starts_with("kube-") || name.starts_with("opentelemetry")
    };
    assert_eq!(needs.iter().filter(barred).collect::<Vec<_>>(), Vec::<&String>::new());
}

#[test]
fn the_core_has_no_dependency_at_all() {
    assert_eq!(needs("policy"), BTreeSet::new());
}

#[test]
fn no_component_depends_on_another() {
    const COMPONENTS: [&str; 3] = ["queue-proxy", "activator", "autoscaler"];
    for component in COMPONENTS {
        let needs = needs(component);
        for other in COMPONENTS.into_iter().chain(["local"]) {
            assert!(!needs.contains(other), "{component} needs {other}");
        }
    }
    // A sidecar is one pod's own: it follows no platform.
    assert!(!needs("queue-proxy").contains("platform"));
}
