//! Requests as a fluid: how many there are, wait, and are served.

use super::Clients;

/// Less than this is no request.
const NONE: f64 = 0.01;

/// Requests in the system, and what was seen of them since the last report.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Traffic {
    /// In the system: served and waiting.
    pub(super) inside: f64,
    /// Served now.
    pub(super) served: f64,
    clients: f64,
    /// Request-seconds, all and those at pods, and arrivals.
    pub(super) area: f64,
    pub(super) served_area: f64,
    pub(super) arrived: f64,
}

impl Traffic {
    /// A step of so many seconds at so much offered concurrency.
    pub(super) fn step(&mut self, seconds: f64, offered: f64, slots: f64, service: f64, clients: Clients) {
        let finished = (self.inside.min(slots) / service) * seconds;
        let arrived = match clients {
            Clients::Open => offered / service * seconds,
            // Whoever was answered asks again; newcomers ask at once.
            Clients::Closed => {
                let come = offered - std::mem::replace(&mut self.clients, offered);
                (finished + come).max(0.0)
            }
        };
        let before = self.inside;
        self.inside = match clients {
            Clients::Open => before + arrived - finished.min(before),
            Clients::Closed => offered,
        };
        if self.inside < NONE && offered == 0.0 {
            self.inside = 0.0;
        }
        self.served = self.inside.min(slots);
        self.area += (before + self.inside) / 2.0 * seconds;
        self.served_area += (before.min(slots) + self.served) / 2.0 * seconds;
        self.arrived += arrived;
    }

    /// Begins a new second of reports.
    pub(super) fn begin(&mut self) {
        (self.area, self.served_area, self.arrived) = (0.0, 0.0, 0.0);
    }
}
