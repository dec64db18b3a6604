//! `activator/breaker`: who runs, who waits and who is refused at one limit.

use super::row::{Verdict, at, differs, int, list, located, part, same};
use policy::admit::{self, Admission, Bounds, Claim, PodKey, Slot, Ticket};
use policy::compat::Compat;
use policy::pick::Rule;
use serde_json::Value;
use std::collections::BTreeMap;

/// No choice is left to chance with a single pod. Rows have no times either.
const DRAW: u64 = 0;

struct Breaker {
    admission: Admission,
    pod: PodKey,
    /// Slots by the token of their `reserve`.
    reserved: BTreeMap<i64, Slot>,
    running: BTreeMap<i64, Slot>,
    waiting: BTreeMap<Ticket, i64>,
}

/// What an op caused.
#[derive(Default)]
struct Effects {
    started: Vec<i64>,
    returned: Vec<(i64, &'static str)>,
}

pub(super) fn judge(row: &Value, _mode: Compat) -> Verdict {
    let depth: usize = part(&row["queue_depth"])?;
    let most: usize = part(&row["max_concurrency"])?;
    // The recorded limiter bounds only both together.
    let bounds = Bounds { waiting_max: depth + most, places_max: depth + most };
    let mut admission = Admission::new(bounds, Rule::FirstFree);
    let capacity: u32 = part(&row["initial_capacity"])?;
    let pod = admission.add_pod(Some(capacity), &mut Vec::new());
    let mut breaker =
        Breaker { admission, pod, reserved: BTreeMap::new(), running: BTreeMap::new(), waiting: BTreeMap::new() };
    for (number, op) in list(&row["ops"])?.iter().enumerate() {
        located(|| format!("op {number} {op}"), breaker.op(op))?;
    }
    Ok(())
}

impl Breaker {
    fn op(&mut self, op: &Value) -> Verdict {
        let mut effects = Effects::default();
        let mut woken = Vec::new();
        match op["op"].as_str() {
            Some("reserve") => self.reserve(op)?,
            Some("release") => {
                if let Some(slot) = self.reserved.remove(&int(&op["token"])?) {
                    self.admission.release(slot, &mut woken);
                }
            }
            Some("capacity") => {
                let capacity: u32 = part(&op["n"])?;
                self.admission.resize_pod(self.pod, Some(capacity), &mut woken);
            }
            Some("maybe") => self.maybe(int(&op["request"])?, &mut effects),
            Some("finish") => {
                let request = int(&op["request"])?;
                let Some(slot) = self.running.remove(&request) else {
                    return differs(format!("request {request} does not run"));
                };
                self.admission.release(slot, &mut woken);
                effects.returned.push((request, "ok"));
            }
            Some("cancel_all") => {
                for (ticket, request) in std::mem::take(&mut self.waiting) {
                    self.admission.abandon(ticket, &mut woken);
                    effects.returned.push((request, "canceled"));
                }
            }
            _ => return differs("malformed row: unknown op"),
        }
        self.claim(woken, &mut effects)?;
        self.compare(op, effects)
    }

    fn reserve(&mut self, op: &Value) -> Verdict {
        let slot = self.admission.try_take(at(0), DRAW);
        same("ok", part(&op["ok"])?, slot.is_some())?;
        if let Some(slot) = slot {
            self.reserved.insert(int(&op["token"])?, slot);
        }
        Ok(())
    }

    fn maybe(&mut self, request: i64, effects: &mut Effects) {
        match self.admission.ask(at(0), DRAW) {
            admit::Verdict::Go(slot) => {
                self.running.insert(request, slot);
                effects.started.push(request);
            }
            admit::Verdict::Wait(ticket) => {
                self.waiting.insert(ticket, request);
            }
            admit::Verdict::Refuse(_) => effects.returned.push((request, "queue_full")),
        }
    }

    fn claim(&mut self, woken: Vec<Ticket>, effects: &mut Effects) -> Verdict {
        for ticket in woken {
            let Some(request) = self.waiting.remove(&ticket) else {
                continue;
            };
            match self.admission.claim(ticket) {
                Claim::Go(slot) => {
                    self.running.insert(request, slot);
                    effects.started.push(request);
                }
                other => return differs(format!("request {request} was woken for {other:?}")),
            }
        }
        Ok(())
    }

    fn compare(&self, op: &Value, mut effects: Effects) -> Verdict {
        effects.returned.sort_unstable();
        let mut expected = Vec::new();
        for returned in op.get("returned").map_or(Ok(&[][..]), list)? {
            expected.push((int(&returned["request"])?, returned["result"].as_str()));
        }
        let returned = effects.returned.into_iter().map(|(request, why)| (request, Some(why)));
        same("returned", expected, returned.collect())?;
        let started: Vec<i64> = op.get("started").map_or(Ok(Vec::new()), part)?;
        same("started", started, effects.started)?;
        let inside = self.admission.waiting() + self.admission.running();
        same("pending_or_running", part(&op["pending_or_running"])?, inside)?;
        same("limit", part(&op["limit"])?, self.admission.capacity())?;
        self.admission.check().or_else(differs)
    }
}
