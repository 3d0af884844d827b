//! The first byte of a component: which canonical type the value is of.
//!
//! Values of different canonical types sort by this byte alone. Bytes 0 to 9 and their inverses are free for terminators
//! and discriminators: they stand below, or above, every type byte of either direction, and 0 and 255 never start a
//! component because strings write a zero as `00 FF`.
//!
//! Numbers spread over 22 bytes around [`NUMBER_ZERO`], ordered by value, so that most integers take few bytes. The byte of
//! a negative number is the mirror image of the positive one's.

pub(crate) const MIN_KEY: u8 = 10;
pub(crate) const UNDEFINED: u8 = 15;
pub(crate) const NULL: u8 = 20;
pub(crate) const NUMBER: u8 = 30;
pub(crate) const STRING: u8 = 60;
pub(crate) const OBJECT: u8 = 70;
pub(crate) const ARRAY: u8 = 80;
pub(crate) const BINARY: u8 = 90;
pub(crate) const OBJECT_ID: u8 = 100;
pub(crate) const BOOL: u8 = 110;
pub(crate) const BOOL_FALSE: u8 = BOOL;
pub(crate) const BOOL_TRUE: u8 = BOOL + 1;
pub(crate) const DATE: u8 = 120;
pub(crate) const TIMESTAMP: u8 = 130;
pub(crate) const REGEX: u8 = 140;
pub(crate) const DB_POINTER: u8 = 150;
pub(crate) const CODE: u8 = 160;
pub(crate) const CODE_WITH_SCOPE: u8 = 170;
pub(crate) const MAX_KEY: u8 = 240;

pub(crate) const NUMBER_NAN: u8 = NUMBER;
pub(crate) const NUMBER_ZERO: u8 = NUMBER + 11;
/// Between zero and one.
pub(crate) const NUMBER_SMALL: u8 = NUMBER + 12;
/// One more than this for each byte of the integer part.
pub(crate) const NUMBER_INTEGER: u8 = NUMBER_SMALL;
/// At least 2^63, infinity included.
pub(crate) const NUMBER_LARGE: u8 = NUMBER + 21;

/// Ends a key.
pub(crate) const END: u8 = 4;
/// Stands for [`END`] where the key shall sort before all that continue it.
pub(crate) const BEFORE: u8 = 1;
/// Stands for [`END`] where the key shall sort after all that continue it.
pub(crate) const AFTER: u8 = 254;
/// Ends strings, names, documents and arrays.
pub(crate) const TERMINATOR: u8 = 0;
/// Follows a zero that is part of a string.
pub(crate) const ESCAPE: u8 = 255;

/// The type byte of the negated number.
pub(crate) const fn mirrored(number_type: u8) -> u8 {
    2 * NUMBER_ZERO - number_type
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_mirror_around_zero() {
        assert_eq!(mirrored(NUMBER_ZERO), NUMBER_ZERO);
        assert_eq!(mirrored(NUMBER_LARGE), NUMBER + 1);
        assert_eq!(mirrored(NUMBER_INTEGER + 1), NUMBER + 9);
        const { assert!(NUMBER_LARGE < STRING && BOOL_TRUE < DATE) };
    }

    #[test]
    fn discriminators_stand_outside_both_directions() {
        for inverted in [false, true] {
            for kind in [MIN_KEY, MAX_KEY] {
                let byte = if inverted { !kind } else { kind };
                assert!(BEFORE < byte && byte < AFTER && END < byte);
            }
        }
    }
}
