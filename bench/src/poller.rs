//! epoll for one thread, edge-triggered, and an alarm that is finer than
//! epoll's own milliseconds.

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use rustix::io;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use std::time::Duration;

/// Events that are taken at once.
const BATCH: usize = 256;

/// See the module.
pub(crate) struct Poller {
    epoll: OwnedFd,
    events: Vec<Event>,
}

/// What happened to one descriptor.
#[derive(Clone, Copy)]
pub(crate) struct Ready {
    pub(crate) token: usize,
    pub(crate) readable: bool,
    pub(crate) writable: bool,
}

impl Poller {
    pub(crate) fn new() -> io::Result<Poller> {
        Ok(Poller { epoll: epoll::create(CreateFlags::CLOEXEC)?, events: Vec::with_capacity(BATCH) })
    }

    /// A listener: told of again as long as somebody waits.
    pub(crate) fn listener(&self, of: impl AsFd, token: usize) -> io::Result<()> {
        epoll::add(&self.epoll, of, EventData::new_u64(token as u64), EventFlags::IN)
    }

    /// A connection or an alarm: told of once for each change.
    pub(crate) fn add(&self, of: impl AsFd, token: usize) -> io::Result<()> {
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(&self.epoll, of, EventData::new_u64(token as u64), flags)
    }

    /// Waits for what comes next.
    pub(crate) fn wait_into(&mut self, ready: &mut Vec<Ready>) -> io::Result<()> {
        self.events.clear();
        ready.clear();
        match epoll::wait(&self.epoll, spare_capacity(&mut self.events), None) {
            Ok(_) | Err(io::Errno::INTR) => {}
            Err(error) => return Err(error),
        }
        const HEARD: EventFlags = EventFlags::IN.union(EventFlags::HUP).union(EventFlags::RDHUP).union(EventFlags::ERR);
        ready.extend(self.events.iter().map(|event| {
            // Copies: the kernel's structure is packed.
            let (flags, data) = (event.flags, event.data);
            Ready {
                token: usize::try_from(data.u64()).unwrap_or(usize::MAX),
                readable: flags.intersects(HEARD),
                writable: flags.contains(EventFlags::OUT),
            }
        }));
        Ok(())
    }
}

/// A timer as a descriptor, on the monotonic clock.
pub(crate) struct Alarm(OwnedFd);

impl Alarm {
    pub(crate) fn new() -> io::Result<Alarm> {
        timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC).map(Alarm)
    }

    /// Rings so long from now, once; what was set before is forgotten. It need
    /// not be read: setting it anew clears it.
    pub(crate) fn set(&self, after: Duration) -> io::Result<()> {
        let nanos = i64::from(after.subsec_nanos()).max(i64::from(after.as_secs() == 0));
        let value = Timespec { tv_sec: i64::try_from(after.as_secs()).unwrap_or(i64::MAX), tv_nsec: nanos };
        let never = Timespec { tv_sec: 0, tv_nsec: 0 };
        let setting = Itimerspec { it_interval: never, it_value: value };
        timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &setting).map(drop)
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> rustix::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for Alarm {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}
