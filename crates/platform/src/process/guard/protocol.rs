//! What `zeroscale` and the guard say to each other: one message a datagram of
//! a Unix socket pair, integers little-endian, texts with their length before.

use rustix::io::{Result, retry_on_intr};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use std::ffi::OsString;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::Duration;

/// Longest message, in bytes; the kernel's default takes 208 KiB.
pub(super) const MESSAGE_LIMIT: usize = 128 << 10;

/// Names one process of a pod; never used twice.
pub(super) type ProcessId = u64;

/// From `zeroscale` to the guard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// Start a process; the write ends of its stdout and stderr come along.
    Spawn(ProcessId, Spawn),
    /// TERM, and KILL for whatever of it is left after this time; at once when zero.
    Stop(ProcessId, Duration),
}

/// How a process is started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::process) struct Spawn {
    pub(in crate::process) pod: String,
    pub(in crate::process) program: OsString,
    pub(in crate::process) args: Vec<OsString>,
    /// Added to the guard's own environment.
    pub(in crate::process) env: Vec<(OsString, OsString)>,
    pub(in crate::process) cwd: Option<PathBuf>,
    /// Soft limit of file descriptors.
    pub(in crate::process) soft_nofile: Option<u64>,
}

/// From the guard to `zeroscale`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// It runs, with this process id.
    Started(ProcessId, u32),
    /// It could not be started: one sentence for people.
    Failed(ProcessId, String),
    /// Its first process ended.
    Exited(ProcessId, Exit),
    /// Nothing of it is left, but for this many that could not be killed.
    Swept(ProcessId, u32),
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::process) enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// Unknown: the guard was lost, and with it the process.
    Lost,
}

impl Request {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Writer::default();
        match self {
            Request::Spawn(id, spawn) => {
                out.number(0).number(*id).text(spawn.pod.as_bytes());
                out.text(spawn.program.as_bytes()).number(spawn.args.len() as u64);
                for arg in &spawn.args {
                    out.text(arg.as_bytes());
                }
                out.number(spawn.env.len() as u64);
                for (name, value) in &spawn.env {
                    out.text(name.as_bytes()).text(value.as_bytes());
                }
                let cwd = spawn.cwd.as_ref().map(|cwd| cwd.as_os_str().as_bytes());
                out.number(u64::from(cwd.is_some())).text(cwd.unwrap_or_default());
                out.number(u64::from(spawn.soft_nofile.is_some()));
                out.number(spawn.soft_nofile.unwrap_or_default());
            }
            Request::Stop(id, grace) => {
                let millis = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
                out.number(1).number(*id).number(millis);
            }
        }
        out.0
    }

    /// `None` when the bytes are no request.
    pub(super) fn decode(bytes: &[u8]) -> Option<Request> {
        let mut from = Reader(bytes);
        match from.number()? {
            0 => {
                let id = from.number()?;
                let pod = String::from_utf8(from.text()?).ok()?;
                let program = from.os_text()?;
                let args = (0..from.number()?).map(|_| from.os_text()).collect::<Option<_>>()?;
                let env =
                    (0..from.number()?).map(|_| Some((from.os_text()?, from.os_text()?))).collect::<Option<_>>()?;
                let cwd = (from.number()? == 1, from.os_text()?);
                let nofile = (from.number()? == 1, from.number()?);
                let spawn = Spawn {
                    pod,
                    program,
                    args,
                    env,
                    cwd: cwd.0.then(|| PathBuf::from(cwd.1)),
                    soft_nofile: nofile.0.then_some(nofile.1),
                };
                Some(Request::Spawn(id, spawn))
            }
            1 => Some(Request::Stop(from.number()?, Duration::from_millis(from.number()?))),
            _ => None,
        }
    }
}

impl Event {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Writer::default();
        match self {
            Event::Started(id, pid) => out.number(0).number(*id).number(u64::from(*pid)),
            Event::Failed(id, text) => out.number(1).number(*id).text(text.as_bytes()),
            Event::Exited(id, exit) => {
                let (kind, value) = match exit {
                    Exit::Code(code) => (0, *code),
                    Exit::Signal(signal) => (1, *signal),
                    Exit::Lost => (2, 0),
                };
                out.number(2).number(*id).number(kind).number(u64::from(value.cast_unsigned()))
            }
            Event::Swept(id, left) => out.number(3).number(*id).number(u64::from(*left)),
        };
        out.0
    }

    /// `None` when the bytes are no event.
    pub(super) fn decode(bytes: &[u8]) -> Option<Event> {
        let mut from = Reader(bytes);
        let (kind, id) = (from.number()?, from.number()?);
        match kind {
            0 => Some(Event::Started(id, from.short()?)),
            1 => Some(Event::Failed(id, String::from_utf8_lossy(&from.text()?).into_owned())),
            2 => {
                let (kind, value) = (from.number()?, from.short()?.cast_signed());
                let exit = match kind {
                    0 => Exit::Code(value),
                    1 => Exit::Signal(value),
                    _ => Exit::Lost,
                };
                Some(Event::Exited(id, exit))
            }
            3 => Some(Event::Swept(id, from.short()?)),
            _ => None,
        }
    }
}

#[derive(Default)]
struct Writer(Vec<u8>);

impl Writer {
    fn number(&mut self, value: u64) -> &mut Writer {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    fn text(&mut self, text: &[u8]) -> &mut Writer {
        self.number(text.len() as u64).0.extend_from_slice(text);
        self
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn number(&mut self) -> Option<u64> {
        let (value, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*value))
    }

    fn short(&mut self) -> Option<u32> {
        u32::try_from(self.number()?).ok()
    }

    fn text(&mut self) -> Option<Vec<u8>> {
        let length = usize::try_from(self.number()?).ok()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(text.to_vec())
    }

    fn os_text(&mut self) -> Option<OsString> {
        self.text().map(OsString::from_vec)
    }
}

/// File descriptors in one message: stdout and stderr.
const DESCRIPTORS: usize = 2;

/// Sends one message.
pub(super) fn send(socket: BorrowedFd<'_>, bytes: &[u8], fds: &[OwnedFd]) -> Result<()> {
    let fds: Vec<BorrowedFd<'_>> = fds.iter().map(AsFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(&fds)) {
        return Err(rustix::io::Errno::INVAL);
    }
    let parts = [IoSlice::new(bytes)];
    retry_on_intr(|| sendmsg(socket, &parts, &mut control, SendFlags::NOSIGNAL))?;
    Ok(())
}

/// Takes one message; of no length at end of file.
pub(super) fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> Result<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let message = recvmsg(socket, &mut [IoSliceMut::new(buffer)], &mut control, flags)?;
    let fds = control.drain().flat_map(|part| match part {
        RecvAncillaryMessage::ScmRights(fds) => fds.collect(),
        _ => Vec::new(),
    });
    Ok((message.bytes, fds.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_out_as_they_went_in() {
        let spawn = Spawn {
            pod: "web-1".into(),
            program: "sh".into(),
            args: vec!["-c".into(), OsString::from_vec(vec![0xff, b'x'])],
            env: vec![("PORT".into(), "1".into())],
            cwd: Some("/tmp".into()),
            soft_nofile: Some(1024),
        };
        let requests =
            [Request::Spawn(7, spawn), Request::Spawn(8, Spawn::default()), Request::Stop(9, Duration::from_secs(10))];
        for request in requests {
            let bytes = request.encode();
            assert_eq!(Request::decode(&bytes), Some(request));
            for length in 0..bytes.len() {
                assert_eq!(Request::decode(&bytes[..length]), None, "cut at {length}");
            }
        }
        let events = [
            Event::Started(1, 4_000_000),
            Event::Failed(2, "no such command".into()),
            Event::Exited(3, Exit::Code(-1)),
            Event::Exited(3, Exit::Signal(9)),
            Event::Exited(3, Exit::Lost),
            Event::Swept(4, 1),
        ];
        for event in events {
            assert_eq!(Event::decode(&event.encode()), Some(event));
        }
        assert_eq!(Event::decode(&[]), None);
    }
}
