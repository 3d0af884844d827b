//! A stable sort that ends with its operation.
//!
//! The standard library's sort cannot be left early. So only short runs are sorted by it, and
//! merged here.

use super::tick;
use crate::Result;
use std::cmp::Ordering;

/// As many values are sorted in one go.
const RUN_LENGTH: usize = 64;
/// One comparison is so many steps.
const COMPARISON_STEPS: u64 = 4;

/// Sorts values, and looks at the operation meanwhile; values that are equal keep their order.
pub fn sort_by<T>(values: Vec<T>, mut compare: impl FnMut(&T, &T) -> Ordering) -> Result<Vec<T>> {
    let mut runs: Vec<Vec<T>> = Vec::with_capacity(values.len() / RUN_LENGTH + 1);
    let mut rest = values.into_iter();
    loop {
        let mut run: Vec<T> = rest.by_ref().take(RUN_LENGTH).collect();
        if run.is_empty() {
            break;
        }
        tick(COMPARISON_STEPS * run.len() as u64)?;
        run.sort_by(&mut compare);
        runs.push(run);
    }
    while runs.len() > 1 {
        let mut merged = Vec::with_capacity(runs.len().div_ceil(2));
        let mut pairs = runs.into_iter();
        while let Some(left) = pairs.next() {
            merged.push(match pairs.next() {
                Some(right) => merge(left, right, &mut compare)?,
                None => left,
            });
        }
        runs = merged;
    }
    Ok(runs.pop().unwrap_or_default())
}

fn merge<T>(mut left: Vec<T>, right: Vec<T>, compare: &mut impl FnMut(&T, &T) -> Ordering) -> Result<Vec<T>> {
    if let (Some(last), Some(first)) = (left.last(), right.first())
        && compare(last, first).is_le()
    {
        tick(right.len() as u64)?;
        left.extend(right);
        return Ok(left);
    }
    let mut merged = Vec::with_capacity(left.len() + right.len());
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    while let (Some(one), Some(other)) = (left.peek(), right.peek()) {
        tick(COMPARISON_STEPS)?;
        merged.extend(if compare(one, other).is_le() { left.next() } else { right.next() });
    }
    merged.extend(left);
    merged.extend(right);
    Ok(merged)
}

/// Drops values that are equal to the one before them.
pub fn dedup_by<T>(values: Vec<T>, mut is_equal: impl FnMut(&T, &T) -> bool) -> Result<Vec<T>> {
    let mut kept: Vec<T> = Vec::with_capacity(values.len());
    for value in values {
        tick(1)?;
        if !kept.last().is_some_and(|last| is_equal(last, &value)) {
            kept.push(value);
        }
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::during;
    use crate::{ErrorCode, OperationContext};

    #[test]
    fn it_sorts_as_the_standard_library_does() {
        for length in [0, 1, 63, 64, 65, 1000, 4097] {
            let values: Vec<(u64, usize)> =
                (0..length).map(|place| ((place as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 58, place)).collect();
            let mut expected = values.clone();
            expected.sort_by_key(|(key, _)| *key);
            let sorted = sort_by(values, |left, right| left.0.cmp(&right.0)).unwrap();
            assert_eq!(sorted, expected, "stable, {length} values");
            let distinct = dedup_by(sorted, |left, right| left.0 == right.0).unwrap();
            expected.dedup_by_key(|(key, _)| *key);
            assert_eq!(distinct, expected);
        }
    }

    #[test]
    fn it_ends_with_its_operation() {
        let operation = OperationContext::detached();
        operation.kill(ErrorCode::Interrupted);
        let mut compared = 0;
        let sorted = during(&operation, || {
            sort_by((0..1_000_000).rev().collect(), |left: &i32, right| {
                compared += 1;
                left.cmp(right)
            })
        });
        assert_eq!(sorted.unwrap_err().code(), ErrorCode::Interrupted);
        assert!(compared < 10_000, "{compared}");
    }
}
