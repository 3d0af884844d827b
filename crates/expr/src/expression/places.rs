//! Where the values of an array lie, kept from one look into it to the next: an array has no index,
//! and one that is looked into again and again, as in `$map` over its places, would be gone through
//! each time.

use super::Operand;
use pando_base::{Result, operation};
use pando_doc::{ArrayRef, Value};

/// The place of every so manyth value is kept.
const STRIDE: usize = 32;
/// Values behind so few others are found by going there.
const NEAR: usize = 64;
/// Arrays of fewer bytes are counted each time.
const SMALL_BYTES: usize = 512;
/// The first value of an array lies behind its length.
const FIRST_OFFSET: usize = 4;

/// The array that was looked into last, and what is known of it.
#[derive(Default)]
pub(super) struct Places<'a> {
    /// It is held, so that its bytes tell it from every other.
    array: Option<Operand<'a>>,
    /// Where values begin: the first, and every so manyth after it.
    offsets: Vec<usize>,
    /// How many values there are, once the end was seen.
    length: Option<usize>,
}

fn as_array<'o>(operand: &'o Operand<'_>) -> Option<ArrayRef<'o>> {
    match operand.view() {
        Some(Value::Array(array)) => Some(array),
        _ => None,
    }
}

fn is_same(left: ArrayRef<'_>, right: ArrayRef<'_>) -> bool {
    std::ptr::eq(left.as_doc().bytes(), right.as_doc().bytes())
}

impl<'a> Places<'a> {
    /// The value at this place; counted from the end if it is negative. Missing beyond the ends.
    pub(super) fn value_at(&mut self, operand: &Operand<'a>, index: i64) -> Result<Operand<'a>> {
        let Some(array) = as_array(operand) else { return Ok(Operand::Missing) };
        let index = match usize::try_from(index) {
            Ok(index) => Some(index),
            Err(_) => self.length(operand)?.checked_sub(usize::try_from(index.unsigned_abs()).unwrap_or(usize::MAX)),
        };
        let Some(index) = index else { return Ok(Operand::Missing) };
        let offset = if index < NEAR { FIRST_OFFSET } else { self.offset_before(operand, index)? };
        let steps = if index < NEAR { index } else { index % STRIDE };
        operation::tick(1 + steps as u64)?;
        Ok(match operand {
            Operand::Borrowed(Value::Array(array)) => Operand::from(value_after(*array, offset, steps)),
            operand => operand.child(value_after(array, offset, steps)),
        })
    }

    /// How many values an array has.
    pub(super) fn length(&mut self, operand: &Operand<'a>) -> Result<usize> {
        if let Some(array) = as_array(operand).filter(|array| array.as_doc().size_bytes() < SMALL_BYTES) {
            operation::tick_bytes(array.as_doc().size_bytes())?;
            return Ok(array.len());
        }
        self.look_into(operand);
        loop {
            if let Some(length) = self.length {
                return Ok(length);
            }
            self.go_on(operand)?;
        }
    }

    /// The place of the last value with a kept place that is not behind this one.
    fn offset_before(&mut self, operand: &Operand<'a>, index: usize) -> Result<usize> {
        self.look_into(operand);
        loop {
            match self.offsets.get(index / STRIDE) {
                Some(offset) => return Ok(*offset),
                // Nothing lies beyond the end.
                None if self.length.is_some() => return Ok(usize::MAX),
                None => self.go_on(operand)?,
            }
        }
    }

    fn look_into(&mut self, operand: &Operand<'a>) {
        let known = self.array.as_ref().and_then(as_array).zip(as_array(operand));
        if !known.is_some_and(|(known, array)| is_same(known, array)) {
            *self = Places { array: Some(operand.clone()), offsets: vec![FIRST_OFFSET], length: None };
        }
    }

    /// Goes on by a stride from the last place that is kept.
    fn go_on(&mut self, operand: &Operand<'a>) -> Result<()> {
        operation::tick(STRIDE as u64)?;
        let (Some(array), Some(last)) = (as_array(operand), self.offsets.last().copied()) else {
            self.length = Some(0);
            return Ok(());
        };
        let mut offset = last;
        for step in 0..STRIDE {
            match array.as_doc().element_at(offset) {
                Some(element) => offset += element.bytes.len(),
                None => {
                    self.length = Some((self.offsets.len() - 1) * STRIDE + step);
                    return Ok(());
                }
            }
        }
        self.offsets.push(offset);
        Ok(())
    }
}

/// The value that comes so many after the one that begins here.
fn value_after(array: ArrayRef<'_>, offset: usize, count: usize) -> Option<Value<'_>> {
    let mut offset = offset;
    for _ in 0..count {
        offset += array.as_doc().element_at(offset)?.bytes.len();
    }
    array.as_doc().element_at(offset)?.value()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::{Array, OwnedValue, doc};

    #[test]
    fn u6_places_of_an_array_are_kept() {
        let array: Array = (0..1000_i32).map(OwnedValue::from).collect();
        let document = doc! { "a": array.view() };
        let borrowed = Operand::from(document.view().get("a"));
        let owned = Operand::from(array.clone());
        for operand in [&borrowed, &owned] {
            let mut places = Places::default();
            let mut at = |index: i64| places.value_at(operand, index).unwrap().into_value();
            for index in [0, 63, 64, 65, 999, 500, 96, 95] {
                assert_eq!(at(index), Some(OwnedValue::Int32(index as i32)), "{index}");
                assert_eq!(at(index - 1000), Some(OwnedValue::Int32(index as i32)), "{index} from the end");
            }
            assert_eq!([at(1000), at(-1001), at(1 << 40), at(i64::MIN)], [None, None, None, None]);
            assert_eq!(places.length(operand).unwrap(), 1000);
        }
        let mut places = Places::default();
        assert_eq!(places.length(&Operand::from(Array::default())).unwrap(), 0);
        let other: Array = (0..70_i32).map(OwnedValue::from).collect();
        assert!(places.value_at(&owned, 900).unwrap().view().is_some());
        assert!(places.value_at(&Operand::from(other), 900).unwrap().is_missing());
    }
}
