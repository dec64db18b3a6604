//! The app that speaks HTTP/1.1, byte for byte as scripted.

use super::super::case::{Act, Routes};
use super::super::latin;
use super::super::wire::{Body, Framing, Head};
use super::{Log, Seen};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const DEFAULT: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok";

/// The proxy's end, and what came from it.
struct Peer {
    stream: TcpStream,
    unread: Vec<u8>,
    ended: bool,
}

/// A request under way.
struct Exchange<'a> {
    log: &'a Log,
    place: usize,
    framing: Framing,
    /// Which one on this connection, from 1.
    nth: usize,
}

/// What follows an action.
#[derive(PartialEq, Eq)]
enum Next {
    Action,
    Close,
    Reset,
}

/// Serves one connection until an action, or the peer, ends it.
pub(super) async fn serve(stream: TcpStream, routes: &Routes, log: &Log) {
    let mut peer = Peer { stream, unread: Vec::new(), ended: false };
    let mut nth = 0;
    loop {
        let Some(seen) = peer.request().await else {
            break;
        };
        nth += 1;
        let (seen, framing) = seen;
        let acts = routes.of(&seen.target);
        let place = log.begin(seen);
        let exchange = Exchange { log, place, framing, nth };
        match exchange.run(&mut peer, acts).await {
            Next::Action => {}
            Next::Close => break,
            Next::Reset => {
                let _ = rustix::net::sockopt::set_socket_linger(&peer.stream, Some(Duration::ZERO));
                return;
            }
        }
    }
    let _ = peer.stream.shutdown().await;
}

impl Exchange<'_> {
    async fn run(&self, peer: &mut Peer, acts: Option<&[Act]>) -> Next {
        let early = acts.is_some_and(|acts| acts.iter().any(|act| act.before_body == Some(true)));
        if !early {
            self.read_body(peer).await;
        }
        let Some(acts) = acts else {
            return peer.send(DEFAULT).await;
        };
        for act in acts {
            match self.act(peer, act).await {
                Next::Action => {}
                end => return end,
            }
        }
        Next::Action
    }

    async fn act(&self, peer: &mut Peer, act: &Act) -> Next {
        if let Some(text) = &act.send {
            return match latin::bytes(text, act.fill) {
                Ok(bytes) => peer.send(&bytes).await,
                Err(_) => Next::Reset,
            };
        }
        if let Some(ms) = act.sleep_ms {
            tokio::time::sleep(Duration::from_millis(ms)).await;
        }
        if act.read_body == Some(true) {
            self.read_body(peer).await;
        }
        if act.wait_eof == Some(true) {
            peer.until_end().await;
            self.log.change(self.place, |seen| seen.closed_by_proxy = true);
            return Next::Close;
        }
        if act.echo_raw == Some(true) {
            return peer.echo().await;
        }
        let too_many = act.close_if_nth.is_some_and(|limit| self.nth >= limit);
        match (act.close == Some(true) || too_many, act.reset == Some(true)) {
            (true, _) => Next::Close,
            (_, true) => Next::Reset,
            _ => Next::Action,
        }
    }

    async fn read_body(&self, peer: &mut Peer) {
        let body = peer.body(self.framing).await;
        self.log.change(self.place, |seen| {
            seen.body = body.data;
            seen.trailers = body.trailers;
            seen.incomplete = !body.whole;
        });
    }
}

impl Peer {
    /// The next head, if it is one of a request.
    async fn request(&mut self) -> Option<(Seen, Framing)> {
        let head = loop {
            match Head::read(&self.unread) {
                Some(head) => break head,
                None => self.more().await?,
            }
        };
        self.unread.drain(..head.len);
        let mut words = head.start.split(' ');
        let (method, target, proto) = (words.next()?, words.next()?, words.next()?);
        let framing = head.request_framing();
        let seen = Seen {
            proto: (proto != "HTTP/1.1").then(|| proto.to_owned()),
            method: method.to_owned(),
            target: target.to_owned(),
            framing: Some(framing.name()),
            headers: head.fields,
            ..Seen::default()
        };
        Some((seen, framing))
    }

    async fn body(&mut self, framing: Framing) -> Body {
        loop {
            let body = Body::read(&self.unread, framing, self.ended);
            if body.whole || body.broken || self.ended {
                self.unread.drain(..body.len);
                return body;
            }
            // A short read shows at the next turn, as the end.
            let _ = self.more().await;
        }
    }

    async fn more(&mut self) -> Option<()> {
        let mut piece = [0; 64 * 1024];
        match self.stream.read(&mut piece).await {
            Ok(0) | Err(_) => {
                self.ended = true;
                None
            }
            Ok(length) => {
                self.unread.extend_from_slice(&piece[..length]);
                Some(())
            }
        }
    }

    async fn until_end(&mut self) {
        while self.more().await.is_some() {
            self.unread.clear();
        }
    }

    async fn echo(&mut self) -> Next {
        loop {
            let bytes = std::mem::take(&mut self.unread);
            if self.send(&bytes).await != Next::Action || self.more().await.is_none() {
                return Next::Close;
            }
        }
    }

    async fn send(&mut self, bytes: &[u8]) -> Next {
        match self.stream.write_all(bytes).await {
            Ok(()) => Next::Action,
            Err(_) => Next::Close,
        }
    }
}
