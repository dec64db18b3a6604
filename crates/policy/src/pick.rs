//! Which pod a request goes to, among those that may take one.

/// The rule by which a pod is chosen (activator reference, section 5.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The less loaded of two drawn pods: where there is no limit.
    LeastOfTwo,
    /// The first pod with a free slot: for limits of 1 to 3, so that few pods are warm.
    FirstFree,
    /// The next pod with a free slot after the last one chosen.
    RoundRobin,
}

impl Rule {
    /// The rule for a container concurrency; 0 = no limit.
    pub fn for_limit(container_concurrency: u32) -> Rule {
        match container_concurrency {
            0 => Rule::LeastOfTwo,
            1..=3 => Rule::FirstFree,
            _ => Rule::RoundRobin,
        }
    }
}

/// What the choice needs to know of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Requests at the pod now.
    pub in_flight: u32,
    /// True when it may take one more.
    pub free: bool,
}

/// The position of the pod to take, if any is free.
///
/// `cursor` is the round-robin memory. `draw` is 64 random bits: two positions
/// are drawn from it; a tie between them goes to the first drawn.
pub fn pick(rule: Rule, pods: &[Candidate], cursor: &mut usize, draw: u64) -> Option<usize> {
    match rule {
        Rule::FirstFree => pods.iter().position(|pod| pod.free),
        Rule::RoundRobin => round_robin(pods, cursor),
        Rule::LeastOfTwo => least_of_two(pods, draw),
    }
}

fn round_robin(pods: &[Candidate], cursor: &mut usize) -> Option<usize> {
    if *cursor >= pods.len() {
        *cursor = 0;
    }
    let start = *cursor;
    let found = (start..pods.len()).chain(0..start).find(|&at| pods[at].free)?;
    *cursor = found + 1;
    Some(found)
}

fn least_of_two(pods: &[Candidate], draw: u64) -> Option<usize> {
    let free = pods.iter().filter(|pod| pod.free).count();
    let nth = |n: usize| (0..pods.len()).filter(|&at| pods[at].free).nth(n);
    match free {
        0 => None,
        1 => nth(0),
        _ => {
            let first = (draw as u32) as usize % free;
            let step = 1 + (draw >> 32) as usize % (free - 1);
            let (a, b) = (nth(first)?, nth((first + step) % free)?);
            Some(if pods[b].in_flight < pods[a].in_flight { b } else { a })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pods(loads: &[(u32, bool)]) -> Vec<Candidate> {
        loads.iter().map(|&(in_flight, free)| Candidate { in_flight, free }).collect()
    }

    #[test]
    fn the_rule_follows_the_limit() {
        let rules: Vec<Rule> = [0, 1, 3, 4, 100].into_iter().map(Rule::for_limit).collect();
        assert_eq!(rules, [Rule::LeastOfTwo, Rule::FirstFree, Rule::FirstFree, Rule::RoundRobin, Rule::RoundRobin]);
    }

    #[test]
    fn round_robin_goes_on_after_the_last_chosen_and_skips_full_pods() {
        let all = pods(&[(0, true), (0, false), (0, true)]);
        let mut cursor = 0;
        let chosen: Vec<_> = (0..4).map(|_| pick(Rule::RoundRobin, &all, &mut cursor, 0)).collect();
        assert_eq!(chosen, [Some(0), Some(2), Some(0), Some(2)]);
        assert_eq!(pick(Rule::RoundRobin, &pods(&[(1, false)]), &mut cursor, 0), None);
    }

    #[test]
    fn round_robin_begins_anew_once_there_were_fewer_pods() {
        let mut cursor = 3;
        assert_eq!(pick(Rule::RoundRobin, &[], &mut cursor, 0), None);
        assert_eq!(pick(Rule::RoundRobin, &pods(&[(0, true); 4]), &mut cursor, 0), Some(0));
        cursor = 3;
        assert_eq!(pick(Rule::RoundRobin, &pods(&[(1, false); 4]), &mut cursor, 0), None);
        assert_eq!(cursor, 3, "nothing was chosen");
    }

    #[test]
    fn of_two_drawn_pods_the_less_loaded_is_taken() {
        let all = pods(&[(9, true), (1, true)]);
        for draw in 0..64 {
            assert_eq!(pick(Rule::LeastOfTwo, &all, &mut 0, draw), Some(1));
        }
        assert_eq!(pick(Rule::LeastOfTwo, &[], &mut 0, 7), None);
        assert_eq!(pick(Rule::LeastOfTwo, &pods(&[(5, false), (5, true)]), &mut 0, 7), Some(1));
    }

    #[test]
    fn two_draws_over_equal_pods_reach_each_of_them() {
        let all = pods(&[(0, true); 5]);
        let mut hits = [0; 5];
        for n in 0..5000u64 {
            let draw = n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            hits[pick(Rule::LeastOfTwo, &all, &mut 0, draw).unwrap()] += 1;
        }
        assert!(hits.iter().all(|&n| n > 700), "{hits:?}");
    }
}
