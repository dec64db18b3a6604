//! How stats come, beside our own stream: the reference's ports, its
//! variables, and ours for what it has none.

use autoscaler::collect;
use autoscaler::forward::{Owner, Owners};
use autoscaler::stat_server::Limits;
use plumbing::env::Env;
use policy::compat::Compat;
use policy::mesh::MeshMode;
use std::net::SocketAddr;
use std::sync::Arc;

pub(crate) const WEBSOCKET: &str = "ZEROSCALE_WEBSOCKET_LISTEN";
pub(crate) const MESSAGE_BYTES: &str = "ZEROSCALE_WEBSOCKET_MESSAGE_BYTES_MAX";
pub(crate) const SILENCE: &str = "ZEROSCALE_WEBSOCKET_SILENCE_MAX";
pub(crate) const SCRAPE: &str = "ZEROSCALE_SCRAPE_PORT";
pub(crate) const SCRAPE_MAX: &str = "ZEROSCALE_SCRAPE_MAX";
pub(crate) const MESH: &str = "ZEROSCALE_MESH_MODE";
const ADDRESSABLE: &str = "ZEROSCALE_POD_ADDRESSABILITY";
pub(crate) const BUCKETS: &str = "ZEROSCALE_BUCKETS";
const PROFILING: &str = "PROFILING_PORT";

/// The reference's.
const WEBSOCKET_PORT: u16 = 8080;
const PROFILING_PORT: u16 = 8008;
const BUCKETS_MAX: usize = 10;

#[derive(Debug)]
pub(crate) struct Transports {
    /// Websockets, and what the kubelet asks.
    pub(crate) websocket: SocketAddr,
    pub(crate) limits: Limits,
    /// Where the reference answers 404.
    pub(crate) profiling: SocketAddr,
    /// `None`: no pod is asked.
    pub(crate) scrape: Option<collect::Settings>,
    pub(crate) owners: Owners,
}

/// Reads them. `connections` and `rate` are those of the stream too.
pub(crate) fn read(env: &mut Env, compat: Compat, (connections, rate): (usize, u32)) -> Transports {
    let everywhere = SocketAddr::from(([0, 0, 0, 0], WEBSOCKET_PORT));
    let websocket = env.own_form(WEBSOCKET, "address").unwrap_or(everywhere);
    let mut limits = Limits { connections, rate, ..Limits::default() };
    if let Some(most) = env.own(MESSAGE_BYTES, positive) {
        limits.message_bytes = most;
    }
    if let Some(most) = env.duration(SILENCE) {
        limits.silence = most;
    }
    let profiling = env.own_form(PROFILING, "port").unwrap_or(PROFILING_PORT);
    Transports {
        limits,
        profiling: SocketAddr::new(websocket.ip(), profiling),
        scrape: scrape(env, compat),
        owners: owners(env, compat),
        websocket,
    }
}

fn scrape(env: &mut Env, compat: Compat) -> Option<collect::Settings> {
    let mut settings = collect::Settings::new(compat);
    settings.passthrough = env.flag(ADDRESSABLE);
    if let Some(mesh) =
        env.own(MESH, |text| text.parse::<MeshMode>().map_err(|modes| format!("`{text}` is not {modes}")))
    {
        settings.mesh = mesh;
    }
    if let Some(most) = env.own(SCRAPE_MAX, positive) {
        settings.under_way = most;
    }
    if let Some(port) = env.own_form(SCRAPE, "port") {
        settings.port = port;
    }
    (settings.port > 0).then_some(settings)
}

/// Among the replicas of a StatefulSet each owns the bucket of its ordinal;
/// alone this one owns all.
fn owners(env: &mut Env, compat: Compat) -> Owners {
    // The reference ends without them; here they say nothing to a single one.
    let strict = compat == Compat::Strict;
    let mut name = |name: &str| if strict { env.required(name) } else { env.text(name) };
    let (pod, _, namespace) = (name("POD_NAME"), name("POD_IP"), env.text("SYSTEM_NAMESPACE"));
    let (service, domain) = (env.text("STATEFUL_SERVICE_NAME"), env.text("CLUSTER_DOMAIN"));
    let Some(ordinal) = env.own_form::<usize>("STATEFUL_CONTROLLER_ORDINAL", "ordinal").filter(|_| !service.is_empty())
    else {
        return Owners::default();
    };
    let buckets = env
        .own(BUCKETS, |text| match text.parse() {
            Ok(count @ 1..=BUCKETS_MAX) => Ok(count),
            _ => Err(format!("`{text}` is no number from 1 to {BUCKETS_MAX}")),
        })
        .unwrap_or(1);
    if ordinal >= buckets {
        env.fault(format!("STATEFUL_CONTROLLER_ORDINAL: {ordinal} is not below {BUCKETS} ({buckets})"));
    }
    let Some(set) = pod.strip_suffix(&format!("-{ordinal}")).filter(|set| !set.is_empty()) else {
        env.fault(format!("POD_NAME: `{pod}` does not end in -{ordinal}, the ordinal"));
        return Owners::default();
    };
    let text = |text: String, default: &str| if text.is_empty() { default.to_owned() } else { text };
    let protocol = text(env.text("STATEFUL_SERVICE_PROTOCOL"), "http");
    let port = env.own_form::<u16>("STATEFUL_SERVICE_PORT", "port").unwrap_or(80);
    let domain = text(domain, "cluster.local");
    // The defaults, which are part of the buckets' names, lead nowhere.
    let reached = if protocol == "http" && !strict { WEBSOCKET_PORT } else { port };
    Owners::new((0..buckets).map(|bucket| {
        let host = format!("{set}-{bucket}.{service}.{namespace}.svc.{domain}");
        let owner = if bucket == ordinal { Owner::Here } else { Owner::At(vec![format!("{host}:{reached}")]) };
        (Arc::from(format!("{protocol}://{host}:{port}")), Some(owner))
    }))
}

fn positive(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count @ 1..) => Ok(count),
        _ => Err(format!("`{text}` is no number above 0")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use policy::revision::RevisionId;

    fn given(compat: Compat, lines: &[(&str, &str)]) -> Result<Transports, String> {
        let mut env = Env::new(lines.iter().map(|(name, value)| (name.into(), value.into())));
        let read = read(&mut env, compat, (10, 20));
        env.finish(read).map_err(|faults| faults.to_string())
    }

    const SET: [(&str, &str); 6] = [
        ("POD_NAME", "autoscaler-1"),
        ("POD_IP", "10.0.0.1"),
        ("SYSTEM_NAMESPACE", "knative-serving"),
        ("STATEFUL_CONTROLLER_ORDINAL", "1"),
        ("STATEFUL_SERVICE_NAME", "autoscaler"),
        (BUCKETS, "3"),
    ];

    #[test]
    fn the_defaults_are_the_references_ports() {
        let transports = given(Compat::Better, &[]).unwrap();
        assert_eq!((transports.websocket.port(), transports.profiling.port()), (8080, 8008));
        assert_eq!(transports.scrape, Some(collect::Settings::new(Compat::Better)));
        assert_eq!((transports.limits.connections, transports.limits.rate), (10, 20));
        assert_eq!(given(Compat::Better, &[(SCRAPE, "0")]).unwrap().scrape, None);
        assert_eq!(transports.owners, Owners::default());
        let missing = given(Compat::Strict, &[]).unwrap_err();
        assert!(missing.contains("POD_NAME") && missing.contains("POD_IP"), "{missing}");
    }

    #[test]
    fn a_replica_of_a_set_owns_the_bucket_of_its_ordinal() {
        let owners = given(Compat::Better, &SET).unwrap().owners;
        let name = |n| format!("http://autoscaler-{n}.autoscaler.knative-serving.svc.cluster.local:80");
        assert_eq!(owners.of(&name(1)), Some(&Owner::Here));
        let address = "autoscaler-2.autoscaler.knative-serving.svc.cluster.local:8080".to_owned();
        assert_eq!(owners.of(&name(2)), Some(&Owner::At(vec![address])));
        let here = (0..300).filter(|n| owners.are_here(&RevisionId::new("ns", format!("rev-{n}")))).count();
        assert!((50..150).contains(&here), "{here} of 300, among three");
    }

    #[test]
    fn faults_name_their_variables() {
        let odd = [(WEBSOCKET, "x"), (MESSAGE_BYTES, "0"), (SCRAPE, "-1"), (MESH, "maybe"), (BUCKETS, "11")];
        let faults = given(Compat::Better, &[&SET[..5], &odd].concat()).unwrap_err();
        for (name, _) in odd {
            assert!(faults.contains(name), "{name}: {faults}");
        }
        let beyond = given(Compat::Better, &[&SET[..5], &[(BUCKETS, "1")]].concat()).unwrap_err();
        assert!(beyond.contains("STATEFUL_CONTROLLER_ORDINAL"), "{beyond}");
    }
}
