//! In a cluster: which pods an activator asks, which of those that answer are
//! its own to use, and what becomes of requests when either changes.

use activator::Cluster;
use policy::compat::Compat;
use policy::mesh::MeshMode;
use policy::revision::RevisionId;
use policy::world::{Path, Pod, PodPhase, RevisionView, Snapshot};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tests::bench::{Bench, EPOCH, bench};
use tests::rig::{Gate, gated_app, lateness, read_until, send, sidecar, sidecar_config, until};
use tests::stock::Stock;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

const QUICK: Duration = Duration::from_millis(5);

/// The n-th activator of a cluster.
async fn activator(number: usize, limit: u32, change: impl FnOnce(&mut Cluster), compat: Compat) -> Bench {
    let mut cluster = Cluster::new("cluster.local", format!("10.1.0.{number}"));
    change(&mut cluster);
    bench(limit, |config| {
        config.cluster = Some(cluster);
        config.compat = compat;
    })
    .await
}

async fn fleet(count: usize, limit: u32, compat: Compat) -> Vec<Bench> {
    let mut fleet = Vec::new();
    for number in 0..count {
        let mut one = activator(number, limit, |_| {}, compat).await;
        one.network.activators = addresses(0..count);
        fleet.push(one);
    }
    fleet
}

fn addresses(numbers: impl IntoIterator<Item = usize>) -> BTreeSet<Arc<str>> {
    numbers.into_iter().map(|number| format!("10.1.0.{number}").into()).collect()
}

async fn show(bench: &Bench, pods: &[(SocketAddr, PodPhase)]) {
    let names: Vec<String> = pods.iter().map(|(address, _)| format!("pod-{address}")).collect();
    let pods: Vec<_> = names.iter().zip(pods).map(|(name, pod)| (name.as_str(), pod.0, pod.1)).collect();
    bench.publish(&pods, Path::Activator, None).await;
}

fn ready<'a>(pods: impl IntoIterator<Item = &'a Stock>) -> Vec<(SocketAddr, PodPhase)> {
    pods.into_iter().map(|pod| (pod.address, PodPhase::Ready)).collect()
}

async fn stock(count: usize, work: Duration) -> Vec<Stock> {
    let mut pods = Vec::new();
    for _ in 0..count {
        pods.push(Stock::start(work).await);
    }
    // In the order of the activators.
    pods.sort_by_key(|pod| pod.address.to_string());
    pods
}

/// An address that nobody listens on.
async fn nobody() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}

fn get(path: &str) -> String {
    format!("GET /{path} HTTP/1.1\r\nhost: rev.default.svc.cluster.local\r\n\r\n")
}

/// So many requests at once through one activator; each is to be served.
async fn ask(bench: &Bench, path: &str, count: usize) {
    let mut clients = JoinSet::new();
    for _ in 0..count {
        let (address, request) = (bench.address, get(path));
        clients.spawn(async move {
            let answer = read_until(&mut send(address, &request).await, "\r\n\r\nok").await;
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        });
    }
    clients.join_all().await;
}

/// Until all have been asked, shares are of those that have.
async fn all_asked(pods: &[Stock], by: usize) {
    until("all are asked", || pods.iter().all(|pod| pod.probes() >= by)).await;
    sleep(QUICK * 10 + lateness()).await;
}

/// Waits until each activator has so many pods to choose from.
async fn has_pods(fleet: &[Bench], counts: &[usize]) {
    let has = |bench: &Bench| bench.activator.load().iter().map(|load| load.pods).sum::<usize>();
    until("the pods are shared out", || fleet.iter().map(has).eq(counts.iter().copied())).await;
}

/// The activators that used each pod.
fn users(pods: &[Stock]) -> Vec<String> {
    pods.iter().map(|pod| pod.requests().into_keys().collect::<Vec<_>>().join("+")).collect()
}

#[tokio::test]
async fn activators_share_stock_pods_out_and_none_is_used_by_two() {
    for compat in [Compat::Better, Compat::Strict] {
        let (fleet, pods) = (fleet(2, 1, compat).await, stock(5, QUICK).await);
        for bench in &fleet {
            show(bench, &ready(&pods)).await;
        }
        all_asked(&pods, 2).await;
        has_pods(&fleet, &[3, 2]).await;
        ask(&fleet[0], "a", 40).await;
        ask(&fleet[1], "b", 40).await;
        assert_eq!(users(&pods), ["a", "a", "b", "b", "a"]);
        for (bench, most) in fleet.iter().zip([3, 2]) {
            assert_eq!((bench.held(), bench.in_flight()), (0, 0));
            assert!(pods.iter().map(|pod| pod.most().values().max().copied()).all(|most| most == Some(1)), "{most}");
        }
    }
}

#[tokio::test]
async fn with_fewer_stock_pods_than_activators_each_has_one_of_them_to_its_limit() {
    let (fleet, pods) = (fleet(3, 2, Compat::Better).await, stock(2, QUICK * 4).await);
    for bench in &fleet {
        show(bench, &ready(&pods)).await;
    }
    all_asked(&pods, 3).await;
    has_pods(&fleet, &[1, 1, 1]).await;
    for (bench, name) in fleet.iter().zip(["a", "b", "c"]) {
        ask(bench, name, 12).await;
    }
    assert_eq!(users(&pods), ["a+c", "b"]);
    assert!(pods.iter().all(|pod| pod.most().values().all(|most| *most == 2)));
}

#[tokio::test]
async fn pods_of_ours_are_everybodys_and_in_strict_mode_shared_out() {
    for compat in [Compat::Better, Compat::Strict] {
        let (fleet, mut gates, mut pods) = (fleet(2, 1, compat).await, Vec::new(), Vec::new());
        for _ in 0..2 {
            let gate = Gate::default();
            pods.push(sidecar(sidecar_config(gated_app(&gate).await, 1)).await);
            gates.push(gate);
        }
        for bench in &fleet {
            show(bench, &pods.iter().map(|pod| (pod.address, PodPhase::Ready)).collect::<Vec<_>>()).await;
        }
        has_pods(&fleet, if compat == Compat::Better { &[2, 2] } else { &[1, 1] }).await;
        let inside = || gates.iter().map(Gate::inside).sum::<usize>();
        for bench in &fleet {
            let mut clients: Vec<TcpStream> = Vec::new();
            for _ in 0..2 {
                clients.push(send(bench.address, &get("x")).await);
            }
            match compat {
                Compat::Better => until("both pods have one", || inside() == 2).await,
                Compat::Strict => {
                    until("one pod has one, one waits", || inside() == 1 && bench.held() == 1).await;
                    // The other pod is not asked, however long it waits.
                    sleep(Duration::from_millis(300)).await;
                    assert_eq!((inside(), bench.held()), (1, 1));
                }
            }
            for (n, client) in clients.iter_mut().enumerate() {
                if n == 0 || compat == Compat::Strict {
                    until("one is at a pod", || inside() > 0).await;
                }
                gates.iter().filter(|gate| gate.inside() > 0).for_each(|gate| gate.open.notify_one());
                let answer = read_until(client, "\r\n\r\nok").await;
                assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
            }
            until("all slots are free", || bench.in_flight() == 0).await;
        }
        assert!(gates.iter().all(|gate| gate.most() == 1));
    }
}

#[tokio::test]
async fn a_pod_that_passes_gets_work_before_the_platform_holds_it_for_ready() {
    let pod = Stock::start(QUICK).await;
    pod.set_ready(false);
    let bench = activator(0, 1, |_| {}, Compat::Better).await;
    show(&bench, &[(pod.address, PodPhase::Starting)]).await;
    let client = tokio::spawn({
        let address = bench.address;
        async move { read_until(&mut send(address, &get("x")).await, "\r\n\r\nok").await }
    });
    let shown = Instant::now();
    until("it waits, and the pod is asked", || bench.held() == 1 && pod.probes() > 40).await;
    assert!(shown.elapsed() < Duration::from_secs(4), "no slower than ten times in the reference's period");
    assert!(pod.requests().is_empty(), "no request before a probe has passed");
    let began = Instant::now();
    pod.set_ready(true);
    assert!(client.await.unwrap().starts_with("HTTP/1.1 200"));
    println!("served {:?} after it was ready", began.elapsed());
    let probes = pod.probes();
    sleep(Duration::from_millis(300)).await;
    assert_eq!(pod.probes(), probes, "it is not asked again");

    // Where the sidecar cannot know, the platform has the last word.
    let pod = Stock::start(QUICK).await;
    let mut bench = activator(0, 1, |_| {}, Compat::Better).await;
    bench.network.trust_probe = false;
    show(&bench, &[(pod.address, PodPhase::Starting)]).await;
    let _client = send(bench.address, &get("x")).await;
    until("it is asked", || pod.probes() > 5).await;
    assert_eq!((bench.held(), pod.requests().len()), (1, 0));
    show(&bench, &[(pod.address, PodPhase::Ready)]).await;
    until("it has the request", || pod.requests().len() == 1).await;
}

#[tokio::test]
async fn a_silent_pod_keeps_others_from_work_only_in_strict_mode_which_goes_by_rounds() {
    const ANSWER_MAX: Duration = Duration::from_millis(300);
    const EVERY: Duration = Duration::from_millis(200);
    // It takes connections, and says nothing.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = listener.local_addr().unwrap();
    let mut took = Vec::new();
    for compat in [Compat::Better, Compat::Strict] {
        let (pod, late) = (Stock::start(Duration::ZERO).await, Stock::start(Duration::ZERO).await);
        late.set_ready(false);
        let bench = activator(0, 0, |_| {}, compat).await;
        let began = Instant::now();
        show(&bench, &[(silent, PodPhase::Ready), (pod.address, PodPhase::Ready)]).await;
        ask(&bench, "x", 1).await;
        took.push(began.elapsed());
        // In the reference's period, and no round begins before the last has ended.
        show(&bench, &[(late.address, PodPhase::Ready)]).await;
        let began = Instant::now();
        until("it is asked again", || late.probes() > 3).await;
        let most = began.elapsed().as_millis() / EVERY.as_millis() + 2;
        assert!(compat == Compat::Better || late.probes() as u128 <= most, "{} of {most}", late.probes());
        late.set_ready(true);
        ask(&bench, "y", 1).await;
    }
    println!("beside a silent pod served after {took:?}");
    assert!(took[0] < took[1] && took[1] >= ANSWER_MAX, "{took:?}");
}

#[tokio::test]
async fn another_pod_at_the_same_address_has_to_pass_for_itself() {
    let pod = Stock::start(QUICK).await;
    let bench = activator(0, 1, |_| {}, Compat::Better).await;
    bench.ready(&[("old", pod.address)]).await;
    ask(&bench, "x", 1).await;
    pod.set_ready(false);
    bench.ready(&[("new", pod.address)]).await;
    let _client = send(bench.address, &get("y")).await;
    let probes = pod.probes();
    until("it is asked", || pod.probes() > probes + 2).await;
    assert_eq!(bench.held(), 1);
    pod.set_ready(true);
    until("it has the request", || pod.requests().contains_key("y")).await;
}

#[tokio::test]
async fn a_pod_that_stops_answering_leaves_and_its_share_goes_to_those_that_do() {
    let (fleet, pods) = (fleet(2, 1, Compat::Better).await, stock(2, QUICK).await);
    for bench in &fleet {
        show(bench, &ready(&pods)).await;
    }
    all_asked(&pods, 2).await;
    has_pods(&fleet, &[1, 1]).await;
    ask(&fleet[0], "a", 4).await;
    assert_eq!(users(&pods), ["a", ""]);
    let address = pods[0].address;
    pods[0].stop();
    ask(&fleet[0], "a", 20).await;
    assert_eq!(pods[1].requests()["a"], 20);
    // Somebody listens there again.
    until("the address is free", || std::net::TcpListener::bind(address).is_ok()).await;
    let back = Stock::at(TcpListener::bind(address).await.unwrap(), QUICK);
    until("it is asked", || back.probes() > 0).await;
    // Its answer is taken in.
    sleep(QUICK * 40).await;
    ask(&fleet[0], "a", 20).await;
    assert_eq!((back.requests()["a"], pods[1].requests()["a"]), (20, 20));
}

#[tokio::test]
async fn pods_that_a_mesh_keeps_are_used_behind_their_one_address() {
    for (compat, mesh) in
        [(Compat::Better, MeshMode::Auto), (Compat::Strict, MeshMode::Auto), (Compat::Better, MeshMode::Enabled)]
    {
        // For all three pods; each could take two, and half of that is ours.
        let service = Stock::start(QUICK * 4).await;
        let mut bench = activator(0, 2, |cluster| cluster.probing.mesh = mesh, compat).await;
        bench.network.activators = addresses(0..2);
        bench.network.private_service = Some(service.address);
        let dead = [nobody().await, nobody().await, nobody().await].map(|address| (address, PodPhase::Ready));
        show(&bench, &dead).await;
        ask(&bench, "x", 30).await;
        assert_eq!(service.most()["x"], 3, "{compat:?}, {mesh:?}");
        // One more pod behind it, and no other activator.
        bench.network.activators = addresses([0]);
        show(&bench, &[&dead[..], &[(nobody().await, PodPhase::Ready)]].concat()).await;
        ask(&bench, "y", 60).await;
        assert_eq!(service.most()["y"], 8, "{compat:?}, {mesh:?}");
        // Nothing is behind it.
        show(&bench, &[]).await;
        let _client = send(bench.address, &get("z")).await;
        until("it is held", || bench.held() == 1).await;
        assert!(!service.requests().contains_key("z"));
    }
}

#[tokio::test]
async fn when_pods_can_be_reached_again_their_one_address_is_left() {
    let (service, address) = (Stock::start(QUICK).await, nobody().await);
    let mut bench = activator(0, 1, |_| {}, Compat::Better).await;
    bench.network.private_service = Some(service.address);
    show(&bench, &[(address, PodPhase::Ready)]).await;
    ask(&bench, "x", 3).await;
    assert_eq!(service.requests()["x"], 3);
    let pod = Stock::at(TcpListener::bind(address).await.unwrap(), QUICK);
    // It is tried each five seconds.
    until("it is tried", || pod.probes() > 0).await;
    until("it is used", || bench.activator.load()[0].pods == 1).await;
    sleep(QUICK * 10 + lateness()).await;
    ask(&bench, "y", 3).await;
    assert_eq!((pod.requests().get("y"), service.requests().get("y")), (Some(&3), None));
}

#[tokio::test]
async fn without_a_mesh_ready_pods_get_work_unasked_and_ours_become_everybodys() {
    let (mut benches, mut gates, mut pods) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..2 {
        let mut bench = activator(number, 1, |cluster| cluster.probing.mesh = MeshMode::Disabled, Compat::Better).await;
        bench.network.activators = addresses(0..2);
        benches.push(bench);
        let gate = Gate::default();
        pods.push(sidecar(sidecar_config(gated_app(&gate).await, 1)).await);
        gates.push(gate);
    }
    for bench in &benches {
        show(bench, &pods.iter().map(|pod| (pod.address, PodPhase::Ready)).collect::<Vec<_>>()).await;
    }
    let mut clients = Vec::new();
    for _ in 0..2 {
        clients.push(send(benches[1].address, &get("x")).await);
    }
    until("both have one", || gates.iter().all(|gate| gate.inside() == 1)).await;
    gates.iter().for_each(|gate| gate.open.notify_one());
    for client in &mut clients {
        assert!(read_until(client, "\r\n\r\nok").await.starts_with("HTTP/1.1 200"));
    }
}

/// Seven revisions with a hundred pods each that take connections and say
/// nothing; and one whose pod is there.
#[tokio::test]
async fn questions_to_pods_are_bounded_and_dead_pods_do_not_keep_others_from_being_asked() {
    const OUT_MAX: usize = 256;
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (open, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (count, highest) = (open.clone(), most.clone());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let count = count.clone();
            highest.fetch_max(count.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::spawn(async move {
                let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
                count.fetch_sub(1, Ordering::SeqCst);
            });
        }
    });
    let bench = activator(0, 1, |_| {}, Compat::Better).await;
    let view = |pods: Vec<Pod>| {
        let (spec, network) = (Arc::new(bench.spec.clone()), bench.network.clone());
        let path = Path::Activator;
        Arc::new(RevisionView { spec, pods, path, path_since: EPOCH, trouble: None, without_room: 0, network })
    };
    let pod = |address: SocketAddr| Pod {
        name: format!("pod-{address}").into(),
        address,
        phase: PodPhase::Ready,
        since: EPOCH,
        start_took: None,
    };
    let silent = |revision: u8| (1..=100).map(|n| pod(([127, 77, revision, n], port).into())).collect();
    let mut revisions: BTreeMap<RevisionId, Arc<RevisionView>> =
        (0..7).map(|n| (RevisionId::new("default", format!("silent-{n}")), view(silent(n)))).collect();
    bench.world.send_replace(Arc::new(Snapshot { version: 5, revisions: revisions.clone(), ..Snapshot::default() }));
    until("all that may be are out", || open.load(Ordering::SeqCst) > OUT_MAX * 3 / 4).await;
    for round in 0..5 {
        sleep(Duration::from_millis(130)).await;
        let there = Stock::start(Duration::ZERO).await;
        revisions.insert(RevisionId::new("default", "rev"), view(vec![pod(there.address)]));
        let snapshot = Snapshot { version: 6 + round, revisions: revisions.clone(), ..Snapshot::default() };
        let mut holding = bench.holding.clone();
        bench.world.send_replace(Arc::new(snapshot));
        holding.wait_for(|held| held.version == 6 + round).await.unwrap();
        let began = Instant::now();
        ask(&bench, "x", 1).await;
        println!(
            "served after {:?}, {} questions out, {} at most",
            began.elapsed(),
            open.load(Ordering::SeqCst),
            most.load(Ordering::SeqCst)
        );
    }
    let most = most.load(Ordering::SeqCst);
    // A connection that is given up may be seen a moment longer.
    assert!(most <= OUT_MAX + OUT_MAX / 4, "{most} were out");
}

/// The list of activators changes, pods come and go, one dies and comes back;
/// every request is served, and no pod has more from an activator than its
/// limit.
#[tokio::test]
async fn changes_of_the_activators_and_of_the_pods_under_load_lose_nothing() {
    const LIMIT: u32 = 2;
    for compat in [Compat::Better, Compat::Strict] {
        let (mut fleet, pods) = (fleet(3, LIMIT, compat).await, stock(5, QUICK).await);
        for bench in &fleet {
            show(bench, &ready(&pods)).await;
        }
        let (over, served) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let mut clients = JoinSet::new();
        for n in 0..24 {
            let (address, request) = (fleet[n % 3].address, get(["a", "b", "c"][n % 3]));
            let (over, served) = (over.clone(), served.clone());
            clients.spawn(async move {
                while !over.load(Ordering::SeqCst) {
                    let answer = read_until(&mut send(address, &request).await, "\r\n\r\nok").await;
                    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
                    served.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        for round in 0..30_usize {
            let among: &[usize] = [&[0, 1, 2][..], &[0], &[1, 2], &[0, 2], &[]][round % 5];
            let shown =
                ready(pods.iter().enumerate().filter(|(n, _)| round % 3 == 0 || n % 3 != round % 3).map(|(_, p)| p));
            for bench in &mut fleet {
                bench.network.activators = addresses(among.iter().copied());
                show(bench, &shown).await;
            }
            let before = served.load(Ordering::SeqCst);
            until("requests are served", || served.load(Ordering::SeqCst) > before + 15).await;
        }
        over.store(true, Ordering::SeqCst);
        clients.join_all().await;
        for pod in &pods {
            assert!(pod.most().values().all(|most| *most <= LIMIT as usize), "{compat:?}: {:?}", pod.most());
        }
        for bench in &fleet {
            until("nothing is left", || (bench.held(), bench.in_flight()) == (0, 0)).await;
        }
        println!("{compat:?}: {} requests", served.load(Ordering::SeqCst));
    }
}
