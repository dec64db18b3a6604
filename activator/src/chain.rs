//! The request path of the activator, one function, outermost step first.

use crate::offer::{self, Handback};
use crate::revision::{Inside, Pod, Revision};
use crate::wait::Waiter;
use crate::{Activator, report, suspect};
use bytes::Bytes;
use http::header::{EXPECT, HeaderValue};
use http::{Request, Response, StatusCode, Version, request};
use hyper::body::Body as _;
use plumbing::body::{Body, Guard, Origin};
use plumbing::conn::Caller;
use plumbing::deadline::Limits;
use plumbing::forward::{Received, SendError, Trip};
use plumbing::h1::{Hold, Interim, OnUpgrade};
use plumbing::head::{Head, Probe};
use plumbing::incoming::Incoming;
use plumbing::limiter::{Back, Permit};
use plumbing::reason::Reason;
use plumbing::refuse::Refusal;
use plumbing::replay::Kept;
use plumbing::shutdown::Shutdown;
use plumbing::target::{self, AsItCame};
use plumbing::{grpc_status, headers, probe, tunnel};
use policy::compat::Compat;
use policy::revision::Timeouts;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How much longer than the sidecar we wait, so that the limit that fires is
/// the one nearer to the app, which knows more.
const SIDECAR_FIRST: Duration = Duration::from_secs(1);

/// Serves one request. To a gRPC call, an answer of ours is a gRPC status.
pub(crate) async fn serve(
    activator: &Activator,
    shutdown: &Shutdown,
    caller: &Arc<Caller>,
    request: Request<Incoming>,
) -> Response<Body> {
    let is_grpc = activator.shared.config.compat == Compat::Better && grpc_status::is_call(request.headers());
    let answer = pass(activator, shutdown, caller, request).await;
    if is_grpc { grpc_status::instead_of(answer) } else { answer }
}

async fn pass(
    activator: &Activator,
    shutdown: &Shutdown,
    caller: &Arc<Caller>,
    request: Request<Incoming>,
) -> Response<Body> {
    let mut arrival = Arrival::of(request, activator, caller);
    if let Some(probe) = &arrival.head.probe {
        return answer_probe(probe, shutdown);
    }
    if caller.fds_scarce {
        return refuse(activator, Refusal::new(Reason::FdLimit).closing());
    }
    let Some(revision) = activator.shared.table.lookup(&arrival.head) else {
        return refuse(activator, Refusal::new(Reason::NoRoute));
    };
    let until = Instant::now() + activator.shared.config.wait_max;
    let body = arrival.body.clone();
    let waiter = Waiter { activator, revision: &revision, caller, body: body.as_ref(), until };
    let mut passage = match revision.direct_slot() {
        Some(permit) => Passage { permit, inside: None, cold_start: None },
        None => {
            let (inside, cold_since) = enter(activator, &revision);
            match waiter.slot().await {
                Ok(permit) => {
                    Passage { permit, inside: Some(inside), cold_start: cold_since.map(|since| since.elapsed()) }
                }
                Err(refusal) => return refuse(activator, refusal),
            }
        }
    };
    loop {
        let (back, why) = match send(activator, &arrival, &revision, caller, &passage).await {
            Sent::Answered(answer, limits) => {
                let switch = arrival.switch.take();
                return carry(*answer, *limits, switch, passage, &revision, caller, shutdown);
            }
            Sent::Failed(refusal) => return refuse(activator, refusal),
            Sent::Back(why) => (passage, why),
        };
        // Handed back: it waits in our queue from here on, whichever way it came.
        let inside = back.inside.unwrap_or_else(|| enter(activator, &revision).0);
        let pod = (why == Back::Doubted).then(|| back.permit.pod());
        let place = back.permit.hand_back(why);
        if let Some((key, pod)) = pod.and_then(|key| Some((key, revision.doubt(key)?))) {
            caller.worker.spawn(suspect::watch(revision.clone(), key, pod, caller.worker.clone()));
        }
        passage = match waiter.wait(place).await {
            Ok(permit) => Passage { permit, inside: Some(inside), cold_start: back.cold_start },
            Err(refusal) => return refuse(activator, refusal),
        };
    }
}

/// A request as it came in.
struct Arrival {
    head: Head,
    parts: request::Parts,
    /// `None` without content.
    body: Option<Kept>,
    interim: Option<Interim>,
    /// Set when the client asks for another protocol.
    switch: Option<OnUpgrade>,
}

impl Arrival {
    fn of(mut request: Request<Incoming>, activator: &Activator, caller: &Caller) -> Arrival {
        headers::receive(request.headers_mut(), caller.ip(), &activator.shared.config.trust);
        let (mut parts, incoming) = request.into_parts();
        let switch = headers::upgrade_protocol(&parts.headers).and_then(|_| incoming.on_upgrade());
        let interim = incoming.interim();
        let head = Head::read(&parts);
        AsItCame::alone(&mut parts);
        if head.probe.is_none() {
            let host = target::host_of(&parts);
            headers::to_pod(&mut parts.headers, caller.ip(), host);
        }
        let body = (!incoming.is_end_stream()).then(|| Kept::new(incoming, &activator.shared.budget));
        Arrival { head, parts, body, interim, switch }
    }
}

/// A request on its way: its slot, and what counts it.
struct Passage {
    permit: Permit,
    /// `None` on the direct path: the sidecar alone counts it.
    inside: Option<Inside>,
    /// How long it waited for a start, if it did.
    cold_start: Option<Duration>,
}

/// Counts the request; tells the autoscaler at once when it is the first.
fn enter(activator: &Activator, revision: &Arc<Revision>) -> (Inside, Option<Instant>) {
    let (inside, poke) = revision.enter();
    if poke {
        report::poke(activator, revision);
    }
    if revision.begin_wake() {
        activator.shared.metrics.waking();
    }
    let cold_since = revision.is_waking().then(Instant::now);
    (inside, cold_since)
}

enum Sent {
    Answered(Box<Response<Received>>, Box<Limits>),
    /// Not served, and not harmed: it can go elsewhere.
    Back(Back),
    Failed(Refusal),
}

/// One try at the pod that the slot belongs to.
async fn send(
    activator: &Activator,
    arrival: &Arrival,
    revision: &Revision,
    caller: &Caller,
    passage: &Passage,
) -> Sent {
    // The pod may have been taken out since the slot was granted.
    let Some(pod) = revision.pod(passage.permit.pod()) else { return Sent::Back(Back::Gone) };
    let nonce = (activator.shared.config.compat == Compat::Better).then(offer::nonce);
    let (request, hold) = outgoing(arrival, &pod, nonce.as_ref(), passage.inside.is_some());
    let trip = Trip {
        repeatable: arrival.head.idempotent && arrival.body.is_none(),
        // It is better off at another pod, or waiting here.
        patience: Duration::ZERO,
        interim: arrival.interim.clone(),
        hold,
    };
    let timeouts = revision.spec().timeouts;
    let mut limits = Limits::start(caller.worker.wheel(), &later(&timeouts));
    let sent = tokio::select! {
        sent = caller.worker.pool().send(pod.address, request, trip) => sent,
        reason = limits.passed() => return Sent::Failed(Refusal::new(reason)),
    };
    let whole = arrival.body.as_ref().is_none_or(Kept::can_be_sent_again);
    match sent {
        Ok(answer) => match nonce.and_then(|nonce| offer::handback(answer.headers(), &nonce)) {
            Some(_) if !whole => Sent::Failed(Refusal::new(Reason::ConnectFailed)),
            Some(why) => {
                tracing::debug!(revision = %revision.id, pod = %pod.name, ?why, "a request was handed back");
                activator.shared.metrics.handed_back(why);
                Sent::Back(match why {
                    Handback::Full => Back::Full,
                    Handback::NotSent => Back::Doubted,
                })
            }
            None => Sent::Answered(Box::new(answer), Box::new(limits)),
        },
        Err(SendError::NotSent { error }) if whole => {
            tracing::debug!(revision = %revision.id, pod = %pod.name, error, "a pod cannot be reached");
            Sent::Back(Back::Doubted)
        }
        Err(failed) => Sent::Failed(fault(revision, &pod, failed)),
    }
}

fn outgoing(arrival: &Arrival, pod: &Pod, nonce: Option<&HeaderValue>, held: bool) -> (Request<Body>, Hold) {
    let mut parts = arrival.parts.clone();
    target::to_pod(&mut parts, pod.address);
    if let Some(nonce) = nonce {
        parts.headers.insert(headers::OFFER, nonce.clone());
    }
    if !held {
        parts.headers.remove(headers::PROXY_REQUEST);
    }
    let Some(body) = &arrival.body else { return (Request::from_parts(parts, Body::empty()), Hold::No) };
    // A longer body is sent only after the sidecar's 100, which comes when
    // it has a slot and a connection to the app. HTTP/2 has no such answer
    // here: there a request whose body has gone beyond the prefix is past return.
    let gated = nonce.is_some() && parts.version != Version::HTTP_2 && !body.fits_prefix();
    if gated {
        parts.headers.insert(EXPECT, HeaderValue::from_static("100-continue"));
    }
    let hold = if gated { Hold::UntilContinue } else { Hold::No };
    (Request::from_parts(parts, Body::replay(body.view())), hold)
}

fn later(timeouts: &Timeouts) -> Timeouts {
    Timeouts {
        total: timeouts.total + SIDECAR_FIRST,
        response_start: timeouts.response_start.map(|span| span + SIDECAR_FIRST),
        idle: timeouts.idle.map(|span| span + SIDECAR_FIRST),
        upgrade: timeouts.upgrade.map(|span| span + SIDECAR_FIRST),
    }
}

/// Passes the pod's answer on; slot and count last until its last byte, or
/// until both ends of an upgraded connection have closed.
fn carry(
    mut response: Response<Received>,
    mut limits: Limits,
    switch: Option<OnUpgrade>,
    passage: Passage,
    revision: &Revision,
    caller: &Caller,
    shutdown: &Shutdown,
) -> Response<Body> {
    let switching = response.status() == StatusCode::SWITCHING_PROTOCOLS;
    let pod_side = if switching { response.body_mut().take_upgraded() } else { None };
    headers::to_client(response.headers_mut(), false, switching);
    if let Some(waited) = passage.cold_start {
        let millis = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
        response.headers_mut().insert(headers::COLD_START, HeaderValue::from(millis));
    }
    let guard: Guard = Box::new((passage.permit, passage.inside));
    let (mut parts, received) = response.into_parts();
    // Ours is the connection to the client; what the next hop speaks is not its business.
    parts.version = Version::HTTP_11;
    if let Some((client, pod)) = switch.zip(pod_side) {
        let timeouts = later(&revision.spec().timeouts);
        let limits = tunnel::Limits { life: timeouts.upgrade, idle: timeouts.idle };
        let joined = tunnel::join(client, pod, limits, caller.worker.wheel().clone(), guard);
        let stop = shutdown.clone();
        caller.worker.spawn(shutdown.track(async move {
            tokio::select! { () = joined => {}, () = stop.stopping() => {} }
        }));
        return Response::from_parts(parts, Body::empty());
    }
    limits.answered();
    Response::from_parts(parts, Body::carried(received, Origin::Pod, limits, guard))
}

fn answer_probe(asked: &Probe, shutdown: &Shutdown) -> Response<Body> {
    match asked {
        _ if shutdown.is_draining() => Refusal::new(Reason::Draining).response(),
        Probe::Activator => Response::new(Body::full(Bytes::from_static(b"activator"))),
        Probe::Ingress { hash } => probe::ingress(hash.as_ref()),
        Probe::Readiness => Refusal::because(Reason::Malformed, "unexpected probe header value: \"queue\"").response(),
        Probe::Unexpected { value } => {
            Refusal::because(Reason::Malformed, format!("unexpected probe header value: \"{value}\"")).response()
        }
    }
}

fn fault(revision: &Revision, pod: &Pod, failed: SendError) -> Refusal {
    let (reason, error) = failed.into_reason();
    tracing::warn!(revision = %revision.id, pod = %pod.name, %reason, error, "a request failed at a pod");
    Refusal::new(reason)
}

fn refuse(activator: &Activator, refusal: Refusal) -> Response<Body> {
    activator.shared.metrics.refused(refusal.reason);
    tracing::debug!(reason = %refusal.reason, "refused a request");
    refusal.response()
}
