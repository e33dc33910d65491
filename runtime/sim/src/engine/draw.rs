//! Draws that depend on a seed, a purpose and an index alone, so that no draw shifts another.

/// What a draw is for; each purpose is a stream of its own.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    /// The factor of a step's duration.
    Jitter,
    /// Whether a fault rule strikes; the rule's index.
    Fault(u64),
    /// The id of an answer.
    AnswerId,
    /// The natural length of an answer.
    Length,
    /// The token ids of an answer.
    Token,
}

/// A draw of 64 even bits.
pub(super) fn draw(seed: u64, purpose: Purpose, index: u64) -> u64 {
    let stream = match purpose {
        Purpose::Jitter => 1,
        Purpose::AnswerId => 2,
        Purpose::Length => 3,
        Purpose::Token => 4,
        Purpose::Fault(rule) => 16 + rule,
    };
    mix(mix(seed ^ mix(stream)).wrapping_add(index))
}

/// A 64-bit hash of bytes; stable, since answers hang on it.
pub(super) fn hash_bytes(bytes: &[u8]) -> u64 {
    let mut state = mix(bytes.len() as u64);
    let mut words = bytes.chunks_exact(8);
    for word in &mut words {
        let value = word.iter().rev().fold(0, |sum, b| sum << 8 | u64::from(*b));
        state = (state.rotate_left(23) ^ value).wrapping_mul(GOLDEN);
    }
    let rest = words.remainder().iter();
    let last = rest.rev().fold(0u64, |sum, b| sum << 8 | u64::from(*b));
    mix(state ^ mix(last))
}

/// A 64-bit hash of token ids.
pub(super) fn hash_ids(ids: &[u32]) -> u64 {
    let mut state = mix(ids.len() as u64);
    for id in ids {
        state = (state.rotate_left(23) ^ u64::from(*id)).wrapping_mul(GOLDEN);
    }
    mix(state)
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finalizer of SplitMix64 (Steele, Lea, Flood 2014), with its increment.
pub(crate) fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(GOLDEN);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_values_of_splitmix64_with_seed_0() {
        // The reference generator's first output for seed 0, and its second.
        assert_eq!(mix(0), 0xe220_a839_7b1d_cdaf);
        assert_eq!(mix(GOLDEN), 0x6e78_9e6a_a1b9_65f4);
    }

    #[test]
    fn hashes_tell_lengths_and_places_apart() {
        assert_ne!(hash_bytes(b""), hash_bytes(b"\0"));
        assert_ne!(hash_bytes(b"abcdefgh"), hash_bytes(b"abcdefgh\0"));
        assert_ne!(hash_ids(&[1, 2]), hash_ids(&[2, 1]));
    }
}
