//! The request path of the activator, one function, outermost step first.

use crate::offer::{self, Handback};
use crate::probes::Probe;
use crate::revision::{Inside, Pod, Revision, Sidecar};
use crate::wait::Waiter;
use crate::{Activator, Cluster, Traces, passthrough, report, route, strict, suspect};
use http::header::{EXPECT, HeaderValue};
use http::{HeaderName, Request, Response, StatusCode, Version, request};
use hyper::body::Body as _;
use plumbing::body::{Body, Guard, Origin};
use plumbing::conn::Caller;
use plumbing::deadline::Limits;
use plumbing::forward::{Received, SendError, Trip};
use plumbing::h1::{Hold, Interim, OnUpgrade, Withheld};
use plumbing::head::Head;
use plumbing::incoming::Incoming;
use plumbing::limiter::{Back, Permit};
use plumbing::reason::Reason;
use plumbing::refuse::Refusal;
use plumbing::replay::Kept;
use plumbing::shutdown::Shutdown;
use plumbing::target::{self, AsItCame};
use plumbing::trace_context::Context;
use plumbing::{grpc_status, headers, tunnel};
use policy::compat::Compat;
use policy::revision::{RevisionId, Timeouts};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How much longer than the sidecar we wait, so that the limit that fires is
/// the one nearer to the app, which knows more.
const SIDECAR_FIRST: Duration = Duration::from_secs(1);

/// Serves one request. To a gRPC call, an answer of ours is a gRPC status.
///
/// A request that waits is to cost little: its head is in a box from the
/// beginning, since what a future is given stays a part of it to the end.
pub(crate) fn serve(
    activator: Activator,
    caller: Arc<Caller>,
    request: Request<Incoming>,
) -> impl Future<Output = Response<Body>> + Send {
    let is_grpc = activator.shared.config.compat == Compat::Better && grpc_status::is_call(request.headers());
    let arrival = Box::new(Arrival::of(request, &activator, &caller));
    async move {
        let answer = pass(&activator, &caller, arrival).await;
        if is_grpc { grpc_status::instead_of(answer) } else { answer }
    }
}

async fn pass(activator: &Activator, caller: &Arc<Caller>, mut arrival: Box<Arrival>) -> Response<Body> {
    if let Some(probe) = &arrival.probe {
        return probe.answer(&activator.shared.health);
    }
    if caller.fds_scarce {
        return refuse(activator, Refusal::new(Reason::FdLimit).closing());
    }
    let revision = match route::find(activator, &arrival.head, arrival.named.as_ref()) {
        Ok(revision) => revision,
        Err(refusal) => return refuse(activator, *refusal),
    };
    let until = Instant::now() + activator.shared.config.wait_max;
    let body = arrival.body.clone();
    let waiter = Waiter { activator, revision: &revision, caller, body: body.as_ref(), until };
    // In strict mode the wait is charged to the request, as in the reference.
    let strict = activator.shared.config.compat == Compat::Strict;
    let mut limits = strict.then(|| Limits::start(caller.worker.wheel(), &revision.spec().timeouts));
    // In a cluster the path is the ingress's: what comes here, is held and counted here.
    let direct = if activator.shared.config.cluster.is_none() { revision.direct_slot() } else { None };
    let mut passage = match direct {
        Some(permit) => Passage { permit, inside: None, cold_start: None },
        None => {
            let (inside, cold_since) = enter(activator, &revision);
            match strict::within(limits.as_mut(), waiter.slot()).await {
                Ok(permit) => {
                    Passage { permit, inside: Some(inside), cold_start: cold_since.map(|since| since.elapsed()) }
                }
                Err(refusal) => return refuse(activator, refusal),
            }
        }
    };
    loop {
        // In a box, so that it takes no room in those that wait.
        let sent = Box::pin(send(activator, &arrival, &revision, caller, &passage, &mut limits)).await;
        let (back, why) = match sent {
            Sent::Answered(answer, limits) => {
                let switch = arrival.switch.take();
                let mut answer = carry(*answer, *limits, switch, passage, &revision, caller, &activator.shared.tunnels);
                if strict && Withheld::is_due(answer.headers()) {
                    answer.extensions_mut().insert(Withheld);
                }
                return answer;
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
        passage = match strict::within(limits.as_mut(), waiter.wait(place)).await {
            Ok(permit) => Passage { permit, inside: Some(inside), cold_start: back.cold_start },
            Err(refusal) => return refuse(activator, refusal),
        };
    }
}

/// A request as it came in.
struct Arrival {
    head: Head,
    /// Set when it is one: nothing else counts then.
    probe: Option<Probe>,
    /// The revision that it names, in a cluster.
    named: Option<RevisionId>,
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
        let config = &activator.shared.config;
        let probe = Probe::of(&parts.headers, activator, caller);
        let named = config.cluster.as_ref().map(|cluster| route::named(&parts, &cluster.domain));
        AsItCame::alone(&mut parts);
        if probe.is_none() {
            let host = target::host_of(&parts);
            let expects = parts.headers.get(EXPECT).filter(|_| config.compat == Compat::Strict).cloned();
            headers::to_pod(&mut parts.headers, caller.ip(), host);
            if let Some(expects) = expects {
                parts.headers.insert(EXPECT, expects);
            }
            if config.cluster.as_ref().is_some_and(|cluster| cluster.traces == Traces::Unsampled) {
                trace(&mut parts);
            }
        }
        let body = (!incoming.is_end_stream()).then(|| Kept::new(incoming, &activator.shared.budget));
        Arrival { head, probe, named, parts, body, interim, switch }
    }
}

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// The trace goes on under a span of ours; a request without one begins one.
fn trace(parts: &mut request::Parts) {
    let came = parts.headers.get(&TRACEPARENT).and_then(|value| Context::parse(value.as_bytes()));
    let ours = came.map_or_else(Context::unsampled, |context| context.decided(false).child());
    if let Ok(value) = HeaderValue::from_str(&ours.header()) {
        parts.headers.insert(TRACEPARENT, value);
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
    revision: &Arc<Revision>,
    caller: &Caller,
    passage: &Passage,
    begun: &mut Option<Limits>,
) -> Sent {
    // The pod may have been taken out since the slot was granted.
    let Some(pod) = revision.pod(passage.permit.pod()) else { return Sent::Back(Back::Gone) };
    let better = activator.shared.config.compat == Compat::Better;
    if better && pod.sidecar == Sidecar::Unknown && revision.ask_for_sidecar(passage.permit.pod()) {
        let asked = suspect::learn(revision.clone(), passage.permit.pod(), pod.clone(), caller.worker.clone());
        caller.worker.spawn(asked);
    }
    let nonce = (better && pod.sidecar == Sidecar::Ours).then(offer::nonce);
    let (mut request, mut hold) = outgoing(arrival, &pod, nonce.as_ref(), passage.inside.is_some());
    if !better && request.headers().contains_key(EXPECT) {
        hold = Hold::UntilContinueOr(caller.worker.wheel().sleep(strict::EXPECT_PATIENCE));
    }
    request = addressed(request, revision, activator.shared.config.cluster.as_ref());
    let trip = Trip {
        repeatable: arrival.head.idempotent && arrival.body.is_none(),
        // It is better off at another pod, or waiting here.
        patience: Duration::ZERO,
        interim: arrival.interim.clone(),
        hold,
        head_bytes_max: None,
    };
    let fresh = || Limits::start(caller.worker.wheel(), &later(&revision.spec().timeouts));
    let mut limits = begun.take().unwrap_or_else(fresh);
    let sent = tokio::select! {
        sent = caller.worker.pool().send(pod.address, request, trip) => sent,
        reason = limits.passed() => return Sent::Failed(strict::timed_out(reason)),
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
        Err(SendError::NotSent { error }) if whole && better => {
            tracing::debug!(revision = %revision.id, pod = %pod.name, error, "a pod cannot be reached");
            Sent::Back(Back::Doubted)
        }
        Err(failed) => Sent::Failed(fault(revision, &pod, failed)),
    }
}

/// By the pod's address, or by name where a mesh is to keep the address.
fn addressed(request: Request<Body>, revision: &Revision, cluster: Option<&Cluster>) -> Request<Body> {
    if !cluster.is_some_and(|cluster| cluster.passthrough) {
        return request;
    }
    let (mut parts, body) = request.into_parts();
    passthrough::mark(&mut parts, &revision.id);
    Request::from_parts(parts, body)
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
    tunnels: &Shutdown,
) -> Response<Body> {
    let upgrade = headers::upgrade_protocol(response.headers());
    let websocket = upgrade.is_some_and(|name| name.as_bytes().eq_ignore_ascii_case(b"websocket"));
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
        tunnel::open((client, pod), websocket, limits, &caller.worker, tunnels, guard);
        return Response::from_parts(parts, Body::empty());
    }
    limits.answered();
    Response::from_parts(parts, Body::carried(received, Origin::Pod, limits, guard))
}

fn fault(revision: &Revision, pod: &Pod, failed: SendError) -> Refusal {
    let (reason, error) = failed.into_reason();
    tracing::warn!(revision = %revision.id, pod = %pod.name, %reason, error, "a request failed at a pod");
    Refusal::new(reason)
}

fn refuse(activator: &Activator, refusal: Refusal) -> Response<Body> {
    activator.shared.metrics.refused(refusal.reason);
    tracing::debug!(reason = %refusal.reason, "refused a request");
    match activator.shared.config.compat {
        Compat::Better => refusal.response(),
        Compat::Strict => strict::answer(refusal),
    }
}
