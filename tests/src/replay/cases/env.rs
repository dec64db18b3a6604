//! The environment in which the sidecar starts.

use super::case::Case;
use policy::compat::Compat;
use std::collections::BTreeMap;
use std::path::Path;

/// The base environment of the README: what a stock controller passes.
pub const BASE: &[(&str, &str)] = &[
    ("CONTAINER_CONCURRENCY", "0"),
    ("QUEUE_SERVING_PORT", "8012"),
    ("QUEUE_SERVING_TLS_PORT", "8112"),
    ("USER_PORT", "8080"),
    ("REVISION_TIMEOUT_SECONDS", "300"),
    ("REVISION_RESPONSE_START_TIMEOUT_SECONDS", "0"),
    ("REVISION_IDLE_TIMEOUT_SECONDS", "0"),
    ("SERVING_LOGGING_CONFIG", ""),
    ("SERVING_LOGGING_LEVEL", "info"),
    ("SERVING_NAMESPACE", "ns1"),
    ("SERVING_SERVICE", "svc1"),
    ("SERVING_CONFIGURATION", "cfg1"),
    ("SERVING_REVISION", "rev1"),
    ("SERVING_POD", "pod-1"),
    ("SERVING_POD_IP", "10.0.0.7"),
    ("SYSTEM_NAMESPACE", "knative-serving"),
    ("HOST_IP", "10.0.0.1"),
    ("ROOT_CA", ""),
    ("ENABLE_HTTP2_AUTO_DETECTION", "false"),
    ("ENABLE_HTTP_FULL_DUPLEX", "false"),
    ("ENABLE_MULTI_CONTAINER_PROBES", "false"),
    ("SERVING_READINESS_PROBE", r#"{"tcpSocket":{"port":8080,"host":"127.0.0.1"},"successThreshold":1}"#),
    (
        "OBSERVABILITY_CONFIG",
        concat!(
            r#"{"tracing":{"protocol":"none"},"metrics":{"protocol":"none"},"#,
            r#""runtime":{"profiling":"disabled","exportInterval":15000000000},"requestMetrics":{"protocol":"none"}}"#
        ),
    ),
];

/// What the sidecar of a case gets, and nothing else: no variable of whoever
/// runs the tests but PATH.
pub fn environment(case: &Case, mode: Compat, certificates: Option<&Path>) -> BTreeMap<String, String> {
    let mut all: BTreeMap<String, String> =
        BASE.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    all.insert("PATH".to_owned(), std::env::var("PATH").unwrap_or_default());
    for (name, value) in &case.env {
        match value {
            Some(value) => all.insert(name.clone(), value.clone()),
            None => all.remove(name),
        };
    }
    if mode == Compat::Strict {
        all.insert("ZEROSCALE_COMPAT".to_owned(), "strict".to_owned());
    }
    if let Some(folder) = certificates {
        all.insert("ZEROSCALE_CERT_DIR".to_owned(), folder.display().to_string());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(env: &str) -> Case {
        let row = format!(
            r#"{{"name":"n","group":"g","about":"","verdict":"match","wait_for_ports":true,"steps":[],"env":{env}}}"#
        );
        serde_json::from_str(&row).unwrap()
    }

    #[test]
    fn a_row_adds_changes_and_removes() {
        let all = environment(&case(r#"{"A":"1","USER_PORT":"9","HOST_IP":null}"#), Compat::Strict, None);
        assert_eq!((all["A"].as_str(), all["USER_PORT"].as_str()), ("1", "9"));
        assert!(!all.contains_key("HOST_IP"));
        assert_eq!(all["ZEROSCALE_COMPAT"], "strict");
        assert_eq!(all.len(), BASE.len() + 2);
    }

    #[test]
    fn the_default_mode_is_what_is_there_without_a_word() {
        let all = environment(&case("{}"), Compat::Better, Some(Path::new("/c")));
        assert!(!all.contains_key("ZEROSCALE_COMPAT"));
        assert_eq!(all["ZEROSCALE_CERT_DIR"], "/c");
    }
}
