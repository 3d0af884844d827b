//! The generator of every random choice in a benchmark.
//!
//! A counter through a mixing function (SplitMix64): good enough for benchmarks, fast, and each document and index key can
//! have a stream of its own, found by its number. Nothing here depends on time or on a library's version, so that two runs,
//! and two systems in one run, meet the same bytes in the same order.

/// A stream of random numbers.
#[derive(Clone)]
pub struct Random {
    state: u64,
}

/// Spreads the bits of a number over the whole word.
fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

impl Random {
    /// The stream of a purpose (`salt`) and a number within it.
    pub fn stream(salt: u64, number: u64) -> Random {
        Random { state: mix(mix(salt) ^ number) }
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// A number below `limit`, which is not zero.
    pub fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(limit)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_repeat_and_differ() {
        let mut first = Random::stream(1, 7);
        assert_eq!(first.bits(), Random::stream(1, 7).bits());
        assert_ne!(Random::stream(1, 7).bits(), Random::stream(1, 8).bits());
        assert_ne!(Random::stream(1, 7).bits(), Random::stream(2, 7).bits());
        assert!((0..1000).all(|_| first.below(10) < 10));
    }
}
