//! Free ports for apps, below the range from which the kernel takes ports for
//! outgoing connections: there none is taken between our look and the app's
//! bind, and no connect can meet itself.

use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::ops::Range;

/// A port that no other pod of this process has while this lives.
#[derive(Debug)]
pub(super) struct Port(u16);

impl Port {
    /// Takes one on which nothing listens.
    pub(super) fn take() -> io::Result<Port> {
        let text = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range");
        let range = usable(text.as_deref().unwrap_or_default());
        let length = range.end - range.start;
        let first = fastrand::u32(0..length);
        for step in 0..length {
            let port = range.start + (first + step) % length;
            let Ok(port) = u16::try_from(port) else { continue };
            if !TAKEN.lock().insert(port) {
                continue;
            }
            let taken = Port(port);
            if taken.is_free() {
                return Ok(taken);
            }
        }
        let text = format!("no free port from {} to {}", range.start, range.end - 1);
        Err(io::Error::new(io::ErrorKind::AddrInUse, text))
    }

    /// Its number.
    pub(super) fn number(&self) -> u16 {
        self.0
    }

    /// Where an app that has it is reached.
    pub(super) fn address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.0))
    }

    /// True when an app could listen on it, at any address of this machine.
    fn is_free(&self) -> bool {
        let four = TcpListener::bind((Ipv4Addr::UNSPECIFIED, self.0)).map(drop);
        let six = TcpListener::bind((Ipv6Addr::UNSPECIFIED, self.0)).map(drop);
        // Without IPv6 the second fails for another reason, which is fine.
        four.is_ok() && !six.is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse)
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        TAKEN.lock().remove(&self.0);
    }
}

/// The ports of all pods of this process: ports belong to the machine, not to
/// a platform, of which tests run several.
static TAKEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());

/// The lowest port given out: below are the ones that people choose by hand.
const LOWEST: u32 = 10_000;
/// A range with fewer ports is not used.
const ENOUGH: u32 = 1000;
const END: u32 = 65_536;

/// The ports to choose from, given the kernel's range ("32768\t60999"): below
/// it, else above it, else anywhere.
fn usable(kernels: &str) -> Range<u32> {
    let mut bounds = kernels.split_ascii_whitespace().map(str::parse::<u32>);
    let (low, high) = match (bounds.next(), bounds.next()) {
        (Some(Ok(low)), Some(Ok(high))) if low <= high && high < END => (low, high),
        _ => (32_768, 60_999),
    };
    let candidates = [LOWEST..low, high + 1..END];
    let enough = |range: &Range<u32>| range.start + ENOUGH <= range.end;
    candidates.into_iter().find(enough).unwrap_or(LOWEST..END)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_lie_below_the_kernels_range_where_there_is_room() {
        assert_eq!(usable("32768\t60999\n"), 10_000..32_768);
        assert_eq!(usable("1024 60999"), 61_000..65_536);
        assert_eq!(usable("1024 65535"), 10_000..65_536);
        assert_eq!(usable(""), 10_000..32_768);
        assert_eq!(usable("9 4"), 10_000..32_768);
    }

    #[test]
    fn two_pods_never_have_the_same_port() {
        let ports: Vec<Port> = (0..200).map(|_| Port::take().unwrap()).collect();
        let numbers: BTreeSet<u16> = ports.iter().map(Port::number).collect();
        assert_eq!(numbers.len(), ports.len());
    }

    #[test]
    fn a_port_with_a_listener_is_not_free() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = std::mem::ManuallyDrop::new(Port(listener.local_addr().unwrap().port()));
        assert!(!port.is_free());
    }
}
