//! One history: its clock, its events, and everybody in it.
//!
//! Events happen one after the other, each at its moment; whatever they cause
//! later is a new event. The clients are in `clients`, the platform with its
//! pods in `platform`, stats and decisions in `control`, disturbances in
//! `disturb`, the end in `ending`.

use super::draw::Draw;
use super::fault::{Fault, Seam};
use super::scaler::Scaler;
use super::setup::{Micros, SECOND, Setup};
use super::shadow::{RequestId, Shadow};
use super::trace::Trace;
use super::{clients::Client, platform::Pod};
use policy::admit::{Admission, PodKey, Ticket};
use policy::moment::Moment;
use policy::timeline::Meter;
use policy::world::Path;
use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BinaryHeap};

/// The next thing to happen to somebody.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// A client comes; the next one follows.
    Arrive,
    /// A great many clients come.
    Flood,
    /// A woken client asks what has become of its ticket.
    Claim(RequestId, Turn),
    /// A client leaves, wherever it is.
    Leave(RequestId),
    /// A request has been served.
    Finish(RequestId, Turn),
    /// A pod gives a request back.
    Return(RequestId, Turn),
    /// A pod's app has started.
    PodStarted(u32),
    /// A pod is ready again.
    PodBack(u32),
    /// A pod is no longer doubted.
    Trust(PodKey),
    /// An order reaches the platform.
    Order(u32),
    /// A path reaches the front.
    Path(Path),
    /// Everybody reports their second.
    Stats,
    /// The scaler decides.
    Tick {
        /// The next one follows in two seconds.
        regular: bool,
    },
    /// Something goes wrong.
    Disturb,
    /// Pods can be started again.
    TroubleOver,
    /// No client comes any more.
    Close,
    /// Whoever is still there leaves.
    End,
}

/// Counts what happened to a client: an event for an earlier turn is void.
pub(super) type Turn = u32;

struct Due {
    at: Micros,
    number: u64,
    event: Event,
}

/// How often something was seen, by name: that histories get everywhere.
pub type Seen = BTreeMap<&'static str, u64>;

/// Everything in a history.
pub(super) struct World {
    pub(super) setup: Setup,
    pub(super) draw: Draw,
    pub(super) seam: Seam,
    pub(super) shadow: Shadow,
    pub(super) scaler: Scaler,
    pub(super) meter: Meter,
    pub(super) clients: BTreeMap<RequestId, Client>,
    pub(super) next_request: RequestId,
    pub(super) pods: BTreeMap<u32, Pod>,
    pub(super) next_pod: u32,
    /// Pods' limit now.
    pub(super) capacity: Option<u32>,
    pub(super) woken: Vec<Ticket>,
    /// Tickets that are spent, to be tried again.
    pub(super) spent: Vec<Ticket>,
    pub(super) wanted: u32,
    /// As the front has it, and since when.
    pub(super) path: Path,
    pub(super) path_since: Micros,
    pub(super) ordered_path: Path,
    /// Pods cannot be started.
    pub(super) trouble: bool,
    pub(super) closed: bool,
    pub(super) ended: bool,
    pub(super) now: Micros,
    pub(super) steps: u64,
    pub(super) seen: Seen,
    pub(super) trace: Trace,
    /// The history's beginning, in the nanoseconds of the core's time.
    begins: i64,
    events: BinaryHeap<Reverse<Due>>,
    next_event: u64,
}

impl World {
    pub(super) fn new(seed: u64, fault: Fault, trace: Trace) -> World {
        let mut draw = Draw::new(seed);
        let setup = Setup::new(&mut draw);
        // Anywhere within a second: buckets begin at whole ones.
        let begins = 1_700_000_000_000_000_000 + draw.below(SECOND) as i64 * 1_000;
        let core = Admission::new(setup.places, setup.rule);
        let mut world = World {
            seam: Seam::new(core, fault, seed),
            shadow: Shadow::new(setup.places),
            scaler: Scaler::new(&setup, Moment::from_unix_nanos(begins)),
            meter: Meter::new(),
            clients: BTreeMap::new(),
            next_request: 0,
            pods: BTreeMap::new(),
            next_pod: 0,
            capacity: setup.capacity,
            woken: Vec::new(),
            spent: Vec::new(),
            wanted: 0,
            path: Path::Activator,
            path_since: 0,
            ordered_path: Path::Activator,
            trouble: false,
            closed: false,
            ended: false,
            now: 0,
            steps: 0,
            seen: Seen::new(),
            trace,
            begins,
            events: BinaryHeap::new(),
            next_event: 0,
            setup,
            draw,
        };
        world.begin(seed);
        world
    }

    fn begin(&mut self, seed: u64) {
        self.trace.line(format_args!("history {seed}: {:?}", self.setup));
        self.after(0, Event::Arrive);
        self.after(SECOND, Event::Stats);
        let first_tick = self.draw.below(2 * SECOND);
        self.after(first_tick, Event::Tick { regular: true });
        if let Some(every) = self.setup.disturbed_every {
            let first = self.draw.below(every);
            self.after(first, Event::Disturb);
        }
        if self.setup.flood {
            let at = self.draw.below(self.setup.until());
            self.after(at, Event::Flood);
        }
        self.after(self.setup.until(), Event::Close);
    }

    /// Until the end, or the first thing that does not hold.
    pub(super) fn run(&mut self) {
        while let Some(Reverse(due)) = self.events.pop() {
            self.now = due.at;
            self.steps += 1;
            self.step(due.event);
            if self.ended || !self.shadow.found.is_empty() {
                return;
            }
        }
    }

    fn step(&mut self, event: Event) {
        match event {
            Event::Arrive => self.arrive(),
            Event::Flood => self.flood(),
            Event::Claim(id, turn) => self.claim(id, turn),
            Event::Leave(id) => self.leave(id),
            Event::Finish(id, turn) => self.finish(id, turn),
            Event::Return(id, turn) => self.hand_back(id, turn),
            Event::PodStarted(pod) => self.pod_started(pod),
            Event::PodBack(pod) => self.pod_back(pod),
            Event::Trust(pod) => self.trust(pod),
            Event::Order(wanted) => self.take_order(wanted),
            Event::Path(path) => self.switch_path(path),
            Event::Stats => self.report(),
            Event::Tick { regular } => self.tick(regular),
            Event::Disturb => self.disturb(),
            Event::TroubleOver => self.trouble_over(),
            Event::Close => self.close(),
            Event::End => self.end(),
        }
    }

    /// Has something happen in `delay`.
    pub(super) fn after(&mut self, delay: Micros, event: Event) {
        let due = Due { at: self.now + delay, number: self.next_event, event };
        self.next_event += 1;
        self.events.push(Reverse(due));
    }

    /// The core's time.
    pub(super) fn moment(&self) -> Moment {
        Moment::from_unix_nanos(self.begins + self.now as i64 * 1_000)
    }

    /// Ends a call to the core: the books are compared, the woken wake up, and
    /// a pod that was let go of is stopped.
    pub(super) fn settle(&mut self, let_go: Option<PodKey>) {
        let woken = std::mem::take(&mut self.woken);
        self.seam.note(&woken);
        self.shadow.settle(self.seam.core(), &woken, let_go);
        for ticket in woken {
            self.wake(ticket);
        }
        if let Some(pod) = let_go {
            self.pod_let_go(pod);
        }
    }

    /// A line of the trace, with where everything stands.
    pub(super) fn log(&mut self, what: std::fmt::Arguments<'_>) {
        let core = self.seam.core();
        self.trace.line(format_args!(
            "{:5} {:4}.{:06} {what} | {} run, {} wait, {} pods of {}",
            self.steps,
            self.now / SECOND,
            self.now % SECOND,
            core.running(),
            core.waiting(),
            core.pod_count(),
            self.wanted,
        ));
    }

    pub(super) fn saw(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
    }
}

impl Due {
    fn order(&self) -> (Micros, u64) {
        (self.at, self.number)
    }
}

impl PartialEq for Due {
    fn eq(&self, other: &Due) -> bool {
        self.order() == other.order()
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Due) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Due) -> Ordering {
        self.order().cmp(&other.order())
    }
}
