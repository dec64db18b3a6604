//! A client that speaks HTTP to a TLS port is told so, in HTTP.

use std::io::{self, ErrorKind};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How the requests begin that the reference knows as such.
const BEGINNINGS: [&[u8; 5]; 5] = [b"GET /", b"HEAD ", b"POST ", b"PUT /", b"OPTIO"];

const ANSWER: &[u8] = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";

/// What is read of the rest, so that the answer is not lost to a reset.
const REST_BYTES_MAX: u64 = 64 << 10;
/// How long.
const REST_TIMEOUT: Duration = Duration::from_millis(500);

/// True when the first byte, for which it waits, may be one of HTTP and cannot
/// be one of TLS. It is still to be read.
pub(super) async fn suspected(stream: &TcpStream) -> io::Result<bool> {
    let mut first = [0];
    if stream.peek(&mut first).await? == 0 {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    Ok(BEGINNINGS.iter().any(|beginning| beginning[0] == first[0]))
}

/// Answers a request, if it is one; the error to tell.
pub(super) async fn refuse(mut stream: TcpStream) -> io::Error {
    match answer(&mut stream).await {
        Ok(true) => io::Error::new(ErrorKind::InvalidData, "a client sent an HTTP request to a TLS port"),
        Ok(false) => io::Error::new(ErrorKind::InvalidData, "a client speaks neither TLS nor HTTP"),
        Err(error) => error,
    }
}

async fn answer(stream: &mut TcpStream) -> io::Result<bool> {
    let mut beginning = [0; 5];
    stream.read_exact(&mut beginning).await?;
    if !BEGINNINGS.contains(&&beginning) {
        return Ok(false);
    }
    stream.write_all(ANSWER).await?;
    stream.shutdown().await?;
    let mut rest = stream.take(REST_BYTES_MAX);
    let _ = timeout(REST_TIMEOUT, tokio::io::copy(&mut rest, &mut tokio::io::sink())).await;
    Ok(true)
}
