//! The sidecar in the pods of a real cluster's recording, each in a container
//! and a network of its own.

use proto::stats::Stat;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tests::cluster::app::App;
use tests::cluster::container::Container;
use tests::cluster::deployment::{Deployment, recorded};
use tests::cluster::network::{NODE, Namespace, Network, POD, missing};
use tests::cluster::peers;
use tests::floor::binaries;
use tokio::net::TcpStream;

/// What a client calls the service.
const HOST: &str = "shop.rec.example.com";
const STOP_HOOK: u16 = 8022;
const PATIENCE: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(10);

/// The recorded Deployment of that name, once.
fn deployment(name: &str) -> Deployment {
    let mut found = recorded().into_iter().map(|(_, deployment)| deployment);
    found.find(|deployment| deployment.name == name).unwrap()
}

macro_rules! recorded_deployments {
    ($($name:ident),* $(,)?) => {
        $(#[test] fn $name() { serves(concat!(stringify!($name), "-00001-deployment")); })*

        #[test]
        fn every_recorded_deployment_has_its_test() {
            let tested = [$(concat!(stringify!($name), "-00001-deployment")),*];
            let recorded = recorded();
            assert_eq!(recorded.len(), 12);
            for (file, found) in recorded {
                assert!(tested.contains(&found.name.as_str()), "{}: {}", file.display(), found.name);
                // The steps of a service differ in its pods alone.
                let first = deployment(&found.name);
                assert_eq!((&found.sidecar, &found.app), (&first.sidecar, &first.app), "{}", file.display());
            }
        }
    };
}

recorded_deployments!(h2c, hard, hpa, plain, serve);

/// A pod with everything in it.
struct Pod {
    deployment: Deployment,
    network: Network,
    sidecar: Container,
}

impl Pod {
    fn start(deployment: Deployment) -> Pod {
        let network = Network::new().unwrap();
        let environment = deployment.environment(POD, NODE);
        let binary = binaries::queue_proxy().unwrap();
        let sidecar = Container::start(&binary, &environment, &deployment.pod, &network.pod).unwrap();
        let mut pod = Pod { deployment, network, sidecar };
        let port = pod.deployment.port("queue-port");
        pod.until("its port is open", |pod| open(&pod.network.node, port));
        pod
    }

    /// Looks until it holds.
    fn until(&mut self, what: &str, mut holds: impl FnMut(&mut Pod) -> bool) {
        let began = Instant::now();
        while !holds(self) {
            if began.elapsed() > PATIENCE || !self.sidecar.runs() {
                panic!("not so: {what}\n{}", self.sidecar.last_words());
            }
            std::thread::sleep(LOOK);
        }
    }

    fn readiness(&self) -> u16 {
        let probe = self.deployment.sidecar["readinessProbe"].clone();
        self.network.node.run(move || async move { peers::kubelet_probe(POD, &probe).await }).status
    }
}

/// Whether a port of the pod takes connections from the node.
fn open(node: &Namespace, port: u16) -> bool {
    node.run(move || async move { TcpStream::connect((POD, port)).await.is_ok() })
}

fn serves(name: &str) {
    if let Some(why) = missing() {
        eprintln!("SKIPPED: {name}: {why}");
        return;
    }
    let mut pod = Pod::start(deployment(name));
    it_has_no_rights(&pod);
    let port = |name: &str| pod.deployment.port(name);
    let (serving, tls) = (port("queue-port"), port("https-port"));
    let (autometric, usermetric) = (port("http-autometric"), port("http-usermetric"));
    assert_eq!((tls, autometric, usermetric), (8112, 9090, 9091));
    for (port, wanted) in [(serving, true), (STOP_HOOK, true), (autometric, true), (tls, false), (usermetric, false)] {
        assert_eq!(open(&pod.network.node, port), wanted, "port {port}");
    }
    // An eager probe goes on asking for longer than the kubelet waits.
    assert!([0, 503].contains(&pod.readiness()), "there is no app yet");
    let app = App::start(&pod.network.pod, pod.deployment.user_port(), pod.deployment.speaks_h2c());
    pod.until("the kubelet's probe passes", |pod| pod.readiness() == 200);
    let main = SocketAddr::from((POD, serving));
    let answer = pod.network.node.run(move || peers::activator_probe(main));
    assert_eq!((answer.status, answer.body.as_str()), (200, "queue"), "{answer:?}");
    one_request_is_counted_once(&pod, &app, main);
    the_hook_answers(&pod);
    it_ends_with_the_pod(pod);
}

fn it_has_no_rights(pod: &Pod) {
    let sidecar = &pod.sidecar;
    let [user, group] = ["Uid", "Gid"].map(|key| sidecar.status(key));
    assert_eq!((user.as_str(), group.as_str()), ("65532 65532 65532 65532", "65532 65532 65532 65532"));
    assert_eq!((sidecar.status("Groups").as_str(), sidecar.status("NoNewPrivs").as_str()), ("", "1"));
    for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert_eq!(sidecar.status(set), "0000000000000000", "{set}");
    }
    let mounts = sidecar.proc("mountinfo");
    for mount in mounts.lines() {
        let options = mount.split(' ').nth(5).unwrap();
        assert!(options.split(',').any(|option| option == "ro"), "{mount}");
    }
    assert!(mounts.lines().count() >= 3, "{mounts}");
}

/// All reports of the sidecar until `enough` says so.
fn reports(pod: &Pod, enough: impl Fn(&[Stat]) -> bool + Send + 'static) -> Vec<Stat> {
    let address = SocketAddr::from((POD, pod.deployment.port("http-autometric")));
    pod.network.node.run(move || async move {
        let (mut told, began) = (Vec::<Stat>::new(), Instant::now());
        while !enough(&told) {
            assert!(began.elapsed() < PATIENCE, "{told:?}");
            let stat = peers::scrape(address).await;
            // Each report is told many times, and is known by its time.
            if told.last().is_none_or(|last| last.process_uptime != stat.process_uptime) {
                told.push(stat);
            }
            tokio::time::sleep(LOOK).await;
        }
        told
    })
}

fn one_request_is_counted_once(pod: &Pod, app: &App, main: SocketAddr) {
    let (h2c, before) = (pod.deployment.speaks_h2c(), app.seen().len());
    let told = reports(pod, |told| !told.is_empty());
    assert_eq!(told[0].observed().pod_name.as_ref(), pod.deployment.pod, "the pod's own name");
    let answer = pod.network.node.run(move || async move {
        match h2c {
            true => peers::proxied_h2c(main, HOST, "/cart?id=7").await,
            false => peers::proxied_http1(main, HOST, "/cart?id=7").await,
        }
    });
    assert_eq!((answer.status, answer.body.as_str()), (200, "ok"), "{answer:?}");
    let told = reports(pod, |told| {
        let seen = told.iter().position(|stat| stat.request_count > 0.0);
        // Two more after it: none may tell of it again.
        seen.is_some_and(|at| told.len() > at + 2)
    });
    let sum = |what: fn(&Stat) -> f64| told.iter().map(what).sum::<f64>();
    assert_eq!((sum(|stat| stat.request_count), sum(|stat| stat.proxied_request_count)), (1.0, 1.0), "{told:?}");
    let seen = app.seen();
    let seen: Vec<_> = seen[before..].iter().filter(|request| request.target != "/healthz").collect();
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert_eq!((seen[0].target.as_str(), seen[0].host.as_str()), ("/cart?id=7", HOST), "{seen:?}");
    assert_eq!(seen[0].get("k-original-host"), None);
    let path = seen[0].get("x-forwarded-for").unwrap_or_default().replace(' ', "");
    assert_eq!(path, format!("203.0.113.9,10.244.0.9,{NODE}"));
}

fn the_hook_answers(pod: &Pod) {
    let hook = pod.deployment.app["lifecycle"]["preStop"].clone();
    assert_eq!(hook["httpGet"]["port"], STOP_HOOK);
    let began = Instant::now();
    let answer = pod.network.node.run(move || async move { peers::kubelet_hook(POD, &hook).await });
    assert_eq!((answer.status, answer.body.as_str()), (200, ""), "{answer:?}");
    assert!(began.elapsed() >= Duration::from_millis(990), "it waits a second for TERM: {:?}", began.elapsed());
    assert_eq!(pod.readiness(), 200, "no TERM came: the pod stays");
}

/// Hook and TERM, as when a pod is deleted: it is gone within the grace period.
/// Only where that is short.
fn it_ends_with_the_pod(mut pod: Pod) {
    let grace = Duration::from_secs(pod.deployment.grace_seconds);
    if grace > Duration::from_secs(20) {
        return;
    }
    let hook = pod.deployment.app["lifecycle"]["preStop"].clone();
    let hook = pod.network.node.spawn(move || async move { peers::kubelet_hook(POD, &hook).await });
    pod.until("probes fail", |pod| pod.readiness() == 503);
    pod.sidecar.terminate();
    assert_eq!(hook.join().unwrap().status, 200);
    assert_eq!(pod.sidecar.ended(grace), 0, "{}", pod.sidecar.last_words());
}

/// Namespaces are made of processes: none may stay.
#[test]
fn nothing_is_left_of_a_network() {
    if let Some(why) = missing() {
        eprintln!("SKIPPED: {why}");
        return;
    }
    let network = Network::new().unwrap();
    let command = network.pod.command("readlink");
    let place = command.get_args().next().unwrap().to_str().unwrap().trim_start_matches("--net=").to_owned();
    assert!(std::fs::read_link(&place).is_ok());
    drop(network);
    assert!(std::fs::read_link(&place).is_err());
}
