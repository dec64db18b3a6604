//! A socket that never blocks, with what could not be written yet.

use crate::poller::Ready;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::TcpStream;

/// See the module.
pub(crate) struct Stream {
    socket: TcpStream,
    /// There may be something to read.
    pub(crate) readable: bool,
    unsent: Vec<u8>,
    sent: usize,
}

/// What a read brought.
pub(crate) enum Got {
    /// So many bytes.
    Bytes(usize),
    /// Nothing for now.
    Nothing,
    /// Nothing ever again.
    End,
}

impl Stream {
    pub(crate) fn new(socket: TcpStream) -> io::Result<Stream> {
        socket.set_nonblocking(true)?;
        socket.set_nodelay(true)?;
        Ok(Stream { socket, readable: false, unsent: Vec::new(), sent: 0 })
    }

    pub(crate) fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// Reads once. A read that does not fill the buffer has emptied the socket
    /// (epoll(7)), so no second one has to find that out.
    pub(crate) fn read(&mut self, into: &mut [u8]) -> Got {
        match self.socket.read(into) {
            Ok(0) => Got::End,
            Ok(read) => {
                self.readable = read == into.len();
                Got::Bytes(read)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.readable = false;
                Got::Nothing
            }
            Err(_) => Got::End,
        }
    }

    /// Writes both, and keeps what does not fit.
    pub(crate) fn write(&mut self, head: &[u8], body: &[u8]) -> io::Result<()> {
        let mut written = 0;
        if self.is_flushed() {
            let result = match (head, body) {
                (only, []) | ([], only) => self.socket.write(only),
                _ => self.socket.write_vectored(&[IoSlice::new(head), IoSlice::new(body)]),
            };
            written = or_nothing(result)?;
        }
        if written < head.len() {
            self.unsent.extend_from_slice(&head[written..]);
        }
        let of_body = written.saturating_sub(head.len());
        self.unsent.extend_from_slice(&body[of_body..]);
        Ok(())
    }

    /// True when all has been written.
    pub(crate) fn is_flushed(&self) -> bool {
        self.unsent.is_empty()
    }

    /// Takes note of an event; writes what waited.
    pub(crate) fn on(&mut self, ready: Ready) -> io::Result<()> {
        self.readable |= ready.readable;
        if ready.writable && !self.is_flushed() {
            self.sent += or_nothing(self.socket.write(&self.unsent[self.sent..]))?;
            if self.sent == self.unsent.len() {
                self.unsent.clear();
                self.sent = 0;
            }
        }
        Ok(())
    }
}

fn or_nothing(result: io::Result<usize>) -> io::Result<usize> {
    match result {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(0),
        other => other,
    }
}
