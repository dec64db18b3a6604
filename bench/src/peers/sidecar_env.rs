//! The environment that Knative's controller gives its sidecar. Ours reads the
//! same one.

use super::Setup;
use std::process::Command;

/// Sets it; the port is where the sidecar takes requests.
pub(crate) fn set(command: &mut Command, setup: Setup, port: u16) {
    let app = setup.protocol.app();
    let probe = format!(r#"{{"tcpSocket":{{"port":{},"host":"127.0.0.1"}},"successThreshold":1}}"#, app.port());
    command.env_clear();
    command.envs([
        ("CONTAINER_CONCURRENCY", setup.limit.to_string()),
        ("QUEUE_SERVING_PORT", port.to_string()),
        ("USER_PORT", app.port().to_string()),
        ("SERVING_READINESS_PROBE", probe),
    ]);
    command.envs([
        ("QUEUE_SERVING_TLS_PORT", "8112"),
        ("REVISION_TIMEOUT_SECONDS", "300"),
        ("REVISION_RESPONSE_START_TIMEOUT_SECONDS", "0"),
        ("REVISION_IDLE_TIMEOUT_SECONDS", "0"),
        ("SERVING_LOGGING_CONFIG", ""),
        ("SERVING_LOGGING_LEVEL", "error"),
        ("SERVING_NAMESPACE", "default"),
        ("SERVING_SERVICE", "bench"),
        ("SERVING_CONFIGURATION", "bench"),
        ("SERVING_REVISION", "bench-00001"),
        ("SERVING_POD", "bench-00001-pod"),
        ("SERVING_POD_IP", "127.0.0.1"),
        ("SYSTEM_NAMESPACE", "knative-serving"),
        ("HOST_IP", "127.0.0.1"),
        ("ROOT_CA", ""),
        ("ENABLE_HTTP2_AUTO_DETECTION", "false"),
        ("ENABLE_HTTP_FULL_DUPLEX", "false"),
        ("ENABLE_MULTI_CONTAINER_PROBES", "false"),
    ]);
}
