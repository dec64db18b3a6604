//! Kept HTTP/1 connections: a stack for each address, the one used last on
//! top, so that the rest grow old and are closed.

use super::connect::{Connector, Made};
use super::{Answer, Received, SendError, Trip};
use crate::body::Body;
use crate::fds::Taken;
use crate::h1::{self, Break, Called, Connection, Interim, Options, Outgoing, Plain};
use crate::headers;
use crate::idle::{IDLE_MAX, IdleLimit, Stake};
use http::{HeaderMap, Request, Response, StatusCode, Version};
use http_body::Body as _;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Idle connections kept for one address; further ones are closed.
pub(super) const IDLE_CONNECTIONS_MAX: usize = 1000;
/// Addresses of which nothing is left but what was learned: so many, or as many
/// as others; beyond it is forgotten.
const LEARNED_MAX: usize = 1024;
/// Aged connections are closed together, this much late at most.
const SWEEP_SLACK: Duration = Duration::from_secs(5);

pub(super) struct Http1 {
    connector: Connector,
    servers: Mutex<Servers>,
    bell: Arc<Bell>,
    /// Rings the bell: what idle connections call when something happens.
    waker: Waker,
}

#[derive(Default)]
struct Servers {
    by_address: HashMap<SocketAddr, Server, foldhash::fast::RandomState>,
    /// The sweep has a time at which it looks next.
    watched: bool,
    /// With so many addresses, some are forgotten.
    forget_at: usize,
}

#[derive(Default)]
struct Server {
    idle: Vec<Idle>,
    limit: IdleLimit,
}

struct Idle {
    connection: Connection<Body>,
    fd: Taken,
    since: Instant,
}

/// Where a connection belongs.
pub struct Home {
    pool: Arc<Http1>,
    address: SocketAddr,
    fd: Taken,
}

impl Home {
    /// It is idle since then.
    pub(crate) fn put_back(self, connection: Connection<Body>, since: Instant) {
        self.pool.put(self.address, Idle { connection, fd: self.fd, since });
    }
}

#[derive(Default)]
struct Bell(Notify);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.notify_one();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.notify_one();
    }
}

impl Http1 {
    pub(super) fn new(connector: Connector) -> Arc<Http1> {
        let bell = Arc::new(Bell::default());
        let waker = Waker::from(bell.clone());
        Arc::new(Http1 { connector, servers: Mutex::default(), bell, waker })
    }

    pub(super) async fn send(
        self: &Arc<Self>,
        address: SocketAddr,
        mut request: Request<Body>,
        mut trip: Trip,
    ) -> Result<Response<Received>, SendError> {
        *request.version_mut() = Version::HTTP_11;
        let is_empty = request.body().is_end_stream();
        let mut outgoing = Outgoing::from(request);
        let mut hold = std::mem::take(&mut trip.hold);
        let mut again = !trip.patience.is_zero();
        loop {
            let (connection, fd, reused) = match self.take(address, trip.stake(), Instant::now()) {
                Some(idle) => (idle.connection, idle.fd, Some(idle.since)),
                None => {
                    let Made { stream, fd } = match self.connector.connect(address, trip.patience).await {
                        Ok(made) => made,
                        Err(error) => {
                            self.forget(address);
                            return Err(SendError::NotSent { error });
                        }
                    };
                    (Connection::new(stream), fd, None)
                }
            };
            trip.note_connected();
            let mut on_interim = trip.interim.as_ref().map(|interim| |status, fields| pass_on(interim, status, fields));
            let options = Options {
                on_interim: on_interim.as_mut().map(|pass| pass as &mut (dyn FnMut(StatusCode, HeaderMap) + Send)),
                hold_body: Some(&mut hold),
                head_bytes_max: trip.head_bytes_max,
            };
            match connection.send(outgoing, options).await {
                Ok(response) => {
                    self.learn(address, reused, response.headers());
                    let home = Home { pool: self.clone(), address, fd };
                    return Ok(response.map(|body| Received::http1(body, home)));
                }
                Err(h1::SendError::NotSent { unsent, .. }) if reused.is_some() => {
                    self.closed(address, reused);
                    outgoing = *unsent;
                }
                Err(h1::SendError::NotSent { unsent, .. }) if again => {
                    again = false;
                    outgoing = *unsent;
                }
                Err(h1::SendError::NotSent { error, .. }) => return Err(SendError::NotSent { error }),
                Err(h1::SendError::Broken { error, at: Break::BeforeAnswer, head: Some(head) })
                    if trip.repeatable && (reused.is_some() || again) =>
                {
                    if reused.is_none() && !self.connector.is_gone(address).await {
                        return Err(SendError::Broken { error, at: Break::BeforeAnswer });
                    }
                    again &= reused.is_some();
                    outgoing = Request::from_parts(*head, Body::empty()).into();
                }
                Err(h1::SendError::Broken { at: Break::Version, head: Some(head), .. }) if is_empty => {
                    return Err(SendError::OtherVersion { head });
                }
                Err(h1::SendError::Broken { error, at, .. }) => return Err(SendError::Broken { error, at }),
            }
        }
    }

    /// Sends a plain request over a connection that is kept.
    pub(super) async fn call(
        self: &Arc<Self>,
        address: SocketAddr,
        request: Plain,
        stake: Stake,
        now: Instant,
    ) -> Answer {
        while let Some(Idle { connection, fd, since }) = self.take(address, stake, now) {
            let home = Home { pool: self.clone(), address, fd };
            match connection.call(&request).await {
                Called::Answered(source) => {
                    let hint = source.kept_for().and_then(headers::timeout_in);
                    let worked = source.came_at().saturating_duration_since(since);
                    self.learned(address, Some(worked), hint);
                    return Answer::Plain(source, home);
                }
                Called::Whole(connection) => return self.whole(connection, home, since, &request).await,
                Called::NotSent => self.closed(address, Some(since)),
                // Its turn is over, and the whole way goes on with another.
                Called::Broken(_) if stake == Stake::Nothing => break,
                Called::Broken(error) => {
                    return Answer::Whole(Err(SendError::Broken { error, at: Break::BeforeAnswer }));
                }
            }
        }
        Answer::NotSent(request)
    }

    /// Reads an answer that is not plain.
    async fn whole(&self, connection: Connection<Body>, home: Home, since: Instant, request: &Plain) -> Answer {
        let interim = request.interim();
        let mut on_interim = |status, fields| pass_on(&interim, status, fields);
        let options = Options { on_interim: Some(&mut on_interim), ..Options::default() };
        let answer = connection.answer(request.method().clone(), options).await;
        Answer::Whole(match answer {
            Ok(response) => {
                self.learn(home.address, Some(since), response.headers());
                Ok(response.map(|body| Received::http1(body, home)))
            }
            Err(h1::SendError::NotSent { error, .. }) => Err(SendError::Broken { error, at: Break::BeforeAnswer }),
            Err(h1::SendError::Broken { error, at, .. }) => Err(SendError::Broken { error, at }),
        })
    }

    fn take(&self, address: SocketAddr, stake: Stake, now: Instant) -> Option<Idle> {
        let mut servers = self.servers.lock();
        let server = servers.by_address.get_mut(&address)?;
        while let Some(idle) = server.idle.pop() {
            let age = now.saturating_duration_since(idle.since);
            if idle.connection.is_stale() {
                server.limit.closed_after(age);
                continue;
            }
            if age > server.limit.reuse_max(Stake::Nothing) {
                // All below it have lain idle for longer: none is of use.
                return None;
            }
            // The oldest that is open still shows how long they are kept.
            let oldest = server.idle.first().map(|oldest| now.saturating_duration_since(oldest.since));
            let learned = oldest.filter(|age| server.limit.would_learn(*age));
            let is_open = || server.idle.first().is_some_and(|oldest| !oldest.connection.is_stale());
            let kept = learned.filter(|_| is_open()).unwrap_or(age);
            server.limit.worked_after(kept);
            if age > server.limit.reuse_max(stake) {
                server.idle.push(idle);
                return None;
            }
            return Some(idle);
        }
        None
    }

    fn put(&self, address: SocketAddr, idle: Idle) {
        if !idle.connection.watch(&self.waker) {
            return;
        }
        let mut servers = self.servers.lock();
        let Servers { by_address, forget_at, .. } = &mut *servers;
        if by_address.len() >= LEARNED_MAX.max(*forget_at) && !by_address.contains_key(&address) {
            by_address.retain(|_, server| !server.idle.is_empty());
            // Not with each new one, where more than that are in use.
            *forget_at = 2 * by_address.len();
        }
        let server = by_address.entry(address).or_default();
        if server.idle.len() < IDLE_CONNECTIONS_MAX {
            server.idle.push(idle);
        }
        let unwatched = !std::mem::replace(&mut servers.watched, true);
        drop(servers);
        if unwatched {
            self.bell.0.notify_one();
        }
    }

    /// What an answer on a connection shows of its server.
    fn learn(&self, address: SocketAddr, reused: Option<Instant>, fields: &HeaderMap) {
        let worked = reused.map(|since| since.elapsed());
        self.learned(address, worked, headers::keep_alive_timeout(fields));
    }

    fn learned(&self, address: SocketAddr, reused: Option<Duration>, hint: Option<Duration>) {
        if reused.is_none() && hint.is_none() {
            return;
        }
        let mut servers = self.servers.lock();
        let server = servers.by_address.entry(address).or_default();
        if let Some(worked) = reused {
            server.limit.worked_after(worked);
        }
        if let Some(limit) = hint {
            server.limit.hint(limit);
        }
    }

    /// A connection that was taken for reuse turned out to be closed.
    fn closed(&self, address: SocketAddr, reused: Option<Instant>) {
        if let (Some(since), Some(server)) = (reused, self.servers.lock().by_address.get_mut(&address)) {
            server.limit.closed_after(since.elapsed());
        }
    }

    fn forget(&self, address: SocketAddr) {
        if let Some(server) = self.servers.lock().by_address.get_mut(&address) {
            server.limit.forget();
            server.idle.clear();
        }
    }

    /// See [`super::Pool::sweep`].
    pub(super) async fn sweep(&self) {
        loop {
            match self.sweep_once() {
                Some(due) => tokio::select! {
                    () = self.bell.0.notified() => {}
                    () = self.connector.wheel.sleep_until(due + SWEEP_SLACK) => {}
                },
                None => self.bell.0.notified().await,
            }
        }
    }

    /// Returns when the oldest of what is left is too old.
    fn sweep_once(&self) -> Option<Instant> {
        let now = Instant::now();
        let mut servers = self.servers.lock();
        let mut due = None;
        for server in servers.by_address.values_mut() {
            let Server { idle, limit } = server;
            idle.retain(|idle| {
                let age = now.saturating_duration_since(idle.since);
                let open = idle.connection.watch(&self.waker);
                if !open {
                    limit.closed_after(age);
                }
                open && age < IDLE_MAX
            });
            let oldest = idle.first().map(|idle| idle.since + IDLE_MAX);
            due = due.into_iter().chain(oldest).min();
        }
        servers.watched = due.is_some();
        due
    }
}

/// The 100 of a server is its own: whether the client is asked for its body
/// is for our side of the connection to say.
fn pass_on(interim: &Interim, status: StatusCode, mut fields: HeaderMap) {
    if status != StatusCode::CONTINUE {
        headers::to_client(&mut fields, false, false);
        interim.send(status, &fields);
    }
}
