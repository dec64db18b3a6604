//! Pods, asked one by one: so many at a time as are to answer, and another
//! for each that does not.

use super::{Candidate, Known, Missed, Outcome, Said, ScrapeError, Sum};
use crate::collect::sample_size;
use crate::compat::Compat;
use crate::moment::Moment;
use crate::stat::Stat;
use std::time::Duration;

#[derive(Debug)]
pub(super) struct Pods {
    /// Places of candidates, in the order in which they are asked.
    order: Vec<usize>,
    asked: usize,
    under_way: usize,
    /// How many should answer.
    wanted: usize,
    said: Vec<(usize, Stat)>,
    missed: [usize; 2],
}

impl Pods {
    pub(super) fn new(pods: &[Candidate], window: Duration, now: Moment, draw: &mut dyn FnMut(usize) -> usize) -> Pods {
        let is_old = |place: &usize| now.since(pods[*place].since) >= window;
        let (mut old, mut young): (Vec<usize>, Vec<usize>) = (0..pods.len()).partition(is_old);
        let wanted = sample_size(pods.len() as f64) as usize;
        // The old are asked first; who is asked at all is drawn.
        let drawn = if old.len() < wanted { &mut young } else { &mut old };
        shuffle(drawn, draw);
        old.append(&mut young);
        Pods { order: old, asked: 0, under_way: 0, wanted, said: Vec::with_capacity(wanted), missed: [0; 2] }
    }

    pub(super) fn ask(&mut self) -> Option<usize> {
        if self.said.len() + self.under_way >= self.wanted {
            return None;
        }
        let place = *self.order.get(self.asked)?;
        self.asked += 1;
        self.under_way += 1;
        Some(place)
    }

    pub(super) fn answer(&mut self, place: usize, answer: Result<Said, Missed>) {
        self.under_way = self.under_way.saturating_sub(1);
        match answer {
            Ok(said) => self.said.push((place, said.stat)),
            Err(why) => self.missed[usize::from(why == Missed::Mesh)] += 1,
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.said.len() >= self.wanted || (self.under_way == 0 && self.asked == self.order.len())
    }

    pub(super) fn conclude(&self, compat: Compat, known: &dyn Known) -> Outcome {
        let pushes = |place: &usize| known.pushes(*place);
        let population = self.order.iter().filter(|place| !pushes(place)).count();
        if population == 0 {
            return Outcome { stat: Ok(None), partial: false };
        }
        let mut sum = Sum::default();
        self.said.iter().filter(|(place, _)| !pushes(place)).for_each(|(_, stat)| sum.add(stat));
        let enough = self.said.len() >= self.wanted;
        let [other, mesh] = self.missed;
        let stat = match (enough, compat) {
            _ if self.said.is_empty() && mesh > 0 && other == 0 => Err(ScrapeError::DirectNotAvailable),
            // Those who answered have begun to push meanwhile: nothing is
            // known of the rest.
            _ if sum.of == 0 => Err(ScrapeError::PodsExhausted),
            (true, _) => Ok(Some(sum.extrapolated(population))),
            (false, Compat::Better) => Ok(Some(self.with_silent(sum, known).extrapolated(population))),
            (false, Compat::Strict) => Err(ScrapeError::PodsExhausted),
        };
        let partial = !enough && stat.is_ok();
        Outcome { stat, partial }
    }
}

impl Pods {
    /// Who was asked and has not answered is taken to carry as much as the
    /// others, and no less than it did last: it may be silent because it has
    /// too much to do.
    fn with_silent(&self, mut sum: Sum, known: &dyn Known) -> Sum {
        let average = sum.extrapolated(1);
        let silent = |place: &&usize| !known.pushes(**place) && self.said.iter().all(|(other, _)| other != *place);
        for place in self.order[..self.asked].iter().filter(silent) {
            let mut stat = average.clone();
            if let Some(last) = known.last(*place) {
                let more = last.average_concurrency - last.average_proxied_concurrency
                    > stat.average_concurrency - stat.average_proxied_concurrency;
                stat = if more { last } else { stat };
            }
            sum.add(&stat);
        }
        sum
    }
}

fn shuffle(places: &mut [usize], draw: &mut dyn FnMut(usize) -> usize) {
    for last in (1..places.len()).rev() {
        places.swap(last, draw(last + 1).min(last));
    }
}
