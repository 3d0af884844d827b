//! Randomness seeded by the operating system.

use crate::Random;
use rand::Rng;

/// A cryptographic generator for each thread, seeded and reseeded by the operating system; threads never wait for each
/// other.
pub struct RealRandom;

impl Random for RealRandom {
    fn next_u64(&self) -> u64 {
        rand::rng().next_u64()
    }

    fn fill(&self, buffer: &mut [u8]) {
        rand::rng().fill_bytes(buffer);
    }
}
