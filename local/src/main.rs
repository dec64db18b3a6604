//! `zeroscale`: platform, activator, sidecars and autoscaler in one process.
//!
//! | command | module |
//! | --- | --- |
//! | `run` | [`run`]: flags to settings ([`settings`]), then [`assemble`] |
//! | `demo` | [`demo`] |
//! | `status` | [`status`], over the admin socket ([`admin`], asked by [`client`]) |
//! | `why` | [`why`], over the same or an admin port |
//! | `record` | [`record`]: what an autoscaler takes in and decides, as files |
//! | `explain` | [`explain`]: the same decisions once more |
//! | `__guard` | the pods' parent process, started by ourselves |

mod admin;
mod assemble;
mod cli;
mod client;
mod demo;
mod explain;
mod record;
mod run;
mod seats;
mod settings;
mod status;
mod why;

use clap::Parser;
use cli::{Cli, Command};
use std::process::ExitCode;

/// The command line was wrong (`EX_USAGE`).
const EXIT_USAGE: u8 = 64;

fn main() -> ExitCode {
    // Before anything else: the guard is small, and has no runtime.
    if std::env::args_os().nth(1).is_some_and(|argument| argument == run::GUARD_ARGUMENT) {
        return platform::process::guard::serve();
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() { ExitCode::from(EXIT_USAGE) } else { ExitCode::SUCCESS };
        }
    };
    match cli.command {
        Command::Run(flags) => run::main(&flags),
        Command::Demo(flags) => demo::main(&flags),
        Command::Status(flags) => status::main(&flags),
        Command::Why(flags) => why::main(&flags),
        Command::Record(flags) => record::main(&flags),
        Command::Explain(flags) => explain::main(&flags),
        Command::SampleApp => demo::sample_app::main(),
    }
}
