//! `activator/stat_wire`, and the wire rows of `autoscaler/collection`: stats
//! as bytes.

use super::row::{Verdict, differs, float, int, list, located, part, same};
use policy::compat::Compat;
use proto::stats::{Stat, WireStatMessage, WireStatMessages};
use serde_json::Value;

/// Largest message of the rows, with room to spare.
const BYTES_MAX: usize = 64 << 10;

/// What the rows call the fields of a stat, in the order of their numbers.
struct Names {
    averages: [&'static str; 2],
    counts: [&'static str; 2],
    uptime: &'static str,
}

const LONG: Names = Names {
    averages: ["average_concurrent_requests", "average_proxied_concurrent_requests"],
    counts: ["request_count", "proxied_request_count"],
    uptime: "process_uptime",
};

const SHORT: Names = Names { averages: ["avg", "avg_proxied"], counts: ["count", "count_proxied"], uptime: "uptime" };

/// `activator/stat_wire`.
pub(super) fn judge(row: &Value, _mode: Compat) -> Verdict {
    match row["kind"].as_str() {
        Some("encode") => encode(row, |message| Ok(Some(stat(message, &LONG)?))),
        Some("decode") => decode(row, row["error"] == false, |expected, got| match got {
            None => same("stat_present", &expected["stat_present"], &Value::Bool(false)),
            Some(got) => same_stat(expected, got, &LONG),
        }),
        _ => differs("malformed row: unknown kind"),
    }
}

/// Rows `wire_encode` of `autoscaler/collection`.
pub(super) fn wire_encode(row: &Value) -> Verdict {
    encode(row, |message| Ok(Some(stat(&message["stat"], &SHORT)?)))
}

/// Rows `wire_decode` of `autoscaler/collection`.
pub(super) fn wire_decode(row: &Value) -> Verdict {
    decode(row, row["ok"] == true, |expected, got| match got {
        None => same("skipped", &expected["skipped"], &Value::Bool(true)),
        Some(got) => same_stat(&expected["stat"], got, &SHORT),
    })
}

fn encode(row: &Value, stat: impl Fn(&Value) -> Verdict<Option<Stat>>) -> Verdict {
    let mut batch = WireStatMessages::default();
    for message in list(&row["messages"])? {
        let name = |key: &str| part::<String>(&message[key]).map(String::into_bytes);
        let (namespace, name) = (name("namespace")?, name("name")?);
        batch.messages.push(WireStatMessage { namespace, name, stat: stat(message)? });
    }
    same("hex", part(&row["hex"])?, hex(&proto::encode(&batch)))
}

fn decode(row: &Value, readable: bool, stat: impl Fn(&Value, Option<&Stat>) -> Verdict) -> Verdict {
    let bytes = bytes(&part::<String>(&row["hex"])?)?;
    let batch = match (proto::decode::<WireStatMessages>(&bytes, BYTES_MAX), readable) {
        (Ok(batch), true) => batch,
        (Err(_), false) => return Ok(()),
        (Ok(batch), false) => return differs(format!("expected an error, got {batch:?}")),
        (Err(error), true) => return differs(format!("expected messages, got the error {error}")),
    };
    let expected = list(&row["messages"])?;
    same("messages", expected.len(), batch.messages.len())?;
    for (number, (expected, got)) in expected.iter().zip(&batch.messages).enumerate() {
        let revision = got.revision();
        let verdict = same("namespace", part::<String>(&expected["namespace"])?.as_str(), &*revision.namespace)
            .and_then(|()| same("name", part::<String>(&expected["name"])?.as_str(), &*revision.name))
            .and_then(|()| stat(expected, got.stat.as_ref()));
        located(|| format!("message {number}"), verdict)?;
    }
    Ok(())
}

fn stat(fields: &Value, names: &Names) -> Verdict<Stat> {
    Ok(Stat {
        pod_name: part::<String>(&fields["pod_name"])?.into_bytes(),
        average_concurrent_requests: number(&fields[names.averages[0]])?,
        average_proxied_concurrent_requests: number(&fields[names.averages[1]])?,
        request_count: number(&fields[names.counts[0]])?,
        proxied_request_count: number(&fields[names.counts[1]])?,
        process_uptime: number(&fields[names.uptime])?,
        timestamp: seconds(&fields["timestamp"])?,
    })
}

/// The stat that a pod answered.
pub(super) fn same_short_stat(fields: &Value, got: &Stat) -> Verdict {
    same_stat(fields, got, &SHORT)
}

/// Fields that a row does not list are not compared.
fn same_stat(fields: &Value, got: &Stat, names: &Names) -> Verdict {
    same("pod_name", part::<String>(&fields["pod_name"])?.as_str(), &*got.observed().pod_name)?;
    same("timestamp", seconds(&fields["timestamp"])?, got.timestamp)?;
    let numbers = [
        (names.averages[0], got.average_concurrent_requests),
        (names.averages[1], got.average_proxied_concurrent_requests),
        (names.counts[0], got.request_count),
        (names.counts[1], got.proxied_request_count),
        (names.uptime, got.process_uptime),
    ];
    for (name, got) in numbers.into_iter().filter(|(name, _)| !fields[*name].is_null()) {
        same(name, number(&fields[name])?.to_bits(), got.to_bits())?;
    }
    Ok(())
}

/// To the bit: the rows say which NaN they mean.
fn number(value: &Value) -> Verdict<f64> {
    match value.as_str() {
        Some("NaN") => Ok(f64::from_bits(0x7ff8_0000_0000_0001)),
        Some("+Inf") => Ok(f64::INFINITY),
        Some("-0") => Ok(-0.0),
        _ => float(value),
    }
}

fn seconds(value: &Value) -> Verdict<i64> {
    match value.as_str() {
        Some(text) => text.parse().or_else(|_| differs(format!("malformed row: {text:?} is no time"))),
        None => int(value),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(super) fn bytes(hex: &str) -> Verdict<Vec<u8>> {
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap_or("?"), 16).ok();
    let bytes: Option<Vec<u8>> = hex.as_bytes().chunks(2).map(byte).collect();
    bytes.map_or_else(|| differs(format!("malformed row: {hex:?} is no hex")), Ok)
}
