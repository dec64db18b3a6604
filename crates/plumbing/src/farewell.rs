//! The app's side of a websocket that ends well: once it is time, the frame
//! that the app has begun is finished, and then a close frame stands where the
//! app's next frame would be. The client's answer still reaches the app.

use crate::websocket::{Frames, GOING_AWAY};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// When it is time.
pub type Leave = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Reads what the app says, and the farewell after it.
pub struct Farewell<S> {
    app: S,
    frames: Frames,
    /// `None` once it is time.
    leave: Option<Leave>,
    /// What is left of the close frame.
    words: &'static [u8],
}

/// Read at a time of a frame that is being finished.
const CHUNK_BYTES: usize = 4096;

impl<S> Farewell<S> {
    /// Of an app that has sent no byte yet.
    pub fn new(app: S, leave: Leave) -> Farewell<S> {
        Farewell { app, frames: Frames::new(), leave: Some(leave), words: &GOING_AWAY }
    }

    fn is_time(&mut self, cx: &mut Context<'_>) -> bool {
        if self.leave.as_mut().is_some_and(|leave| leave.as_mut().poll(cx).is_ready()) {
            self.leave = None;
        }
        self.leave.is_none()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Farewell<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let most = if this.is_time(cx) { this.frames.before_boundary() } else { None };
        let Some(most) = most else {
            let before = buf.filled().len();
            ready!(Pin::new(&mut this.app).poll_read(cx, buf))?;
            this.frames.pass(&buf.filled()[before..]);
            return Poll::Ready(Ok(()));
        };
        if most == 0 {
            // With nothing left to say this is the end.
            let (now, later) = this.words.split_at(this.words.len().min(buf.remaining()));
            buf.put_slice(now);
            this.words = later;
            return Poll::Ready(Ok(()));
        }
        let mut chunk = [0; CHUNK_BYTES];
        let most = usize::try_from(most).unwrap_or(usize::MAX).min(CHUNK_BYTES).min(buf.remaining());
        let mut chunk = ReadBuf::new(&mut chunk[..most]);
        ready!(Pin::new(&mut this.app).poll_read(cx, &mut chunk))?;
        this.frames.pass(chunk.filled());
        buf.put_slice(chunk.filled());
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Farewell<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.app).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.app).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.app).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
    use tokio::sync::oneshot;

    const HELLO: &[u8] = b"\x81\x05hello";

    fn app() -> (DuplexStream, Farewell<DuplexStream>, oneshot::Sender<()>) {
        let (app, ours) = duplex(64 * 1024);
        let (now, time) = oneshot::channel();
        let leave = async move { time.await.unwrap_or(()) };
        (app, Farewell::new(ours, Box::pin(leave)), now)
    }

    async fn rest(mut side: Farewell<DuplexStream>) -> Vec<u8> {
        let mut bytes = Vec::new();
        side.read_to_end(&mut bytes).await.unwrap();
        bytes
    }

    #[tokio::test]
    async fn between_two_frames_it_comes_at_once() {
        let (mut app, mut side, now) = app();
        app.write_all(HELLO).await.unwrap();
        let mut seen = [0; 7];
        side.read_exact(&mut seen).await.unwrap();
        assert_eq!(seen, HELLO);
        let reading = tokio::spawn(rest(side));
        now.send(()).unwrap();
        assert_eq!(reading.await.unwrap(), GOING_AWAY);
    }

    #[tokio::test]
    async fn a_frame_that_has_begun_is_finished_and_what_follows_it_is_left_out() {
        let large = [&[0x82, 126, 0x40, 0][..], &[7; 0x4000]].concat();
        for begun in 1..large.len().min(12) {
            let (mut app, mut side, now) = app();
            app.write_all(&large[..begun]).await.unwrap();
            let mut seen = vec![0; begun];
            side.read_exact(&mut seen).await.unwrap();
            let reading = tokio::spawn(rest(side));
            now.send(()).unwrap();
            app.write_all(&large[begun..]).await.unwrap();
            app.write_all(HELLO).await.unwrap();
            seen.extend(reading.await.unwrap());
            assert!(seen == [&large[..], &GOING_AWAY].concat(), "begun at {begun}");
        }
    }

    #[tokio::test]
    async fn after_a_close_frame_of_the_app_there_is_none_of_ours() {
        let (mut app, side, now) = app();
        now.send(()).unwrap();
        let mut side = side;
        // It is time only when somebody reads; the app was earlier.
        side.leave = Some(Box::pin(std::future::pending()));
        app.write_all(b"\x88\x02\x03\xe8").await.unwrap();
        let mut seen = [0; 4];
        side.read_exact(&mut seen).await.unwrap();
        side.leave = None;
        drop(app);
        assert_eq!(rest(side).await, b"");
    }
}
