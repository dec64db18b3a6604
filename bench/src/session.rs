//! One run: what was asked for, where its files are, what it has measured.

use crate::book::Book;
use crate::clients::Work;
use crate::load::{Outcome, Pace};
use crate::options::Options;
use crate::peers::{self, Peer, Running, Setup};
use crate::process::Process;
use anyhow::ensure;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

/// See the module.
pub(crate) struct Session {
    pub(crate) options: Options,
    pub(crate) folder: tempfile::TempDir,
    pub(crate) book: Book,
    draw: fastrand::Rng,
    told: BTreeSet<Peer>,
    apps: Vec<Process>,
}

/// For a first look at a peer that has just been started.
const TRIAL: Duration = Duration::from_millis(60);
const PATIENCE: Duration = Duration::from_secs(3);

impl Session {
    /// Starts the apps.
    pub(crate) fn new(options: Options) -> anyhow::Result<Session> {
        let folder = tempfile::tempdir()?;
        let apps = peers::apps(folder.path())?;
        let (book, draw, told) = (Book::default(), fastrand::Rng::new(), BTreeSet::new());
        Ok(Session { options, folder, book, draw, told, apps })
    }

    /// Before a row: apps that somebody has ended are started anew. What was
    /// measured without them was not counted.
    pub(crate) fn look_after_apps(&mut self) -> anyhow::Result<()> {
        if !self.apps.iter_mut().all(Process::is_running) {
            let line = "an app had been ended from outside; it was started anew".to_owned();
            eprintln!("NOTE {line}");
            self.book.notes.push(line);
            self.apps.clear();
            self.apps = peers::apps(self.folder.path())?;
        }
        Ok(())
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Of these peers, those that were asked for and are here.
    pub(crate) fn present(&mut self, peers: &[Peer]) -> Vec<Peer> {
        let mut present = Vec::new();
        for peer in peers.iter().copied() {
            let word = peer.word();
            if !self.options.peers.is_empty() && !self.options.peers.iter().any(|asked| asked == word) {
                continue;
            }
            match peer.missing() {
                None => present.push(peer),
                Some(why) if self.told.insert(peer) => {
                    let line = format!("{}: {why}", peer.name());
                    eprintln!("MISSING {line}");
                    self.book.missing.push(line);
                }
                Some(_) => {}
            }
        }
        present
    }

    /// Starts them, and looks whether each does this work at all.
    pub(crate) fn start(&mut self, row: &str, peers: &[Peer], setup: Setup, work: &Work) -> Vec<Running> {
        let mut started = Vec::new();
        for peer in self.present(peers) {
            let running = peer.start(setup, self.folder()).and_then(|running| {
                works(&running, work)?;
                Ok(running)
            });
            match running {
                Ok(running) => started.push(running),
                Err(error) => {
                    let line = short(&format!("{row}: {} does not do this: {error:#}", peer.name()));
                    eprintln!("MISSING {line}");
                    self.book.missing.push(line);
                }
            }
        }
        started
    }

    /// The order of a round.
    pub(crate) fn shuffled(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        self.draw.shuffle(&mut order);
        order
    }

    /// An outcome, if it counts: a round with errors is told of and dropped.
    pub(crate) fn counted(
        &mut self,
        row: &str,
        peer: Peer,
        round: usize,
        outcome: anyhow::Result<Outcome>,
    ) -> Option<Outcome> {
        let why = match outcome {
            Ok(outcome) if outcome.errors == 0 && outcome.completed > 0 => return Some(outcome),
            Ok(outcome) => format!("{} errors, {} answered", outcome.errors, outcome.completed),
            Err(error) => format!("{error:#}"),
        };
        self.drop_round(row, peer, round, &why);
        None
    }

    pub(crate) fn drop_round(&mut self, row: &str, peer: Peer, round: usize, why: &str) {
        let line = short(&format!("{row}, {}, round {}: {why}", peer.name(), round + 1));
        eprintln!("NOT COUNTED {line}");
        self.book.dropped.push(line);
    }
}

/// One line, and no more than one would read.
fn short(text: &str) -> String {
    const LETTERS_MAX: usize = 300;
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    words.join(" ").chars().take(LETTERS_MAX).collect()
}

/// One that listens may not know its app yet.
pub(crate) fn works(running: &Running, work: &Work) -> anyhow::Result<()> {
    let one = Work { connections: 1, streams: 1, ..work.clone() };
    let began = Instant::now();
    loop {
        let outcome = one.own(running.address, Pace::Closed, TRIAL);
        if outcome.as_ref().is_ok_and(|outcome| outcome.completed > 0 && outcome.errors == 0) {
            return Ok(());
        }
        ensure!(began.elapsed() < PATIENCE, "{outcome:?}: {}", running.said());
    }
}
