//! The Stat message, decoded by hand: what the sidecar encodes must not be
//! judged by its own code.

use serde_json::{Value, json};

const NUMBERS: [&str; 4] =
    ["average_concurrent_requests", "average_proxied_concurrent_requests", "request_count", "proxied_request_count"];

/// The message as rows write it; absent numbers are 0.
///
/// # Errors
/// When it is no Stat.
pub fn decode(mut bytes: &[u8]) -> Result<Value, String> {
    let mut told = json!({ "process_uptime_present": false, "timestamp_present": false });
    for name in NUMBERS {
        told[name] = json!(0);
    }
    while !bytes.is_empty() {
        let key = varint(&mut bytes)?;
        match (key >> 3, key & 7) {
            (1, 2) => {
                let length = usize::try_from(varint(&mut bytes)?).map_err(|error| error.to_string())?;
                let name = bytes.get(..length).ok_or("the message ends in a string")?;
                told["pod_name"] = json!(String::from_utf8_lossy(name));
                bytes = &bytes[length..];
            }
            (field @ 2..=5, 1) => {
                let place = usize::try_from(field - 2).unwrap_or_default();
                told[NUMBERS[place]] = json!(double(&mut bytes)?);
            }
            (6, 1) => {
                told["process_uptime"] = json!(double(&mut bytes)?);
                told["process_uptime_present"] = json!(true);
            }
            (7, 0) => {
                varint(&mut bytes)?;
                told["timestamp_present"] = json!(true);
            }
            (field, wire) => return Err(format!("field {field} with wire type {wire} is none of a Stat's")),
        }
    }
    Ok(told)
}

fn varint(bytes: &mut &[u8]) -> Result<u64, String> {
    let mut number = 0;
    for shift in (0..63).step_by(7) {
        let (first, rest) = bytes.split_first().ok_or("the message ends in a number")?;
        *bytes = rest;
        number |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err("a number is too long".to_owned())
}

fn double(bytes: &mut &[u8]) -> Result<f64, String> {
    let (first, rest) = bytes.split_first_chunk::<8>().ok_or("the message ends in a number")?;
    *bytes = rest;
    Ok(f64::from_le_bytes(*first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn before_the_first_report_only_the_name_is_there() {
        let stat = decode(b"\x0a\x05pod-1").unwrap();
        assert_eq!((stat["pod_name"].as_str(), stat["request_count"].as_f64()), (Some("pod-1"), Some(0.0)));
        assert_eq!(stat["process_uptime_present"], false);
    }

    #[test]
    fn numbers_are_doubles() {
        let mut bytes = b"\x0a\x01p\x21".to_vec();
        bytes.extend(14.0f64.to_le_bytes());
        bytes.push(0x31);
        bytes.extend(1.5f64.to_le_bytes());
        let stat = decode(&bytes).unwrap();
        assert_eq!((&stat["request_count"], &stat["process_uptime"]), (&json!(14.0), &json!(1.5)));
        assert!(decode(&bytes[..bytes.len() - 1]).is_err());
        assert!(decode(b"\x40\x01").is_err());
    }
}
