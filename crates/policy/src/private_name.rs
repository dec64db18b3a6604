//! The name of a revision's private service. Names have an end at 63 bytes, so
//! a long one is cut, and told apart by the MD5 of the whole.

/// Bytes that a name may have.
const NAME_BYTES_MAX: usize = 63;
const SUFFIX: &str = "-private";
/// Bytes of an MD5 in hexadecimal.
const DIGEST_BYTES: usize = 32;

/// The private service of the revision called `name`.
pub fn private_service(name: &str) -> String {
    if name.len() + SUFFIX.len() <= NAME_BYTES_MAX {
        return format!("{name}{SUFFIX}");
    }
    let kept = NAME_BYTES_MAX - SUFFIX.len() - DIGEST_BYTES;
    let kept = &name.as_bytes()[..kept];
    format!("{}{}{SUFFIX}", String::from_utf8_lossy(kept), md5_hex(name.as_bytes()))
}

/// RFC 1321. Tells names apart, and is trusted with nothing.
fn md5_hex(text: &[u8]) -> String {
    const SHIFTS: [[u32; 4]; 4] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];
    let mut state = [0x6745_2301_u32, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    let mut padded = text.to_vec();
    padded.push(0x80);
    padded.resize(padded.len().next_multiple_of(64), 0);
    if text.len() % 64 >= 56 {
        padded.resize(padded.len() + 64, 0);
    }
    let end = padded.len() - 8;
    padded[end..].copy_from_slice(&(8 * text.len() as u64).to_le_bytes());
    for block in padded.chunks_exact(64) {
        let words: Vec<u32> = block.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
        let [mut a, mut b, mut c, mut d] = state;
        for step in 0..64 {
            let (mix, word) = match step / 16 {
                0 => ((b & c) | (!b & d), step),
                1 => ((d & b) | (!d & c), (5 * step + 1) % 16),
                2 => (b ^ c ^ d, (3 * step + 5) % 16),
                _ => (c ^ (b | !d), (7 * step) % 16),
            };
            // The table of the standard, which is made of sines.
            let constant = (((step + 1) as f64).sin().abs() * 4_294_967_296.0) as u32;
            let sum = a.wrapping_add(mix).wrapping_add(constant).wrapping_add(words[word]);
            (a, d, c) = (d, c, b);
            b = b.wrapping_add(sum.rotate_left(SHIFTS[step / 16][step % 4]));
        }
        for (kept, new) in state.iter_mut().zip([a, b, c, d]) {
            *kept = kept.wrapping_add(new);
        }
    }
    state.iter().flat_map(|word| word.to_le_bytes()).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digests_are_those_of_the_standard() {
        for (text, digest) in [
            ("", "d41d8cd98f00b204e9800998ecf8427e"),
            ("abc", "900150983cd24fb0d6963f7d28e17f72"),
            ("abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b"),
            (
                "12345678901234567890123456789012345678901234567890123456789012345678901234567890",
                "57edf4a22be3c955ac49da2e2107b67a",
            ),
        ] {
            assert_eq!(md5_hex(text.as_bytes()), digest);
        }
        // Around the length at which the padding needs another block.
        assert_eq!(md5_hex(&[b'a'; 55]), "ef1772b6dff9a122358552954ad0df65");
        assert_eq!(md5_hex(&[b'a'; 56]), "3b0c8ac703f828b04c6c197006d17218");
    }

    #[test]
    fn a_name_that_fits_is_kept() {
        assert_eq!(private_service("rev"), "rev-private");
        let longest = "r".repeat(55);
        assert_eq!(private_service(&longest), format!("{longest}-private"));
        assert_eq!(private_service(&"r".repeat(56)).len(), 63);
    }
}
