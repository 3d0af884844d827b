//! A point of the logical clock: seconds in the high half, an increment in the low half.

use std::fmt;

/// A BSON timestamp as one ordered number. Zero means "none".
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// No timestamp: older than every real one.
    pub const NONE: Timestamp = Timestamp(0);
    /// The newest timestamp there can be.
    pub const MAX: Timestamp = Timestamp(u64::MAX);

    /// A timestamp from its two halves.
    pub const fn new(seconds: u32, increment: u32) -> Timestamp {
        Timestamp(((seconds as u64) << 32) | increment as u64)
    }

    /// Seconds since 1970.
    pub const fn seconds(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// The ordinal within the second.
    pub const fn increment(self) -> u32 {
        self.0 as u32
    }

    /// True for the absent timestamp.
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// True for a real timestamp.
    pub const fn is_some(self) -> bool {
        self.0 != 0
    }

    /// The next possible timestamp.
    pub const fn next(self) -> Timestamp {
        Timestamp(self.0.saturating_add(1))
    }

    /// The timestamp just before.
    pub const fn previous(self) -> Timestamp {
        Timestamp(self.0.saturating_sub(1))
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Timestamp({}, {})", self.seconds(), self.increment())
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_round_trip_and_order() {
        let early = Timestamp::new(7, u32::MAX);
        assert_eq!((early.seconds(), early.increment()), (7, u32::MAX));
        assert!(early < Timestamp::new(8, 0));
        assert_eq!(early.next(), Timestamp::new(8, 0));
        assert_eq!(early.next().previous(), early);
        assert!(Timestamp::NONE.is_none() && Timestamp::NONE.previous().is_none());
        assert_eq!(Timestamp::MAX.next(), Timestamp::MAX);
    }
}
