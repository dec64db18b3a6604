//! The request path of the sidecar, one function, outermost step first.

use crate::sidecar::{Inside, Sidecar};
use crate::{lease, probes, version};
use http::header::{CONTENT_LENGTH, COOKIE, EXPECT, HeaderValue};
use http::{Method, Request, Response, StatusCode, Version, request};
use observe::{End, Outcome, RequestFacts, Watch};
use plumbing::body::{Body, Guard, Origin};
use plumbing::clock;
use plumbing::conn::Caller;
use plumbing::deadline::Limits;
use plumbing::forward::{Answer, Received, SendError, Trip};
use plumbing::h1::{Answered, Hold, OnUpgrade, Plain, Relay, Rules, Withheld};
use plumbing::head::Head;
use plumbing::incoming::Incoming;
use plumbing::limiter::{self, Permit};
use plumbing::meter::{Ended, Meter};
use plumbing::reason::Reason;
use plumbing::refuse::Refusal;
use plumbing::serve::Service;
use plumbing::target::{self, AsItCame};
use plumbing::{grpc_status, headers, tunnel};
use policy::compat::Compat;
use policy::moment::Moment;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long an app that has been told `Expect: 100-continue` may take to ask
/// for the body before it is sent all the same: there are some that never ask.
const EXPECT_PATIENCE: Duration = Duration::from_millis(5);
/// The original's.
const EXPECT_PATIENCE_STRICT: Duration = Duration::from_secs(1);

/// The requests of the main port.
#[derive(Clone)]
pub(crate) struct Chain(pub(crate) Arc<Sidecar>);

impl Service for Chain {
    fn whole(
        &self,
        caller: Arc<Caller>,
        request: Request<Incoming>,
    ) -> impl Future<Output = Response<Body>> + Send + 'static + use<> {
        serve(self.0.clone(), caller, request)
    }

    /// Strict mode, and whoever wants to know all of each request, goes the
    /// whole way.
    fn rules(&self, caller: &Caller) -> Option<Rules> {
        let short = self.0.config.compat == Compat::Better && !self.0.observer.wants_heads() && !caller.fds_scarce;
        short.then(|| Rules::of(caller.ip(), &self.0.config.trust))
    }

    fn plain(
        &self,
        caller: Arc<Caller>,
        request: Plain,
    ) -> impl Future<Output = Option<Answered<Body>>> + Send + 'static + use<> {
        let answer = pass_plain(self.0.clone(), caller, request);
        async { Some(answer.await) }
    }
}

/// Serves one request. To a gRPC call, an answer of ours is a gRPC status.
async fn serve(sidecar: Arc<Sidecar>, caller: Arc<Caller>, request: Request<Incoming>) -> Response<Body> {
    let is_grpc = sidecar.config.compat == Compat::Better && grpc_status::is_call(request.headers());
    let answer = pass(sidecar, caller, request).await;
    if is_grpc { grpc_status::instead_of(answer) } else { answer }
}

async fn pass(sidecar: Arc<Sidecar>, caller: Arc<Caller>, request: Request<Incoming>) -> Response<Body> {
    let (mut arrival, mut watch) = Arrival::of(request, &sidecar, &caller);
    if let Some(probe) = &arrival.head.probe {
        return watch.answers(probes::answer(&sidecar, &caller, probe, &arrival.parts.headers).await, End::Whole);
    }
    sidecar.drain.seen_request();
    if caller.fds_scarce {
        return refuse(&sidecar, watch, Refusal::new(Reason::FdLimit).closing());
    }
    let offered = match offered(&sidecar, arrival.head.offer.as_ref()) {
        Ok(permit) => permit,
        Err(full) => return watch.answers(*full, End::Whole),
    };
    // As the reference, in strict mode alone: past the limit and the counts.
    let counted = !(arrival.head.kubelet_probe && sidecar.config.compat == Compat::Strict);
    let inside = counted.then(|| sidecar.enter(arrival.head.proxied, clock::now()));
    watch.proxied();
    let mut limits = Limits::start(caller.worker.wheel(), &sidecar.config.timeouts);
    let permit = match offered {
        Some(permit) => Some(permit),
        None if !counted => None,
        None => match admit(&sidecar, &mut watch, &mut limits).await {
            Ok(permit) => permit,
            Err(refusal) => return refuse(&sidecar, watch, refusal),
        },
    };
    watch.at_app(&mut arrival.parts.headers);
    let offer = arrival.head.offer.clone();
    let asked = Asked { switch: arrival.switch, is_head: arrival.parts.method == Method::HEAD };
    let trip = trip(&arrival.parts, &arrival.incoming, &arrival.head, &sidecar, &caller);
    let forwarded = Request::from_parts(arrival.parts, watch.reads(Body::incoming(arrival.incoming)));
    let sent = tokio::select! {
        sent = send(&sidecar, &caller, forwarded, trip) => sent,
        reason = limits.passed() => return refuse(&sidecar, watch, Refusal::new(reason)),
    };
    match (sent, offer) {
        (Ok(answer), _) => carry(answer, watch, asked, limits, &sidecar, &caller, (inside, permit)),
        (Err(SendError::NotSent { error }), Some(nonce)) => cannot_send(&sidecar, watch, &nonce, &error),
        (Err(failed), _) => refuse(&sidecar, watch, fault(&sidecar, failed)),
    }
}

/// Serves a plain request: the same steps as [`pass`], for one that asks
/// nothing of a proxy, and so has no use for most of them.
async fn pass_plain(sidecar: Arc<Sidecar>, caller: Arc<Caller>, request: Plain) -> Answered<Body> {
    sidecar.drain.seen_request();
    let began = Instant::now();
    let (mut now, came) = (began, clock::at(began));
    let mut watch = sidecar.observer.begin_plain(request.method(), request.host(), caller.tls, came);
    let offer = request.offer().cloned();
    let offered = match offered(&sidecar, offer.as_ref()) {
        Ok(permit) => permit,
        Err(full) => return Answered::Whole(watch.answers(*full, End::Whole)),
    };
    let inside = sidecar.enter(request.is_proxied(), came);
    watch.proxied();
    let mut limits = Limits::since(caller.worker.wheel(), &sidecar.config.timeouts, now);
    let permit = match offered {
        Some(permit) => Some(permit),
        None => match admit_at(&sidecar, &mut watch, &mut limits, (&mut now, came)).await {
            Ok(permit) => permit,
            Err(refusal) => return Answered::Whole(refuse(&sidecar, watch, refusal)),
        },
    };
    let waited = began != now;
    watch.at_app_plain(if waited { clock::at(now) } else { came }, request.body_bytes());
    let repeatable = request.method().is_idempotent() && request.body_bytes() == 0;
    let answer = tokio::select! {
        biased;
        answer = caller.worker.pool().call(sidecar.config.app, request, repeatable, now) => answer,
        reason = limits.passed() => return Answered::Whole(refuse(&sidecar, watch, Refusal::new(reason))),
    };
    let sent = match answer {
        Answer::Plain(source, home) => {
            let (status, at) = (source.status().as_u16(), source.came_at());
            watch.answered_plain(status, clock::at(at));
            limits.answered_at(at);
            let passing = Passing { watch, status, bytes: 0, inside, permit };
            return Answered::Relay(Box::new(Relay::new(source, home, limits, Box::new(passing))));
        }
        Answer::Whole(sent) => sent,
        Answer::NotSent(request) => {
            let forwarded = Box::pin(send_plain(&sidecar, &caller, request, repeatable));
            tokio::select! {
                sent = forwarded => sent,
                reason = limits.passed() => return Answered::Whole(refuse(&sidecar, watch, Refusal::new(reason))),
            }
        }
    };
    Answered::Whole(match (sent, offer) {
        (Ok(answer), _) => {
            let asked = Asked { switch: None, is_head: false };
            carry(answer, watch, asked, limits, &sidecar, &caller, (Some(inside), permit))
        }
        (Err(SendError::NotSent { error }), Some(nonce)) => cannot_send(&sidecar, watch, &nonce, &error),
        (Err(failed), _) => refuse(&sidecar, watch, fault(&sidecar, failed)),
    })
}

/// A plain answer that is passed on: what ends with its last byte.
struct Passing {
    watch: Watch,
    status: u16,
    bytes: u64,
    inside: Inside,
    permit: Option<Permit>,
}

impl Meter for Passing {
    fn passed(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }

    fn ended(self: Box<Self>, how: Ended, at: Instant) {
        let Passing { watch, status, bytes, inside, permit } = *self;
        // The next in line first.
        drop(permit);
        let at = clock::at(at);
        inside.leave(at);
        watch.finish_at(Outcome { status, end: how.into(), response_bytes: bytes }, at);
    }
}

/// Sends a plain request the whole way.
async fn send_plain(
    sidecar: &Sidecar,
    caller: &Caller,
    request: Plain,
    repeatable: bool,
) -> Result<Response<Received>, SendError> {
    let trip = Trip {
        repeatable,
        patience: if request.offer().is_some() { Duration::ZERO } else { sidecar.config.connect_retry },
        interim: Some(request.interim()),
        ..Trip::default()
    };
    let (parts, body) = request.into_whole();
    let body = if body.is_empty() { Body::empty() } else { Body::full(body) };
    send(sidecar, caller, Request::from_parts(parts, body), trip).await
}

/// What a request leaves to know for its answer.
struct Asked {
    switch: Option<(OnUpgrade, HeaderValue)>,
    is_head: bool,
}

/// A request as it came in, made ready for the app.
struct Arrival {
    head: Head,
    parts: request::Parts,
    incoming: Incoming,
    /// Set when the client asks for another protocol: which.
    switch: Option<(OnUpgrade, HeaderValue)>,
}

impl Arrival {
    fn of(mut request: Request<Incoming>, sidecar: &Sidecar, caller: &Caller) -> (Arrival, Watch) {
        headers::receive(request.headers_mut(), caller.ip(), &sidecar.config.trust);
        let (mut parts, incoming) = request.into_parts();
        let switch = headers::upgrade_protocol(&parts.headers).and_then(|asked| Some((incoming.on_upgrade()?, asked)));
        // A client that is not trusted cannot pose as a prober.
        let by_agent = sidecar.config.in_pod && sidecar.config.trust.peers.contains(caller.ip());
        let watch = observe(sidecar, caller, &parts, &incoming, by_agent);
        let mut head = Head::at_sidecar(&parts, by_agent);
        if sidecar.config.compat == Compat::Strict {
            head.offer = None;
        }
        if head.probe.is_none() {
            AsItCame::alone(&mut parts);
            target::to_app(&mut parts, sidecar.config.app);
            headers::to_app(&mut parts.headers, caller.ip(), sidecar.config.compat);
            frame(&mut parts, &incoming);
            if head.offer.is_some() {
                // It was the activator's: our 100 tells it that the body is wanted here.
                parts.headers.remove(EXPECT);
            }
        }
        (Arrival { head, parts, incoming, switch }, watch)
    }
}

/// Begins to watch a request for metrics, traces and the request log.
fn observe(sidecar: &Sidecar, caller: &Caller, parts: &request::Parts, incoming: &Incoming, by_agent: bool) -> Watch {
    let body_length = hyper::body::Body::size_hint(incoming).exact();
    sidecar.observer.begin(&RequestFacts {
        by_agent,
        parts,
        target: AsItCame::of(parts),
        peer: caller.peer,
        tls: caller.tls,
        body_length,
    })
}

/// Says what the next hop cannot know by itself: that a request of a kind that
/// has a body has none; and that the cookies HTTP/2 may split are one field.
fn frame(parts: &mut request::Parts, incoming: &Incoming) {
    let empty = hyper::body::Body::is_end_stream(incoming);
    let bodied = matches!(parts.method, Method::POST | Method::PUT | Method::PATCH);
    if empty && bodied && parts.version != Version::HTTP_2 {
        parts.headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
    }
    if parts.version != Version::HTTP_2 {
        return;
    }
    let crumbs: Vec<&[u8]> = parts.headers.get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if crumbs.len() > 1
        && let Ok(cookie) = HeaderValue::from_bytes(&crumbs.join(&b"; "[..]))
    {
        parts.headers.insert(COOKIE, cookie);
    }
}

/// Sends the request to the app, in a version that the app speaks.
async fn send(
    sidecar: &Sidecar,
    caller: &Caller,
    request: Request<Body>,
    mut trip: Trip,
) -> Result<Response<Received>, SendError> {
    let (mut parts, mut body) = request.into_parts();
    version::choose(sidecar, caller, &mut parts).await;
    loop {
        let forwarded = Request::from_parts(parts, body);
        match caller.worker.pool().send(sidecar.config.app, forwarded, trip).await {
            Err(SendError::OtherVersion { head }) if sidecar.app_version.turned_out_http2() => {
                parts = *head;
                version::choose(sidecar, caller, &mut parts).await;
                (trip, body) = (Trip::default(), Body::empty());
            }
            sent => {
                if matches!(sent, Err(SendError::NotSent { .. })) {
                    sidecar.app_version.forget();
                }
                return sent;
            }
        }
    }
}

/// How the request goes to the app.
fn trip(parts: &request::Parts, incoming: &Incoming, head: &Head, sidecar: &Sidecar, caller: &Caller) -> Trip {
    let wheel = caller.worker.wheel();
    let strict = sidecar.config.compat == Compat::Strict;
    Trip {
        repeatable: head.idempotent && hyper::body::Body::is_end_stream(incoming),
        trusting: strict,
        // An offered request is better off elsewhere than waiting here.
        patience: if head.offer.is_some() { Duration::ZERO } else { sidecar.config.connect_retry },
        interim: incoming.interim(),
        hold: match parts.headers.contains_key(EXPECT) {
            true => Hold::UntilContinueOr(wheel.sleep(if strict { EXPECT_PATIENCE_STRICT } else { EXPECT_PATIENCE })),
            false => Hold::No,
        },
        connected: None,
        head_bytes_max: None,
    }
}

/// The slot of a request that is offered, or the answer that there is none. An
/// offer never waits: whoever made it has a better place to wait.
fn offered(sidecar: &Sidecar, offer: Option<&HeaderValue>) -> Result<Option<Permit>, Box<Response<Body>>> {
    let (Some(nonce), Some(limiter)) = (offer, &sidecar.limiter) else { return Ok(None) };
    limiter.try_take().map(Some).ok_or_else(|| Box::new(hand_back(nonce, "full", sidecar)))
}

/// Waits for a slot at the app; the request's limits run on meanwhile.
async fn admit(sidecar: &Sidecar, watch: &mut Watch, limits: &mut Limits) -> Result<Option<Permit>, Refusal> {
    let mut now = Instant::now();
    let came = clock::at(now);
    admit_at(sidecar, watch, limits, (&mut now, came)).await
}

/// The same for one that came at `now`, twice; that is moved on if it waits.
async fn admit_at(
    sidecar: &Sidecar,
    watch: &mut Watch,
    limits: &mut Limits,
    (now, came): (&mut Instant, Moment),
) -> Result<Option<Permit>, Refusal> {
    let Some(limiter) = &sidecar.limiter else { return Ok(None) };
    watch.queued();
    let waiting = match limiter.ask_at(came) {
        limiter::Asked::Go(permit) => return Ok(Some(permit)),
        limiter::Asked::Refuse(why) => return Err(why.into()),
        limiter::Asked::Wait(waiting) => waiting,
    };
    let admitted = tokio::select! {
        permit = waiting => permit.map(Some).map_err(Refusal::from),
        reason = limits.passed() => Err(Refusal::new(reason)),
    };
    *now = Instant::now();
    admitted
}

/// Passes the app's answer on; slot and count last until its last byte, or
/// until both ends of an upgraded connection have closed.
fn carry(
    mut response: Response<Received>,
    mut watch: Watch,
    asked: Asked,
    mut limits: Limits,
    sidecar: &Sidecar,
    caller: &Caller,
    held: (Option<Inside>, Option<Permit>),
) -> Response<Body> {
    lease::heard(sidecar, response.headers_mut());
    let switching = response.status() == StatusCode::SWITCHING_PROTOCOLS;
    watch.answered(response.status().as_u16());
    let websocket = asked.switch.as_ref().is_some_and(|(_, asked)| asked.as_bytes().eq_ignore_ascii_case(b"websocket"));
    let switched = match (switching, asked.switch) {
        (true, None) => {
            let text = "the app switched protocols without being asked";
            return refuse(sidecar, watch, Refusal::because(Reason::BadAnswer, text));
        }
        (true, Some((client, asked))) => {
            let got = headers::upgrade_protocol(response.headers());
            if !got.as_ref().is_some_and(|got| got.as_bytes().eq_ignore_ascii_case(asked.as_bytes())) {
                let words = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
                let got = words(got.as_ref().map_or(&b""[..], HeaderValue::as_bytes));
                let asked = words(asked.as_bytes());
                let text = format!("backend tried to switch protocol \"{got}\" when \"{asked}\" was requested");
                return refuse(sidecar, watch, Refusal::because(Reason::BadAnswer, text));
            }
            response.body_mut().take_upgraded().map(|app| (client, app))
        }
        (false, _) => None,
    };
    headers::to_client(response.headers_mut(), true, switching);
    let (mut parts, received) = response.into_parts();
    let bodiless = asked.is_head || switching || matches!(parts.status.as_u16(), 204 | 304);
    if !bodiless && hyper::body::Body::is_end_stream(&received) {
        parts.headers.entry(CONTENT_LENGTH).or_insert(HeaderValue::from_static("0"));
    }
    let is_grpc = sidecar.config.compat == Compat::Better && grpc_status::is_call(&parts.headers);
    // Ours is the connection to the client; what the next hop speaks is not its business.
    parts.version = Version::HTTP_11;
    if let Some((client, app)) = switched {
        let life = sidecar.config.timeouts.upgrade;
        let guard: Guard = Box::new((held, watch.tunnels()));
        let limits = tunnel::Limits { life, idle: sidecar.config.timeouts.idle };
        let polite = websocket && sidecar.config.compat == Compat::Better;
        tunnel::open((client, app), polite, limits, &caller.worker, &sidecar.tunnels, guard);
        return Response::from_parts(parts, Body::empty());
    }
    if sidecar.config.compat == Compat::Strict && Withheld::is_due(&parts.headers) {
        parts.extensions.insert(Withheld);
    }
    limits.answered();
    let guard: Guard = Box::new(held);
    let body = Body::carried(received, Origin::App { grpc: is_grpc }, limits, guard);
    watch.passes_on(Response::from_parts(parts, body))
}

/// An offered request that did not get to the app is better off elsewhere.
fn cannot_send(sidecar: &Sidecar, watch: Watch, nonce: &HeaderValue, error: &str) -> Response<Body> {
    tracing::debug!(pod = %sidecar.config.pod, error, "the app cannot be reached; handing the request back");
    watch.answers(hand_back(nonce, "not-sent", sidecar), End::Whole)
}

/// Gives an offered request back unserved: nothing of it has reached the app.
fn hand_back(nonce: &HeaderValue, why: &str, sidecar: &Sidecar) -> Response<Body> {
    let reason = if why == "full" { Reason::QueueFull } else { Reason::ConnectFailed };
    let mut response = Refusal::new(reason).response();
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    let mark =
        [nonce.as_bytes(), b" ", why.as_bytes(), b" free=", sidecar.free_slots().to_string().as_bytes()].concat();
    if let Ok(mark) = HeaderValue::from_bytes(&mark) {
        response.headers_mut().insert(headers::HANDBACK, mark);
    }
    response
}

fn fault(sidecar: &Sidecar, failed: SendError) -> Refusal {
    let (reason, error) = failed.into_reason();
    if reason == Reason::Malformed {
        tracing::debug!(pod = %sidecar.config.pod, %reason, error, "a request broke off");
    } else {
        tracing::error!(pod = %sidecar.config.pod, %reason, error, "a request failed at the app");
    }
    Refusal::new(reason)
}

fn refuse(sidecar: &Sidecar, watch: Watch, refusal: Refusal) -> Response<Body> {
    tracing::debug!(pod = %sidecar.config.pod, reason = %refusal.reason, "refused a request");
    watch.answers(refusal.response(), if refusal.is_timeout() { End::TimedOut } else { End::Whole })
}
