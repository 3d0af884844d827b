//! The allocator, under this whole process: what it gives is nobody else's, keeps what is in it, and comes zeroed where that is asked for.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::unwrap_used)]

use pando_env::real::ThreadBlocks;
use std::alloc::{GlobalAlloc, Layout};
use std::sync::mpsc;
use std::thread;

#[global_allocator]
static BLOCKS: ThreadBlocks = ThreadBlocks;

/// A block with bytes that tell it from others.
struct Block {
    address: usize,
    layout: Layout,
    mark: u8,
}

impl Block {
    fn make(size_bytes: usize, alignment: usize, mark: u8, is_zeroed: bool) -> Block {
        let layout = Layout::from_size_align(size_bytes, alignment).unwrap();
        let address = match is_zeroed {
            true => unsafe { BLOCKS.alloc_zeroed(layout) },
            false => unsafe { BLOCKS.alloc(layout) },
        };
        assert!(!address.is_null() && (address as usize).is_multiple_of(alignment));
        let bytes = unsafe { std::slice::from_raw_parts_mut(address, size_bytes) };
        assert!(!is_zeroed || bytes.iter().all(|byte| *byte == 0), "{size_bytes} bytes are not zero");
        bytes.fill(mark);
        Block { address: address as usize, layout, mark }
    }

    fn check(&self) {
        let bytes = unsafe { std::slice::from_raw_parts(self.address as *const u8, self.layout.size()) };
        assert!(bytes.iter().all(|byte| *byte == self.mark), "somebody else has written to it");
    }

    fn resized(self, size_bytes: usize) -> Block {
        self.check();
        let address = unsafe { BLOCKS.realloc(self.address as *mut u8, self.layout, size_bytes) };
        let layout = Layout::from_size_align(size_bytes, self.layout.align()).unwrap();
        let kept = size_bytes.min(self.layout.size());
        let bytes = unsafe { std::slice::from_raw_parts_mut(address, size_bytes) };
        assert!(bytes.iter().take(kept).all(|byte| *byte == self.mark), "what was in it is lost");
        bytes.fill(self.mark);
        Block { address: address as usize, layout, mark: self.mark }
    }

    fn give_back(self) {
        self.check();
        unsafe { BLOCKS.dealloc(self.address as *mut u8, self.layout) };
    }
}

/// A short generator; the tests of this crate have no other.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }
}

const SIZES: [usize; 16] = [1, 8, 23, 24, 25, 40, 41, 100, 1031, 1032, 1033, 1040, 4096, 16384, 16385, 70000];

fn play(seed: u64, give_away: &mpsc::Sender<Block>) {
    let mut numbers = Numbers(seed);
    let mut held: Vec<Block> = Vec::new();
    for round in 0..60_000 {
        match numbers.below(8) {
            0..=3 => {
                let size_bytes = match numbers.below(2) {
                    0 => SIZES[numbers.below(SIZES.len())],
                    _ => 1 + numbers.below(5000),
                };
                let alignment = [1, 8, 16, 64][numbers.below(4)];
                held.push(Block::make(size_bytes, alignment, round as u8, numbers.below(3) == 0));
            }
            4 if !held.is_empty() => {
                let block = held.swap_remove(numbers.below(held.len()));
                held.push(block.resized(1 + numbers.below(3000)));
            }
            5 if !held.is_empty() => give_away.send(held.swap_remove(numbers.below(held.len()))).unwrap(),
            _ if !held.is_empty() => held.swap_remove(numbers.below(held.len())).give_back(),
            _ => {}
        }
        if held.len() > 300 {
            held.drain(..200).for_each(Block::give_back);
        }
    }
    held.into_iter().for_each(Block::give_back);
}

#[test]
fn blocks_are_nobody_elses_on_any_thread() {
    let (give_away, given) = mpsc::channel::<Block>();
    let taker = thread::spawn(move || given.into_iter().for_each(Block::give_back));
    let players: Vec<_> = (1..=4)
        .map(|seed| {
            let give_away = give_away.clone();
            thread::spawn(move || play(seed * 0x9E37_79B9, &give_away))
        })
        .collect();
    drop(give_away);
    players.into_iter().for_each(|player| player.join().unwrap());
    taker.join().unwrap();
}

#[test]
fn a_thread_that_ends_gives_back_what_it_kept() {
    // What its last values give back comes when its lists are gone.
    thread_local! { static LAST: std::cell::RefCell<Vec<Vec<u8>>> = const { std::cell::RefCell::new(Vec::new()) }; }
    for _ in 0..50 {
        let used = || LAST.with_borrow_mut(|last| (1..2000).for_each(|size| last.push(vec![1; size])));
        thread::spawn(used).join().unwrap();
    }
}
