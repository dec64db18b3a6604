use super::*;
use policy::revision::RevisionId;
use policy::world::{Network, Order, Path as Way, PodPhase};
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(10);

const ONE: &str = "revisions:
- name: default/shop-00001
  service: shop
  hosts: [Shop.Example]
  containerConcurrency: 2
  scale: {window: 6s, max: 5}
  pods:
  - {name: a, address: '127.0.0.1:1'}
  - {name: b, address: '127.0.0.1:2', phase: starting}
...
";

fn epoch() -> Moment {
    Moment::from_unix_millis(7)
}

struct Bench {
    folder: tempfile::TempDir,
    snapshots: Snapshots,
    _stop: tokio_util::sync::DropGuard,
}

impl Bench {
    fn start(content: Option<&str>) -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("world.yaml");
        if let Some(content) = content {
            std::fs::write(&path, content).unwrap();
        }
        let stop = CancellationToken::new();
        let snapshots = snapshots(Source { path, now: epoch }, stop.clone());
        Bench { folder, snapshots, _stop: stop.drop_guard() }
    }

    fn write(&self, content: &str) {
        std::fs::write(self.folder.path().join("world.yaml"), content).unwrap();
    }

    async fn version(&mut self, version: u64) -> Arc<Snapshot> {
        let found = timeout(PATIENCE, self.snapshots.world.wait_for(|world| world.version >= version)).await;
        found.expect("a snapshot").expect("it runs").clone()
    }

    async fn fault(&mut self, bad: u64) -> String {
        let found = timeout(PATIENCE, self.snapshots.health.wait_for(|health| health.bad >= bad)).await;
        let health = found.expect("a fault is told").expect("it runs").clone();
        assert_eq!(health.bad, bad);
        health.fault.expect("why").to_string()
    }
}

#[tokio::test]
async fn a_file_is_taken_in_and_followed() {
    let mut bench = Bench::start(Some(ONE));
    let snapshot = bench.version(1).await;
    let id = RevisionId::new("default", "shop-00001");
    assert_eq!(snapshot.routes.hosts.get("shop.example"), Some(&id));
    let view = &snapshot.revisions[&id];
    assert_eq!((view.spec.container_concurrency, view.spec.scale.total, view.spec.bounds.max_scale), (2, 2.0, 5));
    assert_eq!(view.pods.iter().map(|pod| pod.phase).collect::<Vec<_>>(), [PodPhase::Ready, PodPhase::Starting]);
    bench.write(&ONE.replace(", phase: starting", ""));
    let snapshot = bench.version(2).await;
    assert_eq!(snapshot.revisions[&id].ready_pods().count(), 2);
    assert!(Arc::ptr_eq(&snapshot.revisions[&id].spec, &view.spec), "what stays is the same");
}

#[tokio::test]
async fn what_the_network_of_a_cluster_knows_is_taken_in() {
    let id = RevisionId::new("default", "shop-00001");
    let mut bench = Bench::start(Some(ONE));
    assert_eq!(bench.version(1).await.revisions[&id].network, Network::default());
    let more =
        "  service: shop\n  privateService: '10.0.9.1:80'\n  activators: [10.0.0.2, 10.0.0.10]\n  trustProbe: false\n";
    bench.write(&ONE.replace("  service: shop\n", more));
    let network = bench.version(2).await.revisions[&id].network.clone();
    assert_eq!(network.private_service, Some(([10, 0, 9, 1], 80).into()));
    assert_eq!(network.activators.iter().map(|text| &**text).collect::<Vec<_>>(), ["10.0.0.10", "10.0.0.2"]);
    assert!(!network.trust_probe);
}

#[tokio::test]
async fn a_bad_file_leaves_the_last_good_one_and_is_told_once_a_change() {
    let mut bench = Bench::start(Some(ONE));
    bench.version(1).await;
    let half = &ONE[..ONE.find("  - {name: b").unwrap()];
    let cases = [
        ("", "empty"),
        (half, "half of a file"),
        ("revisions:\n- name: [default\n...\n", "line 2"),
        ("revisions:\n- name: default/x\n  colour: red\n...\n", "unknown field `colour`"),
        ("revisions:\n- name: x\n...\n", "namespace/name"),
        ("revisions:\n- name: a/x\n  scale: {min: 3, max: 2, window: 1s}\n...\n", "a/x: scale.window"),
        ("revisions:\n- name: a/x\n  pods:\n  - {name: p, address: 'nowhere:1'}\n...\n", "line 4"),
        (
            "revisions:\n- name: a/x\n  activators: [10.0.0.1, 10.0.0.1]\n...\n",
            "a/x: activators: 10.0.0.1 is there twice",
        ),
        ("revisions:\n- name: a/x\n  activators: [somewhere]\n...\n", "line 3"),
        ("revisions:\n- name: a/x\n  privateService: 10.0.0.1:0\n...\n", "a/x: privateService"),
        ("revisions:\n- name: a/x\n  trustProbe: maybe\n...\n", "line 3"),
    ];
    for (n, (content, why)) in cases.iter().enumerate() {
        bench.write(content);
        let fault = bench.fault(n as u64 + 1).await;
        assert!(fault.contains(why), "{content:?}: {fault}");
        assert_eq!(bench.snapshots.world.borrow().version, 1, "{content:?}");
    }
    // Left alone, it is not told again.
    tokio::time::sleep(LOOK_EVERY * 4).await;
    assert_eq!(bench.snapshots.health.borrow().bad, cases.len() as u64);
    bench.write(&ONE.replace("max: 5", "max: 6"));
    bench.version(2).await;
    timeout(PATIENCE, bench.snapshots.health.wait_for(|health| health.fault.is_none())).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_file_that_is_written_piece_by_piece_is_taken_in_once_and_whole() {
    use std::io::Write as _;
    let mut bench = Bench::start(Some("revisions: []\n...\n"));
    bench.version(1).await;
    let mut file = std::fs::File::create(bench.folder.path().join("world.yaml")).unwrap();
    for piece in ONE.as_bytes().chunks(40) {
        file.write_all(piece).unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
        let seen = bench.snapshots.world.borrow().clone();
        assert!(seen.version == 1 || seen.revisions.values().all(|view| view.pods.len() == 2));
    }
    let snapshot = bench.version(2).await;
    assert_eq!((snapshot.version, bench.snapshots.health.borrow().bad), (2, 0));
}

#[tokio::test]
async fn a_file_that_is_not_there_yet_is_waited_for() {
    let mut bench = Bench::start(None);
    assert!(bench.fault(1).await.contains("No such file"));
    bench.write(ONE);
    assert_eq!(bench.version(1).await.revisions.len(), 1);
}

#[tokio::test]
async fn orders_are_one_whole_file_that_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("orders.yaml");
    let stop = CancellationToken::new();
    let (give, ended) = orders(path.clone(), stop.clone());
    let order = |name: &str, wanted| Order {
        revision: RevisionId::new("default", name),
        wanted,
        path: Way::Activator,
        reason: "a \"reason\"",
        go_first: Vec::new(),
    };
    let read = async |wanted: &[u32]| {
        let holds = async {
            loop {
                let got: Vec<u32> = read_orders(&path).unwrap_or_default().iter().map(|order| order.wanted).collect();
                if got == wanted {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        timeout(PATIENCE, holds).await.expect("the orders are there");
    };
    give.send(order("a", 1)).await.unwrap();
    give.send(order("b", 2)).await.unwrap();
    read(&[1, 2]).await;
    give.send(order("a", 3)).await.unwrap();
    read(&[3, 2]).await;
    assert_eq!(read_orders(&path).unwrap()[0].reason, "a \"reason\"");
    std::fs::remove_file(&path).unwrap();
    give.send(order("a", 3)).await.unwrap();
    read(&[3, 2]).await;
    stop.cancel();
    ended.await.unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
}

/// Each of these is told by the kernel only to who watches the right folder.
#[tokio::test]
async fn a_file_behind_links_is_followed_wherever_it_goes() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let write = |to: &Path, max: u32| std::fs::write(to, ONE.replace("max: 5", &format!("max: {max}"))).unwrap();
    for name in ["v1", "v2", "v3", "world"] {
        std::fs::create_dir(at(name)).unwrap();
    }
    // As a config map is mounted: the link in the middle is replaced.
    symlink("../v1", at("world/..data")).unwrap();
    symlink("..data/world.yaml", at("world/world.yaml")).unwrap();
    write(&at("v1/world.yaml"), 5);
    let stop = CancellationToken::new();
    let mut snapshots = snapshots(Source { path: at("world/world.yaml"), now: epoch }, stop.clone());
    let mut max = async |wanted: i32| {
        let is =
            |snapshot: &Arc<Snapshot>| snapshot.revisions.values().any(|view| view.spec.bounds.max_scale == wanted);
        timeout(PATIENCE, snapshots.world.wait_for(is)).await.unwrap().unwrap();
    };
    max(5).await;
    write(&at("v2/world.yaml"), 6);
    symlink("../v2", at("world/next")).unwrap();
    std::fs::rename(at("world/next"), at("world/..data")).unwrap();
    max(6).await;
    // In the folder that the link leads to now.
    write(&at("v2/world.yaml"), 7);
    max(7).await;
    // The folder itself.
    std::fs::rename(at("world"), at("old")).unwrap();
    std::fs::create_dir(at("world")).unwrap();
    write(&at("world/world.yaml"), 8);
    max(8).await;
    write(&at("world/world.yaml"), 9);
    max(9).await;
    stop.cancel();
}
