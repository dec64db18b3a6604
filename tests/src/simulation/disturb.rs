//! What goes wrong, or changes, in a history.

use super::platform::Phase;
use super::setup::{MILLI, SECOND, limit};
use super::shadow::RequestId;
use super::world::{Event, Turn, World};
use policy::admit::{PodKey, Refused};

impl World {
    pub(super) fn disturb(&mut self) {
        let Some(every) = self.setup.disturbed_every.filter(|_| !self.closed) else { return };
        let next = self.draw.below(2 * every);
        self.after(next, Event::Disturb);
        let keys = self.ready_keys();
        let one = if keys.is_empty() { None } else { Some(self.draw.of(&keys)) };
        match (self.draw.below(16), one) {
            (0..=2, Some(key)) => self.crash(key),
            (3..=4, Some(key)) => self.lose_readiness(key),
            (5..=6, Some(key)) if !self.shadow.is_suspended(key) => self.doubt(key),
            (7, Some(key)) => {
                // The activator's limit is one; pods of a mixed revision are not.
                let capacity = self.draw.of(&[Some(0), Some(1), Some(3), None]);
                self.resize(key, capacity);
            }
            (8..=10, _) => self.change_limit(&keys),
            (11..=12, _) => self.begin_trouble(),
            (13, _) if self.draw.one_in(8) => self.lose_route(),
            _ => self.try_spent(),
        }
    }

    /// A pod dies with its requests: some never arrived and are handed back,
    /// the others end. The platform starts another.
    fn crash(&mut self, key: PodKey) {
        self.saw("pod crashed");
        let at_it: Vec<(RequestId, Turn)> = self
            .clients
            .iter()
            .filter(|(_, client)| client.pod() == Some(key))
            .map(|(&id, client)| (id, client.turn()))
            .collect();
        for (id, turn) in at_it {
            let soon = self.draw.below(20 * MILLI);
            let event = if self.draw.one_in(2) { Event::Return(id, turn) } else { Event::Finish(id, turn) };
            self.after(soon, event);
        }
        // What it counted is lost with it.
        self.pods.retain(|_, pod| pod.ready() != Some(key));
        self.take_out(key);
        self.reconcile();
    }

    /// The readiness probe fails: out, and in again under a new key.
    fn lose_readiness(&mut self, key: PodKey) {
        let Some((&number, pod)) = self.pods.iter_mut().find(|(_, pod)| pod.ready() == Some(key)) else { return };
        pod.phase = Phase::Unready;
        self.saw("readiness lost");
        self.take_out(key);
        let away = self.draw.between(10, 3_000) * MILLI;
        self.after(away, Event::PodBack(number));
    }

    fn change_limit(&mut self, keys: &[PodKey]) {
        self.capacity = limit(&mut self.draw);
        self.saw("limit changed");
        for &key in keys {
            self.resize(key, self.capacity);
        }
    }

    /// Pods cannot be started: with none there, nobody is let wait for one.
    fn begin_trouble(&mut self) {
        if self.trouble || self.seam.core().pod_count() > 0 {
            return;
        }
        self.trouble = true;
        self.saw("trouble");
        let why = self.draw.of(&[Refused::StartFailed, Refused::StartTimeout]);
        self.refuse_all(why);
        let lasts = self.draw.between(100, 6_000) * MILLI;
        self.after(lasts, Event::TroubleOver);
    }

    pub(super) fn trouble_over(&mut self) {
        self.trouble = false;
        self.log(format_args!("pods can be started again"));
    }

    fn lose_route(&mut self) {
        self.setup.spec.reachable = false;
        self.saw("route lost");
        self.log(format_args!("no route leads here any more"));
        let soon = self.draw.below(SECOND);
        self.after(soon, Event::Tick { regular: false });
    }
}
