//! Probes.

use super::super::observed::{Part, holds};
use super::{Check, as_recorded, check};

pub(super) const CHECKS: &[Check] = &[
    check("probe-queue-header-other-ua", "it goes to the app", as_recorded),
    check("probe-http-ok", "the app is asked once, as kubelet would", |seen| {
        ready(seen.answer(0)?)?;
        let requests = seen.requests()?;
        holds(requests.len() == 1, || format!("the app saw {} requests", requests.len()))?;
        asked(requests[0])
    }),
    check("probe-h2-detection", "the app is asked in its own version", |seen| {
        ready(seen.answer(0)?)?;
        let requests = seen.requests()?;
        let served: Vec<_> = requests.iter().filter(|request| request.text("method") != "PRI").collect();
        holds(served.len() == 1, || format!("the app saw {} requests", served.len()))?;
        asked(*served[0])
    }),
    check("probe-tcp-period-down", "it is 503 at once", |seen| {
        let answer = seen.answer(0)?;
        answer.status(503)?;
        let limit = 400.0 + seen.slack.0.as_secs_f64() * 1000.0;
        let soon = answer.number("elapsed_ms").is_some_and(|elapsed| elapsed <= limit);
        holds(soon, || format!("it came late: {}", answer.shown()))
    }),
    check("probe-grpc-serving", "the app is asked for that service", |seen| {
        ready(seen.answer(0)?)?;
        let requests = seen.requests()?;
        holds(requests.len() == 1, || format!("the app saw {} requests", requests.len()))?;
        let request = requests[0];
        let target = request.text("target");
        holds(target == "/grpc.health.v1.Health/Check", || format!("the app was asked for {target}"))?;
        request.body("\0\0\0\0\u{7}\n\u{5}svc.X")?;
        by_kubelet(request)
    }),
];

fn ready(answer: Part) -> super::Held {
    answer.status(200)?;
    answer.body("queue")
}

fn asked(request: Part) -> super::Held {
    let (method, target) = (request.text("method"), request.text("target"));
    holds(method == "GET" && target == "/ready", || format!("the app was asked {method} {target}"))?;
    by_kubelet(request)
}

fn by_kubelet(request: Part) -> super::Held {
    let agent = request.header("user-agent").unwrap_or_default();
    holds(agent.starts_with("kube-probe/"), || format!("the user agent is {agent:?}"))
}
