//! The demo's last words. Pure.

use super::course::Course;
use super::tally::Counts;
use super::view::{Rates, millis};
use std::time::Duration;

/// What happened.
pub(crate) struct Summary {
    pub(crate) load: Duration,
    pub(crate) counts: Counts,
    pub(crate) best: Rates,
    pub(crate) course: Course,
    pub(crate) decisions: u64,
}

impl Summary {
    /// From the last answer to the end of the last process.
    fn zero_after(&self) -> Option<Duration> {
        let zero = self.course.zero_since?;
        Some(self.counts.last_answer.map_or(Duration::ZERO, |answered| zero.saturating_duration_since(answered)))
    }

    /// True when nothing was lost and no process is left.
    pub(crate) fn is_good(&self) -> bool {
        self.counts.losses() == 0 && self.zero_after().is_some()
    }

    /// The table; its last line has a fixed form.
    pub(crate) fn lines(&self) -> Vec<String> {
        let Summary { load, counts, best, course, decisions } = self;
        let latency = counts.latency();
        let told = |span: Option<Duration>| span.map_or("?".to_owned(), millis);
        let mut lines = vec![
            format!(
                "first wake   {} (x-zeroscale-cold-start), of which {} for the app to start",
                told(counts.cold_start),
                told(course.first_start)
            ),
            format!(
                "latency      half within {}, 99 % within {}, worst {}; from when each request was due",
                millis(latency.half),
                millis(latency.most),
                millis(latency.worst)
            ),
            format!(
                "peak rate    {:.0} requests/s offered, {:.0} answered; {:.0} s of load",
                best.offered,
                best.answered,
                load.as_secs_f64()
            ),
            format!("path         direct {} times, otherwise through the activator", course.turned_direct),
            format!("decisions    {decisions}"),
        ];
        lines.extend(counts.lost.iter().map(|(why, times)| format!("lost         {times}: {why}")));
        let zero = match self.zero_after() {
            Some(span) => format!("zero again after {:.1} s", span.as_secs_f64()),
            None => "not at zero again".to_owned(),
        };
        lines.push(format!("{} requests, {} lost, peak {} pods, {zero}", counts.offered, counts.losses(), course.peak));
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::tally::Tally;
    use std::time::Instant;

    fn summary(lost: &[&str], zero_since: Option<Instant>) -> Summary {
        let tally = Tally::new().unwrap();
        for why in lost {
            tally.offer();
            tally.lose((*why).to_owned());
        }
        tally.offer();
        tally.answer(Instant::now(), Some(Duration::from_millis(171)));
        let course = Course { peak: 6, zero_since, ..Course::default() };
        let best = Rates { offered: 300.4, answered: 299.0 };
        Summary { load: Duration::from_secs(30), counts: tally.read(), best, course, decisions: 23 }
    }

    #[test]
    fn the_last_line_has_the_stated_form() {
        let good = summary(&[], Some(Instant::now() + Duration::from_millis(8250)));
        let lines = good.lines();
        let last = lines.last().unwrap();
        assert!(last.starts_with("1 requests, 0 lost, peak 6 pods, zero again after 8."), "{last}");
        assert!(lines[0].contains("171 ms"));
        assert!(good.is_good());
    }

    #[test]
    fn a_lost_request_is_no_success_and_its_cause_is_told() {
        let bad = summary(&["503 Service Unavailable queue_full"], Some(Instant::now()));
        assert!(!bad.is_good());
        assert!(bad.lines().iter().any(|line| line.ends_with("1: 503 Service Unavailable queue_full")));
        assert!(bad.lines().last().unwrap().starts_with("2 requests, 1 lost, peak 6 pods"));
    }

    #[test]
    fn a_process_that_stays_is_no_success() {
        let bad = summary(&[], None);
        assert!(!bad.is_good());
        assert_eq!(bad.lines().last().unwrap(), "1 requests, 0 lost, peak 6 pods, not at zero again");
    }
}
