//! `zeroscale demo`: the whole loop, from zero up and back to zero, with a
//! built-in app and a built-in load. What runs is what `run` runs.
//!
//! | job | module |
//! | --- | --- |
//! | the app | [`sample_app`] |
//! | when requests come, who sends them, what became of them | [`schedule`], [`load`], [`tally`] |
//! | what the pods did | [`course`] |
//! | what is shown, and where | [`view`], [`screen`], [`summary`] |

mod course;
mod load;
pub(crate) mod sample_app;
mod schedule;
mod screen;
mod summary;
mod tally;
mod view;

use crate::assemble::{self, Floor};
use crate::cli::{Cli, Command, DemoFlags};
use crate::settings::{self, Fault, Settings};
use crate::{EXIT_USAGE, admin, run};
use anyhow::Context;
use clap::Parser;
use course::Course;
use plumbing::signals::{Ending, Signals};
use schedule::Schedule;
use screen::Screen;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use summary::Summary;
use tally::Tally;
use tokio_util::sync::{CancellationToken, DropGuard};
use view::Stage;

/// The very flags that anybody could give to `run`. Short windows, so that it
/// takes a minute; little spare capacity, so that the path is seen to change.
const FLAGS: [&str; 18] = [
    "zeroscale",
    "run",
    "--name=sample",
    "--listen=127.0.0.1:0",
    "--container-concurrency=4",
    "--window=6s",
    "--target-burst-capacity=4",
    "--max-scale=10",
    "--grace=0s",
    "--stop-timeout=2s",
    "--start-timeout=20s",
    "--shutdown-timeout=2s",
    "--wait-limit=20s",
    "--timeout=20s",
    "--log-level=error",
    "--",
    "/proc/self/exe",
    "__sample-app",
];
/// Requests per second at the peak: 12 in work at 40 ms each, for pods that
/// aim at 2.8.
const PEAK_RATE: f64 = 300.0;
/// How long nothing is shown to be nothing.
const ASLEEP: Duration = Duration::from_secs(1);
/// From the last answer; far more than the windows need.
const ZERO_LIMIT: Duration = Duration::from_secs(60);
const LOAD_MIN: Duration = Duration::from_secs(1);
const LOAD_MAX: Duration = Duration::from_secs(3600);

pub(crate) fn main(flags: &DemoFlags) -> ExitCode {
    if !(LOAD_MIN..=LOAD_MAX).contains(&flags.load) {
        eprintln!("zeroscale: --load: {:?} is not between 1s and 1h", flags.load);
        return ExitCode::from(EXIT_USAGE);
    }
    let settings = settings().map_err(|faults| anyhow::anyhow!(faults.join("; ")));
    match settings.and_then(|settings| run::on_runtime(play(flags.load, settings))) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("zeroscale: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// What [`FLAGS`] come to.
fn settings() -> Result<Settings, Vec<Fault>> {
    match Cli::try_parse_from(FLAGS).map_err(|error| vec![error.to_string()])?.command {
        Command::Run(flags) => settings::of_run(&flags),
        other => Err(vec![format!("the demo's flags are those of {other:?}")]),
    }
}

/// No log here: it would write into the view.
async fn play(load: Duration, settings: Settings) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::new()?;
    let listener = assemble::listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).context("listening on 127.0.0.1")?;
    let (guard, budget) = run::prepare();
    // So that `status` in another terminal shows the demo too; it can do without.
    let door = admin::open().ok();
    let floor = assemble::start(settings, listener, guard, budget)?;
    let source = admin::Source::of(&floor);
    let admin = door.map(|door| door.serve(source.clone()));
    let schedule = Schedule::new(load, PEAK_RATE);
    let tally = Arc::new(Tally::new()?);
    let screen = Screen::start(source.clone(), tally.clone(), schedule.peak())?;
    let played = tokio::select! {
        course = show(&floor, schedule, &tally, &screen) => Ok(course),
        ending = signals.next() => Err(ending),
    };
    let best = screen.close();
    let code = match played {
        Err(ending) => run::end(floor, signals, ending).await,
        Ok(course) => {
            let decisions = source.decisions();
            let code = run::end(floor, signals, Ending::Terminated).await;
            let summary = Summary { load, counts: tally.read(), best, course: course?, decisions };
            let text: String = summary.lines().iter().map(|line| format!("{line}\n")).collect();
            // Whoever reads may be gone; that is no fault of the demo's.
            let _ = std::io::stdout().write_all(format!("\n{text}").as_bytes());
            if summary.is_good() { code } else { ExitCode::FAILURE }
        }
    };
    if let Some(admin) = admin {
        admin.close().await;
    }
    Ok(code)
}

/// From zero up and back to zero, or to the limit on that.
async fn show(floor: &Floor, schedule: Schedule, tally: &Arc<Tally>, screen: &Screen) -> anyhow::Result<Course> {
    let mut world = floor.world.clone();
    tokio::time::sleep(ASLEEP).await;
    screen.enter(Stage::Load);
    let stop = CancellationToken::new();
    // Dropped with this future: nobody asks any more.
    let _stopping: DropGuard = stop.clone().drop_guard();
    let mut loading = load::start(floor.address, schedule, tally.clone(), stop)?;
    let mut course = Course::default();
    let mut limit = None::<Instant>;
    loop {
        course.see(&world.borrow_and_update(), Instant::now());
        if limit.is_some() && course.zero_since.is_some() {
            return Ok(course);
        }
        tokio::select! {
            changed = world.changed() => changed.context("the platform has ended")?,
            over = &mut loading, if limit.is_none() => {
                over.context("the load has ended early")?;
                screen.enter(Stage::Back);
                limit = Some(Instant::now() + ZERO_LIMIT);
            }
            () = until(limit) => return Ok(course),
        }
    }
}

async fn until(limit: Option<Instant>) {
    match limit {
        Some(limit) => tokio::time::sleep_until(limit.into()).await,
        None => std::future::pending().await,
    }
}
