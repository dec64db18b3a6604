use super::news::{News, Told};
use super::way::Way;
use super::*;
use crate::mesh::MeshMode;

const WINDOW: Duration = Duration::from_secs(60);
const NOW: Moment = Moment::from_unix_millis(1_000_000);
const AUTO: MeshMode = MeshMode::Auto;

fn stat(name: &str, average: f64) -> Stat {
    Stat {
        pod_name: name.into(),
        average_concurrency: average,
        average_proxied_concurrency: 0.0,
        request_count: average,
        proxied_request_count: 0.0,
    }
}

fn said(average: f64) -> Result<Said, Missed> {
    Ok(Said { stat: stat("pod", average), uptime: 100.0 })
}

fn pods(count: usize) -> Vec<Candidate> {
    vec![Candidate { since: NOW - Duration::from_secs(100) }; count]
}

fn scrape(count: usize, compat: Compat) -> Scrape {
    Scrape::new(Way::new(AUTO, false), &pods(count), WINDOW, NOW, compat, &mut |_| 0)
}

fn average(outcome: &Outcome) -> f64 {
    outcome.stat.clone().unwrap().unwrap().average_concurrency
}

struct Of<P>(P, Option<f64>);

impl<P: Fn(usize) -> bool> Known for Of<P> {
    fn pushes(&self, place: usize) -> bool {
        (self.0)(place)
    }

    fn last(&self, _: usize) -> Option<Stat> {
        self.1.map(|average| stat("pod", average))
    }
}

#[test]
fn no_more_are_under_way_than_are_to_answer() {
    for count in [1, 4, 100, 5000] {
        let mut round = scrape(count, Compat::Strict);
        let asked: Vec<Ask> = std::iter::from_fn(|| round.ask()).collect();
        assert_eq!(asked.len(), crate::collect::sample_size(count as f64) as usize);
        let distinct: std::collections::BTreeSet<String> = asked.iter().map(|ask| format!("{ask:?}")).collect();
        assert_eq!(distinct.len(), asked.len());
        round.answer(asked[0], Err(Missed::Other));
        let spare = usize::from(count > asked.len());
        assert_eq!(std::iter::from_fn(|| round.ask()).count(), spare, "one more for the one that failed");
    }
}

#[test]
fn one_that_does_not_answer_voids_the_others_in_strict_mode_only() {
    for (compat, expected) in [(Compat::Strict, None), (Compat::Better, Some(6.0))] {
        let mut round = scrape(3, compat);
        let asked: Vec<Ask> = std::iter::from_fn(|| round.ask()).collect();
        round.answer(asked[0], said(1.0));
        round.answer(asked[1], said(3.0));
        assert!(!round.is_over());
        let early = round.conclude(&mut Way::new(AUTO, false), &Nothing);
        round.answer(asked[2], Err(Missed::Other));
        assert!(round.is_over());
        let outcome = round.conclude(&mut Way::new(AUTO, false), &Nothing);
        assert_eq!(early, outcome, "it is the same when it is not waited for");
        assert_eq!(expected, outcome.stat.as_ref().ok().map(|_| average(&outcome)));
        assert_eq!(outcome.partial, expected.is_some());
    }
}

#[test]
fn who_is_silent_carries_as_much_as_the_others_and_no_less_than_it_did() {
    let mut round = scrape(3, Compat::Better);
    let asked: Vec<Ask> = std::iter::from_fn(|| round.ask()).collect();
    round.answer(asked[0], said(1.0));
    round.answer(asked[1], said(3.0));
    for (last, expected) in [(None, 6.0), (Some(0.5), 6.0), (Some(50.0), 54.0)] {
        let outcome = round.conclude(&mut Way::new(AUTO, false), &Of(|_| false, last));
        assert_eq!((average(&outcome), outcome.partial), (expected, true));
    }
    let outcome = round.conclude(&mut Way::new(AUTO, false), &Of(|place| asked[2] == Ask::Pod(place), Some(50.0)));
    assert_eq!(average(&outcome), 4.0, "it pushes: it is not counted here");
}

#[test]
fn nobody_answered_is_no_zero() {
    let mut round = scrape(2, Compat::Better);
    while let Some(ask) = round.ask() {
        round.answer(ask, Err(Missed::Other));
    }
    let outcome = round.conclude(&mut Way::new(AUTO, false), &Nothing);
    assert_eq!(outcome.stat, Err(ScrapeError::PodsExhausted));
    let none = scrape(0, Compat::Better);
    assert!(none.is_over());
    assert!(!none.conclude(&mut Way::new(AUTO, false), &Nothing).is_recorded());
}

#[test]
fn who_pushes_is_left_out_of_the_sum_and_of_the_number() {
    let mut round = scrape(4, Compat::Better);
    let asked: Vec<Ask> = std::iter::from_fn(|| round.ask()).collect();
    for (n, ask) in asked.iter().enumerate() {
        round.answer(*ask, said([100.0, 1.0, 2.0, 3.0][n]));
    }
    let Ask::Pod(pusher) = asked[0] else { panic!("a pod") };
    let outcome = round.conclude(&mut Way::new(AUTO, false), &Of(|place| place == pusher, None));
    assert_eq!(average(&outcome), 6.0);
    let all = round.conclude(&mut Way::new(AUTO, false), &Of(|_| true, None));
    assert_eq!(all.stat, Ok(None));
}

#[test]
fn the_service_is_asked_once_all_pods_look_hidden_and_from_then_on() {
    let mut way = Way::new(AUTO, false);
    let mut round = scrape(2, Compat::Better);
    let asked: Vec<Ask> = std::iter::from_fn(|| round.ask()).collect();
    asked.iter().for_each(|ask| round.answer(*ask, Err(Missed::Mesh)));
    assert!(!round.is_over());
    let mut name = 0;
    while let Some(ask @ Ask::Service(_)) = round.ask() {
        name += 1;
        round.answer(ask, Ok(Said { stat: stat(&format!("pod-{name}"), 2.0), uptime: 100.0 }));
    }
    // An answer that comes late from before is nobody's.
    round.answer(asked[0], said(1e6));
    assert_eq!(average(&round.conclude(&mut way, &Nothing)), 4.0);
    assert!(!way.pods_are_addressable() && !way.asks_pods());
    let mut passthrough = Way::new(AUTO, true);
    passthrough.learn_that_pods_are_hidden();
    assert!(passthrough.asks_pods());
}

#[test]
fn a_service_that_fails_ten_times_has_failed() {
    let mut round = Scrape::new(Way::new(MeshMode::Enabled, false), &pods(1), WINDOW, NOW, Compat::Strict, &mut |_| 0);
    let mut asked = 0;
    while let Some(ask) = round.ask() {
        asked += 1;
        round.answer(ask, Err(Missed::Other));
    }
    assert_eq!(asked, 10);
    let mut way = Way::new(MeshMode::Enabled, false);
    assert_eq!(round.conclude(&mut way, &Nothing).stat, Err(ScrapeError::Other));
}

#[test]
fn an_error_is_told_once_but_one_made_anew_each_time_in_strict_mode() {
    let plain = Told { error: ScrapeError::DidNotReceiveStat, wrapped: false };
    let wrapped = Told { wrapped: true, ..plain };
    let course = [Some(wrapped), Some(wrapped), Some(plain), Some(plain), Some(wrapped), None, None];
    for (compat, told) in [
        (Compat::Strict, [true, true, true, false, false, true, false]),
        (Compat::Better, [true, false, false, false, false, true, false]),
    ] {
        let mut news = News::default();
        assert_eq!(course.map(|now| news.note(now, compat)), told);
    }
}
