//! Randomness, as a trait.

/// Where random numbers come from.
pub trait Random: Send + Sync {
    /// A uniform 64-bit number.
    fn next_u64(&self) -> u64;
    /// Fills the buffer with random bytes.
    fn fill(&self, buffer: &mut [u8]);
    /// Random bytes for an id that nobody else has.
    fn id_bytes(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        self.fill(&mut bytes);
        bytes
    }
    /// A uniform number below `bound`, or zero when the bound is zero.
    fn below(&self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }
}
