//! Which activators serve a revision, when not all of them are needed.

use std::collections::{BTreeMap, BTreeSet};

/// Places on the circle on which activators stand.
const UNIVERSE: u64 = 2048;

/// `count` of the activators with these addresses, for a revision of that
/// name; all of them with a `count` of 0 (activator reference, section 11.3).
///
/// Whoever reckons comes to the same ones: each activator has a place on a
/// circle, by a hash of its address and the revision's name, and they are
/// taken in strides around it. Beyond 2,048 activators there is no place for
/// more, and the last ones in the order of text are never chosen.
pub fn choose<'a>(addresses: impl IntoIterator<Item = &'a str>, revision: &str, count: usize) -> BTreeSet<&'a str> {
    let all: BTreeSet<&str> = addresses.into_iter().collect();
    if count == 0 || count >= all.len() {
        return all;
    }
    let circle = circle(&all, revision);
    let stride = hash(format!("{revision}step-angle-salt").as_bytes()) % UNIVERSE;
    let mut angle = hash(format!("{revision}start-angle-salt").as_bytes()) % UNIVERSE;
    let mut chosen = BTreeSet::new();
    while chosen.len() < count.min(circle.len()) {
        let onward = circle.range(angle..).chain(circle.range(..angle));
        let next = onward.map(|(_, &address)| address).find(|&address| !chosen.contains(address));
        chosen.extend(next);
        angle = (angle + stride) % UNIVERSE;
    }
    chosen
}

/// The activators by their place. One whose place is taken moves on by hashing
/// again, so the order in which they come counts.
fn circle<'a>(addresses: &BTreeSet<&'a str>, revision: &str) -> BTreeMap<u64, &'a str> {
    let mut circle = BTreeMap::new();
    for &address in addresses.iter().take(UNIVERSE as usize) {
        let mut text = format!("{address}{revision}");
        let mut hashed = hash(text.as_bytes());
        while circle.contains_key(&(hashed % UNIVERSE)) {
            text += &format!("{hashed:x}");
            hashed = hash(text.as_bytes());
        }
        circle.insert(hashed % UNIVERSE, address);
    }
    circle
}

/// FNV-1a, 64 bits.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(count: usize) -> Vec<String> {
        (0..count).map(|n| format!("10.1.{}.{}", n / 250, n % 250)).collect()
    }

    fn chosen(of: &[String], revision: &str, count: usize) -> BTreeSet<String> {
        choose(of.iter().map(String::as_str), revision, count).into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn the_hash_is_that_of_the_standard() {
        assert_eq!(hash(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(hash(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(hash(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn as_many_are_chosen_as_are_wanted_whatever_their_order() {
        let all = addresses(40);
        let backwards: Vec<String> = all.iter().rev().chain(&all).cloned().collect();
        for count in 1..=45 {
            let chosen_ones = chosen(&all, "hello-00001", count);
            assert_eq!(chosen_ones.len(), count.min(40));
            assert_eq!(chosen_ones, chosen(&backwards, "hello-00001", count));
        }
        assert_eq!(chosen(&all, "hello-00001", 0).len(), 40);
        assert_ne!(chosen(&all, "hello-00001", 5), chosen(&all, "hello-00002", 5));
    }

    #[test]
    fn revisions_spread_over_all_activators() {
        let all = addresses(10);
        let mut served = BTreeMap::new();
        for n in 0..1000 {
            for address in chosen(&all, &format!("hello-{n:05}"), 2) {
                *served.entry(address).or_insert(0) += 1;
            }
        }
        assert_eq!(served.len(), 10);
        assert!(served.values().all(|&revisions| revisions > 50), "{served:?}");
    }

    #[test]
    fn more_activators_than_places_do_no_harm() {
        let all = addresses(2100);
        assert_eq!(chosen(&all, "hello-00001", 7).len(), 7);
        assert_eq!(chosen(&all, "hello-00001", 2090).len(), 2048);
    }
}
