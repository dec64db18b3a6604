//! From the bytes of a message to what the decisions take, in one step.

use super::names::Names;
use super::rows::{Reading, Rows};
use parking_lot::Mutex;
use policy::revision::RevisionId;
use policy::stat::Stat;
use proto::borrowed::{self, Head};
use std::marker::PhantomData;
use std::sync::Arc;
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder};
use tonic_prost::ProstEncoder;

/// What came in one message.
pub(super) struct Came {
    pub(super) head: Head,
    pub(super) stats: Stats,
}

pub(super) enum Stats {
    /// Of a batch in its turn.
    Rows(Rows),
    /// Of any other message.
    Each(Vec<(RevisionId, Stat)>),
}

/// The rows of a stream's last batch, while nobody works with them. Clones
/// share them.
pub(super) type Kept = Arc<Mutex<Rows>>;

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
    /// Rows are taken from `kept`; whoever is done with them puts them back.
    pub(super) fn new(form: Form, names: &Names, kept: &Kept) -> StatCodec<A> {
        StatCodec { reader: Reader { form, names: names.clone(), kept: kept.clone() }, answers: PhantomData }
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
    kept: Kept,
}

impl Reader {
    fn read(&self, bytes: &[u8]) -> Result<Came, proto::Malformed> {
        let head = match self.form {
            Form::Batch => borrowed::head(bytes)?,
            Form::Messages => Head::default(),
        };
        let stats = self.names.with(|names| match self.form {
            Form::Batch if !head.poke => {
                let mut rows = Reading::new(std::mem::take(&mut self.kept.lock()));
                borrowed::batch(bytes, |entry| rows.read(&entry, names))?;
                Ok::<_, proto::Malformed>(Stats::Rows(rows.finish()))
            }
            form => {
                let mut stats = Vec::new();
                let take = |entry: borrowed::Entry<'_>| stats.extend(names.observed(&entry));
                match form {
                    Form::Batch => _ = borrowed::batch(bytes, take)?,
                    Form::Messages => borrowed::messages(bytes, take)?,
                }
                Ok(Stats::Each(stats))
            }
        })?;
        Ok(Came { head, stats })
    }
}

impl Decoder for Reader {
    type Item = Came;
    type Error = Status;

    fn decode(&mut self, source: &mut DecodeBuf<'_>) -> Result<Option<Came>, Status> {
        // Does not copy: the message lies in one piece.
        let bytes = bytes::Buf::copy_to_bytes(source, bytes::Buf::remaining(source));
        self.read(&bytes).map(Some).map_err(|error| Status::internal(error.to_string()))
    }
}
