//! `zeroscale why SERVICE`: asks every running instance, or one admin port, why
//! a service has the pods that it has.
//!
//! Exit 0 with an answer; 1 when there is none: no such service, nothing known
//! of that time, nobody to ask. A time that makes no sense is a bad command line.

use crate::admin::folder;
use crate::cli::WhyFlags;
use crate::client::{self, Port, Reply};
use crate::{EXIT_USAGE, run};
use autoscaler::why::api::{self, Answers, Fault};
use autoscaler::why::{Why, time, words};
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

/// Whoever takes longer hangs. Looking ahead may take a while.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

pub(crate) fn main(flags: &WhyFlags) -> ExitCode {
    let zone = time::zone();
    let asked = run::on_runtime(async {
        let at = flags.at.as_deref().map(|at| time::parse(at, plumbing::clock::now(), &zone)).transpose();
        let at = match at {
            Ok(at) => at,
            Err(error) => return Ok(Err(error)),
        };
        let ports = match &flags.admin {
            Some(address) => vec![Port::Address(address.clone())],
            None => folder::sockets()?.into_iter().map(Port::Socket).collect(),
        };
        Ok(Ok(client::ask_all(ports, &api::path(&flags.service, at), ANSWER_LIMIT).await))
    });
    let (answers, faults) = match asked {
        Ok(Ok(replies)) => sort(replies),
        Ok(Err(error)) => {
            eprintln!("zeroscale: --at: {error}");
            return ExitCode::from(EXIT_USAGE);
        }
        Err(error) => (Vec::new(), vec![format!("{error:#}")]),
    };
    let text = match flags.json {
        true => serde_json::to_string_pretty(&answers).map(|text| text + "\n").unwrap_or_default(),
        false => words::text(&answers, &zone),
    };
    // Whoever reads may have seen enough.
    let _ = std::io::stdout().write_all(text.as_bytes());
    faults.iter().for_each(|fault| eprintln!("zeroscale: {fault}"));
    if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The answers, and what is to be told otherwise. That some instances do not
/// know the service is no fault while one does.
fn sort(replies: Vec<Reply>) -> (Vec<Why>, Vec<String>) {
    let (mut answers, mut faults, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
    for reply in replies {
        match reply {
            Reply::Answer(code, body) if code.is_success() => match serde_json::from_slice::<Answers>(&body) {
                Ok(found) => answers.extend(found.revisions),
                Err(error) => faults.push(format!("an answer that is none of ours: {error}")),
            },
            Reply::Answer(code, body) => match serde_json::from_slice::<Fault>(&body) {
                Ok(fault) if fault.kind == "unknown" => unknown.push(fault),
                Ok(fault) => faults.push(fault.error),
                Err(_) => faults.push(format!("the admin port answers {code}")),
            },
            Reply::Gone => {}
            Reply::Fault(words) => faults.push(words),
        }
    }
    if answers.is_empty() && faults.is_empty() {
        // The one with a hint, if one has.
        unknown.sort_by_key(|fault| fault.near.is_empty());
        let fault = unknown.into_iter().next().map(|fault| fault.error);
        faults.push(fault.unwrap_or_else(|| "no instance is running; --admin ADDRESS asks a program".to_owned()));
    }
    (answers, faults)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::StatusCode;

    fn fault(kind: &str, error: &str, near: &[&str]) -> Reply {
        let near = near.iter().map(|name| (*name).to_owned()).collect();
        let fault = Fault { kind: kind.to_owned(), error: error.to_owned(), near, since: None };
        Reply::Answer(StatusCode::NOT_FOUND, serde_json::to_vec(&fault).unwrap().into())
    }

    #[test]
    fn the_most_helpful_fault_is_told() {
        let told = |replies: Vec<Reply>| sort(replies).1;
        assert!(told(vec![Reply::Gone])[0].starts_with("no instance is running"));
        let hint = told(vec![fault("unknown", "none", &[]), fault("unknown", "none; there is shop", &["shop"])]);
        assert_eq!(hint, ["none; there is shop"]);
        let early = told(vec![fault("unknown", "none", &[]), fault("too_early", "begins later", &[])]);
        assert_eq!(early, ["begins later"]);
        assert_eq!(told(vec![Reply::Fault("hangs".to_owned())]), ["hangs"]);
        let empty = Reply::Answer(StatusCode::OK, "nonsense".into());
        assert!(told(vec![empty])[0].starts_with("an answer that is none of ours"));
    }
}
