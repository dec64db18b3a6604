//! A body on its way in, whichever way it is framed.

use super::chunk::{Chunked, Piece};
use super::error::BodyError;
use bytes::BytesMut;
use http_body::SizeHint;

/// How much of a body is to come.
#[derive(Clone, Debug)]
pub(super) enum Decoder {
    /// So many bytes; 0 at the end.
    Length(u64),
    /// Chunks.
    Chunked(Chunked),
    /// All until the connection ends; answers only.
    UntilClose,
}

impl Decoder {
    pub(super) const EMPTY: Decoder = Decoder::Length(0);

    /// The next piece of the body.
    pub(super) fn decode(&mut self, input: &mut BytesMut) -> Result<Piece, &'static str> {
        match self {
            Decoder::Length(0) => Ok(Piece::End),
            _ if input.is_empty() => Ok(Piece::More),
            Decoder::Length(left) => {
                let here = input.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= here as u64;
                Ok(Piece::Data(input.split_to(here).freeze()))
            }
            Decoder::Chunked(Chunked::Done) => Ok(Piece::End),
            Decoder::Chunked(chunked) => chunked.decode(input),
            Decoder::UntilClose => Ok(Piece::Data(input.split().freeze())),
        }
    }

    /// True behind the last byte.
    pub(super) fn is_done(&self) -> bool {
        matches!(self, Decoder::Length(0) | Decoder::Chunked(Chunked::Done))
    }

    /// The connection has ended, and all that came has been decoded.
    pub(super) fn end(&mut self) -> Result<(), BodyError> {
        match self {
            Decoder::UntilClose => *self = Decoder::EMPTY,
            _ if self.is_done() => {}
            _ => return Err(BodyError::Truncated),
        }
        Ok(())
    }

    /// True if `ahead`, which has come and is the last, completes the body.
    pub(super) fn would_end_with(&self, ahead: &[u8]) -> bool {
        match self {
            Decoder::Length(left) => *left <= ahead.len() as u64,
            Decoder::UntilClose => true,
            Decoder::Chunked(chunked) => {
                let (mut chunked, mut ahead) = (chunked.clone(), BytesMut::from(ahead));
                loop {
                    match chunked.decode(&mut ahead) {
                        Ok(Piece::Data(_)) => {}
                        Ok(Piece::Trailers(_) | Piece::End) => return true,
                        // A fault is the reader's to find.
                        Err(_) => return true,
                        Ok(Piece::More) => return false,
                    }
                }
            }
        }
    }

    /// Bytes to come, as far as they are known.
    pub(super) fn hint(&self) -> SizeHint {
        match self {
            Decoder::Length(left) => SizeHint::with_exact(*left),
            Decoder::Chunked(Chunked::Done) => SizeHint::with_exact(0),
            _ => SizeHint::default(),
        }
    }
}
