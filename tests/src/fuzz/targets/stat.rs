//! The Stat message, and the batch of them.

use super::super::Target;
use super::super::words::{about, must, seen};
use crate::replay::cases::stat as by_hand;
use crate::simulation::draw::Draw;
use policy::moment::Moment;
use proto::stats::{Stat, WireStatMessages};
use proto::{decode, encode};

pub(in super::super) const TARGET: Target = Target {
    name: "stat",
    about: "a stat or a batch that is read is written to the same; a reader by hand agrees",
    seeds: include_str!("../../../fuzz/stat.txt"),
    words: &["\x0a\x05pod-1", "\x11", "\x21", "\x31", "\x38\x01", "\x1a", "\x12\x00"],
    sentence,
    judge,
};

/// As long as the autoscaler reads, and as long as a batch may be.
const ONE: usize = 336;
const BATCH: usize = 4096;

fn sentence(draw: &mut Draw) -> Vec<u8> {
    let mut out = Vec::new();
    for _ in 0..draw.below(9) {
        let field = draw.between(0, 8) as u8;
        match draw.below(4) {
            0 => {
                let length = draw.below(20) as u8;
                out.extend([field << 3 | 2, length]);
                out.extend((0..length).map(|_| draw.bits() as u8));
            }
            1 => {
                out.push(field << 3);
                out.extend((0..draw.below(11)).map(|_| draw.bits() as u8 | 0x80));
                out.push(draw.below(128) as u8);
            }
            _ => {
                out.push(field << 3 | 1);
                let odd = [0.0, -0.0, f64::NAN, f64::INFINITY, 1.5, f64::MIN_POSITIVE, f64::MAX];
                out.extend(draw.of(&odd).to_le_bytes());
            }
        }
    }
    out
}

fn judge(input: &[u8]) -> Result<u64, String> {
    let one = decode::<Stat>(input, ONE);
    if let Ok(stat) = &one {
        let bytes = encode(stat);
        let again: Stat = decode(&bytes, usize::MAX).map_err(|error| format!("not read again: {error}"))?;
        // As bytes: a number that is none is not even like itself.
        must(encode(&again) == bytes, || format!("{stat:?} becomes {again:?}"))?;
        must(bytes.len() <= ONE + 64, || format!("{} bytes become {}", input.len(), bytes.len()))?;
        let _ = (stat.observed(), stat.at(Moment::from_unix_millis(1)));
        if let Ok(told) = by_hand::decode(input) {
            let same = |name: &str, number: f64| told[name].as_f64().is_none_or(|by_hand| by_hand == number);
            must(
                same("request_count", stat.request_count)
                    && same("proxied_request_count", stat.proxied_request_count)
                    && same("average_concurrent_requests", stat.average_concurrent_requests)
                    && same("average_proxied_concurrent_requests", stat.average_proxied_concurrent_requests),
                || format!("{stat:?}, by hand {told}"),
            )?;
        }
    }
    let batch = decode::<WireStatMessages>(input, BATCH);
    if let Ok(batch) = &batch {
        let bytes = encode(batch);
        let again: WireStatMessages = decode(&bytes, usize::MAX).map_err(|error| format!("not read again: {error}"))?;
        must(encode(&again) == bytes, || format!("{batch:?} becomes {again:?}"))?;
        batch.messages.iter().for_each(|message| drop(message.revision()));
    }
    let kind = |error: &dyn std::fmt::Display| error.to_string().chars().take(40).collect::<String>();
    Ok(seen((
        one.as_ref().map(|stat| (about(stat.pod_name.len()), stat.timestamp != 0)).map_err(|error| kind(error)),
        batch.as_ref().map(|batch| about(batch.messages.len())).map_err(|error| kind(error)),
        about(input.len()),
    )))
}
