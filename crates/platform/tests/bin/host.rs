//! For tests: with `__guard` it is the guard. Otherwise it stands for
//! `zeroscale`: one pod of the command given as arguments, and all apps'
//! output on stdout, until it is killed.

use platform::process::{self, Config, GuardCommand, Links, Seat, SeatRequest, Service};
use policy::moment::Moment;
use policy::revision::RevisionId;
use policy::world::Routes;
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

#[path = "../support/spec.rs"]
#[allow(unreachable_pub, reason = "shared with the tests")]
mod spec;

fn main() -> ExitCode {
    let command: Vec<OsString> = std::env::args_os().skip(1).collect();
    if command.first().is_some_and(|first| first == "__guard") {
        return process::guard::serve();
    }
    match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(host(command)),
        Err(error) => {
            eprintln!("host: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn host(command: Vec<OsString>) -> ExitCode {
    let mut service = Service::new(RevisionId::new("default", "host"), spec::spec(), command);
    service.initial = 1;
    let mut config = Config::new(vec![service], Routes::default(), GuardCommand::own("__guard"));
    config.output.sink = Arc::new(|line| println!("{}", line.text));
    let (seats, requests) = mpsc::channel(4);
    tokio::spawn(seat(requests));
    let holding = watch::channel(Arc::default()).1;
    let links = Links { seats, holding, now: || Moment::MIN };
    match process::start(config, links, CancellationToken::new()) {
        Ok(platform) => {
            let _ = platform.ended.await;
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("host: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn seat(mut requests: mpsc::Receiver<SeatRequest>) {
    while let Some(SeatRequest { app, reply, .. }) = requests.recv().await {
        let shutdown = CancellationToken::new();
        let (closed, ended) = oneshot::channel();
        let told = shutdown.clone();
        tokio::spawn(async move {
            told.cancelled().await;
            let _ = closed.send(());
        });
        let _ = reply.send(Ok(Seat { address: app, shutdown, ended }));
    }
}
