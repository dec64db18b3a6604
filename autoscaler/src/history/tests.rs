use super::room::Room;
use super::*;
use policy::limit::Steps;
use policy::revision::RevisionId;
use policy::scale::Why;
use policy::zero::Probe;
use std::collections::BTreeMap;

/// Draws, the same each time.
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

fn second(seconds: i64) -> Moment {
    Moment::from_unix_millis(seconds * 1000)
}

fn decision(desired: i32, stable: f64, limits: &[LimitKind]) -> Decision {
    let mut steps = Steps::new();
    limits.iter().for_each(|&limit| steps.push(limit, stable as i32, desired));
    Decision {
        desired,
        excess_burst_capacity: -3,
        panic: false,
        max_panic_pods: 0,
        why: Why {
            stable,
            panic: stable,
            ready: 2,
            target: 7.0,
            wish_stable: 2.0,
            wish_panic: 2.0,
            ratio: 1.0,
            starting: 0,
            by_panic_window: false,
            steps,
        },
    }
}

fn verdict(want: i32) -> ZeroVerdict {
    ZeroVerdict {
        want,
        order: None,
        path: Path::Activator,
        activators: 2,
        recheck_after: None,
        probe: Probe::Unused,
        changed: false,
        steps: Steps::new(),
    }
}

fn add(history: &mut History, at: i64, made: &Result<Decision, Undecided>, ordered: u32) -> bool {
    let verdict = verdict(i32::try_from(ordered).unwrap());
    history.add(&Fresh { at: second(at), decision: made, verdict: &verdict, ordered: Some(ordered) })
}

#[test]
fn only_averages_may_differ_in_one_record() {
    let mut history = History::default();
    assert!(add(&mut history, 0, &Ok(decision(2, 8.0, &[])), 2));
    assert!(!add(&mut history, 2, &Ok(decision(2, 13.0, &[])), 2));
    assert!(!add(&mut history, 4, &Ok(decision(2, 9.0, &[])), 2));
    let record = history.newest_first().next().unwrap();
    let made = record.made.as_ref().unwrap();
    assert_eq!((record.at, record.last, record.times), (second(0), second(4), 3));
    assert_eq!((made.stable, made.stable_range), (9.0, (8.0, 13.0)));

    // The same number for another reason, or with other pods, is another one.
    let mut others = Vec::new();
    others.push(Ok(decision(2, 9.0, &[LimitKind::Steady])));
    others.push(Ok(decision(2, 9.0, &[LimitKind::PanicFloor])));
    others.push(Ok(decision(2, 9.0, &[LimitKind::PanicFloor, LimitKind::Steady])));
    let mut with = |change: fn(&mut Decision)| {
        let mut made = decision(2, 9.0, &[]);
        change(&mut made);
        others.push(Ok(made));
    };
    with(|made| made.panic = true);
    with(|made| made.why.ready = 1);
    with(|made| made.why.starting = 1);
    with(|made| made.why.target = 5.0);
    with(|made| made.why.by_panic_window = true);
    with(|made| made.desired = 1);
    others.extend([Err(Undecided::NoData), Err(Undecided::PodsUnknown)]);
    for (at, other) in (6..).zip(&others) {
        assert!(add(&mut history, at, other, 2), "{other:?}");
    }
    assert!(add(&mut history, 50, others.last().unwrap(), 3));
    // What a limit was given comes from the averages.
    assert!(add(&mut history, 52, &Ok(decision(2, 1.0, &[LimitKind::RateDown])), 2));
    assert!(!add(&mut history, 54, &Ok(decision(2, 0.0, &[LimitKind::RateDown])), 2));
    assert_eq!(history.newest_first().next().unwrap().steps[0].from, 0);
}

#[test]
fn what_stood_at_a_time_and_what_came_before_and_after_it() {
    let mut history = History::default();
    assert_eq!((history.since(), history.at(second(5))), (None, None));
    for (at, pods) in [(10, 1), (12, 1), (20, 2), (30, 3)] {
        add(&mut history, at, &Ok(decision(pods, 1.0, &[])), pods as u32);
    }
    let at = |seconds| {
        let (before, stood, after) = history.at(second(seconds))?;
        let pods = |record: Option<&Record>| record.and_then(|record| record.ordered);
        Some((pods(before), pods(Some(stood)), pods(after)))
    };
    assert_eq!(history.since(), Some(second(10)));
    assert_eq!(at(9), None);
    assert_eq!(at(10), Some((None, Some(1), Some(2))));
    assert_eq!(at(19), Some((None, Some(1), Some(2))));
    assert_eq!(at(20), Some((Some(1), Some(2), Some(3))));
    assert_eq!(at(500), Some((Some(2), Some(3), None)));
}

/// A decision of any kind.
fn any(draw: &mut Draw) -> Result<Decision, Undecided> {
    let limits: Vec<LimitKind> = (0..draw.below(8)).map(|_| LimitKind::ALL[draw.below(20) as usize]).collect();
    match draw.below(5) {
        0 => Err(Undecided::NoData),
        n => Ok(decision(n as i32, draw.below(900) as f64, &limits)),
    }
}

#[test]
fn whatever_is_decided_a_history_stays_within_its_bytes() {
    assert!(size_of::<Record>() <= 128);
    for seed in 0..8 {
        let (mut draw, mut history, mut most) = (Draw(seed), History::default(), 0);
        for at in 0..6000 {
            add(&mut history, at, &any(&mut draw), draw.below(9) as u32);
            assert!(history.bytes() <= BYTES_MAX, "{seed} {at}: {}", history.bytes());
            most = most.max(history.records.len());
            let counted: usize = history.records.iter().map(Record::heap_bytes).sum();
            assert_eq!(history.heap, counted);
        }
        assert!(most > 250, "{most}");
        let times = history.newest_first().zip(history.newest_first().skip(1));
        assert!(times.into_iter().all(|(newer, older)| newer.at > older.last));
    }
}

#[test]
fn an_idle_revision_holds_little_and_old_records_go() {
    let mut history = History::default();
    add(&mut history, 0, &Ok(decision(1, 1.0, &[])), 1);
    for at in 1..5000 {
        add(&mut history, at, &Ok(decision(0, 0.0, &[])), 0);
    }
    assert!(history.bytes() <= 3 * size_of::<Record>(), "{}", history.bytes());
    let later = 5000 + i64::try_from(AGE_MAX.as_secs()).unwrap();
    add(&mut history, later, &Ok(decision(1, 1.0, &[])), 1);
    assert_eq!(history.records.len(), 1);
}

#[test]
fn all_together_stay_within_their_room_and_those_with_the_most_give() {
    const MOST: usize = 256 << 10;
    for seed in 0..4 {
        let mut draw = Draw(seed);
        let mut all: Vec<History> = (0..40).map(|_| History::default()).collect();
        let mut room = Room::new(MOST);
        for at in 0..12_000 {
            // Some decide far more often than others.
            let which = (draw.below(40) * draw.below(40) / 40) as usize;
            let before = all[which].bytes();
            add(&mut all[which], at, &any(&mut draw), draw.below(9) as u32);
            if room.changed(before, all[which].bytes()) {
                room.make(all.iter_mut());
            }
            let bytes: usize = all.iter().map(History::bytes).sum();
            assert!(bytes <= MOST, "{seed} {at}: {bytes}");
        }
        let (least, most) = (all[36].bytes(), all[0].bytes());
        assert!(least > 0 && most <= MOST / 8, "{least} {most}");
    }
}

#[test]
fn the_newest_of_each_stays_even_without_room() {
    let mut all: Vec<History> = (0..50).map(|_| History::default()).collect();
    let mut room = Room::new(1000);
    for at in 0..500 {
        let history = &mut all[at as usize % 50];
        let before = history.bytes();
        add(history, at, &Ok(decision(at as i32, 1.0, &[])), at as u32);
        if room.changed(before, history.bytes()) {
            room.make(all.iter_mut());
        }
    }
    assert!(all.iter().all(|history| !history.records.is_empty() && history.records.len() <= 2));
}

fn text(all: &BTreeMap<RevisionId, History>) -> Vec<u8> {
    let mut text = Vec::new();
    kept::begin(&mut text).unwrap();
    all.iter().for_each(|(id, history)| kept::put(&mut text, id, history).unwrap());
    text
}

#[test]
fn what_is_kept_is_read_and_what_makes_no_sense_is_not() {
    let mut draw = Draw(1);
    let mut all = BTreeMap::new();
    for name in ["a", "b"] {
        let mut history = History::default();
        for at in 0..2000 {
            add(&mut history, at, &any(&mut draw), draw.below(9) as u32);
        }
        all.insert(RevisionId::new("default", name), history);
    }
    let read = |text: &[u8], now, most| kept::read(text, second(now), most);
    let (written, now) = (text(&all), 2000);
    let back = read(&written, now, 1 << 20).unwrap();
    assert_eq!(back.len(), 2);
    for (id, history) in &all {
        assert!(back[id].newest_first().eq(history.newest_first()));
    }
    // A record takes about as much there as here.
    assert!(written.len() < 2 * BYTES_MAX * 2, "{}", written.len());

    let lines: Vec<&[u8]> = written.split_inclusive(|byte| *byte == b'\n').collect();
    let half = [lines[0], b"{nonsense\n", lines[1], &lines[2][..lines[2].len() / 2]].concat();
    assert_eq!(read(&half, now, 1 << 20).unwrap().len(), 1);
    assert_eq!(read(&written, now, 1000).unwrap().len(), 1);
    assert!(read(&written, now + i64::try_from(AGE_MAX.as_secs()).unwrap() + 1, 1 << 20).unwrap().is_empty());
    // From the future, where the clock was set back.
    assert!(read(&written, -5, 1 << 20).unwrap().is_empty());
    for bad in ["", "\n", "{}\n", "{\"zeroscale_history\":2}\n"] {
        assert!(read(bad.as_bytes(), now, 1 << 20).is_err(), "{bad:?}");
    }
}

#[test]
fn an_average_that_is_no_number_is_not_written() {
    let mut history = History::default();
    add(&mut history, 0, &Ok(decision(2, f64::NAN, &[])), 2);
    add(&mut history, 1, &Ok(decision(3, 1.0, &[])), 3);
    let all = BTreeMap::from([(RevisionId::new("default", "a"), history)]);
    let back = kept::read(text(&all).as_slice(), second(2), 1 << 20).unwrap();
    assert_eq!(back[&RevisionId::new("default", "a")].records.len(), 1);
}
