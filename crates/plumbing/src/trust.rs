//! Who may speak internally: two lists of address ranges (rules, section 2).

use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

/// A list of address ranges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranges {
    ranges: Vec<(u128, u8)>,
}

impl Ranges {
    /// Nobody, loopback not included.
    pub fn nobody() -> Ranges {
        Ranges { ranges: Vec::new() }
    }

    /// Everybody.
    pub fn everybody() -> Ranges {
        Ranges { ranges: vec![(0, 0)] }
    }

    /// This machine, by its loopback addresses.
    pub fn loopback() -> Ranges {
        "127.0.0.0/8,::1/128".parse().unwrap_or_else(|_| Ranges::nobody())
    }

    /// True when an address lies in one of the ranges.
    pub fn contains(&self, address: IpAddr) -> bool {
        let bits = bits(address);
        self.ranges.iter().any(|&(range, length)| (bits ^ range) & mask(length) == 0)
    }
}

/// IPv4 addresses in their IPv6-mapped form, so that one comparison does.
fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().to_bits(),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

fn mask(length: u8) -> u128 {
    if length == 0 { 0 } else { u128::MAX << (128 - u32::from(length.min(128))) }
}

impl FromStr for Ranges {
    type Err = String;

    /// Comma-separated addresses or `address/length` ranges; blanks are skipped.
    fn from_str(text: &str) -> Result<Ranges, String> {
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        let ranges = parts.map(parse_range).collect::<Result<_, _>>()?;
        Ok(Ranges { ranges })
    }
}

fn parse_range(part: &str) -> Result<(u128, u8), String> {
    let fault = || format!("`{part}` is no address range such as 10.0.0.0/8 or fd00::/8");
    let (address, length) = part.split_once('/').map_or((part, None), |(address, length)| (address, Some(length)));
    let address: IpAddr = address.parse().map_err(|_| fault())?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let length: u8 = length.map_or(Ok(most), |length| length.parse().map_err(|_| fault()))?;
    if length > most {
        return Err(fault());
    }
    Ok((bits(address), if address.is_ipv4() { 96 + length } else { length }))
}

/// Whose word is believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trust {
    /// May set internal headers (`ZEROSCALE_TRUSTED_PEERS`).
    pub peers: Ranges,
    /// May say who the client was (`ZEROSCALE_TRUSTED_PROXIES`).
    pub proxies: Ranges,
}

impl Trust {
    /// Nobody: the public listener.
    pub fn nobody() -> Trust {
        Trust { peers: Ranges::nobody(), proxies: Ranges::nobody() }
    }

    /// This machine: a sidecar inside `zeroscale`.
    pub fn loopback() -> Trust {
        Trust { peers: Ranges::loopback(), proxies: Ranges::loopback() }
    }

    /// Everybody, as the reference does.
    pub fn everybody() -> Trust {
        Trust { peers: Ranges::everybody(), proxies: Ranges::everybody() }
    }
}

/// The unspecified address; stands in where a peer's cannot be learnt.
pub const UNKNOWN_PEER: IpAddr = IpAddr::V6(Ipv6Addr::UNSPECIFIED);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_hold_what_lies_in_them_in_both_families() {
        let ranges: Ranges = "10.0.0.0/8, 192.168.1.7 ,fd00::/8".parse().unwrap();
        let holds = |text: &str| ranges.contains(text.parse().unwrap());
        assert!(holds("10.9.8.7") && holds("192.168.1.7") && holds("fd12::1") && holds("::ffff:10.1.1.1"));
        assert!(!holds("11.0.0.1") && !holds("192.168.1.8") && !holds("fe80::1"));
        assert!(!Ranges::nobody().contains("127.0.0.1".parse().unwrap()));
        assert!(Ranges::everybody().contains("8.8.8.8".parse().unwrap()));
        assert!(Ranges::loopback().contains("127.3.2.1".parse().unwrap()));
    }

    #[test]
    fn a_bad_range_is_named() {
        for bad in ["10.0.0.0/33", "x", "10.0.0/8", "::1/129", "1.2.3.4/"] {
            assert!(bad.parse::<Ranges>().unwrap_err().contains(bad));
        }
    }
}
