//! Has a client on this machine closed its socket?
//!
//! A client that leaves in the middle of a long upload is invisible to the
//! connection itself: nobody reads, so its window is shut, and its FIN stands
//! behind the data that does not fit. For peers on loopback the kernel can be
//! asked: a socket that no file refers to any more has no inode. (`sock_diag`,
//! one exact look-up, open to every user. From another machine such a client
//! is noticed when its kernel gives up on it.)

use parking_lot::Mutex;
use rustix::fd::OwnedFd;
use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};
use std::net::{IpAddr, SocketAddr};

const HEADER_BYTES: usize = 16;
const REQUEST_BYTES: usize = HEADER_BYTES + 56;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLMSG_ERROR: u16 = 2;
const NLM_F_REQUEST: u16 = 1;
const IPPROTO_TCP: u8 = 6;
/// Where the inode stands in an answer: after the header, four bytes, the
/// socket's identity (48) and four numbers.
const INODE_AT: usize = HEADER_BYTES + 4 + 48 + 16;
const ENOENT: i32 = 2;

/// Asks the kernel about sockets; made on first use.
#[derive(Default)]
pub(crate) struct Sockets {
    netlink: Mutex<Option<OwnedFd>>,
}

impl Sockets {
    /// True when the peer's end of a loopback connection belongs to nobody
    /// any more. False for all others, and when the kernel does not say.
    pub(crate) fn peer_is_gone(&self, peer: SocketAddr, local: SocketAddr) -> bool {
        let (peer, local) = (canonical(peer), canonical(local));
        if !peer.ip().is_loopback() {
            return false;
        }
        let mut netlink = self.netlink.lock();
        let socket = match &mut *netlink {
            Some(socket) => socket,
            none => match open() {
                Ok(socket) => none.insert(socket),
                Err(_) => return false,
            },
        };
        let mut answer = [0u8; 512];
        if net::send(&*socket, &request(peer, local), SendFlags::empty()).is_err() {
            return false;
        }
        // The kernel answers such a request before `send` returns.
        match net::recv(&*socket, &mut answer, RecvFlags::DONTWAIT) {
            Ok((length, _)) => says_gone(&answer[..length.min(answer.len())]),
            Err(_) => {
                *netlink = None;
                false
            }
        }
    }
}

fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

fn open() -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    net::socket_with(AddressFamily::NETLINK, SocketType::DGRAM, flags, Some(netlink::SOCK_DIAG))
}

/// Asks for the socket whose own address is `peer` and whose peer is `local`.
fn request(peer: SocketAddr, local: SocketAddr) -> [u8; REQUEST_BYTES] {
    let mut out = Vec::with_capacity(REQUEST_BYTES);
    out.extend((REQUEST_BYTES as u32).to_ne_bytes());
    out.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    out.extend(NLM_F_REQUEST.to_ne_bytes());
    out.extend([0; 8]);
    let family = if peer.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    out.extend([family.as_raw() as u8, IPPROTO_TCP, 0, 0]);
    out.extend(u32::MAX.to_ne_bytes());
    out.extend(peer.port().to_be_bytes());
    out.extend(local.port().to_be_bytes());
    out.extend(octets(peer.ip()));
    out.extend(octets(local.ip()));
    // Any interface; no cookie.
    out.extend(0u32.to_ne_bytes());
    out.extend([0xff; 8]);
    let mut bytes = [0; REQUEST_BYTES];
    debug_assert_eq!(out.len(), bytes.len());
    bytes.copy_from_slice(&out);
    bytes
}

fn octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V6(v6) => v6.octets(),
        IpAddr::V4(v4) => {
            let mut out = [0; 16];
            out[..4].copy_from_slice(&v4.octets());
            out
        }
    }
}

fn says_gone(answer: &[u8]) -> bool {
    let kind = answer.get(4..6).and_then(|bytes| bytes.try_into().ok()).map(u16::from_ne_bytes);
    match kind {
        Some(SOCK_DIAG_BY_FAMILY) => word(answer, INODE_AT) == Some(0),
        // No such socket at all.
        Some(NLMSG_ERROR) => word(answer, HEADER_BYTES).map(|code| code as i32) == Some(-ENOENT),
        _ => false,
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    fn pair(host: &str) -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind(host).unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, listener.accept().unwrap().0)
    }

    #[test]
    fn a_client_that_closed_behind_a_full_window_is_gone_and_one_that_waits_is_not() {
        for host in ["127.0.0.1:0", "[::1]:0"] {
            let (mut client, server) = pair(host);
            let sockets = Sockets::default();
            let (peer, local) = (server.peer_addr().unwrap(), server.local_addr().unwrap());
            client.set_nonblocking(true).unwrap();
            while client.write(&[0; 65536]).is_ok() {}
            assert!(!sockets.peer_is_gone(peer, local), "{host}: it waits for room");
            client.shutdown(std::net::Shutdown::Write).unwrap();
            assert!(!sockets.peer_is_gone(peer, local), "{host}: it still reads");
            drop(client);
            assert!(sockets.peer_is_gone(peer, local), "{host}: it closed");
        }
    }

    #[test]
    fn of_other_machines_nothing_is_said() {
        let (_client, server) = pair("127.0.0.1:0");
        let far = "192.0.2.1:80".parse().unwrap();
        assert!(!Sockets::default().peer_is_gone(far, server.local_addr().unwrap()));
    }
}
