//! A generator whose every number follows from its seed.
//!
//! SplitMix64, written out here rather than taken from a library, so that a seed noted today still replays the same run
//! after any upgrade.

use crate::Random;
use parking_lot::Mutex;

/// A plain sequence of numbers, for whoever owns it alone.
#[derive(Clone, Debug)]
pub(crate) struct Sequence {
    state: u64,
}

impl Sequence {
    pub(crate) fn new(seed: u64) -> Sequence {
        Sequence { state: seed }
    }

    pub(crate) fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A uniform number below the bound, or zero when the bound is zero.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// True with the given probability; never for 0, always for 1.
    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        const STEPS: f64 = (1_u64 << 53) as f64;
        ((self.next_u64() >> 11) as f64) < probability * STEPS
    }
}

/// The seeded generator of a simulated environment.
pub struct SimulatedRandom {
    sequence: Mutex<Sequence>,
}

impl SimulatedRandom {
    /// A generator at the start of its seed's sequence.
    pub fn new(seed: u64) -> SimulatedRandom {
        SimulatedRandom { sequence: Mutex::new(Sequence::new(seed)) }
    }
}

impl Random for SimulatedRandom {
    fn next_u64(&self) -> u64 {
        self.sequence.lock().next_u64()
    }

    fn fill(&self, buffer: &mut [u8]) {
        let mut sequence = self.sequence.lock();
        for piece in buffer.chunks_mut(8) {
            piece.copy_from_slice(&sequence.next_u64().to_le_bytes()[..piece.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_always_gives_the_same_numbers() {
        // Written down: these must never change, or noted seeds lose their meaning.
        let random = SimulatedRandom::new(1);
        assert_eq!(random.next_u64(), 0x910A_2DEC_8902_5CC1);
        let mut bytes = [0; 11];
        random.fill(&mut bytes);
        let mut again = [0; 11];
        let other = SimulatedRandom::new(1);
        other.next_u64();
        other.fill(&mut again);
        assert_eq!(bytes, again);
        assert_ne!(SimulatedRandom::new(2).next_u64(), SimulatedRandom::new(1).next_u64());
    }

    #[test]
    fn chance_is_exact_at_its_ends() {
        let mut sequence = Sequence::new(7);
        assert!((0..1000).all(|_| !sequence.chance(0.0) && sequence.chance(1.0)));
        let hits = (0..10_000).filter(|_| sequence.chance(0.25)).count();
        assert!((2_300..2_700).contains(&hits), "{hits}");
        assert!((0..1000).all(|_| sequence.below(3) < 3 && sequence.below(0) == 0));
    }
}
