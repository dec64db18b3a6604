//! MD5, for names that Kubernetes objects have; not for secrets.

/// Left rotations of the four rounds.
const TURNS: [[u32; 4]; 4] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];

/// The digest of a text, as 32 lower-case hex digits.
pub(crate) fn hex(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let bits = (bytes.len() as u64).wrapping_mul(8);
    bytes.push(0x80);
    bytes.resize(bytes.len().next_multiple_of(64), 0);
    if bytes.len() - text.len() < 9 {
        bytes.resize(bytes.len() + 64, 0);
    }
    let end = bytes.len() - 8;
    bytes[end..].copy_from_slice(&bits.to_le_bytes());

    let mut state: [u32; 4] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    for block in bytes.chunks_exact(64) {
        let mixed = mix(state, block);
        for (word, more) in state.iter_mut().zip(mixed) {
            *word = word.wrapping_add(more);
        }
    }
    state.iter().flat_map(|word| word.to_le_bytes()).map(|byte| format!("{byte:02x}")).collect()
}

fn mix([mut a, mut b, mut c, mut d]: [u32; 4], block: &[u8]) -> [u32; 4] {
    let mut words = [0u32; 16];
    for (word, four) in words.iter_mut().zip(block.chunks_exact(4)) {
        *word = u32::from_le_bytes([four[0], four[1], four[2], four[3]]);
    }
    for step in 0..64 {
        let (mixed, word) = match step / 16 {
            0 => ((b & c) | (!b & d), step),
            1 => ((d & b) | (!d & c), 5 * step + 1),
            2 => (b ^ c ^ d, 3 * step + 5),
            _ => (c ^ (b | !d), 7 * step),
        };
        // The whole part of 2^32 times the sine of the step, in radians.
        let sine = ((step as f64 + 1.0).sin().abs() * 4_294_967_296.0) as u32;
        let sum = a.wrapping_add(mixed).wrapping_add(sine).wrapping_add(words[word % 16]);
        (a, d, c) = (d, c, b);
        b = b.wrapping_add(sum.rotate_left(TURNS[step / 16][step % 4]));
    }
    [a, b, c, d]
}

#[cfg(test)]
mod tests {
    use super::hex;

    #[test]
    fn digests_are_those_of_the_standard() {
        let long = "12345678901234567890123456789012345678901234567890123456789012345678901234567890";
        let known = [
            ("", "d41d8cd98f00b204e9800998ecf8427e"),
            ("a", "0cc175b9c0f1b6a831c399e269772661"),
            ("message digest", "f96b697d7cb7938d525a2f31aaf161d0"),
            ("abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b"),
            (long, "57edf4a22be3c955ac49da2e2107b67a"),
        ];
        for (text, digest) in known {
            assert_eq!(hex(text), digest, "{text:?}");
        }
    }

    #[test]
    fn a_text_of_any_length_is_padded() {
        let digests: Vec<String> = (0..200).map(|length| hex(&"x".repeat(length))).collect();
        assert!(digests.iter().all(|digest| digest.len() == 32));
        // Computed with another implementation.
        assert_eq!(digests[55], "04364420e25c512fd958a70738aa8f72");
        assert_eq!(digests[56], "668a72d5ba17f08e62dabcafad6db14b");
        assert_eq!(digests[64], "c1bb4f81d892b2d57947682aeb252456");
    }
}
