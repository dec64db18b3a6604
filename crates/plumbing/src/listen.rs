//! Listeners: every address of the machine, unless told otherwise.

use rustix::io::Errno;
use rustix::net::sockopt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use tokio::net::{TcpListener, TcpSocket};

/// Connections that may wait to be accepted (the system's own bound is 4096).
const BACKLOG: u32 = 4096;

/// Listens on an address. IPv6's wildcard takes IPv4 too; where there is no
/// IPv6, IPv4's wildcard stands in for it.
///
/// # Errors
/// When the address cannot be had.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let wildcard = address.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED);
    match listen_exactly(address) {
        Err(error) if wildcard && is_without_ipv6(&error) => {
            listen_exactly(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), address.port()))
        }
        outcome => outcome,
    }
}

fn listen_exactly(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    if address.is_ipv6() {
        sockopt::set_ipv6_v6only(&socket, false)?;
    }
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

fn is_without_ipv6(error: &io::Error) -> bool {
    let code = Errno::from_io_error(error);
    matches!(code, Some(Errno::AFNOSUPPORT | Errno::ADDRNOTAVAIL))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpStream;

    #[tokio::test]
    async fn the_wildcard_takes_ipv4_and_a_taken_port_is_refused() {
        let listener = listen((Ipv6Addr::UNSPECIFIED, 0).into()).unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.is_ok());
        let taken = listen((Ipv4Addr::LOCALHOST, port).into()).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
    }

    #[tokio::test]
    async fn an_address_alone_is_just_that() {
        let address: SocketAddr = "127.0.0.9:0".parse().unwrap();
        let port = listen(address).unwrap().local_addr().unwrap().port();
        assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.is_err());
    }
}
