//! The request path of the activator, one function, outermost step first.

use crate::offer::{self, Handback};
use crate::parked::Parked;
use crate::pods::Pod;
use crate::probes::Probe;
use crate::revision::{Entered, Inside, Revision};
use crate::wait::Waiter;
use crate::wake::{Cold, Wake};
use crate::{Activator, burst, passthrough, report, route, strict, suspect};
use http::header::{EXPECT, HeaderValue};
use http::{HeaderName, Request, Response, StatusCode, Version, request};
use hyper::body::Body as _;
use observe::{RequestFacts, Watch};
use plumbing::body::{Body, Guard, Origin};
use plumbing::conn::Caller;
use plumbing::deadline::Limits;
use plumbing::forward::{Received, SendError, Trip};
use plumbing::h1::{Break, Hold, Interim, OnUpgrade, Withheld};
use plumbing::head::Head;
use plumbing::incoming::Incoming;
use plumbing::limiter::{Asked, Back, Permit, Waiting};
use plumbing::reason::Reason;
use plumbing::refuse::Refusal;
use plumbing::replay::Kept;
use plumbing::target::{self, AsItCame};
use plumbing::{grpc_status, headers, tunnel};
use policy::admit::PodKey;
use policy::compat::Compat;
use policy::eject::Sign;
use policy::revision::{RevisionId, Timeouts};
use std::sync::{Arc, OnceLock};
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
    let (arrival, mut watch) = Arrival::of(request, &activator, &caller);
    let arrival = Box::new(arrival);
    async move {
        let answer = pass(&activator, &caller, arrival, &mut watch).await;
        let answer = watch.passes_on(answer);
        if is_grpc { grpc_status::instead_of(answer) } else { answer }
    }
}

async fn pass(
    activator: &Activator,
    caller: &Arc<Caller>,
    mut arrival: Box<Arrival>,
    watch: &mut Watch,
) -> Response<Body> {
    let revision = match aimed_at(activator, caller, arrival.aim.take()) {
        Ok(revision) => revision,
        Err(answer) => return *answer,
    };
    watch.is_for(|| revision.identity(), &revision.series);
    if let Err(refusal) = activator.shared.callers.may_wake(&revision, caller.ip()) {
        return refuse(activator, &revision, refusal);
    }
    let came = Instant::now();
    arrival.body.iter().for_each(|body| body.charge_to(&revision.budget));
    let until = wait_limit(activator, &revision, caller, came);
    let waiter = Waiter { activator, revision: &revision, caller, until };
    let Begun { mut inside, mut wake, mut asked } = begin(waiter, watch);
    let (mut cold, mut sent_again) = (None, false);
    // All that is not needed while it waits is in boxes, or is made later.
    loop {
        let granted = match asked {
            Asked::Go(permit) => Ok(permit),
            Asked::Refuse(why) => Err(waiter.refusal(why)),
            Asked::Wait(place) => match waiter.wait(place, arrival.body.as_ref()) {
                Ok(wait) => {
                    let parked = Parked::new(arrival);
                    let waited = wait.await;
                    arrival = parked.resume();
                    waited
                }
                Err(refusal) => Err(refusal),
            },
        };
        let permit = match granted.inspect_err(|refusal| watch.waited(Some(&refusal.text))) {
            Ok(permit) => permit,
            Err(refusal) => return refuse(activator, &revision, refusal),
        };
        if let Some(wake) = wake.take() {
            cold = Some(Box::new(Cold::granted(wake, came)));
        }
        let passage = Passage { permit, inside, cold };
        match Box::pin(travel(waiter, came, &mut arrival, passage, &mut sent_again, watch)).await {
            Travelled::Arrived(answer) => return answer,
            Travelled::Back(back) => {
                inside = Some(back.inside);
                (cold, asked) = (back.cold, Asked::Wait(back.place));
            }
        }
    }
}

/// How one try went.
enum Travelled {
    Arrived(Response<Body>),
    Back(Return),
}

/// A request that came back unharmed, and waits again at its old place.
struct Return {
    place: Waiting,
    inside: Inside,
    cold: Option<Box<Cold>>,
}

/// One try at the pod that the slot belongs to, up to the answer's head.
async fn travel(
    Waiter { activator, revision, caller, .. }: Waiter<'_>,
    came: Instant,
    arrival: &mut Arrival,
    passage: Passage,
    sent_again: &mut bool,
    watch: &mut Watch,
) -> Travelled {
    let began = if activator.shared.config.charges_wait() { came } else { Instant::now() };
    let sent = send(activator, arrival, revision, caller, &passage, began, watch).await;
    watch.tried(sent.told());
    let key = passage.permit.pod();
    let (why, sign) = match sent {
        Sent::Answered(answer) => {
            let answer = carry(activator, *answer, arrival.switch.take(), passage, revision, caller, watch);
            return Travelled::Arrived(answer);
        }
        Sent::Failed(refusal) => return Travelled::Arrived(refuse(activator, revision, refusal)),
        Sent::Back(why) => (why, (why == Back::Doubted).then_some(Sign::Unreachable)),
        Sent::Lost { loss, sign } => {
            // Whatever it was, only what does no harm when it is done twice is
            // done again, and only if the pod has really gone. (In a box: it is rare.)
            let again = !*sent_again && arrival.repeatable() && sign == Sign::Reset;
            if !again || !Box::pin(is_gone(revision, key, caller)).await {
                suspect::doubt(revision, key, sign, &caller.worker);
                return Travelled::Arrived(match loss {
                    Loss::Told(answer) => {
                        carry(activator, *answer, arrival.switch.take(), passage, revision, caller, watch)
                    }
                    Loss::Ours(refusal) => refuse(activator, revision, refusal),
                });
            }
            *sent_again = true;
            (Back::Doubted, Some(sign))
        }
    };
    // It waits in our queue from here on, whichever way it came.
    let inside = passage.inside.unwrap_or_else(|| enter(activator, revision, caller).0);
    let place = passage.permit.hand_back(why);
    if let Some(sign) = sign {
        suspect::doubt(revision, key, sign, &caller.worker);
    }
    watch.queued();
    Travelled::Back(Return { place, inside, cold: passage.cold })
}

/// How a request begins.
struct Begun {
    /// `None`: the sidecar alone counts it.
    inside: Option<Inside>,
    wake: Option<Arc<Wake>>,
    asked: Asked,
}

fn begin(waiter: Waiter<'_>, watch: &mut Watch) -> Begun {
    let Waiter { activator, revision, caller, .. } = waiter;
    // In a cluster the path is the ingress's: what comes here, is held and counted here.
    let direct = if activator.shared.config.cluster.is_none() { revision.direct_slot() } else { None };
    if let Some(permit) = direct {
        return Begun { inside: None, wake: None, asked: Asked::Go(permit) };
    }
    let (inside, wake) = enter(activator, revision, caller);
    watch.queued();
    Begun { inside: Some(inside), wake, asked: revision.limiter.ask() }
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
    match revision.pods.get(key) {
        Some(pod) => !suspect::is_ready(revision, &pod, &caller.worker).await,
        None => true,
    }
}

/// A request as it came in.
pub(crate) struct Arrival {
    /// `None` once it was followed.
    pub(crate) aim: Option<Aim>,
    /// Its method does no harm when it is done twice.
    pub(crate) idempotent: bool,
    pub(crate) parts: request::Parts,
    /// `None` without content.
    pub(crate) body: Option<Kept>,
    pub(crate) interim: Option<Interim>,
    /// Set when the client asks for another protocol.
    pub(crate) switch: Option<OnUpgrade>,
}

/// What a request is for.
pub(crate) struct Aim {
    head: Head,
    /// Set when it is one: nothing else counts then.
    probe: Option<Probe>,
    /// The revision that it names, in a cluster.
    named: Option<RevisionId>,
}

/// The revision that a request is for, or the answer to one that is for none.
fn aimed_at(activator: &Activator, caller: &Caller, aim: Option<Aim>) -> Result<Arc<Revision>, Box<Response<Body>>> {
    let refused = |refusal| Err(Box::new(refuse_unseen(activator, refusal)));
    let Some(Aim { head, probe, named }) = aim else { return refused(Refusal::new(Reason::NoRoute)) };
    if let Some(probe) = probe {
        return Err(Box::new(probe.answer(&activator.shared.health)));
    }
    if caller.fds_scarce {
        return refused(Refusal::new(Reason::FdLimit).closing());
    }
    route::find(activator, &head, named.as_ref()).or_else(|refusal| refused(*refusal))
}

impl Arrival {
    /// Sending it twice does no harm, and it has no body.
    fn repeatable(&self) -> bool {
        self.idempotent && self.body.is_none() && self.switch.is_none()
    }

    fn of(mut request: Request<Incoming>, activator: &Activator, caller: &Caller) -> (Arrival, Watch) {
        headers::receive(request.headers_mut(), caller.ip(), &activator.shared.config.trust);
        let (mut parts, incoming) = request.into_parts();
        let switch = headers::upgrade_protocol(&parts.headers).and_then(|_| incoming.on_upgrade());
        let interim = incoming.interim();
        let head = Head::read(&parts);
        let config = &activator.shared.config;
        let probe = Probe::of(&parts.headers, activator, caller);
        let named = config.cluster.as_ref().map(|cluster| route::named(&parts, &cluster.domain));
        let mut watch = match probe {
            None => observe(activator, caller, &parts, &incoming),
            Some(_) => Watch::off(),
        };
        AsItCame::alone(&mut parts);
        if probe.is_none() {
            let host = target::host_of(&parts);
            let expects = parts.headers.get(EXPECT).filter(|_| config.compat == Compat::Strict).cloned();
            headers::to_pod(&mut parts.headers, caller.ip(), host);
            if let Some(expects) = expects {
                parts.headers.insert(EXPECT, expects);
            }
            let mark = |name: &'static HeaderName| Some((name, parts.headers.get(name)?));
            watch.marked(MARKS.iter().filter_map(mark));
        }
        let body = (!incoming.is_end_stream()).then(|| Kept::new(incoming, &activator.shared.budget));
        let (idempotent, aim) = (head.idempotent, Some(Aim { head, probe, named }));
        (Arrival { aim, idempotent, parts, body, interim, switch }, watch)
    }
}

/// Headers of ours that a template of the request log sees, as in the reference.
static MARKS: [HeaderName; 2] = [headers::ORIGINAL_HOST, headers::PROXY_REQUEST];

/// Begins to watch a request for metrics, traces and the request log.
fn observe(activator: &Activator, caller: &Caller, parts: &request::Parts, incoming: &Incoming) -> Watch {
    let config = &activator.shared.config;
    if config.observer.is_off() {
        return Watch::off();
    }
    config.observer.begin(&RequestFacts {
        parts,
        target: AsItCame::of(parts),
        peer: caller.peer,
        by_agent: config.cluster.is_some() && config.trust.peers.contains(caller.ip()),
        tls: caller.tls,
        body_length: incoming.size_hint().exact(),
    })
}

/// A request on its way: its slot, and what counts it.
struct Passage {
    permit: Permit,
    /// `None` on the direct path: the sidecar alone counts it.
    inside: Option<Inside>,
    /// Set if it waited for a start.
    cold: Option<Box<Cold>>,
}

/// Counts the request; tells the autoscaler at once when it is the first, or
/// one of more than there will be room for.
fn enter(activator: &Activator, revision: &Arc<Revision>, caller: &Caller) -> (Inside, Option<Arc<Wake>>) {
    let Entered { inside, poke, wakes, wake, burst } = revision.enter();
    if poke {
        activator.shared.tracked.begins(revision);
        report::poke(activator, revision);
    }
    if (poke || wakes) && wake.is_some() {
        activator.shared.waits.notify_one();
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
    Back(Back),
    /// The pod has failed with the request in its hands.
    Lost {
        loss: Loss,
        sign: Sign,
    },
    Failed(Refusal),
}

impl Sent {
    /// For the watch: the status of the pod's answer, or why there is none to pass on.
    fn told(&self) -> Result<u16, &str> {
        match self {
            Sent::Answered(answer) | Sent::Lost { loss: Loss::Told(answer), .. } => {
                Ok(answer.response.status().as_u16())
            }
            Sent::Back(Back::Gone) => Err("the pod is gone"),
            Sent::Back(Back::Full) => Err("handed back: full"),
            Sent::Back(Back::Doubted) => Err("not sent"),
            Sent::Lost { loss: Loss::Ours(refusal), .. } | Sent::Failed(refusal) => Err(refusal.reason.code()),
        }
    }
}

/// An answer of the pod, on its way.
struct Answer {
    response: Response<Received>,
    limits: Limits,
    connected: Option<Instant>,
}

/// What the client is told of a failure.
enum Loss {
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
    watch: &mut Watch,
) -> Sent {
    // The pod may have been taken out since the slot was granted.
    let Some(pod) = revision.pods.get(passage.permit.pod()) else { return Sent::Back(Back::Gone) };
    let better = activator.shared.config.compat == Compat::Better;
    let nonce = (better && pod.condition.is_ours()).then(offer::nonce);
    let (mut request, mut hold) = outgoing(arrival, &pod, nonce.as_ref(), passage.inside.is_some());
    if !better && request.headers().contains_key(EXPECT) {
        hold = Hold::UntilContinueOr(caller.worker.wheel().sleep(strict::EXPECT_PATIENCE));
    }
    request = addressed(request, revision);
    watch.at_pod(request.headers_mut(), &pod.name, pod.address);
    let request = request.map(|body| watch.reads(body));
    let connected = passage.cold.as_ref().map(|_| Arc::new(OnceLock::new()));
    let trip = Trip {
        repeatable: arrival.repeatable(),
        trusting: !better,
        // It is better off at another pod, or waiting here.
        patience: Duration::ZERO,
        interim: arrival.interim.clone(),
        hold,
        connected: connected.clone(),
        head_bytes_max: None,
    };
    let timeouts = limits(activator, &revision.spec().timeouts);
    let mut limits = Limits::since(caller.worker.wheel(), &timeouts, began);
    let sent = tokio::select! {
        sent = caller.worker.pool().send(pod.address, request, trip) => sent,
        reason = limits.passed() => {
            return lost(activator, Loss::Ours(strict::timed_out(reason)), Sign::Late);
        }
    };
    let whole = arrival.body.as_ref().is_none_or(Kept::can_be_sent_again);
    match sent {
        Ok(response) => match nonce.and_then(|nonce| offer::handback(response.headers(), &nonce)) {
            Some(_) if !whole => Sent::Failed(Refusal::new(Reason::ConnectFailed)),
            Some(why) => {
                tracing::debug!(revision = %revision.id, pod = %pod.name, ?why, "a request was handed back");
                activator.shared.metrics.handed_back(why);
                Sent::Back(match why {
                    Handback::Full => Back::Full,
                    Handback::NotSent => Back::Doubted,
                })
            }
            None => {
                let sign = pod.condition.sign(response.headers());
                let connected = connected.and_then(|connected| connected.get().copied());
                let answer = Box::new(Answer { response, limits, connected });
                match sign {
                    Some(sign) => lost(activator, Loss::Told(answer), sign),
                    None => {
                        pod.condition.answered();
                        Sent::Answered(answer)
                    }
                }
            }
        },
        Err(SendError::NotSent { error }) if whole && better => {
            tracing::debug!(revision = %revision.id, pod = %pod.name, error, "a pod cannot be reached");
            Sent::Back(Back::Doubted)
        }
        Err(failed) => {
            let sign = if matches!(failed, SendError::NotSent { .. }) { Sign::Unreachable } else { Sign::Reset };
            let blameless = matches!(failed, SendError::Broken { at: Break::RequestBody, .. });
            let refusal = fault(revision, &pod, failed);
            if blameless { Sent::Failed(refusal) } else { lost(activator, Loss::Ours(refusal), sign) }
        }
    }
}

/// The reference draws no conclusion from a failure.
fn lost(activator: &Activator, loss: Loss, sign: Sign) -> Sent {
    match (activator.shared.config.compat, loss) {
        (Compat::Better, loss) => Sent::Lost { loss, sign },
        (Compat::Strict, Loss::Told(answer)) => Sent::Answered(answer),
        (Compat::Strict, Loss::Ours(refusal)) => Sent::Failed(refusal),
    }
}

/// By the pod's address, or by name where a mesh is to keep the address.
fn addressed(request: Request<Body>, revision: &Revision) -> Request<Body> {
    if !revision.is_passed_through() {
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
    watch: &mut Watch,
) -> Response<Body> {
    let Answer { mut response, mut limits, connected } = answer;
    let upgrade = headers::upgrade_protocol(response.headers());
    let websocket = upgrade.is_some_and(|name| name.as_bytes().eq_ignore_ascii_case(b"websocket"));
    let switching = response.status() == StatusCode::SWITCHING_PROTOCOLS;
    let pod_side = if switching { response.body_mut().take_upgraded() } else { None };
    headers::to_client(response.headers_mut(), false, switching);
    if let Some(cold) = passage.cold {
        cold.answered(connected, response.headers_mut(), &activator.shared.metrics, revision, watch);
    }
    let held = (passage.permit, passage.inside);
    let (mut parts, received) = response.into_parts();
    // Ours is the connection to the client; what the next hop speaks is not its business.
    parts.version = Version::HTTP_11;
    if activator.shared.config.compat == Compat::Strict && Withheld::is_due(&parts.headers) {
        parts.extensions.insert(Withheld);
    }
    if let Some((client, pod)) = switch.zip(pod_side) {
        let timeouts = self::limits(activator, &revision.spec().timeouts);
        let limits = tunnel::Limits { life: timeouts.upgrade, idle: timeouts.idle };
        let guard: Guard = Box::new((held, watch.take().tunnels()));
        tunnel::open((client, pod), websocket, limits, &caller.worker, &activator.shared.tunnels, guard);
        return Response::from_parts(parts, Body::empty());
    }
    limits.answered();
    Response::from_parts(parts, Body::carried(received, Origin::Pod, limits, Box::new(held)))
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
    refuse_unseen(activator, refusal)
}

/// Refuses a request of which no more is known.
fn refuse_unseen(activator: &Activator, refusal: Refusal) -> Response<Body> {
    activator.shared.metrics.refused(refusal.reason);
    tracing::debug!(reason = %refusal.reason, "refused a request");
    match activator.shared.config.compat {
        Compat::Better => refusal.response(),
        Compat::Strict => strict::answer(refusal),
    }
}
