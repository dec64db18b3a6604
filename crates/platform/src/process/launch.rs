//! One start of a pod's process: its port, arguments, environment and output.

use super::Shared;
use super::config::Service;
use super::guard::{Launch, Process, Spawn};
use super::output::{LastWords, Pump, Stream};
use super::port::Port;
use super::words;
use policy::world::PodName;
use rustix::pipe::{PipeFlags, pipe_with};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::unix::pipe;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

/// A process that was asked for, and what belongs to it.
pub(super) struct Launched {
    pub(super) process: Process,
    pub(super) port: Port,
    pub(super) since: Instant,
    /// As it was run, for texts.
    pub(super) command: String,
    last_words: Arc<LastWords>,
    /// The readers of its output.
    pumps: JoinSet<()>,
}

/// How long output that is on its way is waited for after the end of a process.
const OUTPUT_LIMIT: Duration = Duration::from_millis(100);

impl Launched {
    /// Asks the guard for a process of `service`; it gets a new port.
    pub(super) async fn start(shared: &Shared, pod: &PodName, service: &Service) -> io::Result<Launched> {
        let port = Port::take()?;
        let mut line = service.command.iter().map(|part| with_port(part, port.number()));
        let program = line.next().unwrap_or_default();
        let args: Vec<OsString> = line.collect();
        let command = words::command_line(&program, &args);
        let last_words = Arc::default();
        let mut pumps = JoinSet::new();
        let mut open = |stream, last_words| -> io::Result<OwnedFd> {
            let (from, to) = pipe_with(PipeFlags::CLOEXEC)?;
            let pump = Pump {
                pod: Arc::clone(pod),
                revision: service.revision.clone(),
                stream,
                output: shared.output.clone(),
                last_words,
            };
            pumps.spawn(pump.run(pipe::Receiver::from_owned_fd(from)?));
            Ok(to)
        };
        let launch = Launch {
            stdout: open(Stream::Stdout, None)?,
            stderr: open(Stream::Stderr, Some(Arc::clone(&last_words)))?,
            spawn: Spawn {
                pod: pod.to_string(),
                program,
                args,
                env: environment(service, port.number()),
                cwd: service.cwd.clone(),
                soft_nofile: shared.soft_nofile,
            },
        };
        let since = Instant::now();
        let process = shared.guard.spawn(launch).await;
        Ok(Launched { process, port, since, command, last_words, pumps })
    }

    /// Waits a little for the last output of a process that is gone.
    pub(super) async fn finish_output(&mut self) {
        let drained = async { while self.pumps.join_next().await.is_some() {} };
        let _ = timeout(OUTPUT_LIMIT, drained).await;
    }

    /// What the app wrote last on stderr, as the end of a sentence.
    pub(super) fn last_words(&self) -> String {
        words::last_words(&self.last_words.get())
    }
}

fn environment(service: &Service, port: u16) -> Vec<(OsString, OsString)> {
    let ours = [
        ("PORT", port.to_string()),
        ("K_SERVICE", service.spec.service.to_string()),
        ("K_CONFIGURATION", service.spec.configuration.to_string()),
        ("K_REVISION", service.revision.name.to_string()),
    ];
    let ours = ours.map(|(name, value)| (name.into(), value.into()));
    service.env.iter().cloned().chain(ours).collect()
}

/// `part` with each `{port}` replaced.
fn with_port(part: &OsStr, port: u16) -> OsString {
    const HOLE: &[u8] = b"{port}";
    let number = port.to_string();
    let mut rest = part.as_bytes();
    let mut whole = Vec::with_capacity(rest.len());
    while let Some((first, after)) = rest.split_first() {
        if let Some(after) = rest.strip_prefix(HOLE) {
            whole.extend_from_slice(number.as_bytes());
            rest = after;
        } else {
            whole.push(*first);
            rest = after;
        }
    }
    OsString::from_vec(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_put_in_wherever_it_is_asked_for() {
        let cases = [
            ("{port}", "81"),
            ("--listen=[::]:{port},{port}", "--listen=[::]:81,81"),
            ("{{port}}", "{81}"),
            ("{por", "{por"),
            ("", ""),
        ];
        for (given, want) in cases {
            assert_eq!(with_port(OsStr::new(given), 81), want, "{given}");
        }
    }
}
