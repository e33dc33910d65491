//! Every draw of a plan, by integers alone: `pcg64-q64/1` of `docs/plan-format.md`.
//!
//! A draw has a stream of its own, seeded by hashing what it is for. No floating-point number, no
//! platform logarithm and no distribution of another crate takes part, so the same study gives the
//! same offsets on every machine.

mod arrivals;
mod exponential;

pub use arrivals::{ArrivalError, MAX_REQUESTS, Process, Span, Stage, arrivals};
pub use exponential::{Q64, neg_ln_q64, offset_ns};

use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng as _;
use sha2::{Digest as _, Sha256};

/// What a stream is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// The gaps between arrivals.
    Arrivals,
    /// The order of request classes in one stream.
    Classes,
    /// The orders of the arms.
    ArmOrder,
    /// The orders of the cells.
    CellOrder,
    /// Synthetic token ids.
    Synthetic,
}

impl Purpose {
    /// The word that is hashed.
    pub fn word(self) -> &'static str {
        match self {
            Purpose::Arrivals => "arrivals",
            Purpose::Classes => "classes",
            Purpose::ArmOrder => "arm-order",
            Purpose::CellOrder => "cell-order",
            Purpose::Synthetic => "synthetic",
        }
    }
}

/// A stream of draws.
#[derive(Clone, Debug)]
pub struct Stream(Pcg64);

impl Stream {
    /// The stream of one purpose, block seed, cell (as written; empty where there is none) and place.
    ///
    /// SHA-256 of `"assize/1\0" purpose "\0" block_seed "\0" cell "\0" k`; the first 16 bytes,
    /// big-endian, are the state, the next 16 the stream.
    pub fn new(purpose: Purpose, block_seed: u128, cell: &str, k: u32) -> Stream {
        let name = format!("assize/1\0{}\0{block_seed}\0{cell}\0{k}", purpose.word());
        let digest: [u8; 32] = Sha256::digest(name.as_bytes()).into();
        let half = |from: usize| {
            let mut bytes = [0; 16];
            bytes.copy_from_slice(&digest[from..from + 16]);
            u128::from_be_bytes(bytes)
        };
        Stream(Pcg64::new(half(0), half(16)))
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `bound` (above zero), each as likely as the others: words at or above the
    /// greatest multiple of `bound` are thrown away.
    pub fn below(&mut self, bound: u64) -> u64 {
        let words = 1u128 << 64;
        let limit = words - words % u128::from(bound);
        loop {
            let word = self.next_u64();
            if u128::from(word) < limit {
                return word % bound;
            }
        }
    }

    /// Fisher–Yates from the last place down.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last as u64 + 1) as usize;
            items.swap(last, other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_stream_is_named_by_its_purpose_seed_cell_and_place() {
        let first = |purpose, seed, cell, k| Stream::new(purpose, seed, cell, k).next_u64();
        let base = first(Purpose::Arrivals, 7, "near", 0);
        assert_ne!(base, first(Purpose::Classes, 7, "near", 0));
        assert_ne!(base, first(Purpose::Arrivals, 8, "near", 0));
        assert_ne!(base, first(Purpose::Arrivals, 7, "far", 0));
        assert_ne!(base, first(Purpose::Arrivals, 7, "near", 1));
        assert_eq!(base, first(Purpose::Arrivals, 7, "near", 0));
    }

    #[test]
    fn a_shuffle_reaches_every_order() {
        let mut seen = std::collections::BTreeMap::new();
        for seed in 0..600 {
            let mut items = [0, 1, 2];
            Stream::new(Purpose::ArmOrder, seed, "", 0).shuffle(&mut items);
            *seen.entry(items).or_insert(0u32) += 1;
        }
        assert_eq!(seen.len(), 6);
        assert!(
            seen.values().all(|count| (60..=140).contains(count)),
            "{seen:?}"
        );
    }

    proptest! {
        #[test]
        fn what_is_below_is_below(seed in any::<u64>(), bound in 1u64..) {
            let mut stream = Stream::new(Purpose::Synthetic, seed.into(), "", 0);
            for _ in 0..8 {
                prop_assert!(stream.below(bound) < bound);
            }
        }
    }
}
