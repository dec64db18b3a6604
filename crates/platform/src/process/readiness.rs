//! Asks an app whether it is ready: one attempt, and the steps between them.

use super::config::Readiness;
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until, timeout};

/// What to ask, and where.
#[derive(Clone, Copy)]
pub(super) struct Probe<'a> {
    pub(super) app: SocketAddr,
    pub(super) readiness: &'a Readiness,
    /// Limit of one attempt.
    pub(super) attempt: Duration,
}

/// Why an attempt did not pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Miss {
    /// Nothing listens.
    Refused,
    /// It listens, and did not answer in time.
    Silent,
    /// It answered, or closed, without an HTTP status.
    NotHttp,
    /// It answered with this status.
    Status(u16),
}

impl fmt::Display for Miss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Miss::Refused => f.write_str("the connection was refused"),
            Miss::Silent => f.write_str("there was no answer in time"),
            Miss::NotHttp => f.write_str("the answer was not HTTP"),
            Miss::Status(status) => write!(f, "the answer had status {status}"),
        }
    }
}

impl Probe<'_> {
    /// One attempt.
    pub(super) async fn once(&self) -> Result<(), Miss> {
        let asked = async {
            let stream = connect(self.app).await.map_err(|_| Miss::Refused)?;
            match self.readiness {
                Readiness::Tcp => Ok(()),
                Readiness::Http(path) => self.get(stream, path).await,
            }
        };
        timeout(self.attempt, asked).await.unwrap_or(Err(Miss::Silent))
    }

    async fn get(&self, mut stream: TcpStream, path: &str) -> Result<(), Miss> {
        let app = self.app;
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {app}\r\nUser-Agent: zeroscale-probe\r\n\
             Accept: */*\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.map_err(|_| Miss::NotHttp)?;
        let mut head = [0; STATUS_LINE];
        stream.read_exact(&mut head).await.map_err(|_| Miss::NotHttp)?;
        match status(&head) {
            Some(200..400) => {}
            Some(status) => return Err(Miss::Status(status)),
            None => return Err(Miss::NotHttp),
        }
        // Read on beside: closing now would reset the app's answer.
        let rest = async move {
            let mut rest = stream.take(REST_LIMIT);
            tokio::io::copy(&mut rest, &mut tokio::io::sink()).await
        };
        tokio::spawn(timeout(self.attempt, rest));
        Ok(())
    }

    /// Asks again and again until an attempt passes. `missed` is told of each
    /// that did not.
    pub(super) async fn until_passed(&self, crowd: &Crowd, missed: impl Fn(Miss)) {
        let began = Instant::now();
        let _member = crowd.join();
        let mut next = began;
        while let Err(miss) = self.once().await {
            missed(miss);
            // From one set time to the next: a sleep of 1 ms would take up to
            // 2 ms, since the runtime's timer has ticks of 1 ms.
            next = (next + step(began.elapsed(), crowd.size())).max(Instant::now());
            sleep_until(next).await;
        }
    }
}

/// Connects to an app of this machine.
///
/// Its refusal is there when the system's `connect` returns, so it is looked
/// for before the runtime gets to know the socket, which would cost more than
/// all the rest: at a step of a millisecond that is the price of a start.
async fn connect(app: SocketAddr) -> io::Result<TcpStream> {
    let family = if app.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = net::socket_with(family, SocketType::STREAM, flags, None)?;
    match net::connect(&socket, &app) {
        Ok(()) | Err(Errno::INPROGRESS) => {}
        Err(error) => return Err(error.into()),
    }
    sockopt::socket_error(&socket)??;
    let stream = TcpStream::from_std(socket.into())?;
    stream.writable().await?;
    match stream.take_error()? {
        Some(error) => Err(error),
        None => Ok(stream),
    }
}

/// `HTTP/1.1 200`, in bytes.
const STATUS_LINE: usize = 12;
/// Of an answer's rest, read at most this many bytes.
const REST_LIMIT: u64 = 64 << 10;

fn status(line: &[u8; STATUS_LINE]) -> Option<u16> {
    let text = str::from_utf8(line).ok()?;
    let code = text.strip_prefix("HTTP/1.1 ").or_else(|| text.strip_prefix("HTTP/1.0 "))?;
    code.bytes().all(|byte| byte.is_ascii_digit()).then(|| code.parse().ok())?
}

/// Time to the next attempt: 1 ms in the first 2 s, 10 ms until 10 s, then a
/// hundredth of the time spent, at most 1 s. An attempt costs about 25 µs of
/// CPU, so a crowd of starting pods asks less often each.
fn step(elapsed: Duration, starting: u32) -> Duration {
    let alone = match elapsed.as_millis() {
        0..2_000 => Duration::from_millis(1),
        2_000..10_000 => Duration::from_millis(10),
        _ => (elapsed / 100).min(Duration::from_secs(1)),
    };
    (alone * starting.div_ceil(CROWD_UNIT).clamp(1, CROWD_CAP)).min(Duration::from_secs(1))
}

/// So many starting pods ask at full rate.
const CROWD_UNIT: u32 = 8;
/// A crowd slows each by this factor at most.
const CROWD_CAP: u32 = 50;

/// Counts the pods that start at this moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Crowd(Arc<AtomicU32>);

impl Crowd {
    fn join(&self) -> Member {
        self.0.fetch_add(1, Ordering::Relaxed);
        Member(self.clone())
    }

    fn size(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

struct Member(Crowd);

impl Drop for Member {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(elapsed: u64, starting: u32) -> u128 {
        step(Duration::from_millis(elapsed), starting).as_millis()
    }

    #[test]
    fn steps_grow_with_the_time_spent_and_with_the_crowd() {
        let alone: Vec<u128> =
            [0, 1_999, 2_000, 9_999, 10_000, 30_000, 100_000, 900_000].map(|elapsed| millis(elapsed, 1)).to_vec();
        assert_eq!(alone, [1, 1, 10, 10, 100, 300, 1000, 1000]);
        assert_eq!((millis(0, 0), millis(0, 8), millis(0, 9), millis(0, 64)), (1, 1, 2, 8));
        assert_eq!(millis(900_000, u32::MAX), 1000);
    }

    async fn ask(app: SocketAddr) -> Result<(), Miss> {
        Probe { app, readiness: &Readiness::Tcp, attempt: Duration::from_millis(300) }.once().await
    }

    #[tokio::test]
    async fn a_port_is_ready_refused_or_silent() {
        for host in ["127.0.0.1", "::1"] {
            let place = SocketAddr::new(host.parse().unwrap(), 0);
            let socket =
                if place.is_ipv4() { tokio::net::TcpSocket::new_v4() } else { tokio::net::TcpSocket::new_v6() };
            let socket = socket.unwrap();
            socket.bind(place).unwrap();
            let app = socket.local_addr().unwrap();
            assert_eq!(ask(app).await, Err(Miss::Refused), "{host}: nobody listens yet");
            let listener = socket.listen(1).unwrap();
            assert_eq!(ask(app).await, Ok(()), "{host}: somebody listens");
            // Nobody accepts: once the queue is full, a connection is neither made nor refused.
            let mut waiting = Vec::new();
            while let Ok(Ok(stream)) = timeout(Duration::from_millis(100), connect(app)).await {
                waiting.push(stream);
            }
            assert_eq!(ask(app).await, Err(Miss::Silent), "{host}: its queue is full");
            drop(listener);
            assert_eq!(ask(app).await, Err(Miss::Refused), "{host}: nobody listens any more");
        }
    }

    #[test]
    fn a_status_is_read_from_the_first_twelve_bytes() {
        assert_eq!(status(b"HTTP/1.1 200"), Some(200));
        assert_eq!(status(b"HTTP/1.0 503"), Some(503));
        for not in [b"HTTP/2.0 200", b"HTTP/1.1 +20", b"SSH-2.0-Open", b"HTTP/1.\xc3\xa9200"] {
            assert_eq!(status(not), None, "{not:?}");
        }
    }
}
