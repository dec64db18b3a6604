//! One plain request and its answer.

use super::super::answer::Asked;
use super::super::exchange::{After, Handled, Sent, after, poll_handler, respond};
use super::super::link::Link;
use super::super::presence::{Doubt, Guess, Presence};
use super::super::server::{Conditions, Drain, Handler};
use super::Answered;
use super::request::{Found, Plain};
use bytes::Bytes;
use http::{Method, Version};
use http_body::Body;
use std::fmt::Display;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

/// Serves one plain request.
pub(in super::super) async fn exchange<H, B, G, D>(
    link: &Arc<Link>,
    conditions: &Conditions<G>,
    drain: &mut Drain<'_, D>,
    found: Box<Found>,
    handler: &H,
) -> After
where
    H: Handler<B>,
    B: Body<Data = Bytes> + Unpin,
    B::Error: Display,
    G: Fn(Doubt) -> Guess,
    D: Future<Output = ()>,
{
    let mut presence = Presence::new(link, &conditions.wheel, &conditions.gone);
    let turn = link.begin_plain();
    let handled = {
        let mut handling = pin!(handler.plain(Plain::new(found, link.clone(), turn)));
        poll_fn(|cx| poll_handler(handling.as_mut(), link, &mut presence, cx)).await
    };
    let mut relay = match handled {
        Handled::Answer(Some(Answered::Relay(relay))) => relay,
        Handled::Answer(Some(Answered::Whole(response))) => {
            let asked = Asked::of(&Method::GET, Version::HTTP_11, false, true);
            return Box::pin(respond(link, conditions, drain, asked, response, &mut presence)).await;
        }
        // There is no body that could be malformed.
        Handled::Answer(None) | Handled::Malformed(_) | Handled::ClientGone => return After::Closed,
    };
    let keep_alive = !poll_fn(|cx| Poll::Ready(drain.poll(cx))).await;
    link.state().begin_answer();
    relay.begin(keep_alive);
    let sent = poll_fn(|cx| {
        let sent = relay.poll(link, cx);
        if sent.is_pending() { presence.poll_gone(cx).map(|()| Sent::ClientGone) } else { sent }
    })
    .await;
    drop(relay);
    link.finish();
    match sent {
        Sent::Whole => after(link, conditions, keep_alive).await,
        Sent::Cut | Sent::ClientGone => After::Closed,
    }
}
