//! Slots of the sidecar's limiter.

use criterion::Criterion;
use plumbing::limiter::{Asked, Limiter};
use policy::admit::{Bounds, PodKey};
use policy::pick::Rule;
use std::future::Future;
use std::hint::black_box;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

const LIMIT: u32 = 10;
const WAITING: usize = 100;

pub(crate) fn run(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("admission");
    group.bench_function("free", |bencher| {
        let limiter = limiter();
        bencher.iter(|| match limiter.ask() {
            Asked::Go(permit) => drop(black_box(permit)),
            _ => panic!("there is room"),
        });
    });
    group.bench_function("handed over, 100 wait", |bencher| {
        let limiter = limiter();
        let mut permits: Vec<_> = (0..LIMIT).filter_map(|_| limiter.try_take()).collect();
        let mut cx = Context::from_waker(Waker::noop());
        let mut wait = || match limiter.ask() {
            Asked::Wait(waiting) => {
                let mut waiting = Box::pin(waiting);
                assert!(waiting.as_mut().poll(&mut cx).is_pending());
                waiting
            }
            _ => panic!("all slots are taken"),
        };
        let mut queue: std::collections::VecDeque<Pin<Box<_>>> = (0..WAITING).map(|_| wait()).collect();
        // One leaves, the first of those who wait goes, and another one comes.
        bencher.iter(|| {
            permits.pop();
            let mut first = queue.pop_front().expect("somebody waits");
            let Poll::Ready(Ok(permit)) = first.as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
                panic!("the slot is the first one's");
            };
            permits.push(permit);
            queue.push_back(wait());
        });
    });
    group.finish();
}

fn limiter() -> Limiter {
    let bounds = Bounds { waiting_max: 10 * LIMIT as usize, places_max: 11 * LIMIT as usize };
    let limiter = Limiter::new(bounds, Rule::for_limit(LIMIT), None);
    let _: PodKey = limiter.update(|admission, woken| admission.add_pod(Some(LIMIT), woken));
    limiter
}
