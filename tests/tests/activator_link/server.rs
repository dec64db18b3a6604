//! An autoscaler's websocket as another implementation serves it, on threads
//! of its own, so that nothing here shares a runtime with what is tested.

use proto::stats::WireStatMessages;
use std::io::Read;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;
use tests::rig::PATIENCE;
use tokio::sync::mpsc;
use tungstenite::handshake::server::{Request, Response};
use tungstenite::protocol::CloseFrame;
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::{Message, accept_hdr};

/// What a server does with a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Manner {
    /// Takes everything.
    Serve,
    /// Takes so many messages, closes with this code, and waits for the answer.
    CloseAfter(usize, u16),
    /// Answers this instead of a handshake.
    Answer(&'static str),
    /// Shakes hands, takes bytes until the first message has come, answers
    /// nothing, and breaks off.
    Swallow,
    /// Shakes hands and answers nothing until the client has gone.
    Mute,
    /// Shakes hands, and reads nothing for this long.
    Stall(Duration),
}

/// What was heard.
#[derive(Debug, PartialEq)]
pub(crate) enum Heard {
    /// A handshake, and the path it was for.
    Connected(String),
    /// A message.
    Stats(WireStatMessages),
    /// A ping.
    Ping(Vec<u8>),
    /// A close frame of the client.
    Closed(Option<u16>),
    /// The connection is over.
    Gone,
}

/// A running server.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    heard: mpsc::UnboundedReceiver<Heard>,
}

impl Server {
    /// On a free port: the first connection gets the first manner, and all
    /// after the last get the last.
    pub(crate) fn start(manners: &[Manner]) -> Server {
        Server::on(TcpListener::bind("127.0.0.1:0").unwrap(), manners)
    }

    pub(crate) fn on(listener: TcpListener, manners: &[Manner]) -> Server {
        let (tell, heard) = mpsc::unbounded_channel();
        let address = listener.local_addr().unwrap();
        let manners = manners.to_vec();
        thread::spawn(move || {
            for (nth, stream) in listener.incoming().enumerate() {
                let (Ok(stream), tell) = (stream, tell.clone()) else { return };
                let manner = manners[nth.min(manners.len() - 1)];
                thread::spawn(move || {
                    serve(stream, manner, &tell);
                    let _ = tell.send(Heard::Gone);
                });
            }
        });
        Server { address, heard }
    }

    /// The next thing that was heard, pings aside.
    pub(crate) async fn next(&mut self) -> Heard {
        loop {
            match self.any().await {
                Heard::Ping(_) => {}
                heard => return heard,
            }
        }
    }

    /// The next thing that was heard.
    pub(crate) async fn any(&mut self) -> Heard {
        tokio::time::timeout(2 * PATIENCE, self.heard.recv()).await.expect("nothing was heard").expect("it serves")
    }

    /// The next message.
    pub(crate) async fn stats(&mut self) -> WireStatMessages {
        loop {
            if let Heard::Stats(stats) = self.next().await {
                return stats;
            }
        }
    }

    /// Whether there is nothing to be heard for a while.
    pub(crate) async fn is_silent(&mut self, span: Duration) -> bool {
        tokio::time::timeout(span, self.next()).await.is_err()
    }
}

#[expect(clippy::result_large_err, reason = "the shape that the library asks for")]
fn serve(mut stream: TcpStream, manner: Manner, tell: &mpsc::UnboundedSender<Heard>) {
    let _ = stream.set_nodelay(true);
    if let Manner::Answer(text) = manner {
        let _ = stream.read(&mut [0; 4096]);
        let _ = std::io::Write::write_all(&mut stream, text.as_bytes());
        return;
    }
    let raw = stream.try_clone().unwrap();
    let hello = |request: &Request, response: Response| {
        let _ = tell.send(Heard::Connected(request.uri().to_string()));
        Ok(response)
    };
    let Ok(mut socket) = accept_hdr(stream, hello) else { return };
    match manner {
        Manner::Swallow => return swallow(raw),
        Manner::Mute => return listen_only(raw, tell),
        Manner::Stall(span) => thread::sleep(span),
        _ => {}
    }
    let mut messages = 0;
    loop {
        match socket.read() {
            Ok(Message::Binary(bytes)) => {
                let _ = tell.send(Heard::Stats(proto::decode(&bytes, 64 << 20).unwrap()));
                messages += 1;
                if matches!(manner, Manner::CloseAfter(most, _) if most == messages) {
                    let Manner::CloseAfter(_, code) = manner else { return };
                    let frame = CloseFrame { code: CloseCode::from(code), reason: "Restarting".into() };
                    let _ = socket.close(Some(frame));
                }
            }
            Ok(Message::Ping(payload)) => _ = tell.send(Heard::Ping(payload.to_vec())),
            Ok(Message::Close(frame)) => _ = tell.send(Heard::Closed(frame.map(|frame| frame.code.into()))),
            Ok(other) => panic!("a client that sends {other:?}"),
            Err(_) => return,
        }
    }
}

/// Takes the first message's bytes, and lets nobody know.
fn swallow(mut stream: TcpStream) {
    let _ = stream.read(&mut [0; 1 << 16]);
    // With bytes that nobody read the other side gets a reset.
    thread::sleep(Duration::from_millis(50));
}

/// Hears pings, and says nothing.
fn listen_only(mut stream: TcpStream, tell: &mpsc::UnboundedSender<Heard>) {
    let mut chunk = [0; 4096];
    while let Ok(read @ 1..) = stream.read(&mut chunk) {
        if chunk[0] & 0x0f == 9 {
            let _ = tell.send(Heard::Ping(chunk[..read].to_vec()));
        }
    }
}
