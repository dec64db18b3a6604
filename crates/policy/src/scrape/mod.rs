//! Asking pods what they carry, once a second: which of them, and what their
//! answers say of all.
//!
//! A [`Scrape`] is one such round for one revision: the shell asks whom
//! [`Scrape::ask`] names, tells it what came, and takes the
//! [`Outcome`] in the end. Everything here is the reference's (autoscaler
//! reference, section 9.3), but where [`Compat::Better`] is asked for: there a
//! pod that does not answer no longer voids what the others said.
//!
//! | words | module |
//! | --- | --- |
//! | pod by pod | `pods` |
//! | through the service, where a mesh hides the pods | `service` |
//! | which of the two | [`way`] |
//! | pods that push their stats themselves | [`crate::reporters`] |
//! | whether an error is news | [`news`] |

pub mod news;
mod pods;
mod service;
#[cfg(test)]
mod tests;
pub mod way;

use crate::compat::Compat;
use crate::moment::Moment;
use crate::stat::Stat;
use pods::Pods;
use service::Service;
use std::time::Duration;
use way::Way;

/// The name under which the answers of several pods are reported as one.
pub const SCRAPER: &str = "service-scraper";

/// A pod that may be asked: ready, and not on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// When it started.
    pub since: Moment,
}

/// Whom to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// The pod in this place among the candidates.
    Pod(usize),
    /// The service, whoever answers; on whose account is for [`Scrape::answer`].
    Service(usize),
}

/// What somebody answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Said {
    /// Its last second.
    pub stat: Stat,
    /// Seconds since it started.
    pub uptime: f64,
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missed {
    /// As a mesh refuses who addresses a pod itself (502, 503).
    Mesh,
    /// Anything else.
    Other,
}

/// Why a round came to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ScrapeError {
    /// All were asked, and too few answered.
    PodsExhausted,
    /// All answered as if a mesh hid them.
    DirectNotAvailable,
    /// The service let too few different pods answer.
    DidNotReceiveStat,
    /// The pods are not known.
    FailedGetEndpoints,
    /// The service did not answer.
    Other,
}

impl ScrapeError {
    /// The word for it in logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            ScrapeError::PodsExhausted => "pods-exhausted",
            ScrapeError::DirectNotAvailable => "direct-not-available",
            ScrapeError::DidNotReceiveStat => "did-not-receive-stat",
            ScrapeError::FailedGetEndpoints => "failed-get-endpoints",
            ScrapeError::Other => "other",
        }
    }
}

/// What came of a round.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// What all pods carry together; `None` = there is nobody to ask.
    pub stat: Result<Option<Stat>, ScrapeError>,
    /// Fewer answered than should have: the rest is taken to carry as much as
    /// they do on average.
    pub partial: bool,
}

impl Outcome {
    /// True when there is something for the windows; the stat of a revision
    /// without pods is no zero.
    pub fn is_recorded(&self) -> bool {
        matches!(self.stat, Ok(Some(_)))
    }
}

/// What is known of the candidates beside their answers.
pub trait Known {
    /// The pod in that place pushes its stats: it is left out of what is
    /// counted.
    fn pushes(&self, place: usize) -> bool;
    /// What it said last, if that is not too long ago.
    fn last(&self, place: usize) -> Option<Stat>;
}

/// Nothing.
#[derive(Clone, Copy, Debug)]
pub struct Nothing;

impl Known for Nothing {
    fn pushes(&self, _: usize) -> bool {
        false
    }

    fn last(&self, _: usize) -> Option<Stat> {
        None
    }
}

/// A round of one revision.
#[derive(Debug)]
pub struct Scrape {
    way: Way,
    compat: Compat,
    stage: Stage,
    window: Duration,
    ready: usize,
}

#[derive(Debug)]
enum Stage {
    Pods(Pods),
    Service(Service),
}

impl Scrape {
    /// Of the pods that there are. `window`: the stable one; pods older than
    /// it are preferred. `draw(n)` is a random number below `n`.
    pub fn new(
        way: Way,
        pods: &[Candidate],
        window: Duration,
        now: Moment,
        compat: Compat,
        draw: &mut dyn FnMut(usize) -> usize,
    ) -> Scrape {
        let stage = match way.asks_pods() {
            true => Stage::Pods(Pods::new(pods, window, now, draw)),
            false => Stage::Service(Service::new(pods.len(), window)),
        };
        Scrape { way, compat, stage, window, ready: pods.len() }
    }

    /// Whom to ask next; `None` while nobody more should be. What is named is
    /// on its way from then on.
    pub fn ask(&mut self) -> Option<Ask> {
        match &mut self.stage {
            Stage::Pods(pods) => pods.ask().map(Ask::Pod),
            Stage::Service(service) => service.ask().map(Ask::Service),
        }
    }

    /// Takes in what came of asking.
    pub fn answer(&mut self, asked: Ask, answer: Result<Said, Missed>) {
        match (&mut self.stage, asked) {
            (Stage::Pods(pods), Ask::Pod(place)) => {
                pods.answer(place, answer);
                if pods.is_over() && self.way.falls_back(pods.conclude(self.compat, &Nothing).stat.as_ref().err()) {
                    self.stage = Stage::Service(Service::new(self.ready, self.window));
                }
            }
            (Stage::Service(service), Ask::Service(account)) => service.answer(account, answer),
            // An answer from before the fall-back.
            (Stage::Service(_), Ask::Pod(_)) | (Stage::Pods(_), Ask::Service(_)) => {}
        }
    }

    /// True once no answer can change anything.
    pub fn is_over(&self) -> bool {
        match &self.stage {
            Stage::Pods(pods) => pods.is_over(),
            Stage::Service(service) => service.is_over(),
        }
    }

    /// What it came to, also before it is over. `way` learns from it.
    pub fn conclude(&self, way: &mut Way, known: &dyn Known) -> Outcome {
        match &self.stage {
            Stage::Pods(pods) => pods.conclude(self.compat, known),
            Stage::Service(service) => {
                let outcome = service.conclude();
                if self.way.asks_pods() && outcome.is_recorded() {
                    way.learn_that_pods_are_hidden();
                }
                outcome
            }
        }
    }
}

/// Sums of what several pods said.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    numbers: [f64; 4],
    of: usize,
}

impl Sum {
    fn add(&mut self, stat: &Stat) {
        let numbers = [
            stat.average_concurrency,
            stat.average_proxied_concurrency,
            stat.request_count,
            stat.proxied_request_count,
        ];
        for (sum, number) in self.numbers.iter_mut().zip(numbers) {
            *sum += number;
        }
        self.of += 1;
    }

    /// What `population` pods carry if all are like these.
    fn extrapolated(self, population: usize) -> Stat {
        let [average_concurrency, average_proxied_concurrency, request_count, proxied_request_count] =
            self.numbers.map(|sum| sum / self.of as f64 * population as f64);
        Stat {
            pod_name: SCRAPER.into(),
            average_concurrency,
            average_proxied_concurrency,
            request_count,
            proxied_request_count,
        }
    }
}
