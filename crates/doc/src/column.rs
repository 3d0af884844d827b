//! Whether binary data of subtype 7 has the form of a compressed column: who reads one later trusts that it ends where it says.
//!
//! A column is a row of blocks and a zero at its end. A block is an element with an empty name, or words of eight bytes, or a reference
//! document with words behind it, up to a zero. What the words say is not looked at.

use crate::view::value_size_bytes;
use crate::{DocRef, Limits, ValueType};

/// True if the bytes are a column.
pub fn is_column(bytes: &[u8]) -> bool {
    blocks_end(bytes, false).is_some_and(|end| end == bytes.len())
}

/// Where the blocks that begin here end, their zero included.
fn blocks_end(bytes: &[u8], is_below_reference: bool) -> Option<usize> {
    let mut at = 0;
    loop {
        let (control, after) = bytes.get(at..)?.split_first()?;
        at += 1;
        at += match *control {
            0 => return Some(at),
            0x80..=0xDF => after.get(..(usize::from(control & 0x0F) + 1) * 8)?.len(),
            _ if is_below_reference => return None,
            0xF0..=0xF2 => {
                let (reference, rest) = DocRef::parse_prefix(after, &Limits::default()).ok()?;
                reference.size_bytes() + blocks_end(rest, true)?
            }
            type_byte => 1 + literal_bytes(type_byte, after)?,
        };
    }
}

/// The size of the value of an element whose type is known and whose name has to be empty.
fn literal_bytes(type_byte: u8, after: &[u8]) -> Option<usize> {
    let value_type = ValueType::from_code(type_byte)?;
    let value = after.strip_prefix(&[0])?;
    let size_bytes = value_size_bytes(value_type, value)?;
    let value = value.get(..size_bytes)?;
    let total = i32::try_from(size_bytes.checked_add(7)?).ok()?;
    let mut alone = Vec::with_capacity(size_bytes + 7);
    alone.extend_from_slice(&total.to_le_bytes());
    alone.extend_from_slice(&[type_byte, 0]);
    alone.extend_from_slice(value);
    alone.push(0);
    DocRef::parse(&alone).ok().map(|_| size_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u2_columns_end_where_they_say() {
        let word = [0x80, 1, 2, 3, 4, 5, 6, 7, 8];
        let literal = [0x10, 0, 42, 0, 0, 0];
        let reference = [0xF1, 12, 0, 0, 0, 0x10, b'a', 0, 1, 0, 0, 0, 0];
        assert!(is_column(&[0]));
        assert!(is_column(&[&literal[..], &word, &[0]].concat()));
        assert!(is_column(&[&reference[..], &word, &[0, 0]].concat()));
        for wrong in [
            vec![],
            vec![2],
            vec![0, 0],
            literal.to_vec(),
            [&word[..8], &[0]].concat(),
            [&[0x10, b'a', 0, 42, 0, 0, 0][..], &[0]].concat(),
            [&reference[..], &word, &[0]].concat(),
            [&reference[..], &literal, &[0, 0]].concat(),
            vec![0x02, 0, 5, 0, 0, 0, b'a', 0],
            vec![0x20, 0, 0],
        ] {
            assert!(!is_column(&wrong), "{wrong:?}");
        }
    }
}
