//! Stats each second, a decision each two, and what follows from it.

use super::invariant::{Invariant, Violation};
use super::scaler::Sight;
use super::setup::SECOND;
use super::world::{Event, World};
use policy::stat::Stat;
use policy::timeline::{MeterReport, Report};
use policy::world::Path;
use std::sync::Arc;
use std::time::Duration;

impl World {
    /// Everybody reports: the activator of its clients, each pod of its own.
    pub(super) fn report(&mut self) {
        if !self.ended {
            self.after(SECOND, Event::Stats);
        }
        self.compare_load();
        let now = self.moment();
        let activator = self.meter.tick(now).map(|report| of_meter(&report));
        let pods = self.pods.values_mut().map(|pod| of_pod(&pod.timeline.report(now)));
        let stats: Vec<Stat> = activator.into_iter().chain(pods).collect();
        let sum: f64 = stats.iter().map(|stat| stat.average_concurrency - stat.average_proxied_concurrency).sum();
        for stat in &stats {
            self.scaler.record(stat, now, &mut self.shadow.found);
        }
        self.log(format_args!("{} report a load of {sum:.6}", stats.len()));
    }

    /// The first sign of load after idleness.
    pub(super) fn announce(&mut self, report: MeterReport) {
        let now = self.moment();
        self.scaler.record(&of_meter(&report), now, &mut self.shadow.found);
        if self.scaler.poke(report.average_concurrency, self.setup.compat) {
            self.saw("woken from zero");
            self.after(0, Event::Tick { regular: false });
        }
    }

    pub(super) fn tick(&mut self, regular: bool) {
        if regular {
            self.after(2 * SECOND, Event::Tick { regular });
        }
        let through = (self.path == Path::Activator).then(|| Duration::from_micros(self.now - self.path_since));
        let sight = Sight {
            ready: self.ready_keys().len() as u32,
            through_activator_for: through,
            probe_ok: through.is_some() && !self.draw.one_in(20),
        };
        let now = self.moment();
        let verdict = self.scaler.tick(&self.setup, sight, now, &mut self.shadow.found);
        self.log(format_args!("decided: {} wanted, order {:?}, {:?}", verdict.want, verdict.order, verdict.path));
        if let Some(order) = verdict.order.filter(|&order| order != self.wanted) {
            self.saw(if order == 0 { "ordered zero" } else { "ordered pods" });
            let delay = self.draw.below(SECOND / 5);
            self.after(delay, Event::Order(order));
        }
        if verdict.path != self.ordered_path {
            self.ordered_path = verdict.path;
            let delay = self.draw.below(2 * SECOND);
            self.after(delay, Event::Path(verdict.path));
        }
    }

    pub(super) fn switch_path(&mut self, path: Path) {
        if path == self.ordered_path && path != self.path {
            self.path = path;
            self.path_since = self.now;
            self.saw(if path == Path::Direct { "path direct" } else { "path back" });
            self.log(format_args!("the path is {path:?}"));
        }
    }

    /// What is counted has to be what is there.
    fn compare_load(&mut self) {
        let counted = self.clients.values().filter(|client| client.counted()).count();
        if self.meter.in_progress() as usize != counted {
            let what = format!("the activator counts {}, {counted} are inside", self.meter.in_progress());
            self.shadow.found.push(Violation::new(Invariant::Load, what));
        }
        for (number, pod) in &self.pods {
            let there = self.clients.values().filter(|client| client.pod().is_some_and(|key| pod.keys.contains(&key)));
            let (there, counted) = (there.count(), pod.timeline.in_progress());
            if counted as usize != there {
                let what = format!("p{number} counts {counted}, {there} are there");
                self.shadow.found.push(Violation::new(Invariant::Load, what));
            }
        }
    }
}

fn of_meter(report: &MeterReport) -> Stat {
    Stat {
        pod_name: Arc::from("activator"),
        average_concurrency: report.average_concurrency,
        average_proxied_concurrency: 0.0,
        request_count: report.request_count,
        proxied_request_count: 0.0,
    }
}

fn of_pod(report: &Report) -> Stat {
    Stat {
        pod_name: Arc::from("pod"),
        average_concurrency: report.average_concurrency,
        average_proxied_concurrency: report.average_proxied_concurrency,
        request_count: report.request_count,
        proxied_request_count: report.proxied_request_count,
    }
}
