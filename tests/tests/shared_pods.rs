//! Several activators that use the same pods with limits: a request that meets
//! a full pod goes to one that has room, or waits and gets the first slot that
//! frees anywhere, whoever frees it.

use std::time::Duration;
use tests::bench::{Bench, bench};
use tests::rig::{GET, Gate, PATIENCE, gated_app, read_until, send, sidecar, sidecar_config, until};
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

/// Ten times what is asked for on an idle machine.
const START_MAX: Duration = Duration::from_millis(500);

struct Site {
    benches: Vec<Bench>,
    gates: Vec<Gate>,
    /// Kept: sidecars end with them.
    _sidecars: Vec<tests::rig::Running>,
}

impl Site {
    async fn new(activators: usize, pods: usize, limit: u32) -> Site {
        let (mut gates, mut sidecars, mut benches) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..pods {
            let gate = Gate::default();
            sidecars.push(sidecar(sidecar_config(gated_app(&gate).await, limit)).await);
            gates.push(gate);
        }
        let names: Vec<String> = (0..pods).map(|n| format!("p{n}")).collect();
        let ready: Vec<_> = names.iter().zip(&sidecars).map(|(name, pod)| (name.as_str(), pod.address)).collect();
        for _ in 0..activators {
            let one = bench(limit, |_| {}).await;
            one.ready(&ready).await;
            benches.push(one);
        }
        Site { benches, gates, _sidecars: sidecars }
    }

    fn inside(&self) -> usize {
        self.gates.iter().map(Gate::inside).sum()
    }

    fn seen(&self) -> usize {
        self.gates.iter().map(Gate::seen).sum()
    }

    fn held(&self) -> usize {
        self.benches.iter().map(Bench::held).sum()
    }

    /// Sends one through an activator; how long until one more is at an app.
    async fn starts(&self, through: usize) -> (TcpStream, Duration) {
        let (before, began) = (self.seen(), Instant::now());
        let client = send(self.benches[through % self.benches.len()].address, GET).await;
        until("it is at an app", || self.seen() > before).await;
        (client, began.elapsed())
    }

    /// Lets all go that are at apps, and hears their answers.
    async fn finish(&self, clients: Vec<TcpStream>) {
        self.gates.iter().filter(|gate| gate.inside() > 0).for_each(|gate| gate.open.notify_one());
        for mut client in clients {
            let answer = read_until(&mut client, "\r\n\r\nok").await;
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        }
        until("all slots are free", || self.benches.iter().all(|bench| bench.in_flight() == 0)).await;
    }
}

/// Of so many times: that in the middle, and the longest.
fn told(what: &str, mut times: Vec<Duration>) {
    times.sort();
    let (median, longest) = (times[times.len() / 2], times[times.len() - 1]);
    println!("{what}: median {median:?}, longest {longest:?}, {} times", times.len());
    assert!(median < START_MAX, "{what}: {median:?}");
}

/// The counters are the process's: one test at a time.
static ALONE: Mutex<()> = Mutex::const_new(());

fn handbacks() -> u64 {
    let text = plumbing::metrics::install().unwrap().render();
    let of_line =
        |line: &str| line.strip_prefix("zeroscale_activator_handbacks_total{")?.rsplit_once(' ')?.1.parse::<u64>().ok();
    text.lines().filter_map(of_line).sum()
}

#[tokio::test]
async fn two_activators_and_two_pods_of_one_slot_the_second_request_is_at_the_free_pod_at_once() {
    let _alone = ALONE.lock().await;
    let site = Site::new(2, 2, 1).await;
    for (first, second) in [(0, 1), (1, 0), (0, 0), (1, 1)] {
        let mut times = Vec::new();
        for _ in 0..100 {
            let (one, _) = site.starts(first).await;
            // The first one does not end before: so it is the other pod.
            let (two, took) = site.starts(second).await;
            assert_eq!(site.gates.iter().map(Gate::inside).collect::<Vec<_>>(), [1, 1]);
            times.push(took);
            site.finish(vec![one, two]).await;
        }
        told(&format!("through {first} then {second}"), times);
    }
    assert!(site.gates.iter().all(|gate| gate.most() == 1));
}

#[tokio::test]
async fn three_activators_and_five_pods_each_request_finds_a_pod_and_each_waiter_the_slot_that_frees() {
    let _alone = ALONE.lock().await;
    plumbing::metrics::install().unwrap();
    let site = Site::new(3, 5, 1).await;
    let (mut starts, mut follows) = (Vec::new(), Vec::new());
    for round in 0..100 {
        let mut clients = Vec::new();
        for n in 0..5 {
            let (client, took) = site.starts(round + n).await;
            starts.push(took);
            clients.push(client);
        }
        if round % 10 == 0 {
            for n in 0..5 {
                clients.push(send(site.benches[(round + n) % 3].address, GET).await);
                until("it waits", || site.held() == n + 1).await;
            }
            // Nobody asks again and again meanwhile.
            until("they have looked", || site.benches.iter().all(|bench| bench.in_flight() <= 5)).await;
            tokio::time::sleep(Duration::from_millis(100)).await;
            let before = handbacks();
            tokio::time::sleep(Duration::from_millis(200)).await;
            assert_eq!(handbacks() - before, 0, "round {round}");
            for gate in &site.gates {
                let (seen, began) = (site.seen(), Instant::now());
                gate.open.notify_one();
                until("a waiter has the slot", || site.seen() > seen).await;
                follows.push(began.elapsed());
            }
            assert_eq!((site.inside(), site.held()), (5, 0));
        }
        site.finish(clients).await;
    }
    told("starts at a free pod", starts);
    told("follows at a slot that freed", follows);
    assert!(site.gates.iter().all(|gate| gate.most() == 1));
}

#[tokio::test]
async fn slots_of_larger_pods_are_shared_too_and_none_stays_free_while_somebody_waits() {
    let _alone = ALONE.lock().await;
    // Two activators, one pod of four slots, more requests than slots on both.
    let site = Site::new(2, 1, 4).await;
    let gate = &site.gates[0];
    let mut clients = Vec::new();
    for n in 0..24 {
        clients.push(send(site.benches[usize::from(n % 4 == 0)].address, GET).await);
    }
    until("the pod is full, all others wait", || gate.inside() == 4 && site.held() == 20).await;
    for served in 1..=20 {
        gate.open.notify_one();
        until("another one has the slot", || gate.seen() == 4 + served && gate.inside() == 4).await;
    }
    (0..4).for_each(|_| gate.open.notify_one());
    let answered = async {
        for client in &mut clients {
            assert!(read_until(client, "\r\n\r\nok").await.starts_with("HTTP/1.1 200"));
            // A permit that nobody waited for would be lost.
            gate.open.notify_one();
        }
    };
    timeout(PATIENCE, answered).await.expect("all are answered");
    assert_eq!(gate.most(), 4);
}
