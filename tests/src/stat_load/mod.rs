//! The autoscaler under many stats: how long deciding on all revisions takes,
//! what one of them costs in memory and a stat in processor time, and whether
//! what has gone idle gives its memory back.
//!
//! | job | module |
//! | --- | --- |
//! | the autoscaler, all of it on one thread | `side` |
//! | senders of encoded batches | `senders` |

mod senders;
mod side;

use crate::floor::processes::resident_bytes;
use crate::floor::trial::{Report, median_and_worst};
use anyhow::{Result, ensure};
use autoscaler::Tick;
use policy::revision::{RevisionId, WindowSpec};
use policy::world::{Network, Path, Pod, PodPhase, RevisionView, Routes, Snapshot};
use senders::Senders;
use side::Side;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// All revisions are decided on within.
const TICK_MAX: Duration = Duration::from_millis(200);
/// What an idle revision may cost, without its history.
const IDLE_BYTES_MAX: u64 = 4096;
/// A stat's processor time, with a share of everything else.
const STAT_MAX: Duration = Duration::from_micros(1);

/// How much of it.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Revisions.
    pub revisions: usize,
    /// Pods of each; each sends a stat a second.
    pub pods: usize,
    /// Streams that the stats come by.
    pub streams: usize,
    /// How long they come.
    pub load: Duration,
    /// The stable window; the panic window is a tenth of it.
    pub window: Duration,
    /// What limits of times are stretched by.
    pub slack: u32,
}

/// Runs it.
///
/// # Errors
/// When something cannot be tried, or does not come.
pub fn run(settings: Settings) -> Result<Report> {
    let Settings { revisions, pods, slack, .. } = settings;
    let all = revisions as u64;
    let mut report = Report::new(slack);
    // Before memory is looked at.
    let batches = senders::batches(&settings);
    let message_bytes = batches.iter().map(|of| of.each.len()).max().unwrap_or_default();
    let side = Side::start(settings.streams)?;

    let before = resident()?;
    side.world.send_replace(Arc::new(world(&settings, 0)));
    let idle_tick = side.tick_after(side.autoscaler.last_tick().number + 1)?;
    ensure!(idle_tick.revisions == revisions, "{} of {revisions} were decided on", idle_tick.revisions);
    let (history, fresh) = side.autoscaler.bytes();
    let grown = resident()?.saturating_sub(before);
    report.tell("revisions", revisions);
    report.tick("a tick of all, idle", &[idle_tick]);
    report.tell("an idle revision: resident bytes, history included", grown / all);
    report.tell("of them its history", history as u64 / all);
    report.tell("of them the autoscaler's own state", fresh as u64 / all);
    report.at_most(
        "an idle revision: bytes without history",
        grown.saturating_sub(history as u64) / all,
        IDLE_BYTES_MAX,
    );

    side.world.send_replace(Arc::new(world(&settings, pods)));
    let first = side.tick_after(side.autoscaler.last_tick().number + 1)?.number;
    let cpu = side.cpu()?;
    let began = Instant::now();
    let senders = Senders::start(side.address, batches);
    let (mut ticks, mut spent) = (Vec::new(), vec![(began, cpu)]);
    while began.elapsed() < settings.load {
        let tick = side.tick_after(first + ticks.len() as u64)?;
        ensure!(tick.revisions == revisions, "{} of {revisions} were decided on", tick.revisions);
        ticks.push(tick);
        spent.push((Instant::now(), side.cpu()?));
    }
    let sent = senders.stop()?;
    let (took, cpu) = (began.elapsed(), side.cpu()?.saturating_sub(cpu));
    let (_, active) = side.autoscaler.bytes();
    let stats = sent.taken as u64 * (revisions * pods) as u64 / settings.streams as u64;
    let deciding: Duration = ticks.iter().map(|tick| tick.deciding).sum();
    report.tell("streams, and bytes of a message", format_args!("{}, {message_bytes}", settings.streams));
    report.tell("stats a second", format_args!("{:.0}", stats as f64 / took.as_secs_f64()));
    report.tick("a tick of all, under load", &ticks);
    report.time("from a batch to its receipt, the longest", sent.slowest, Duration::from_secs(1));
    report.tell("processor use, of one core", format_args!("{:.0} %", 100.0 * cpu.as_secs_f64() / took.as_secs_f64()));
    let alone = cpu.saturating_sub(deciding).as_secs_f64() * 1e9 / stats.max(1) as f64;
    report.tell("a stat, without the decisions", format_args!("{alone:.0} ns"));
    // From tick to tick, since others on the machine take their share of its caches.
    let rate = stats as f64 / took.as_secs_f64();
    let of =
        |of: &[(Instant, Duration)]| (of[1].1 - of[0].1).as_secs_f64() / ((of[1].0 - of[0].0).as_secs_f64() * rate);
    let mut each: Vec<u64> = spent.windows(2).map(|ends| (of(ends) * 1e9) as u64).collect();
    each.sort_unstable();
    let median = each.get(each.len() / 2).copied().unwrap_or_default();
    report.at_most("a stat, with all else, median: ns", median, STAT_MAX.as_nanos() as u64 * u64::from(slack));
    report.tell(
        "the same at its least and most",
        format_args!("{} ns, {} ns", each.first().unwrap_or(&0), each.last().unwrap_or(&0)),
    );
    report.tell("stats a second of processor time", format_args!("{:.0}", 1e9 / median.max(1) as f64));
    report.tell("an active revision: the autoscaler's own state, bytes", active as u64 / all);

    // Windows have emptied a second after their length, by the next tick.
    let until = Instant::now() + settings.window + Duration::from_secs(4);
    let mut after = side.autoscaler.bytes().1;
    while Instant::now() < until + Duration::from_secs(10) {
        after = side.autoscaler.bytes().1;
        if Instant::now() >= until && after <= fresh + revisions * pods * PUSHER_BYTES {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    let kept = after.saturating_sub(fresh) as u64 / all;
    report.at_most("idle again: bytes more than before", kept, (pods * PUSHER_BYTES) as u64);
    side.stop()?;
    Ok(report)
}

/// That a pod pushes is remembered for as long as it exists.
const PUSHER_BYTES: usize = 48;

impl Report {
    fn tick(&mut self, what: &str, ticks: &[Tick]) {
        let of = |part: fn(&Tick) -> Duration| median_and_worst(ticks.iter().map(part).collect());
        let ((median, worst), (deciding, _), (_, longest)) = (of(|t| t.took), of(|t| t.deciding), of(|t| t.longest));
        self.time(format!("{what}: median"), median, TICK_MAX);
        self.time(format!("{what}: the longest of {}", ticks.len()), worst, TICK_MAX);
        self.tell(format!("{what}: the decisions alone, median"), crate::floor::trial::show(deciding));
        self.tell(format!("{what}: the longest stretch"), crate::floor::trial::show(longest));
    }
}

fn resident() -> Result<u64> {
    let pid = i32::try_from(std::process::id())?;
    resident_bytes(pid).ok_or_else(|| anyhow::anyhow!("its memory is not known"))
}

fn id(number: usize) -> RevisionId {
    RevisionId::new("default", format!("revision-{number:05}"))
}

fn pod_name(revision: usize, pod: usize) -> String {
    format!("revision-{revision:05}-deployment-{pod}")
}

/// All revisions, each with so many pods that are ready.
fn world(settings: &Settings, pods: usize) -> Snapshot {
    let view = |revision: usize| {
        let mut spec = crate::bench::spec(100);
        spec.service = format!("service-{revision:05}").into();
        spec.configuration = spec.service.clone();
        spec.windows =
            WindowSpec { stable: settings.window, panic: WindowSpec::panic_of(settings.window, 10.0), ..spec.windows };
        spec.scale.stable_window = settings.window;
        let pod = |pod: usize| Pod {
            name: pod_name(revision, pod).into(),
            address: SocketAddr::from(([127, 0, 0, 1], 1)),
            phase: PodPhase::Ready,
            since: crate::bench::EPOCH,
            start_took: None,
        };
        Arc::new(RevisionView {
            spec: Arc::new(spec),
            pods: (0..pods).map(pod).collect(),
            path: Path::Direct,
            path_since: crate::bench::EPOCH,
            trouble: None,
            without_room: 0,
            network: Network::default(),
        })
    };
    Snapshot {
        version: 1 + pods as u64,
        revisions: (0..settings.revisions).map(|number| (id(number), view(number))).collect(),
        routes: Routes::default(),
    }
}
