//! Keeps a guard running and talks to it: requests out, events in. Should it
//! be lost, kills what fell to this process and starts another.

use super::client::{Ask, End, Life};
use super::protocol::{Event, Exit, MESSAGE_LIMIT, ProcessId, Request, receive, send};
use super::running::Running;
use crate::process::backoff::Backoff;
use crate::process::config::GuardCommand;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};
use tokio::io::Interest;
use tokio::net::UnixDatagram;
use tokio::sync::{mpsc, watch};
use tracing::{error, info, warn};

/// The task that talks to the guard.
pub(super) struct Keeper {
    command: GuardCommand,
    inbox: mpsc::Receiver<Ask>,
    lives: BTreeMap<ProcessId, watch::Sender<Life>>,
}

/// Why talking ended.
enum Over {
    /// Nobody wants anything any more.
    Done,
    /// The guard is gone.
    Lost,
}

/// Waits between starts of the guard.
const BACKOFF: Backoff =
    Backoff { first: Duration::from_millis(50), cap: Duration::from_secs(10), reset_after: Duration::from_secs(10) };

impl Keeper {
    pub(super) fn new(command: GuardCommand, inbox: mpsc::Receiver<Ask>) -> Keeper {
        Keeper { command, inbox, lives: BTreeMap::new() }
    }

    /// Serves until nobody can ask any more; then the guard has ended.
    pub(super) async fn run(mut self, first: Running) {
        let mut running = first;
        let mut losses = 0;
        loop {
            let since = Instant::now();
            let over = self.talk(running.socket()).await;
            self.mark_lost();
            running.finish().await;
            self.mark_swept();
            if matches!(over, Over::Done) {
                return;
            }
            warn!("the guard was lost and its pods were killed; starting another one");
            losses = if since.elapsed() >= BACKOFF.reset_after { 0 } else { losses + 1 };
            running = match self.start_again(losses).await {
                Some(running) => running,
                None => return,
            };
            info!(pid = running.pid(), "guard started");
        }
    }

    /// Another guard after so many quick losses; `None` when nobody needs it.
    async fn start_again(&mut self, losses: u32) -> Option<Running> {
        // The first loss may be an accident: no waiting.
        let mut failures = losses.saturating_sub(1);
        let mut text = "the guard process keeps ending".to_owned();
        loop {
            let wait = BACKOFF.wait(failures);
            if !wait.is_zero() && !self.refuse_for(wait, &text).await {
                return None;
            }
            match Running::start(&self.command) {
                Ok(running) => return Some(running),
                Err(error) => {
                    error!(%error, "cannot start the guard");
                    failures = failures.saturating_add(1);
                    text = error.to_string();
                }
            }
        }
    }

    /// Passes requests on and takes events in.
    async fn talk(&mut self, socket: &UnixDatagram) -> Over {
        let mut buffer = vec![0; MESSAGE_LIMIT];
        // The message that the socket had no room for. Meanwhile events are
        // read on, or both sides could wait for each other.
        let mut pending: Option<(Vec<u8>, Vec<OwnedFd>)> = None;
        loop {
            tokio::select! {
                ready = socket.readable() => {
                    let read = || Ok(receive(socket.as_fd(), &mut buffer)?.0);
                    match ready.and_then(|()| socket.try_io(Interest::READABLE, read)) {
                        Ok(0) => return Over::Lost,
                        Ok(length) => self.take_in(&buffer[..length]),
                        Err(error) if passes(&error) => {}
                        Err(_) => return Over::Lost,
                    }
                }
                ready = socket.writable(), if pending.is_some() => {
                    let Some((bytes, fds)) = &pending else { continue };
                    let write = || Ok(send(socket.as_fd(), bytes, fds)?);
                    match ready.and_then(|()| socket.try_io(Interest::WRITABLE, write)) {
                        Ok(()) => pending = None,
                        Err(error) if passes(&error) => {}
                        Err(_) => return Over::Lost,
                    }
                }
                ask = self.inbox.recv(), if pending.is_none() => match ask {
                    Some(ask) => pending = self.prepare(ask),
                    None => return Over::Done,
                },
            }
        }
    }

    /// The message for `ask`; `None` when it is answered already.
    fn prepare(&mut self, ask: Ask) -> Option<(Vec<u8>, Vec<OwnedFd>)> {
        match ask {
            Ask::Spawn(id, launch, life) => {
                let bytes = Request::Spawn(id, launch.spawn).encode();
                if bytes.len() > MESSAGE_LIMIT {
                    refuse(
                        &life,
                        &format!("command and environment have {} bytes, more than {MESSAGE_LIMIT}", bytes.len()),
                    );
                    return None;
                }
                self.lives.insert(id, life);
                Some((bytes, vec![launch.stdout, launch.stderr]))
            }
            Ask::Stop(id, grace) => {
                let known = self.lives.contains_key(&id);
                known.then(|| (Request::Stop(id, grace).encode(), Vec::new()))
            }
        }
    }

    fn take_in(&mut self, bytes: &[u8]) {
        match Event::decode(bytes) {
            Some(Event::Started(id, pid)) => self.note(id, |life| life.pid = Some(pid)),
            Some(Event::Failed(id, text)) => {
                if let Some(life) = self.lives.remove(&id) {
                    refuse(&life, &text);
                }
            }
            Some(Event::Exited(id, exit)) => {
                self.note(id, |life| life.end = Some(End::Exited(exit)));
            }
            Some(Event::Swept(id, left)) => {
                if left > 0 {
                    warn!(left, "some processes of a pod could not be killed");
                }
                if let Some(life) = self.lives.remove(&id) {
                    over(&life);
                }
            }
            None => warn!("the guard sent what is no event"),
        }
    }

    fn note(&self, id: ProcessId, change: impl FnOnce(&mut Life)) {
        if let Some(life) = self.lives.get(&id) {
            life.send_modify(change);
        }
    }

    fn mark_lost(&self) {
        for life in self.lives.values() {
            life.send_modify(|life| {
                life.end.get_or_insert(End::Exited(Exit::Lost));
            });
        }
    }

    fn mark_swept(&mut self) {
        for life in std::mem::take(&mut self.lives).into_values() {
            over(&life);
        }
    }

    /// Waits, refusing what is asked for meanwhile; false when nobody can ask
    /// any more.
    async fn refuse_for(&mut self, wait: Duration, text: &str) -> bool {
        let deadline = Instant::now() + wait;
        loop {
            tokio::select! {
                () = tokio::time::sleep_until(deadline.into()) => return true,
                ask = self.inbox.recv() => match ask {
                    Some(Ask::Spawn(_, _, life)) => refuse(&life, text),
                    Some(Ask::Stop(..)) => {}
                    None => return false,
                },
            }
        }
    }
}

/// True for what is no fault: nothing to read, no room to write.
fn passes(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

fn refuse(life: &watch::Sender<Life>, text: &str) {
    life.send_modify(|life| {
        life.end = Some(End::Failed(text.into()));
        life.swept = true;
    });
}

fn over(life: &watch::Sender<Life>) {
    life.send_modify(|life| {
        life.end.get_or_insert(End::Exited(Exit::Lost));
        life.swept = true;
    });
}
