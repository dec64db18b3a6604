//! The live view: a thread that looks several times a second and draws. Not on
//! the runtime of the control loop: a terminal that is stopped must not stop it.

use super::tally::Tally;
use super::view::{self, Frame, Rates, Stage, Step};
use crate::admin;
use std::collections::VecDeque;
use std::io::{self, IsTerminal, Stdout, Write};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Between two points of the trail.
const STEP_EVERY: Duration = Duration::from_millis(500);
/// Points kept: more than a terminal has columns.
const STEPS_MAX: usize = 500;
/// Between two lines where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(1);
/// Rates are over this time.
const RATE_OVER: Duration = Duration::from_secs(1);
/// A terminal that takes nothing is not waited for any longer.
const CLOSE_LIMIT: Duration = Duration::from_secs(1);

/// The view while it is shown.
pub(crate) struct Screen {
    stage: Sender<Stage>,
    ended: Receiver<()>,
    thread: JoinHandle<Rates>,
}

impl Screen {
    /// Begins to show what `source` and `tally` know, with `peak` requests per
    /// second at the top of the scale.
    ///
    /// # Errors
    /// When the thread cannot be made.
    pub(crate) fn start(source: admin::Source, tally: Arc<Tally>, peak: f64) -> io::Result<Screen> {
        let (stage, stages) = mpsc::channel();
        let (over, ended) = mpsc::channel();
        let watch = Watch::new(source, tally, peak);
        let thread = std::thread::Builder::new().name("screen".to_owned()).spawn(move || {
            let best = watch.run(&stages);
            let _ = over.send(());
            best
        })?;
        Ok(Screen { stage, ended, thread })
    }

    /// From now on it is another part of the demo.
    pub(crate) fn enter(&self, stage: Stage) {
        // Without a screen the demo goes on.
        let _ = self.stage.send(stage);
    }

    /// Leaves the last frame and gives the terminal back. The best rates seen.
    pub(crate) fn close(self) -> Rates {
        drop(self.stage);
        match self.ended.recv_timeout(CLOSE_LIMIT) {
            Err(RecvTimeoutError::Timeout) => Rates::default(),
            _ => self.thread.join().unwrap_or_default(),
        }
    }
}

/// What the thread has seen.
struct Watch {
    source: admin::Source,
    tally: Arc<Tally>,
    peak: f64,
    stage: Stage,
    begin: Instant,
    looks: VecDeque<(Instant, u64, u64)>,
    trail: Vec<Step>,
    next_step: Instant,
    best: Rates,
}

impl Watch {
    fn new(source: admin::Source, tally: Arc<Tally>, peak: f64) -> Watch {
        let begin = Instant::now();
        Watch {
            source,
            tally,
            peak,
            stage: Stage::Asleep,
            begin,
            looks: VecDeque::new(),
            trail: Vec::new(),
            next_step: begin,
            best: Rates::default(),
        }
    }

    fn run(mut self, stages: &Receiver<Stage>) -> Rates {
        let mut canvas = Canvas::open();
        loop {
            self.look(&mut canvas);
            match stages.recv_timeout(LOOK_EVERY) {
                Ok(stage) => self.stage = stage,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        self.look(&mut canvas);
        self.best
    }

    fn look(&mut self, canvas: &mut Canvas) {
        let now = Instant::now();
        let counts = self.tally.read();
        let instance = self.source.instance();
        let revision = instance.revisions.first();
        let rates = self.rates(now, counts.offered, counts.answered);
        self.step(now, Step { offered: rates.offered, ready: revision.map_or(0, |revision| revision.status.ready) });
        canvas.draw(&Frame {
            stage: self.stage,
            elapsed: now - self.begin,
            rates,
            trail: &self.trail,
            peak: self.peak,
            counts: &counts,
            revision,
        });
    }

    fn rates(&mut self, now: Instant, offered: u64, answered: u64) -> Rates {
        self.looks.push_back((now, offered, answered));
        // One look from before the span stays, or the span would be too short.
        while self.looks.get(1).is_some_and(|(at, ..)| now - *at >= RATE_OVER) {
            self.looks.pop_front();
        }
        let Some(&(since, offered_then, answered_then)) = self.looks.front() else { return Rates::default() };
        let seconds = (now - since).as_secs_f64().max(RATE_OVER.as_secs_f64());
        let rates = Rates {
            offered: (offered - offered_then) as f64 / seconds,
            answered: (answered - answered_then) as f64 / seconds,
        };
        self.best.offered = self.best.offered.max(rates.offered);
        self.best.answered = self.best.answered.max(rates.answered);
        rates
    }

    fn step(&mut self, now: Instant, step: Step) {
        if now < self.next_step {
            return;
        }
        self.next_step += STEP_EVERY;
        if self.trail.len() == STEPS_MAX {
            self.trail.remove(0);
        }
        self.trail.push(step);
    }
}

/// Where it is drawn.
enum Canvas {
    /// In place, over the frame before.
    Terminal { out: Stdout, drawn: usize },
    /// A line now and then.
    Lines { out: Stdout, next: Instant },
}

impl Canvas {
    fn open() -> Canvas {
        let mut out = io::stdout();
        if !out.is_terminal() {
            return Canvas::Lines { out, next: Instant::now() };
        }
        // Hides the cursor; dropping shows it again.
        let _ = out.write_all(b"\x1b[?25l");
        Canvas::Terminal { out, drawn: 0 }
    }

    /// Whoever reads it may be gone; the demo's end does not depend on it.
    fn draw(&mut self, frame: &Frame) {
        match self {
            Canvas::Terminal { out, drawn } => {
                let (columns, rows) = size(out);
                let lines: Vec<String> = view::lines(frame, columns).into_iter().take(rows.saturating_sub(1)).collect();
                let _ = out.write_all(over(*drawn, &lines).as_bytes()).and_then(|()| out.flush());
                *drawn = lines.len();
            }
            Canvas::Lines { out, next } => {
                let now = Instant::now();
                if now >= *next {
                    *next = now + LINE_EVERY;
                    let _ = writeln!(out, "{}", view::plain(frame));
                }
            }
        }
    }
}

impl Drop for Canvas {
    fn drop(&mut self) {
        if let Canvas::Terminal { out, .. } = self {
            let _ = out.write_all(b"\x1b[?25h").and_then(|()| out.flush());
        }
    }
}

/// Up to the first of `drawn` lines, and over them.
fn over(drawn: usize, lines: &[String]) -> String {
    let up = if drawn > 0 { format!("\x1b[{drawn}A") } else { String::new() };
    let body: String = lines.iter().map(|line| format!("\r{line}\x1b[K\n")).collect();
    format!("{up}{body}\x1b[J")
}

fn size(out: &Stdout) -> (usize, usize) {
    match rustix::termios::tcgetwinsize(out) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col.into(), size.ws_row.into()),
        _ => (80, 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_drawn_over_the_one_before() {
        let lines = ["one".to_owned(), "two".to_owned()];
        assert_eq!(over(0, &lines), "\rone\x1b[K\n\rtwo\x1b[K\n\x1b[J");
        assert_eq!(over(3, &lines), "\x1b[3A\rone\x1b[K\n\rtwo\x1b[K\n\x1b[J");
    }
}
