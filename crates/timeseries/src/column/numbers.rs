//! Values as integers, whose differences are small where the values change little.
//!
//! Doubles are multiplied by a power of ten, where that gives an integer exactly; else their bits are the integer. Strings of at most
//! sixteen bytes are read backwards, for the last letters change most. The bytes of an object id are mixed so that the counter and the
//! seconds change low bytes.

/// The powers of ten that doubles are multiplied by.
const SCALES: [f64; 5] = [1.0, 10.0, 100.0, 10_000.0, 100_000_000.0];
/// The "scale" at which the bits of a double are the integer.
pub(super) const BITS_SCALE: u8 = 5;
/// Integers up to here are exact as doubles.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// Doubles from here on have no places behind the point.
const WHOLE_MIN: f64 = 4_503_599_627_370_496.0;

/// Small for small numbers of either sign.
pub(super) const fn zigzag(value: i64) -> u128 {
    ((value << 1) ^ (value >> 63)) as u64 as u128
}

/// The number again. More than 64 bits are cut.
pub(super) const fn unzigzag(value: u128) -> i64 {
    let value = value as u64;
    ((value >> 1) as i64) ^ -((value & 1) as i64)
}

/// The same with 128 bits.
pub(super) const fn zigzag_wide(value: i128) -> u128 {
    ((value << 1) ^ (value >> 127)) as u128
}

/// The number again.
pub(super) const fn unzigzag_wide(value: u128) -> i128 {
    ((value >> 1) as i128) ^ -((value & 1) as i128)
}

/// The double as an integer at a scale, if it comes back exactly.
pub(super) fn double_to_integer(value: f64, scale: u8) -> Option<i64> {
    if scale == BITS_SCALE {
        return Some(value.to_bits() as i64);
    }
    let factor = *SCALES.get(usize::from(scale))?;
    let scaled = value * factor;
    if !(-EXACT_MAX..=EXACT_MAX).contains(&scaled) {
        return None;
    }
    // The nearest integer; what is no integer is found out behind it. Large ones are integers already.
    let integer = if scaled.abs() < WHOLE_MIN { (scaled + 0.5_f64.copysign(scaled)) as i64 } else { scaled as i64 };
    (integer_to_double(integer, scale).to_bits() == value.to_bits()).then_some(integer)
}

/// The double again.
pub(super) fn integer_to_double(integer: i64, scale: u8) -> f64 {
    match SCALES.get(usize::from(scale)) {
        Some(factor) => integer as f64 / factor,
        None => f64::from_bits(integer as u64),
    }
}

/// The least scale from here on at which the double is an integer.
pub(super) fn least_scale(value: f64, from: u8) -> u8 {
    (from..BITS_SCALE).find(|scale| double_to_integer(value, *scale).is_some()).unwrap_or(BITS_SCALE)
}

/// Up to sixteen bytes as an integer, the first byte lowest.
pub(super) fn bytes_to_integer(bytes: &[u8]) -> Option<i128> {
    let mut wide = [0; 16];
    wide.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(i128::from_le_bytes(wide))
}

/// A text of up to sixteen bytes that does not begin with a zero, its last byte lowest.
pub(super) fn text_to_integer(text: &[u8]) -> Option<i128> {
    if text.first() == Some(&0) {
        return None;
    }
    let mut wide = [0; 16];
    let room = wide.get_mut(..text.len())?;
    room.copy_from_slice(text);
    room.reverse();
    Some(i128::from_le_bytes(wide))
}

/// The text again.
pub(super) fn integer_to_text(integer: i128) -> Vec<u8> {
    let mut text = integer.to_le_bytes().to_vec();
    while text.last() == Some(&0) {
        text.pop();
    }
    text.reverse();
    text
}

/// Where each byte of the integer comes from in an object id.
const OBJECT_ID_BYTES: [usize; 7] = [11, 3, 10, 2, 9, 1, 0];

/// Seconds and counter of an object id as an integer; the five bytes of the process are left out.
pub(super) fn object_id_to_integer(id: &[u8]) -> i64 {
    let mut wide = [0; 8];
    for (to, from) in wide.iter_mut().zip(OBJECT_ID_BYTES) {
        *to = id.get(from).copied().unwrap_or_default();
    }
    i64::from_le_bytes(wide)
}

/// The object id again, with the process of another.
pub(super) fn integer_to_object_id(integer: i64, like: &[u8]) -> [u8; 12] {
    let mut id = [0; 12];
    for (to, from) in id.iter_mut().zip(like) {
        *to = *from;
    }
    for (byte, to) in integer.to_le_bytes().into_iter().zip(OBJECT_ID_BYTES) {
        if let Some(to) = id.get_mut(to) {
            *to = byte;
        }
    }
    id
}

/// The process of an object id.
pub(super) fn object_id_process(id: &[u8]) -> &[u8] {
    id.get(4..9).unwrap_or_default()
}

/// Four bytes of a value.
pub(super) fn int32(bytes: &[u8]) -> i64 {
    bytes.first_chunk().map_or(0, |bytes| i64::from(i32::from_le_bytes(*bytes)))
}

/// Eight bytes of a value.
pub(super) fn int64(bytes: &[u8]) -> i64 {
    bytes.first_chunk().map_or(0, |bytes| i64::from_le_bytes(*bytes))
}

/// A double's bytes.
pub(super) fn double(bytes: &[u8]) -> f64 {
    f64::from_bits(int64(bytes) as u64)
}

/// A text without its length and the zero behind it.
pub(super) fn text(bytes: &[u8]) -> &[u8] {
    bytes.get(4..bytes.len().saturating_sub(1)).unwrap_or_default()
}

/// A binary value without its length and subtype.
pub(super) fn binary(bytes: &[u8]) -> &[u8] {
    bytes.get(5..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x29_doubles_are_integers_at_the_least_scale() {
        for (value, scale) in [(3.0, 0), (-2.5, 1), (0.25, 2), (1.0625, 3), (0.1, 1), (std::f64::consts::PI, 5)] {
            assert_eq!(least_scale(value, 0), scale, "{value}");
            let integer = double_to_integer(value, scale).unwrap();
            assert_eq!(integer_to_double(integer, scale).to_bits(), f64::to_bits(value));
        }
        for value in [-0.0, f64::NAN, f64::INFINITY, 1e300] {
            assert_eq!(least_scale(value, 0), BITS_SCALE, "{value}");
        }
    }

    #[test]
    fn x29_texts_and_ids_come_back() {
        for text in ["", "a", "sensor-16-bytes."] {
            assert_eq!(integer_to_text(text_to_integer(text.as_bytes()).unwrap()), text.as_bytes());
        }
        assert_eq!(text_to_integer(b"seventeen bytes.."), None);
        assert_eq!(text_to_integer(b"\0a"), None);
        let id: Vec<u8> = (1..13).collect();
        assert_eq!(integer_to_object_id(object_id_to_integer(&id), &id).as_slice(), id);
        for value in [0, -1, 1, i64::MAX, i64::MIN] {
            assert_eq!(unzigzag(zigzag(value)), value);
            assert_eq!(unzigzag_wide(zigzag_wide(i128::from(value))), i128::from(value));
        }
    }
}
