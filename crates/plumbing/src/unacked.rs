//! How much of what was written the other side's kernel has not confirmed.
//!
//! A connection that its server closes at the very moment of a request ends
//! with nothing of the request confirmed: its server has not read it, and it
//! can be sent again, whatever it is. A server that has read it and then closes
//! confirms it with the close.
//!
//! `unsafe`, since there is no safe wrapper for this one question.
#![allow(unsafe_code)]

use rustix::ioctl::{Getter, Opcode, ioctl};
use tokio::net::TcpStream;

/// `SIOCOUTQ` of tcp(7): the value stays when the connection has been reset.
const TIOCOUTQ: Opcode = 0x5411;

/// Bytes written and not confirmed; 0 when the kernel does not say.
pub(crate) fn bytes(socket: &TcpStream) -> u64 {
    // SAFETY: the request writes one `int` and reads nothing.
    let count = unsafe { ioctl(socket, Getter::<TIOCOUTQ, i32>::new()) };
    count.ok().and_then(|count| u64::try_from(count).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    async fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (client, listener.accept().await.unwrap().0)
    }

    #[tokio::test]
    async fn what_a_closed_socket_was_sent_is_not_confirmed_and_what_was_read_is() {
        let (mut client, server) = pair().await;
        drop(server);
        client.write_all(b"hello").await.unwrap();
        assert_eq!(bytes(&client), 5);

        let (mut client, mut server) = pair().await;
        client.write_all(b"hello").await.unwrap();
        server.read_exact(&mut [0; 5]).await.unwrap();
        drop(server);
        assert_eq!(client.read(&mut [0; 1]).await.unwrap(), 0);
        assert_eq!(bytes(&client), 0);
    }
}
