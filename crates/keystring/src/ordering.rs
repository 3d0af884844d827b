//! Which components of a key descend, and how a key ends.

use crate::{Error, Result};
use pando_doc::{DocRef, Value};

/// Which of the two number formats a key has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Version {
    /// For indexes of version 1: no decimals.
    V0,
    /// For everything else.
    #[default]
    V1,
}

/// The direction of each component of a compound key: one bit for each of up to 32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct KeyOrdering {
    descending: u32,
}

impl KeyOrdering {
    /// As many components have a direction of their own; those behind ascend.
    pub const COMPONENT_COUNT_MAX: usize = 32;

    /// All components ascend.
    pub const ASCENDING: KeyOrdering = KeyOrdering { descending: 0 };

    /// The directions of a key pattern: fields with a negative number descend.
    pub fn from_pattern(pattern: DocRef<'_>) -> Result<KeyOrdering> {
        let mut ordering = KeyOrdering::ASCENDING;
        for (index, element) in pattern.elements().enumerate() {
            if index >= KeyOrdering::COMPONENT_COUNT_MAX {
                return Err(Error::TooManyFields);
            }
            if is_negative(element.value) {
                ordering = ordering.with_descending(index);
            }
        }
        Ok(ordering)
    }

    /// The directions from their bits: bit `n` is set if component `n` descends.
    pub const fn from_bits(descending: u32) -> KeyOrdering {
        KeyOrdering { descending }
    }

    /// Bit `n` is set if component `n` descends.
    pub const fn bits(self) -> u32 {
        self.descending
    }

    /// The same, but this component descends.
    #[must_use]
    pub const fn with_descending(self, component: usize) -> KeyOrdering {
        debug_assert!(component < KeyOrdering::COMPONENT_COUNT_MAX);
        KeyOrdering { descending: self.descending | 1 << component }
    }

    /// True if this component descends.
    #[inline]
    pub const fn is_descending(self, component: usize) -> bool {
        component < KeyOrdering::COMPONENT_COUNT_MAX && self.descending >> component & 1 == 1
    }
}

/// The sign bit is not enough: -0 and NaN ascend.
fn is_negative(direction: Value<'_>) -> bool {
    match direction {
        Value::Int32(number) => number < 0,
        Value::Int64(number) => number < 0,
        Value::Double(number) => number < 0.0,
        Value::Decimal(number) => number.is_sign_negative() && !number.is_zero() && !number.is_nan(),
        _ => false,
    }
}

/// How a key ends: where it sorts among the keys that continue it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Discriminator {
    /// It is a key like those in the index.
    #[default]
    Inclusive,
    /// Before all keys that start with the same components.
    ExclusiveBefore,
    /// After all keys that start with the same components.
    ExclusiveAfter,
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::doc;

    #[test]
    fn x12_directions_come_from_the_pattern() {
        let pattern = doc! { "a": 1_i32, "b": -1.5, "c": "2dsphere", "d": -1_i64, "e": -0.0 };
        let ordering = KeyOrdering::from_pattern(pattern.view()).unwrap();
        assert_eq!(ordering.bits(), 0b1010);
        assert!(!ordering.is_descending(0) && ordering.is_descending(1) && !ordering.is_descending(40));
    }
}
