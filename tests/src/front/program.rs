//! The program `front`: an activator whose platform is standard input.
//!
//! | it reads | it does | it writes |
//! | --- | --- | --- |
//! | `pods ADDR...` | these pods are ready, and no others | `taken` |
//! | `load` | | `load HELD IN_FLIGHT` |
//!
//! It begins with `listening ADDR`. TERM begins the drain, whose second stage
//! comes after `--shutdown-timeout`; it ends with 0. At the end of its input
//! it ends too, so that it outlives no test.
//!
//! Options: `--limit N` (0), `--held-max N`, `--wait-limit MS`,
//! `--shutdown-timeout MS` (10,000), and `--wake ADDR` with `--after MS`: at
//! the first poke that pod becomes ready so much later.

use super::Load;
use crate::bench::{Bench, bench_within};
use crate::campaign::Arguments;
use plumbing::fds;
use std::io::{BufRead, Write};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

/// For what is said when the time is over.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// An unfit command line.
const USAGE: u8 = 64;

struct Options {
    limit: u32,
    held_max: Option<usize>,
    wait_limit: Option<u64>,
    shutdown_timeout: u64,
    wake: Option<SocketAddr>,
    after: u64,
}

impl Options {
    fn parse(arguments: impl Iterator<Item = String>) -> Result<Options, crate::campaign::Failure> {
        let mut arguments = Arguments::parse(arguments);
        let options = Options {
            limit: arguments.take("limit")?.unwrap_or(0),
            held_max: arguments.take("held-max")?,
            wait_limit: arguments.take("wait-limit")?,
            shutdown_timeout: arguments.take("shutdown-timeout")?.unwrap_or(10_000),
            wake: arguments.take("wake")?,
            after: arguments.take("after")?.unwrap_or(0),
        };
        arguments.finish()?;
        Ok(options)
    }
}

/// Runs it.
pub fn main(arguments: impl Iterator<Item = String>) -> ExitCode {
    let options = match Options::parse(arguments) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("front: {error:?}");
            return ExitCode::from(USAGE);
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime.map(|runtime| runtime.block_on(serve(options))) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(error)) | Err(error) => {
            eprintln!("front: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn serve(options: Options) -> std::io::Result<()> {
    let (_, budget) = fds::raise()?;
    let mut term = signal(SignalKind::terminate())?;
    let patience = Duration::from_millis(options.shutdown_timeout);
    let mut bench = bench_within(budget, options.limit, |config| {
        (config.drain_wait, config.tunnel_timeout) = (Some(patience), patience);
        if let Some(max) = options.held_max {
            (config.held_max, config.held_per_revision_max) = (max, max);
        }
        if let Some(limit) = options.wait_limit {
            config.wait_max = Duration::from_millis(limit);
        }
    })
    .await;
    say(&format!("listening {}", bench.address))?;
    let mut words = words();
    let mut asleep = true;
    loop {
        tokio::select! {
            line = words.recv() => match line {
                Some(line) => obey(&bench, &line).await?,
                None => return Ok(()),
            },
            batch = bench.stats.next() => {
                if let (Some(pod), true) = (options.wake, asleep && batch.is_some_and(|batch| batch.poke)) {
                    asleep = false;
                    sleep(Duration::from_millis(options.after)).await;
                    bench.ready(&[("woken", pod)]).await;
                }
            }
            _ = term.recv() => break,
        }
    }
    bench.shutdown.drain();
    if timeout(patience + LAST_WORDS, bench.ended).await.is_err() {
        bench.shutdown.stop();
    }
    Ok(())
}

/// Lines of standard input; read on a thread that ends with it.
fn words() -> mpsc::UnboundedReceiver<String> {
    let (tell, told) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        std::io::stdin().lock().lines().map_while(Result::ok).for_each(|line| drop(tell.send(line)));
    });
    told
}

async fn obey(bench: &Bench, line: &str) -> std::io::Result<()> {
    let mut words = line.split_ascii_whitespace();
    match words.next() {
        Some("pods") => {
            let pods: Vec<SocketAddr> = words.filter_map(|word| word.parse().ok()).collect();
            let names: Vec<String> = pods.iter().map(|pod| format!("pod-{}", pod.port())).collect();
            let pods: Vec<(&str, SocketAddr)> = names.iter().map(String::as_str).zip(pods).collect();
            bench.ready(&pods).await;
            say("taken")
        }
        Some("load") => {
            let Load { held, in_flight } = Load { held: bench.held(), in_flight: bench.in_flight() };
            say(&format!("load {held} {in_flight}"))
        }
        _ => Ok(()),
    }
}

fn say(line: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}
