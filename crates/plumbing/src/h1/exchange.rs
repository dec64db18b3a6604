//! One request and its answer.

use super::answer::{self, Asked, Plan};
use super::closing;
use super::encode::Encoder;
use super::feed::{Fed, Feed};
use super::incoming::Incoming;
use super::link::Link;
use super::malformed::Malformed;
use super::outbox::Outbox;
use super::presence::{Doubt, Guess, Presence};
use super::request::Head;
use super::server::{Conditions, Drain, Handler};
use super::upgrade::Upgraded;
use super::withheld::Withheld;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::Body;
use std::fmt::Display;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// What becomes of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    Next,
    Closed,
    Upgraded,
}

/// A request that its handler has done with.
pub(super) struct Done<'a, B, G> {
    asked: Asked,
    presence: Presence<'a, G>,
    handled: Handled<Response<B>>,
}

/// Has one request handled. Handlers may take their time: this is small.
pub(super) async fn handled<'a, H, B, G>(
    link: &'a Arc<Link>,
    conditions: &'a Conditions<G>,
    head: Box<Head>,
    handler: &H,
) -> Done<'a, B, G>
where
    H: Handler<B>,
    G: Fn(Doubt) -> Guess,
{
    let mut presence = Presence::new(link, &conditions.wheel, &conditions.gone);
    let asked = Asked::of(&head.method, head.version, head.upgrade, head.keep_alive);
    let handled = {
        let mut handling = pin!(handler.whole(request(link, head, asked.may_upgrade)));
        poll_fn(|cx| poll_handler(handling.as_mut(), link, &mut presence, cx)).await
    };
    Done { asked, presence, handled }
}

/// Answers it.
pub(super) async fn answered<B, G, D>(
    link: &Arc<Link>,
    conditions: &Conditions<G>,
    drain: &mut Drain<'_, D>,
    done: Done<'_, B, G>,
) -> After
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Display,
    G: Fn(Doubt) -> Guess,
    D: Future<Output = ()>,
{
    let Done { asked, mut presence, handled } = done;
    let response = match handled {
        Handled::Answer(response) => response,
        Handled::Malformed(what) => return closing::refuse(link, &conditions.wheel, what).await,
        Handled::ClientGone => return After::Closed,
    };
    respond(link, conditions, drain, asked, response, &mut presence).await
}

/// Sends an answer that the handler gave.
pub(super) async fn respond<B, G, D>(
    link: &Arc<Link>,
    conditions: &Conditions<G>,
    drain: &mut Drain<'_, D>,
    mut asked: Asked,
    response: Response<B>,
    presence: &mut Presence<'_, G>,
) -> After
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Display,
    G: Fn(Doubt) -> Guess,
    D: Future<Output = ()>,
{
    let draining = poll_fn(|cx| Poll::Ready(drain.poll(cx))).await;
    asked.keep_alive &= !draining;
    let (plan, sent) = answer(link, asked, response, presence).await;
    link.finish();
    match sent {
        Sent::Whole if plan.upgrade => hand_over(link),
        Sent::Whole => after(link, conditions, plan.keep_alive).await,
        Sent::Cut => {
            // Where the end of the connection is the end of the body, an
            // orderly end would make the part look whole.
            if plan.encoder == Encoder::UntilClose
                && let Some(socket) = &link.state().socket
            {
                let _ = socket.tcp().set_zero_linger();
            }
            After::Closed
        }
        Sent::ClientGone => After::Closed,
    }
}

fn request(link: &Arc<Link>, head: Box<Head>, upgrade: bool) -> Request<Incoming> {
    let turn = link.begin(&head);
    // Its box is let go of here.
    let head = *head;
    let body = Incoming::new(link.clone(), turn, head.decoder.hint(), upgrade);
    let mut request = Request::new(body);
    *request.method_mut() = head.method;
    *request.uri_mut() = head.uri;
    *request.version_mut() = head.version;
    *request.headers_mut() = head.fields;
    if let Some(target) = head.as_it_came {
        request.extensions_mut().insert(target);
    }
    request
}

/// What became of a request at its handler.
pub(super) enum Handled<A> {
    Answer(A),
    Malformed(Malformed),
    ClientGone,
}

/// Polls the handler, and looks for the client meanwhile.
pub(super) fn poll_handler<F, G>(
    handling: std::pin::Pin<&mut F>,
    link: &Link,
    presence: &mut Presence<'_, G>,
    cx: &mut Context<'_>,
) -> Poll<Handled<F::Output>>
where
    F: Future,
    G: Fn(Doubt) -> Guess,
{
    link.enter(cx);
    let handled = handling.poll(cx);
    {
        let mut state = link.leave();
        if let Some(what) = state.malformed {
            return Poll::Ready(Handled::Malformed(what));
        }
        if let Poll::Ready(answer) = handled {
            return Poll::Ready(Handled::Answer(answer));
        }
        if let Poll::Ready(Err(_)) = state.poll_flush_interim(cx) {
            return Poll::Ready(Handled::ClientGone);
        }
    }
    presence.poll_gone(cx).map(|()| Handled::ClientGone)
}

/// How far an answer has come.
pub(super) enum Sent {
    Whole,
    /// The body broke off behind the head.
    Cut,
    ClientGone,
}

/// Writes an answer; whatever of it is there is written at once.
async fn answer<B, G>(
    link: &Link,
    mut asked: Asked,
    response: Response<B>,
    presence: &mut Presence<'_, G>,
) -> (Plan, Sent)
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Display,
    G: Fn(Doubt) -> Guess,
{
    let (mut parts, body) = response.into_parts();
    if parts.status.is_informational() && !asked.may_upgrade {
        // No client could tell where such an answer ends.
        parts.status = StatusCode::BAD_GATEWAY;
    }
    {
        let mut state = link.state();
        // A client that was not told to send its body may send it or not: what
        // comes next cannot be known.
        asked.keep_alive &= !state.awaits_continue;
        state.begin_answer();
    }
    let exact = body.size_hint().exact();
    let plan = Plan::of(&asked, &parts, exact);
    let mut out = Outbox::default();
    answer::with_scratch(|head| {
        answer::write(&asked, plan, &parts, exact, head);
        out.flat(head);
    });
    let withheld = parts.extensions.get::<Withheld>().map(|_| out.len());
    drop(parts);
    let mut sending = match Feed::new(body, plan.encoder, &mut out) {
        Ok(feed) => Sending { feed, out, failed: false, withheld },
        Err(_) => return (plan, Sent::Cut),
    };
    let sent = poll_fn(|cx| {
        let sent = sending.poll(link, cx);
        if sent.is_pending() { presence.poll_gone(cx).map(|()| Sent::ClientGone) } else { sent }
    });
    (plan, sent.await)
}

struct Sending<B> {
    feed: Feed<B>,
    out: Outbox,
    failed: bool,
    /// Nothing is written yet; so long is the head.
    withheld: Option<usize>,
}

impl<B> Sending<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Display,
{
    fn poll(&mut self, link: &Link, cx: &mut Context<'_>) -> Poll<Sent> {
        loop {
            link.enter(cx);
            let fed = if self.failed { Ok(Fed::Whole) } else { self.feed.poll(&mut self.out, cx) };
            let mut state = link.leave();
            let fed = fed.unwrap_or_else(|error| {
                tracing::debug!(error, "an answer was cut");
                self.failed = true;
                Fed::Whole
            });
            if let Some(head) = self.withheld {
                if self.failed {
                    return Poll::Ready(Sent::Cut);
                }
                if Withheld::holds(fed, self.out.len(), head) {
                    return Poll::Pending;
                }
                self.withheld = None;
            }
            // What came before a fault is the client's all the same.
            match state.poll_flush_all(&mut self.out, cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(_)) => return Poll::Ready(Sent::ClientGone),
                Poll::Ready(Ok(())) => {}
            }
            match fed {
                Fed::Whole if self.failed => return Poll::Ready(Sent::Cut),
                Fed::Whole => return Poll::Ready(Sent::Whole),
                Fed::Full => {}
                Fed::Waiting => return Poll::Pending,
            }
        }
    }
}

/// The protocol has changed: the socket goes to whoever asked for it.
fn hand_over(link: &Link) -> After {
    let mut state = link.state();
    let early = std::mem::take(&mut state.inbox.bytes).freeze();
    if let (Some(taker), Some(socket)) = (state.upgrade.take(), state.socket.take())
        && taker.send(Upgraded::new(socket, early)).is_ok()
    {
        return After::Upgraded;
    }
    After::Closed
}

/// The answer has been written.
pub(super) async fn after<G>(link: &Link, conditions: &Conditions<G>, keep_alive: bool) -> After {
    let (complete, ended, more) = {
        let mut state = link.state();
        let (complete, ended) = (state.decoder.is_done(), state.inbox.ended);
        if complete && keep_alive && !ended {
            return After::Next;
        }
        (complete, ended, state.has_more())
    };
    if !complete {
        if keep_alive && closing::drain(link, &conditions.wheel).await {
            let reuse = conditions.settings.reuse_after_early_answer;
            return if reuse { After::Next } else { After::Closed };
        }
        return closing::linger(link, &conditions.wheel).await;
    }
    match (keep_alive, more) {
        (true, _) if !ended || more => After::Next,
        (false, true) => closing::linger(link, &conditions.wheel).await,
        _ => After::Closed,
    }
}
