//! From the bytes of a message to what the decisions take, in one step.

use super::names::Names;
use policy::revision::RevisionId;
use policy::stat::Stat;
use proto::borrowed::{self, Head};
use std::marker::PhantomData;
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder};
use tonic_prost::ProstEncoder;

/// What came in one message.
pub(super) struct Came {
    pub(super) head: Head,
    pub(super) stats: Vec<(RevisionId, Stat)>,
}

/// Which message it is.
#[derive(Clone, Copy)]
pub(super) enum Form {
    /// A [`proto::report::Batch`].
    Batch,
    /// [`proto::stats::WireStatMessages`] alone.
    Messages,
}

/// Answers `A` to such messages.
pub(super) struct StatCodec<A> {
    reader: Reader,
    answers: PhantomData<A>,
}

impl<A> StatCodec<A> {
    pub(super) fn new(form: Form, names: &Names) -> StatCodec<A> {
        StatCodec { reader: Reader { form, names: names.clone() }, answers: PhantomData }
    }
}

impl<A: prost::Message + 'static> Codec for StatCodec<A> {
    type Encode = A;
    type Decode = Came;
    type Encoder = ProstEncoder<A>;
    type Decoder = Reader;

    fn encoder(&mut self) -> ProstEncoder<A> {
        ProstEncoder::default()
    }

    fn decoder(&mut self) -> Reader {
        self.reader.clone()
    }
}

#[derive(Clone)]
pub(super) struct Reader {
    form: Form,
    names: Names,
}

impl Decoder for Reader {
    type Item = Came;
    type Error = Status;

    fn decode(&mut self, source: &mut DecodeBuf<'_>) -> Result<Option<Came>, Status> {
        // Does not copy: the message lies in one piece.
        let bytes = bytes::Buf::copy_to_bytes(source, bytes::Buf::remaining(source));
        let mut stats = Vec::new();
        let head = self.names.with(|names| {
            let take = |entry: borrowed::Entry<'_>| stats.extend(names.observed(&entry));
            match self.form {
                Form::Batch => borrowed::batch(&bytes, take),
                Form::Messages => borrowed::messages(&bytes, take).map(|()| Head::default()),
            }
        });
        let head = head.map_err(|error| Status::internal(error.to_string()))?;
        Ok(Some(Came { head, stats }))
    }
}
