//! `activator/lb`: which pod a request goes to.

use super::capacity::rule;
use super::row::{Verdict, differs, int, list, located, part, parts, same};
use policy::compat::Compat;
use policy::pick::{Candidate, Rule, pick};
use serde_json::Value;
use std::collections::BTreeMap;

/// Rows of random-choice-2 are such that no draw matters; each is made
/// another one all the same.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

struct Pod {
    name: String,
    capacity: Option<u32>,
    in_flight: u32,
}

struct Revision {
    rule: Rule,
    cursor: usize,
    pods: Vec<Pod>,
    /// Positions of the pods that are chosen from.
    targets: Vec<usize>,
    /// The pod of each request, by token.
    at: BTreeMap<i64, usize>,
}

pub(super) fn judge(row: &Value, _mode: Compat) -> Verdict {
    let mut pods = Vec::new();
    for pod in list(&row["pods"])? {
        let capacity = pod.get("capacity").map_or(Ok(None), part)?;
        pods.push(Pod { name: part(&pod["dest"])?, capacity, in_flight: 0 });
    }
    let targets = (0..pods.len()).collect();
    let mut revision = Revision { rule: rule(&row["policy"])?, cursor: 0, pods, targets, at: BTreeMap::new() };
    for (number, op) in list(&row["ops"])?.iter().enumerate() {
        located(|| format!("op {number} {op}"), revision.op(op, number as u64))?;
    }
    Ok(())
}

impl Revision {
    fn op(&mut self, op: &Value, number: u64) -> Verdict {
        match op["op"].as_str() {
            Some("pick") => return self.pick(op, number),
            Some("release") => {
                if let Some(pod) = self.at.remove(&int(&op["token"])?) {
                    self.pods[pod].in_flight -= 1;
                }
            }
            Some("targets") => {
                let names: Vec<String> = parts(&op["targets"])?;
                let position = |name: &String| self.pods.iter().position(|pod| pod.name == *name);
                let found: Option<_> = names.iter().map(position).collect();
                let Some(found) = found else { return differs("malformed row: a target is no pod") };
                self.targets = found;
            }
            Some("capacity") => {
                let capacities: Vec<u32> = part(&op["capacities"])?;
                same("number of capacities", self.pods.len(), capacities.len())?;
                for (pod, capacity) in self.pods.iter_mut().zip(capacities) {
                    pod.capacity = Some(capacity);
                }
            }
            _ => return differs("malformed row: unknown op"),
        }
        Ok(())
    }

    fn pick(&mut self, op: &Value, number: u64) -> Verdict {
        let candidates: Vec<Candidate> = self.targets.iter().map(|&at| self.pods[at].candidate()).collect();
        let picked = pick(self.rule, &candidates, &mut self.cursor, number.wrapping_mul(SPREAD));
        let pod = picked.map(|position| self.targets[position]);
        same("chosen", op["chosen"].as_str(), pod.map(|at| self.pods[at].name.as_str()))?;
        if let Some(pod) = pod {
            self.pods[pod].in_flight += 1;
            self.at.insert(int(&op["token"])?, pod);
        }
        Ok(())
    }
}

impl Pod {
    fn candidate(&self) -> Candidate {
        let free = self.capacity.is_none_or(|capacity| self.in_flight < capacity);
        Candidate { in_flight: self.in_flight, free }
    }
}
