//! Huffman codes of bounded length, in canonical order: the lengths say it all.

use super::CODE_BITS_MAX;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What a code of this length takes of the whole space.
fn share(length: u8) -> u32 {
    1 << (CODE_BITS_MAX - u32::from(length))
}

const WHOLE: u32 = 1 << CODE_BITS_MAX;

/// True if these lengths leave every symbol a code of its own.
pub(super) fn is_decodable(lengths: &[u8]) -> bool {
    let in_range = |length: &u8| (1..=CODE_BITS_MAX as u8).contains(length);
    lengths.iter().all(in_range) && lengths.iter().map(|length| share(*length)).sum::<u32>() <= WHOLE
}

/// The lengths of a code for symbols that come this often; none may be longer than the limit.
pub(super) fn lengths(counts: &[u32]) -> Vec<u8> {
    debug_assert!((2..WHOLE as usize).contains(&counts.len()));
    let mut lengths = unbounded(counts);
    let mut rare_first: Vec<usize> = (0..counts.len()).collect();
    rare_first.sort_by_key(|symbol| (counts[*symbol], *symbol));
    let mut taken: u32 = lengths.iter().map(|length| share(*length)).sum();
    while taken > WHOLE {
        for symbol in &rare_first {
            let length = &mut lengths[*symbol];
            if taken > WHOLE && u32::from(*length) < CODE_BITS_MAX {
                taken -= share(*length) / 2;
                *length += 1;
            }
        }
    }
    for symbol in rare_first.iter().rev() {
        let length = &mut lengths[*symbol];
        while *length > 1 && taken + share(*length) <= WHOLE {
            taken += share(*length);
            *length -= 1;
        }
    }
    lengths
}

/// Huffman's lengths, only cut at the limit.
fn unbounded(counts: &[u32]) -> Vec<u8> {
    let symbols = counts.len();
    let leaf = |(symbol, count): (usize, &u32)| Reverse((u64::from((*count).max(1)), symbol));
    let mut heap: BinaryHeap<_> = counts.iter().enumerate().map(leaf).collect();
    let mut parents = vec![0; symbols];
    while let (Some(Reverse((first_count, first))), Some(Reverse((second_count, second)))) = (heap.pop(), heap.pop()) {
        let node = parents.len();
        parents.push(node);
        (parents[first], parents[second]) = (node, node);
        if heap.is_empty() {
            break;
        }
        heap.push(Reverse((first_count + second_count, node)));
    }
    let mut depths = vec![0u32; parents.len()];
    for node in (0..parents.len() - 1).rev() {
        depths[node] = depths[parents[node]] + 1;
    }
    depths[..symbols].iter().map(|depth| (*depth).clamp(1, CODE_BITS_MAX) as u8).collect()
}

/// The codes of these lengths, to be written lowest bit first.
pub(super) fn codes(lengths: &[u8]) -> Vec<u16> {
    debug_assert!(is_decodable(lengths));
    let mut order: Vec<usize> = (0..lengths.len()).collect();
    order.sort_by_key(|symbol| (lengths[*symbol], *symbol));
    let mut codes = vec![0; lengths.len()];
    let (mut next, mut last_length) = (0u32, 0u8);
    for symbol in order {
        let length = lengths[symbol];
        next <<= length - last_length;
        last_length = length;
        codes[symbol] = (next as u16).reverse_bits() >> (16 - u32::from(length));
        next += 1;
    }
    codes
}
