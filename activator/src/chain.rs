//! The request path of the activator, one function, outermost step first.

use crate::offer;
use crate::revision::{Entered, Inside, Pod, Revision};
use crate::wait::{Waiter, limit_passed};
use crate::wake::{Cold, Wake};
use crate::{Activator, burst, report, suspect};
use bytes::Bytes;
use http::header::{EXPECT, HeaderValue};
use http::{Request, Response, StatusCode, Version, request};
use hyper::body::Body as _;
use plumbing::body::{Body, Guard, Origin};
use plumbing::conn::Caller;
use plumbing::deadline::Limits;
use plumbing::forward::{Received, SendError, Trip};
use plumbing::h1::{Break, Hold, Interim, OnUpgrade};
use plumbing::head::{Head, Probe};
use plumbing::incoming::Incoming;
use plumbing::limiter::Permit;
use plumbing::reason::Reason;
use plumbing::refuse::Refusal;
use plumbing::replay::Kept;
use plumbing::shutdown::Shutdown;
use plumbing::target::{self, AsItCame};
use plumbing::{grpc_status, headers, probe, tunnel};
use policy::admit::PodKey;
use policy::compat::Compat;
use policy::eject::Sign;
use policy::revision::Timeouts;
use std::sync::{Arc, OnceLock};
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
        return refuse_unseen(activator, &Refusal::new(Reason::FdLimit).closing());
    }
    let Some(revision) = activator.shared.table.lookup(&arrival.head) else {
        return refuse_unseen(activator, &Refusal::new(Reason::NoRoute));
    };
    if let Err(refusal) = activator.shared.callers.may_wake(&revision, caller.ip()) {
        return refuse(activator, &revision, refusal);
    }
    let came = Instant::now();
    let body = arrival.body.clone();
    body.iter().for_each(|body| body.charge_to(&revision.budget));
    let until = wait_limit(activator, &revision, caller, came);
    let waiter = Waiter { activator, revision: &revision, caller, body: body.as_ref(), until };
    let mut passage = match revision.direct_slot() {
        Some(permit) => Passage { permit, inside: None, cold: None },
        None => {
            let (inside, wake) = enter(activator, &revision, caller);
            match waiter.slot().await {
                Ok(permit) => {
                    let cold = wake.map(|wake| Cold::granted(wake, came));
                    Passage { permit, inside: Some(inside), cold }
                }
                Err(refusal) => return refuse(activator, &revision, refusal),
            }
        }
    };
    let mut sent_again = false;
    loop {
        let began = if activator.shared.config.charges_wait() { came } else { Instant::now() };
        let (lost, sign) = match send(activator, &arrival, &revision, caller, &passage, began).await {
            Sent::Answered(answer) => {
                let switch = arrival.switch.take();
                return carry(activator, *answer, switch, passage, &revision, caller, shutdown);
            }
            Sent::Failed(refusal) => return refuse(activator, &revision, refusal),
            Sent::Back { sign } => (None, sign),
            Sent::Lost { end, sign } => (Some(end), Some(sign)),
        };
        let key = passage.permit.pod();
        if let Some(end) = lost {
            // Whatever it was, only what does no harm when it is done twice is
            // done again, and only if the pod has really gone.
            let again = !sent_again && arrival.repeatable() && sign == Some(Sign::Reset);
            if !again || !is_gone(&revision, key, caller).await {
                suspect::doubt(&revision, key, sign.unwrap_or(Sign::Reset), &caller.worker);
                return match end {
                    End::Told(answer) => {
                        carry(activator, *answer, arrival.switch.take(), passage, &revision, caller, shutdown)
                    }
                    End::Ours(refusal) => refuse(activator, &revision, refusal),
                };
            }
            sent_again = true;
        }
        // It waits in our queue from here on, whichever way it came.
        let inside = passage.inside.unwrap_or_else(|| enter(activator, &revision, caller).0);
        let place = passage.permit.hand_back(sign.is_some());
        if let Some(sign) = sign {
            suspect::doubt(&revision, key, sign, &caller.worker);
        }
        passage = match waiter.wait(place).await {
            Ok(permit) => Passage { permit, inside: Some(inside), cold: passage.cold },
            Err(refusal) => return refuse(activator, &revision, refusal),
        };
    }
}

/// When a request has waited long enough, and by which limit: the one for
/// waiting, or one of the app where the wait is charged to it.
fn wait_limit(activator: &Activator, revision: &Revision, caller: &Caller, came: Instant) -> (Instant, Reason) {
    let config = &activator.shared.config;
    let wait = (came + config.wait_max, Reason::WaitTimeout);
    if !config.charges_wait() {
        return wait;
    }
    let next = Limits::since(caller.worker.wheel(), &revision.spec().timeouts, came).next();
    if next.0 < wait.0 { next } else { wait }
}

/// Asks a pod that broke off whether its app is still there: one that closed
/// on purpose is not asked again.
async fn is_gone(revision: &Revision, key: PodKey, caller: &Caller) -> bool {
    match revision.pod(key) {
        Some(pod) => !suspect::is_ready(&pod, &caller.worker).await,
        None => true,
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
    /// Sending it twice does no harm, and it has no body.
    fn repeatable(&self) -> bool {
        self.head.idempotent && self.body.is_none() && self.switch.is_none()
    }

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
    /// Set if it waited for a start.
    cold: Option<Cold>,
}

/// Counts the request; tells the autoscaler at once when it is the first, or
/// one of more than there will be room for.
fn enter(activator: &Activator, revision: &Arc<Revision>, caller: &Caller) -> (Inside, Option<Arc<Wake>>) {
    let Entered { inside, poke, wakes, wake, burst } = revision.enter();
    if poke {
        report::poke(activator, revision);
    }
    if wakes {
        activator.shared.metrics.waking();
        wake.iter().for_each(|wake| wake.signalled());
    }
    if burst && activator.shared.config.compat == Compat::Better {
        burst::follow(activator, revision, &caller.worker);
    }
    (inside, wake)
}

enum Sent {
    Answered(Box<Answer>),
    /// Not served, and not harmed: it can go elsewhere.
    Back {
        /// What the pod has to live down before it gets new work.
        sign: Option<Sign>,
    },
    /// The pod has failed with the request in its hands.
    Lost {
        end: End,
        sign: Sign,
    },
    Failed(Refusal),
}

/// An answer of the pod, on its way.
struct Answer {
    response: Response<Received>,
    limits: Limits,
    connected: Option<Instant>,
}

/// What the client is told of a failure.
enum End {
    /// What the sidecar said.
    Told(Box<Answer>),
    Ours(Refusal),
}

/// One try at the pod that the slot belongs to; the app's limits run from
/// `began`.
async fn send(
    activator: &Activator,
    arrival: &Arrival,
    revision: &Revision,
    caller: &Caller,
    passage: &Passage,
    began: Instant,
) -> Sent {
    // The pod may have been taken out since the slot was granted.
    let Some(pod) = revision.pod(passage.permit.pod()) else { return Sent::Back { sign: None } };
    let better = activator.shared.config.compat == Compat::Better;
    let nonce = (better && pod.condition.is_ours()).then(offer::nonce);
    let (request, hold) = outgoing(arrival, &pod, nonce.as_ref(), passage.inside.is_some());
    let connected = passage.cold.as_ref().map(|_| Arc::new(OnceLock::new()));
    let trip = Trip {
        repeatable: arrival.repeatable(),
        // It is better off at another pod, or waiting here.
        patience: Duration::ZERO,
        interim: arrival.interim.clone(),
        hold,
        connected: connected.clone(),
    };
    let timeouts = limits(activator, &revision.spec().timeouts);
    let mut limits = Limits::since(caller.worker.wheel(), &timeouts, began);
    let sent = tokio::select! {
        sent = caller.worker.pool().send(pod.address, request, trip) => sent,
        reason = limits.passed() => {
            return Sent::Lost { end: End::Ours(limit_passed(reason, activator)), sign: Sign::Late };
        }
    };
    let whole = arrival.body.as_ref().is_none_or(Kept::can_be_sent_again);
    match sent {
        Ok(response) => {
            let handback = nonce.and_then(|nonce| offer::handback(response.headers(), &nonce));
            if let Some(why) = handback {
                tracing::debug!(revision = %revision.id, pod = %pod.name, ?why, "a request was handed back");
                return match whole {
                    true => Sent::Back { sign: Some(Sign::Unreachable) },
                    false => Sent::Failed(Refusal::new(Reason::ConnectFailed)),
                };
            }
            let sign = pod.condition.sign(response.headers());
            let connected = connected.and_then(|connected| connected.get().copied());
            let answer = Box::new(Answer { response, limits, connected });
            match sign {
                Some(sign) => Sent::Lost { end: End::Told(answer), sign },
                None => {
                    pod.condition.answered();
                    Sent::Answered(answer)
                }
            }
        }
        // The reference tells the client; to us nothing is lost.
        Err(SendError::NotSent { error }) if whole && better => {
            tracing::debug!(revision = %revision.id, pod = %pod.name, error, "a pod cannot be reached");
            Sent::Back { sign: Some(Sign::Unreachable) }
        }
        Err(failed) => {
            let sign = if matches!(failed, SendError::NotSent { .. }) { Sign::Unreachable } else { Sign::Reset };
            let blameless = matches!(failed, SendError::Broken { at: Break::RequestBody, .. });
            let refusal = fault(revision, &pod, failed);
            if blameless { Sent::Failed(refusal) } else { Sent::Lost { end: End::Ours(refusal), sign } }
        }
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

/// The limits of a request at a pod. Where the wait is charged to them they are
/// the app's own, since they have begun earlier than the sidecar's.
fn limits(activator: &Activator, timeouts: &Timeouts) -> Timeouts {
    if activator.shared.config.charges_wait() {
        return *timeouts;
    }
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
    activator: &Activator,
    answer: Answer,
    switch: Option<OnUpgrade>,
    passage: Passage,
    revision: &Revision,
    caller: &Caller,
    shutdown: &Shutdown,
) -> Response<Body> {
    let Answer { mut response, mut limits, connected } = answer;
    let switching = response.status() == StatusCode::SWITCHING_PROTOCOLS;
    let pod_side = if switching { response.body_mut().take_upgraded() } else { None };
    headers::to_client(response.headers_mut(), false, switching);
    if let Some(cold) = passage.cold {
        cold.answered(connected, response.headers_mut(), &activator.shared.metrics, revision);
    }
    let guard: Guard = Box::new((passage.permit, passage.inside));
    let (mut parts, received) = response.into_parts();
    // Ours is the connection to the client; what the next hop speaks is not its business.
    parts.version = Version::HTTP_11;
    if let Some((client, pod)) = switch.zip(pod_side) {
        let timeouts = self::limits(activator, &revision.spec().timeouts);
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

/// Refuses a request of a revision, whose wake-ups say when to come back.
fn refuse(activator: &Activator, revision: &Revision, mut refusal: Refusal) -> Response<Body> {
    if refusal.retry_after.is_some() {
        refusal.retry_after = Some(revision.retry_after());
    }
    refuse_unseen(activator, &refusal)
}

/// Refuses a request of which no more is known.
fn refuse_unseen(activator: &Activator, refusal: &Refusal) -> Response<Body> {
    activator.shared.metrics.refused(refusal.reason);
    tracing::debug!(reason = %refusal.reason, "refused a request");
    refusal.response()
}
