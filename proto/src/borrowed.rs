//! Stats read where they lie: for whoever takes in a hundred thousand a
//! second, and knows most of their names already.
//!
//! The outcome is that of the messages in [`crate::stats`] and
//! [`crate::report`], unknown and repeated fields included; tests compare them.

use crate::Malformed;
use crate::stats::Stat;
use prost::DecodeError;
use prost::bytes::Buf;
use prost::encoding::{DecodeContext, WireType, check_wire_type, decode_key, decode_varint, skip_field};

/// One entry of a batch, as [`crate::stats::WireStatMessage`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Entry<'a> {
    /// Namespace of the revision.
    pub namespace: &'a [u8],
    /// Its name.
    pub name: &'a [u8],
    /// Who reports.
    pub pod_name: &'a [u8],
    /// Its numbers, without a name; an entry without says nothing.
    pub stat: Option<Numbers>,
}

/// The numbers of a [`Stat`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Numbers {
    /// [`Stat::average_concurrent_requests`].
    pub average_concurrency: f64,
    /// [`Stat::average_proxied_concurrent_requests`].
    pub average_proxied_concurrency: f64,
    /// [`Stat::request_count`].
    pub request_count: f64,
    /// [`Stat::proxied_request_count`].
    pub proxied_request_count: f64,
    /// [`Stat::timestamp`].
    pub timestamp: i64,
}

/// What a [`crate::report::Batch`] says beside its entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// One more than the last one's.
    pub number: u64,
    /// True for the first sign of load at zero.
    pub poke: bool,
    /// How old it was when it left, in milliseconds.
    pub age_millis: u64,
}

/// Reads a [`crate::report::Batch`]; each entry is given to `take` in turn.
///
/// # Errors
/// When it is none. Entries before the fault have been given.
pub fn batch<'a>(mut bytes: &'a [u8], mut take: impl FnMut(Entry<'a>)) -> Result<Head, Malformed> {
    let mut head = Head::default();
    while bytes.has_remaining() {
        let (tag, kind) = key(&mut bytes)?;
        match tag {
            1 => head.number = varint(kind, &mut bytes)?,
            2 => messages(inner(kind, &mut bytes)?, &mut take)?,
            3 => head.poke = varint(kind, &mut bytes)? != 0,
            4 => head.age_millis = varint(kind, &mut bytes)?,
            _ => skip(tag, kind, &mut bytes)?,
        }
    }
    Ok(head)
}

/// Reads what a [`crate::report::Batch`] says beside its entries, and skips
/// them.
///
/// # Errors
/// When it is none, as far as that shows.
pub fn head(mut bytes: &[u8]) -> Result<Head, Malformed> {
    let mut head = Head::default();
    while bytes.has_remaining() {
        let (tag, kind) = key(&mut bytes)?;
        match tag {
            1 => head.number = varint(kind, &mut bytes)?,
            2 => _ = inner(kind, &mut bytes)?,
            3 => head.poke = varint(kind, &mut bytes)? != 0,
            4 => head.age_millis = varint(kind, &mut bytes)?,
            _ => skip(tag, kind, &mut bytes)?,
        }
    }
    Ok(head)
}

/// Reads [`crate::stats::WireStatMessages`]; each entry is given to `take` in
/// turn.
///
/// # Errors
/// When it is none. Entries before the fault have been given.
pub fn messages<'a>(mut bytes: &'a [u8], mut take: impl FnMut(Entry<'a>)) -> Result<(), Malformed> {
    while bytes.has_remaining() {
        let (tag, kind) = key(&mut bytes)?;
        match tag {
            1 => take(entry(inner(kind, &mut bytes)?)?),
            _ => skip(tag, kind, &mut bytes)?,
        }
    }
    Ok(())
}

fn entry(mut bytes: &[u8]) -> Result<Entry<'_>, Malformed> {
    let mut entry = Entry::default();
    while bytes.has_remaining() {
        let (tag, kind) = key(&mut bytes)?;
        match tag {
            1 => entry.namespace = inner(kind, &mut bytes)?,
            2 => entry.name = inner(kind, &mut bytes)?,
            3 => {
                let Entry { pod_name, stat, .. } = &mut entry;
                // Several are parts of one.
                numbers(inner(kind, &mut bytes)?, pod_name, stat.get_or_insert_default())?;
            }
            _ => skip(tag, kind, &mut bytes)?,
        }
    }
    Ok(entry)
}

fn numbers<'a>(mut bytes: &'a [u8], pod_name: &mut &'a [u8], into: &mut Numbers) -> Result<(), Malformed> {
    while bytes.has_remaining() {
        let (tag, kind) = key(&mut bytes)?;
        match tag {
            1 => *pod_name = inner(kind, &mut bytes)?,
            2 => into.average_concurrency = double(kind, &mut bytes)?,
            3 => into.average_proxied_concurrency = double(kind, &mut bytes)?,
            4 => into.request_count = double(kind, &mut bytes)?,
            5 => into.proxied_request_count = double(kind, &mut bytes)?,
            6 => _ = double(kind, &mut bytes)?,
            7 => into.timestamp = varint(kind, &mut bytes)?.cast_signed(),
            _ => skip(tag, kind, &mut bytes)?,
        }
    }
    Ok(())
}

/// A number that most of the time is one byte: of them there are a dozen in
/// each entry.
#[inline]
fn short(bytes: &mut &[u8]) -> Result<u64, DecodeError> {
    match **bytes {
        [byte @ 0..=0x7f, ref rest @ ..] => {
            *bytes = rest;
            Ok(u64::from(byte))
        }
        _ => decode_varint(bytes),
    }
}

/// A field's tag and type, which most of the time are one byte too.
#[inline]
fn key(bytes: &mut &[u8]) -> Result<(u32, WireType), DecodeError> {
    match **bytes {
        [byte @ 0x08..=0x7f, ref rest @ ..] => {
            let kind = WireType::try_from(u64::from(byte & 7))?;
            *bytes = rest;
            Ok((u32::from(byte >> 3), kind))
        }
        _ => decode_key(bytes),
    }
}

fn varint(kind: WireType, bytes: &mut &[u8]) -> Result<u64, DecodeError> {
    check_wire_type(WireType::Varint, kind)?;
    short(bytes)
}

fn double(kind: WireType, bytes: &mut &[u8]) -> Result<f64, Malformed> {
    check_wire_type(WireType::SixtyFourBit, kind)?;
    bytes.try_get_f64_le().map_err(|_| Malformed::CutOff)
}

fn inner<'a>(kind: WireType, bytes: &mut &'a [u8]) -> Result<&'a [u8], Malformed> {
    check_wire_type(WireType::LengthDelimited, kind)?;
    let length = usize::try_from(short(bytes)?).map_err(|_| Malformed::CutOff)?;
    let (inner, rest) = bytes.split_at_checked(length).ok_or(Malformed::CutOff)?;
    *bytes = rest;
    Ok(inner)
}

fn skip(tag: u32, kind: WireType, bytes: &mut &[u8]) -> Result<(), DecodeError> {
    skip_field(kind, tag, bytes, DecodeContext::default())
}

impl Numbers {
    /// When it was taken; `received` where it does not say.
    pub fn at(&self, received: policy::moment::Moment) -> policy::moment::Moment {
        Stat { timestamp: self.timestamp, ..Stat::default() }.at(received)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Batch;
    use crate::stats::{WireStatMessage, WireStatMessages};
    use crate::{decode, encode};

    const MOST: usize = 1 << 16;

    /// Both readers, and whether they agree.
    fn same(bytes: &[u8]) {
        let mut entries = Vec::new();
        let alone = head(bytes);
        let head = batch(bytes, |entry| entries.push(entry));
        if let Ok(head) = &head {
            assert_eq!(alone.as_ref().ok(), Some(head));
        }
        let whole = decode::<Batch>(bytes, MOST);
        let (head, whole) = match (head, whole) {
            (Ok(head), Ok(whole)) => (head, whole),
            (Err(_), Err(_)) => return,
            (head, whole) => panic!("{head:?} is not {whole:?} of {bytes:02x?}"),
        };
        assert_eq!((head.number, head.poke, head.age_millis), (whole.number, whole.poke, whole.age_millis));
        let messages = whole.stats.unwrap_or_default().messages;
        assert_eq!(entries.len(), messages.len());
        for (entry, message) in entries.iter().zip(&messages) {
            assert_eq!((entry.namespace, entry.name), (&*message.namespace, &*message.name));
            assert_eq!(entry.stat.is_some(), message.stat.is_some());
            if let (Some(numbers), Some(stat)) = (&entry.stat, &message.stat) {
                assert_eq!(entry.pod_name, &*stat.pod_name);
                let of = [numbers.average_concurrency, numbers.average_proxied_concurrency, numbers.request_count];
                let same =
                    [stat.average_concurrent_requests, stat.average_proxied_concurrent_requests, stat.request_count];
                assert_eq!(of.map(f64::to_bits), same.map(f64::to_bits));
                assert_eq!(numbers.proxied_request_count.to_bits(), stat.proxied_request_count.to_bits());
                assert_eq!(numbers.timestamp, stat.timestamp);
            }
        }
    }

    fn example() -> Vec<u8> {
        let message = |n: u8| WireStatMessage {
            namespace: b"default".to_vec(),
            name: vec![b'r', n],
            stat: (n != 3).then(|| Stat {
                average_concurrent_requests: f64::from(n),
                request_count: 7.5,
                process_uptime: 3.0,
                timestamp: -1,
                ..Stat::of_pod("pod")
            }),
        };
        let stats = WireStatMessages { messages: (0..5).map(message).collect() };
        encode(&Batch { number: 300, stats: Some(stats), poke: true, age_millis: 12 })
    }

    #[test]
    fn a_batch_is_read_as_the_messages_are() {
        same(&example());
        same(&[]);
        // Twice: the later number counts, entries and parts add up.
        same(&[example(), example()].concat());
        same(b"\x12\x0f\x0a\x0d\x1a\x03\x0a\x01a\x1a\x02\x38\x05\x12\x02\x72\x72");
    }

    #[test]
    fn damaged_bytes_are_read_or_refused_as_the_messages_are() {
        let whole = example();
        for end in 0..whole.len() {
            same(&whole[..end]);
        }
        let mut seed = 0x2545_f491_u32;
        let mut random = |below: usize| {
            seed ^= seed << 13;
            seed ^= seed >> 17;
            seed ^= seed << 5;
            seed as usize % below
        };
        for _ in 0..20_000 {
            let mut bytes = whole.clone();
            for _ in 0..=random(3) {
                let at = random(bytes.len());
                match random(3) {
                    0 => bytes[at] = random(256) as u8,
                    1 => _ = bytes.remove(at),
                    _ => bytes.insert(at, random(256) as u8),
                }
            }
            same(&bytes);
        }
    }
}
