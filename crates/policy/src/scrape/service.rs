//! Pods behind one address, where whoever is hit answers: asked again and
//! again until enough different ones have.

use super::{Missed, Outcome, Said, ScrapeError, Sum};
use crate::collect::sample_size;
use crate::stat::Stat;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// Questions on one account.
const TRIES_MAX: u32 = 10;

#[derive(Debug)]
pub(super) struct Service {
    population: usize,
    window: Duration,
    accounts: Vec<Account>,
    seen: BTreeSet<Arc<str>>,
    old: Vec<Stat>,
    /// Of pods younger than the window: used only where the old ones are few.
    young: Vec<Stat>,
}

/// One of those that are to find a pod each.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    tries: u32,
    under_way: bool,
    ended: Option<Result<(), ScrapeError>>,
}

impl Service {
    pub(super) fn new(ready: usize, window: Duration) -> Service {
        let wanted = sample_size(ready as f64) as usize;
        Service {
            population: ready,
            window,
            accounts: vec![Account::default(); wanted],
            seen: BTreeSet::new(),
            old: Vec::new(),
            young: Vec::new(),
        }
    }

    pub(super) fn ask(&mut self) -> Option<usize> {
        if self.is_over() {
            return None;
        }
        let open = |account: &Account| account.ended.is_none() && !account.under_way;
        let place = self.accounts.iter().position(open)?;
        self.accounts[place].under_way = true;
        self.accounts[place].tries += 1;
        Some(place)
    }

    pub(super) fn answer(&mut self, place: usize, answer: Result<Said, Missed>) {
        let full = self.accounts.len();
        let Some(account) = self.accounts.get_mut(place) else { return };
        account.under_way = false;
        let last = account.tries >= TRIES_MAX;
        let ended = match answer {
            Err(_) => last.then_some(Err(ScrapeError::Other)),
            Ok(said) if self.seen.contains(&said.stat.pod_name) => last.then_some(Err(ScrapeError::DidNotReceiveStat)),
            Ok(said) => {
                self.seen.insert(said.stat.pod_name.clone());
                if said.uptime >= self.window.as_secs_f64() {
                    self.old.push(said.stat);
                    Some(Ok(()))
                } else if self.young.len() < full {
                    self.young.push(said.stat);
                    last.then_some(Ok(()))
                } else {
                    Some(Ok(()))
                }
            }
        };
        account.ended = ended;
    }

    /// Who failed ends it for all, as nobody can make up for it.
    pub(super) fn is_over(&self) -> bool {
        let failed = self.accounts.iter().any(|account| matches!(account.ended, Some(Err(_))));
        failed || self.accounts.iter().all(|account| account.ended.is_some())
    }

    pub(super) fn conclude(&self) -> Outcome {
        let nothing = |stat| Outcome { stat, partial: false };
        if self.population == 0 {
            return nothing(Ok(None));
        }
        if self.accounts.iter().any(|account| account.ended == Some(Err(ScrapeError::Other))) {
            return nothing(Err(ScrapeError::Other));
        }
        let wanted = self.accounts.len();
        if self.old.len() + self.young.len() < wanted {
            return nothing(Err(ScrapeError::DidNotReceiveStat));
        }
        let mut sum = Sum::default();
        self.old.iter().chain(&self.young).take(wanted).for_each(|stat| sum.add(stat));
        nothing(Ok(Some(sum.extrapolated(self.population))))
    }
}
