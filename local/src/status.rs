//! `zeroscale status`: asks every running instance over its admin socket.
//!
//! Exit 0 when something is shown and everybody answered; 1 when nothing runs,
//! the name is unknown, or an instance does not answer. With `--json` the
//! output is an array in each case.

mod layout;

use crate::admin::folder;
use crate::admin::report::Instance;
use crate::cli::StatusFlags;
use crate::client::{self, Port, Reply};
use crate::run;
use http::StatusCode;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// An instance that takes longer hangs.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);

pub(crate) fn main(flags: &StatusFlags) -> ExitCode {
    let asked = folder::sockets().and_then(|sockets| {
        let ports = sockets.into_iter().map(Port::Socket).collect();
        run::on_runtime(async { Ok(client::ask_all(ports, "/status", ANSWER_LIMIT).await) })
    });
    let (running, mut faults) = match asked {
        Ok(replies) => sort(replies),
        Err(error) => (Vec::new(), vec![format!("{error:#}")]),
    };
    let anything = !running.is_empty();
    let shown = match &flags.name {
        Some(name) => named(running, name),
        None => running,
    };
    if shown.is_empty() && faults.is_empty() {
        faults.push(match &flags.name {
            Some(name) if anything => format!("no running instance has a service or revision `{name}`"),
            _ => "no instance is running".to_owned(),
        });
    }
    print(flags.json, &shown);
    faults.iter().for_each(|fault| eprintln!("zeroscale: {fault}"));
    if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The instances that run, each with its socket; those that do not answer are
/// passed over.
pub(crate) async fn running(sockets: Vec<PathBuf>) -> Vec<(PathBuf, Instance)> {
    let ports = sockets.iter().cloned().map(Port::Socket).collect();
    let replies = client::ask_all(ports, "/status", ANSWER_LIMIT).await;
    let answered = sockets.into_iter().zip(replies).filter_map(|(socket, reply)| match reply {
        Reply::Answer(StatusCode::OK, body) => Some((socket, serde_json::from_slice(&body).ok()?)),
        Reply::Answer(..) | Reply::Gone | Reply::Fault(_) => None,
    });
    answered.collect()
}

/// Whether an instance has a service or revision of that name.
pub(crate) fn has(instance: &Instance, name: &str) -> bool {
    !named(vec![instance.clone()], name).is_empty()
}

/// The instances, and what went wrong with others. Those that are gone are
/// neither.
fn sort(replies: Vec<Reply>) -> (Vec<Instance>, Vec<String>) {
    let (mut running, mut faults) = (Vec::new(), Vec::new());
    for reply in replies {
        match reply {
            Reply::Answer(StatusCode::OK, body) => match serde_json::from_slice(&body) {
                Ok(instance) => running.push(instance),
                Err(error) => faults.push(format!("an answer that is no status of ours: {error}")),
            },
            Reply::Answer(code, _) => faults.push(format!("an instance answers {code}")),
            Reply::Gone => {}
            Reply::Fault(words) => faults.push(words),
        }
    }
    (running, faults)
}

/// What is left of them by that name: a service, `namespace/revision` or
/// `revision`.
fn named(running: Vec<Instance>, name: &str) -> Vec<Instance> {
    let keep = |instance: Instance| {
        let mut instance = instance;
        instance.revisions.retain(|revision| {
            let id = &revision.status.revision;
            revision.status.service == name || id == name || id.split_once('/').is_some_and(|(_, short)| short == name)
        });
        instance
    };
    running.into_iter().map(keep).filter(|instance| !instance.revisions.is_empty()).collect()
}

fn print(json: bool, shown: &[Instance]) {
    let text = match json {
        true => serde_json::to_string_pretty(shown).map(|text| text + "\n").unwrap_or_default(),
        false => layout::text(shown),
    };
    // Whoever reads may have seen enough: `status | head`.
    let _ = std::io::stdout().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_service_or_a_revision() {
        let running = || vec![layout::sample(), layout::sample()];
        for name in ["shop", "default/shop-00001", "shop-00001"] {
            assert_eq!(named(running(), name).len(), 2, "{name}");
        }
        for name in ["", "shop-", "default", "00001"] {
            assert!(named(running(), name).is_empty(), "{name}");
        }
    }

    #[test]
    fn instances_that_are_gone_are_no_fault() {
        let good = serde_json::to_vec(&layout::sample()).unwrap().into();
        let replies = [Reply::Gone, Reply::Answer(StatusCode::OK, good), Reply::Fault("hangs".to_owned())];
        let (running, faults) = sort(replies.into());
        assert_eq!((running.len(), faults), (1, vec!["hangs".to_owned()]));
    }
}
