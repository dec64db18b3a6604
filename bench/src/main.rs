//! `compare`: measures the components beside their peers.
//!
//! | job | module |
//! | --- | --- |
//! | the floor proxy, the backend, the load generator: processes of their own | [`floor`], [`direct`], [`load`] |
//! | what is measured, and how each of it is started | [`peers`] |
//! | what clients do | [`clients`] |
//! | what is measured of it, row by row | [`rows`] |
//! | CPU time, memory, switches, from the kernel | [`accounts`] |
//! | figures, goals, tables | [`book`], [`goals`], [`report`] |
//!
//! Everything runs in one network namespace of its own, so ports are free.

mod accounts;
mod apart;
mod book;
mod clients;
mod crowd;
mod direct;
mod floor;
mod goals;
mod load;
mod options;
mod peers;
mod poller;
mod process;
mod quota;
mod report;
mod rows;
mod sample;
mod session;
mod slab;
mod stream;
mod summary;

use anyhow::Context;
use load::Plan;
use options::{HELP, Options};
use session::Session;
use std::io::Write;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("compare: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let address = |text: &str| text.parse::<SocketAddr>().with_context(|| format!("no address: {text}"));
    match words[..] {
        ["floor", listen, app] => floor::run(address(listen)?, address(app)?)?,
        ["direct", listen] => direct::http1::run(address(listen)?)?,
        ["direct-http2", listen] => direct::http2::run(address(listen)?)?,
        ["app", journal, port] => sample::App::run(journal.as_ref(), port.parse()?)?,
        ["load", plan] => {
            let plan: Plan = serde_json::from_str(plan)?;
            println!("{}", serde_json::to_string(&load::http1::run(&plan)?)?);
        }
        ["load-http2", plan] => {
            let plan: Plan = serde_json::from_str(plan)?;
            println!("{}", serde_json::to_string(&load::http2::run(&plan)?)?);
        }
        ["needs", ..] => needs(&arguments[1..]),
        ["--help" | "-h"] => tell(HELP),
        ["--list"] => {
            let rows = rows::ALL.iter().map(|row| format!("{:16} {}\n", row.name, row.about));
            tell(&rows.collect::<String>());
        }
        [apart::WORD, ..] => return compare(Options::parse(arguments[1..].iter().cloned())?),
        _ => {
            // Faults of the command line before anything is started.
            Options::parse(arguments.iter().cloned())?;
            return apart::run(arguments);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Packages that have to be built for what is asked.
fn needs(arguments: &[String]) {
    let Ok(options) = Options::parse(arguments.iter().cloned()) else { return };
    let mut packages: Vec<&str> =
        rows::ALL.iter().filter(|row| options.wants(row.name)).flat_map(|row| row.needs).copied().collect();
    if !options.quick {
        packages.push("baselines");
    }
    packages.sort_unstable();
    packages.dedup();
    packages.iter().for_each(|package| println!("{package}"));
}

fn compare(options: Options) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    process::prepare();
    std::fs::create_dir_all(&options.out)?;
    for tool in ["wrk", "h2load", "strace"].iter().filter(|tool| process::find(tool).is_none()) {
        eprintln!("MISSING `{tool}`: what it does is left out, or done by our own client");
    }
    let mut session = Session::new(options)?;
    for row in rows::ALL.iter().filter(|row| session.options.wants(row.name)).collect::<Vec<_>>() {
        eprintln!("{:5.0} s  {}: {}", began.elapsed().as_secs_f64(), row.name, row.about);
        if let Err(error) = session.look_after_apps().and_then(|()| (row.run)(&mut session)) {
            let line = format!("{}: {error:#}", row.name);
            eprintln!("MISSING {line}");
            session.book.missing.push(line);
        }
    }
    let (book, options) = (&session.book, &session.options);
    let judged = report::judged(&goals::all(), book, options);
    let equal = report::judged(&goals::at_an_equal_rate(), book, options);
    let (json, chart) = (options.out.join("compare.json"), options.out.join("compare.svg"));
    std::fs::write(&json, report::json::text(book, &judged, &equal, options)?)?;
    std::fs::write(&chart, report::chart::svg(&judged))?;
    std::fs::write(options.out.join("compare.md"), report::markdown::text(book, &judged, &equal))?;
    let mut text = format!("{}\n{}\n", report::table::figures(book), report::table::goals(&judged));
    if !equal.is_empty() {
        text.push_str("At an equal rate, half of what the slowest takes (the goals are of saturation):\n");
        text.push_str(&report::table::goals(&equal));
        text.push('\n');
    }
    for (what, lines) in [("missing", &book.missing), ("not counted", &book.dropped), ("note", &book.notes)] {
        lines.iter().for_each(|line| text.push_str(&format!("{what}: {line}\n")));
    }
    let met = judged.iter().filter(|judged| judged.met == Some(true)).count();
    let missed = judged.iter().filter(|judged| judged.met == Some(false)).count();
    let unknown = judged.len() - met - missed;
    text.push_str(&format!("written: {} {} and compare.md\n", json.display(), chart.display()));
    let took = began.elapsed().as_secs_f64();
    text.push_str(&format!("{met} met, {missed} missed, {unknown} not measured, {took:.0} s\n"));
    tell(&text);
    Ok(ExitCode::SUCCESS)
}

/// On standard output; nobody has to read it to its end.
fn tell(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}
