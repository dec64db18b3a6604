use super::singly::{PROBES_MAX, RETRY_PODS_EVERY};
use super::*;
use crate::mesh::MeshMode;

const SERVICE: &str = "172.16.0.9:80";

fn ms(millis: i64) -> Moment {
    Moment::from_unix_millis(millis)
}

fn names<'a>(of: impl IntoIterator<Item = &'a str>) -> BTreeSet<Destination> {
    of.into_iter().map(Destination::from).collect()
}

fn listed(ready: &[&str], not_ready: &[&str]) -> Listed {
    Listed { ready: names(ready.iter().copied()), not_ready: names(not_ready.iter().copied()) }
}

fn pods(of: &[&str]) -> Option<Backends> {
    Some(Backends::Pods(names(of.iter().copied())))
}

fn by_service(ready: &[&str]) -> Option<Backends> {
    Some(Backends::ClusterIp { address: SERVICE.into(), ready: names(ready.iter().copied()) })
}

fn watch(settings: Settings, compat: Compat) -> Watch {
    let mut watch = Watch::new(settings, compat, 7, ms(0));
    watch.service(Some(SERVICE.into()), ms(0));
    watch
}

fn with(mesh: MeshMode) -> Settings {
    Settings { mesh, ..Settings::default() }
}

/// Answers all questions, those that come of answers too; returns who was asked.
fn answer(watch: &mut Watch, now: Moment, of: impl Fn(&str) -> Answer) -> Vec<String> {
    let mut asked = Vec::new();
    while let Some(probe) = watch.next_probe(now) {
        watch.answered(probe.id, of(&probe.to), now);
        asked.push(probe.to.to_string());
    }
    asked
}

/// Wakes the watch when it wants to be, up to `until`; returns how many were asked.
fn run(watch: &mut Watch, until: Moment, of: impl Fn(&str) -> Answer + Copy) -> usize {
    let mut asked = 0;
    while let Some(at) = watch.wake_at().filter(|&at| at <= until) {
        watch.wake(at);
        asked += answer(watch, at, of).len();
        assert!(watch.wake_at().is_none_or(|next| next > at), "time goes on");
    }
    asked
}

#[test]
fn the_setting_is_read_in_any_case() {
    let read = ["Enabled", "DISABLED", "auto", "odd", ""].map(MeshMode::from_setting);
    assert_eq!(read, [MeshMode::Enabled, MeshMode::Disabled, MeshMode::Auto, MeshMode::Auto, MeshMode::Auto]);
}

#[test]
fn a_sidecar_is_told_from_a_mesh_by_its_words() {
    let cases = [
        (200, "queue", false, Answer::Passed),
        (200, "queue ", false, Answer::Odd),
        (404, "", false, Answer::Odd),
        (503, "", false, Answer::Unready),
        (503, "shutting down\n", false, Answer::Unready),
        (503, "no healthy upstream", true, Answer::Unready),
        (503, "no healthy upstream", false, Answer::Between),
        (502, "", false, Answer::Between),
    ];
    for (status, body, ours, expected) in cases {
        assert_eq!(Answer::new(status, body.as_bytes(), ours), expected, "{status} {body:?}");
    }
}

#[test]
fn a_round_tells_when_all_have_answered_and_single_pods_at_once() {
    for compat in [Compat::Strict, Compat::Better] {
        let mut watch = watch(Settings::default(), compat);
        watch.endpoints(listed(&["a", "b"], &[]), ms(0));
        let (first, second) = (watch.next_probe(ms(0)).unwrap(), watch.next_probe(ms(0)).unwrap());
        assert_eq!((&*first.to, &*second.to, watch.next_probe(ms(0))), ("a", "b", None));
        assert_eq!((first.deadline, watch.wake_at()), (ms(300), Some(ms(300))));
        watch.answered(first.id, Answer::Passed, ms(5));
        let early = watch.update();
        watch.wake(ms(299));
        assert!(watch.update().is_none());
        watch.wake(ms(300));
        let late = watch.update();
        match compat {
            Compat::Strict => assert_eq!((early, late), (None, pods(&["a"]))),
            Compat::Better => assert_eq!((early, late), (pods(&["a"]), None)),
        }
        watch.answered(second.id, Answer::Passed, ms(301));
        assert_eq!(watch.healthy(), names(["a"]), "the answer comes too late");
        assert!(watch.has_probe() || watch.wake_at().is_some(), "it is asked again");
    }
}

#[test]
fn what_is_listed_during_a_check_is_looked_at_in_the_end_or_at_once() {
    for (compat, at_once) in [(Compat::Strict, false), (Compat::Better, true)] {
        let mut watch = watch(Settings::default(), compat);
        watch.endpoints(listed(&["a"], &[]), ms(0));
        answer(&mut watch, ms(0), |_| Answer::Passed);
        assert_eq!(watch.update(), pods(&["a"]));
        watch.endpoints(listed(&["a", "b"], &[]), ms(10));
        watch.endpoints(listed(&["b"], &[]), ms(20));
        assert_eq!(watch.update(), at_once.then(Backends::default), "a is gone");
        answer(&mut watch, ms(30), |_| Answer::Passed);
        assert_eq!(watch.update(), pods(&["b"]));
    }
}

#[test]
fn the_rounds_follow_a_ticker_that_runs_from_the_beginning() {
    let mut watch = watch(Settings::default(), Compat::Strict);
    watch.endpoints(listed(&[], &["a"]), ms(450));
    answer(&mut watch, ms(450), |_| Answer::Failed);
    assert_eq!(watch.wake_at(), Some(ms(200)), "the tick that was not listened to waits");
    watch.wake(ms(460));
    assert_eq!(answer(&mut watch, ms(460), |_| Answer::Failed), ["a", SERVICE]);
    assert_eq!(watch.wake_at(), Some(ms(600)));
    watch.wake(ms(500));
    assert_eq!(watch.next_probe(ms(500)), None, "not yet");
    watch.wake(ms(600));
    assert_eq!(answer(&mut watch, ms(600), |_| Answer::Passed), ["a"]);
    assert_eq!((watch.update(), watch.wake_at()), (pods(&["a"]), None));
}

#[test]
fn single_pods_are_asked_quickly_at_first_and_then_as_often_as_the_reference_does() {
    let mut watch = watch(Settings::default(), Compat::Better);
    watch.endpoints(listed(&[], &["a"]), ms(0));
    answer(&mut watch, ms(0), |_| Answer::Failed);
    let early = run(&mut watch, ms(100), |_| Answer::Failed);
    assert!((100..=134).contains(&early), "{early}");
    run(&mut watch, ms(11_000), |_| Answer::Failed);
    let late = run(&mut watch, ms(21_000), |_| Answer::Failed);
    assert!((50..=68).contains(&late), "{late}");
    assert!(watch.update().is_none());
    run(&mut watch, ms(21_300), |_| Answer::Passed);
    assert_eq!((watch.update(), watch.wake_at()), (pods(&["a"]), None));
}

#[test]
fn a_pod_in_a_crowd_is_asked_less_often() {
    let mut watch = watch(Settings::default(), Compat::Better);
    watch.set_crowd(800);
    watch.endpoints(listed(&[], &["a"]), ms(0));
    assert_eq!(watch.asked(), 1);
    answer(&mut watch, ms(0), |_| Answer::Failed);
    let asked = run(&mut watch, ms(1000), |_| Answer::Failed);
    assert!((10..=14).contains(&asked), "{asked}");
    run(&mut watch, ms(1100), |_| Answer::Passed);
    assert_eq!(watch.asked(), 0);
}

#[test]
fn a_question_has_its_time_from_when_it_is_sent() {
    for compat in [Compat::Strict, Compat::Better] {
        let mut watch = watch(Settings::default(), compat);
        watch.endpoints(listed(&["a"], &[]), ms(0));
        assert!(watch.has_probe());
        watch.wake(ms(1000));
        let probe = watch.next_probe(ms(1000)).unwrap();
        assert_eq!((probe.deadline, watch.wake_at(), watch.has_probe()), (ms(1300), Some(ms(1300)), false));
        watch.answered(probe.id, Answer::Passed, ms(1299));
        assert_eq!(watch.update(), pods(&["a"]));
    }
}

#[test]
fn only_so_many_questions_are_out_and_dead_pods_do_not_keep_others_waiting() {
    let mut watch = watch(Settings { passthrough: true, ..Settings::default() }, Compat::Better);
    let all: Vec<String> = (0..3 * PROBES_MAX).map(|n| format!("10.0.0.{n:03}:8012")).collect();
    let is_dead = |name: &str| name < all[2 * PROBES_MAX].as_str();
    watch.endpoints(Listed { ready: names(all.iter().map(String::as_str)), ..Listed::default() }, ms(0));
    let mut now = ms(0);
    let mut out = 0;
    while now < ms(1000) {
        while let Some(probe) = watch.next_probe(now) {
            out += 1;
            if !is_dead(&probe.to) {
                watch.answered(probe.id, Answer::Passed, now);
                out -= 1;
            }
            assert!(out <= PROBES_MAX, "{out} are out");
        }
        now = watch.wake_at().unwrap();
        watch.wake(now);
        out = 0;
    }
    assert_eq!(watch.healthy().len(), PROBES_MAX);
}

#[test]
fn a_pod_that_went_not_ready_is_asked_and_told_of_with_each_tick_or_once() {
    for (compat, told) in [(Compat::Strict, 3), (Compat::Better, 1)] {
        let mut watch = watch(Settings::default(), compat);
        watch.endpoints(listed(&["a", "b"], &[]), ms(0));
        answer(&mut watch, ms(0), |_| Answer::Passed);
        assert_eq!(watch.update(), pods(&["a", "b"]));
        watch.endpoints(listed(&["a"], &["b"]), ms(10));
        let refuses_b = |to: &str| if to == "b" { Answer::Failed } else { Answer::Passed };
        assert_eq!(answer(&mut watch, ms(10), refuses_b), ["b"]);
        let mut updates = Vec::new();
        updates.extend(watch.update());
        for n in 1..3 {
            run(&mut watch, ms(200 * n), refuses_b);
            updates.extend(watch.update());
        }
        assert_eq!(updates.len(), told);
        assert!(updates.iter().all(|update| Some(update) == pods(&["a"]).as_ref()));
    }
}

#[test]
fn a_pod_that_went_not_ready_keeps_its_place_until_it_fails_if_its_word_is_trusted() {
    for trust_probe in [true, false] {
        let mut watch = watch(Settings { trust_probe, ..Settings::default() }, Compat::Better);
        watch.endpoints(listed(&["a", "b"], &[]), ms(0));
        answer(&mut watch, ms(0), |_| Answer::Passed);
        assert_eq!(watch.update(), pods(&["a", "b"]));
        watch.endpoints(listed(&["a"], &["b"]), ms(10));
        assert_eq!(watch.update(), if trust_probe { None } else { pods(&["a"]) });
        assert_eq!(answer(&mut watch, ms(10), |_| Answer::Passed), ["b"]);
        assert_eq!(watch.update(), None);
    }
}

#[test]
fn one_pass_of_the_cluster_ip_is_for_ever_or_until_a_pod_can_be_reached() {
    let settings = Settings::default();
    let meshed = |to: &str| if to == SERVICE { Answer::Passed } else { Answer::Between };
    for compat in [Compat::Strict, Compat::Better] {
        let mut watch = watch(settings, compat);
        watch.endpoints(listed(&["a", "b"], &["c"]), ms(0));
        answer(&mut watch, ms(0), meshed);
        assert_eq!(watch.update(), by_service(&["a", "b"]));
        assert!(watch.cluster_ip_healthy() && !watch.pods_addressable() && watch.healthy().is_empty());

        let retries = run(&mut watch, ms(60_000), meshed);
        assert!(watch.update().is_none());
        match compat {
            Compat::Strict => assert_eq!((retries, watch.wake_at()), (0, None)),
            Compat::Better => assert_eq!(retries, 12, "one pod each five seconds"),
        }
        run(&mut watch, ms(70_000), |to| if to == "b" { Answer::Failed } else { Answer::Passed });
        match compat {
            Compat::Strict => assert_eq!(watch.update(), None),
            Compat::Better => assert_eq!(watch.update(), pods(&["a", "c"])),
        }
    }
}

#[test]
fn from_the_cluster_ip_back_to_pods_all_of_them_are_asked_first() {
    let mut watch = watch(Settings::default(), Compat::Better);
    let meshed = |to: &str| if to == SERVICE { Answer::Passed } else { Answer::Failed };
    watch.endpoints(listed(&["a", "b", "c"], &[]), ms(0));
    answer(&mut watch, ms(0), meshed);
    assert!(watch.cluster_ip_healthy());
    let at = ms(0) + RETRY_PODS_EVERY;
    watch.update();
    watch.wake(at);
    let first = watch.next_probe(at).unwrap();
    watch.answered(first.id, Answer::Passed, at);
    assert_eq!(watch.update(), None);
    let (second, third) = (watch.next_probe(at).unwrap(), watch.next_probe(at).unwrap());
    watch.endpoints(listed(&["a", "b"], &["c"]), at);
    watch.answered(second.id, Answer::Passed, at);
    assert_eq!(watch.update(), by_service(&["a", "b"]), "c is asked anew");
    watch.answered(third.id, Answer::Passed, at);
    answer(&mut watch, at, |_| Answer::Failed);
    assert_eq!(watch.update(), pods(&["a", "b"]));
    assert!(watch.pods_addressable());
}

#[test]
fn an_unready_sidecar_is_no_mesh() {
    for (compat, falls_back) in [(Compat::Strict, true), (Compat::Better, false)] {
        let mut watch = watch(Settings::default(), compat);
        watch.endpoints(listed(&["a"], &[]), ms(0));
        let asked = answer(&mut watch, ms(0), |to| if to == SERVICE { Answer::Passed } else { Answer::Unready });
        assert_eq!(asked.contains(&SERVICE.to_owned()), falls_back);
        assert_eq!(watch.cluster_ip_healthy(), falls_back);
    }
}

#[test]
fn a_pod_that_starts_is_no_sign_of_a_mesh() {
    for (compat, asked) in [(Compat::Strict, vec!["a", SERVICE]), (Compat::Better, vec!["a"])] {
        let mut watch = watch(Settings::default(), compat);
        watch.endpoints(listed(&[], &["a"]), ms(0));
        assert_eq!(answer(&mut watch, ms(0), |_| Answer::Failed), asked);
    }
}

#[test]
fn a_doubted_pod_is_out_until_it_passes() {
    let mut watch = watch(Settings::default(), Compat::Better);
    watch.endpoints(listed(&["a", "b"], &[]), ms(0));
    answer(&mut watch, ms(0), |_| Answer::Passed);
    watch.update();
    watch.doubt(&"a".into(), Duration::ZERO, ms(50));
    assert_eq!(watch.update(), pods(&["b"]));
    assert_eq!(answer(&mut watch, ms(50), |_| Answer::Failed), ["a"]);
    assert_eq!(run(&mut watch, ms(60), |_| Answer::Passed), 1);
    assert_eq!(watch.update(), pods(&["a", "b"]));
    watch.doubt(&"c".into(), Duration::ZERO, ms(70));
    assert_eq!((watch.update(), watch.wake_at()), (None, None));
}

#[test]
fn a_doubted_cluster_ip_is_asked_again() {
    let mut watch = watch(with(MeshMode::Enabled), Compat::Better);
    watch.endpoints(listed(&["a"], &[]), ms(0));
    assert_eq!(answer(&mut watch, ms(0), |_| Answer::Passed), [SERVICE]);
    assert_eq!((watch.update(), watch.wake_at()), (by_service(&["a"]), None));
    watch.doubt(&SERVICE.into(), Duration::ZERO, ms(50));
    assert_eq!(watch.update(), pods(&[]));
    assert_eq!(answer(&mut watch, ms(50), |_| Answer::Failed), [SERVICE]);
    assert_eq!(run(&mut watch, ms(60), |_| Answer::Passed), 1);
    assert_eq!(watch.update(), by_service(&["a"]));
}

#[test]
fn without_a_mesh_ready_pods_are_not_asked_and_the_cluster_ip_never() {
    for compat in [Compat::Strict, Compat::Better] {
        let mut watch = watch(with(MeshMode::Disabled), compat);
        watch.endpoints(listed(&["a"], &["b"]), ms(0));
        assert_eq!(answer(&mut watch, ms(0), |_| Answer::Failed), ["b"]);
        assert_eq!(watch.update(), pods(&["a"]));
        watch.endpoints(listed(&["a", "b"], &[]), ms(300));
        assert_eq!(answer(&mut watch, ms(300), |_| Answer::Failed), [""; 0]);
        assert_eq!((watch.update(), watch.wake_at()), (pods(&["a", "b"]), None));
    }
}

#[test]
fn with_a_mesh_to_single_pods_they_are_asked_whatever_the_mode() {
    let settings = Settings { passthrough: true, ..with(MeshMode::Enabled) };
    for (compat, asked) in [(Compat::Strict, vec![]), (Compat::Better, vec!["a"])] {
        let mut watch = watch(settings, compat);
        watch.endpoints(listed(&["a"], &[]), ms(0));
        assert_eq!(answer(&mut watch, ms(0), |_| Answer::Passed), asked);
        assert_eq!(watch.update().is_some(), !asked.is_empty());
    }
}

#[test]
fn without_endpoints_the_pods_stay_or_go() {
    for (compat, told) in [(Compat::Strict, None), (Compat::Better, pods(&[]))] {
        let mut watch = watch(Settings::default(), compat);
        watch.endpoints(listed(&["a"], &["b"]), ms(0));
        answer(&mut watch, ms(0), |_| Answer::Passed);
        watch.update();
        watch.end();
        assert_eq!(watch.update(), told);
        assert_eq!((watch.next_probe(ms(0)), watch.wake_at()), (None, None));
    }
}

#[test]
fn another_private_service_is_asked_anew() {
    let mut watch = watch(with(MeshMode::Enabled), Compat::Better);
    watch.endpoints(listed(&["a"], &[]), ms(0));
    answer(&mut watch, ms(0), |_| Answer::Passed);
    watch.update();
    watch.service(None, ms(10));
    assert_eq!((watch.update(), watch.next_probe(ms(10))), (pods(&[]), None));
    watch.service(Some("172.16.0.10:80".into()), ms(20));
    assert_eq!(answer(&mut watch, ms(20), |_| Answer::Passed), ["172.16.0.10:80"]);
    assert!(watch.cluster_ip_healthy());
}

/// Walks through random events; when all is quiet and everybody passes, both
/// ways come to the same pods and have nothing left to do.
#[test]
fn whatever_happens_those_that_pass_get_requests_in_the_end() {
    for seed in 0..300u64 {
        let mut random = seed;
        let mut draw = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % below
        };
        let mesh = [MeshMode::Auto, MeshMode::Disabled][draw(2) as usize];
        let settings = Settings { mesh, trust_probe: draw(2) == 0, ..Settings::default() };
        let compat = [Compat::Strict, Compat::Better][draw(2) as usize];
        let mut watch = watch(settings, compat);
        let mut now = ms(0);
        let mut unanswered = Vec::new();
        for _ in 0..60 {
            now = now + Duration::from_millis(draw(120));
            match draw(4) {
                0 => {
                    let mut listed = Listed::default();
                    for name in ["a", "b", "c", "d"] {
                        match draw(3) {
                            0 => drop(listed.ready.insert(name.into())),
                            1 => drop(listed.not_ready.insert(name.into())),
                            _ => {}
                        }
                    }
                    watch.endpoints(listed, now);
                }
                1 => watch.wake(now),
                2 => watch.doubt(&["a", "b", "c", SERVICE][draw(4) as usize].into(), Duration::ZERO, now),
                _ => watch.check_now(now),
            }
            unanswered.extend(std::iter::from_fn(|| watch.next_probe(now)));
            while !unanswered.is_empty() && draw(3) > 0 {
                let probe = unanswered.swap_remove(draw(unanswered.len() as u64) as usize);
                let answer = [Answer::Passed, Answer::Failed, Answer::Between, Answer::Odd][draw(4) as usize];
                watch.answered(probe.id, answer, now);
            }
            assert!(watch.healthy().len() <= 4);
        }
        let all = names(["a", "b", "c"]);
        watch.endpoints(Listed { ready: all.clone(), ..Listed::default() }, now);
        answer(&mut watch, now, |_| Answer::Passed);
        run(&mut watch, now + Duration::from_secs(20), |_| Answer::Passed);
        let by_pods = !watch.cluster_ip_healthy();
        assert!(compat == Compat::Strict || by_pods, "seed {seed}");
        if by_pods {
            assert_eq!((watch.healthy(), watch.wake_at()), (all, None), "seed {seed}");
        }
    }
}
