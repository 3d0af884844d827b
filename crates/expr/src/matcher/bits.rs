//! `$bitsAllSet`, `$bitsAllClear`, `$bitsAnySet`, `$bitsAnyClear`.
//!
//! Numbers are taken as int64 in two's complement, so that every bit from the 63rd on is the sign. Binaries are taken as they
//! are, least byte first, and zero beyond their end.

use pando_doc::Value;

/// Which bits decide, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum BitTest {
    AllSet,
    AllClear,
    AnySet,
    AnyClear,
}

impl BitTest {
    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            BitTest::AllSet => "$bitsAllSet",
            BitTest::AllClear => "$bitsAllClear",
            BitTest::AnySet => "$bitsAnySet",
            BitTest::AnyClear => "$bitsAnyClear",
        }
    }
}

/// A test of bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bits {
    test: BitTest,
    positions: Vec<u32>,
    /// The positions as bits of an int64.
    mask: u64,
}

impl Bits {
    /// A test of the bits at these positions.
    pub fn new(test: BitTest, mut positions: Vec<u32>) -> Bits {
        positions.sort_unstable();
        positions.dedup();
        let mask = positions.iter().fold(0, |mask, &position| mask | 1_u64 << position.min(63));
        Bits { test, positions, mask }
    }

    /// The kind of test.
    pub fn test(&self) -> BitTest {
        self.test
    }

    /// The positions, ascending.
    pub fn positions(&self) -> &[u32] {
        &self.positions
    }

    /// True if the value passes the test.
    pub fn matches(&self, value: Value<'_>) -> bool {
        match value {
            Value::Binary { bytes, .. } => self.matches_bytes(bytes),
            value => value.to_i64_exact().is_some_and(|number| self.matches_number(number as u64)),
        }
    }

    fn matches_number(&self, number: u64) -> bool {
        match self.test {
            BitTest::AllSet => number & self.mask == self.mask,
            BitTest::AllClear => number & self.mask == 0,
            BitTest::AnySet => number & self.mask != 0,
            BitTest::AnyClear => number & self.mask != self.mask,
        }
    }

    fn matches_bytes(&self, bytes: &[u8]) -> bool {
        let is_set =
            |position: u32| bytes.get(position as usize / 8).is_some_and(|byte| byte & (1 << (position % 8)) != 0);
        let mut positions = self.positions.iter().copied();
        match self.test {
            BitTest::AllSet => positions.all(is_set),
            BitTest::AllClear => !positions.any(is_set),
            BitTest::AnySet => positions.any(is_set),
            BitTest::AnyClear => !positions.all(is_set),
        }
    }
}
