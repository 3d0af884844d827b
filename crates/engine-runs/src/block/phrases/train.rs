//! Learns a table's phrases from a sample of its values.
//!
//! Beginning with single bytes, the pairs of neighbours that would save most as one symbol are joined, many in each pass,
//! until nothing worth its storage is left. What a pair saves is judged by how much more often its halves meet than chance would
//! have it: letters that are merely frequent stay single, which costs nothing under a Huffman code.

use super::code;
use super::{BYTE_SYMBOLS, Encoder, Model, PHRASE_BYTES_MAX, PHRASE_BYTES_MIN, PHRASES_MAX};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

const PASSES_MAX: usize = 64;
const JOINS_IN_A_PASS: usize = 24;
/// A pair that saves less than this share of the best one's savings waits for a later pass.
const SAVING_SHARE: f64 = 0.25;
/// Bits that a phrase must save in the sample beyond what it costs to store.
const SAVING_BITS_MIN: f64 = 64.0;
/// Fewer meetings are chance.
const MEETINGS_MIN: u32 = 12;
/// A phrase that the sample needs less often is left out.
const USES_MIN: u32 = 4;

/// Pairs are hashed by the thousand; the keys come from a sample, not from an attacker who sees our timing.
#[derive(Default)]
struct PairHasher(u64);

impl Hasher for PairHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u32(u32::from(*byte)));
    }

    fn write_u32(&mut self, number: u32) {
        self.0 = (self.0 ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(26);
    }
}

type Pairs<T> = HashMap<u32, T, BuildHasherDefault<PairHasher>>;

fn pair(left: u16, right: u16) -> u32 {
    (u32::from(left) << 16) | u32::from(right)
}

fn halves(pair: u32) -> (usize, usize) {
    ((pair >> 16) as usize, (pair & 0xffff) as usize)
}

/// The model of a sample.
pub(crate) fn train(samples: &[&[u8]]) -> Model {
    let mut phrases = find_phrases(samples);
    let used = count(samples, &flat(phrases.clone()));
    let mut number = BYTE_SYMBOLS;
    phrases.retain(|_| {
        number += 1;
        used[number - 1] >= USES_MIN
    });
    let mut model = flat(phrases);
    let mut counts = count(samples, &model);
    // A value may have bytes that the sample lacks.
    counts.iter_mut().for_each(|count| *count += 1);
    model.lengths = code::lengths(&counts);
    model
}

/// A model before anything was counted.
fn flat(phrases: Vec<Vec<u8>>) -> Model {
    Model { lengths: vec![10; BYTE_SYMBOLS + phrases.len()], phrases }
}

/// How often the sample needs each symbol.
fn count(samples: &[&[u8]], model: &Model) -> Vec<u32> {
    let encoder = Encoder::new(model);
    let mut counts = vec![0; model.lengths.len()];
    samples.iter().for_each(|sample| encoder.parse(sample, |symbol| counts[symbol] += 1));
    counts
}

/// Everything that joining works on.
struct Joining {
    texts: Vec<Vec<u16>>,
    /// What each symbol stands for.
    expansions: Vec<Vec<u8>>,
    /// How often two symbols meet, by [`place`]; all zero between passes.
    meetings: Vec<u32>,
}

const SYMBOLS_MAX: usize = BYTE_SYMBOLS + PHRASES_MAX;

fn place(left: u16, right: u16) -> usize {
    usize::from(left) * SYMBOLS_MAX + usize::from(right)
}

fn find_phrases(samples: &[&[u8]]) -> Vec<Vec<u8>> {
    let symbols = |sample: &&[u8]| sample.iter().map(|byte| u16::from(*byte)).collect();
    let mut joining = Joining {
        texts: samples.iter().map(symbols).collect(),
        expansions: (0..=255u8).map(|byte| vec![byte]).collect(),
        meetings: vec![0; SYMBOLS_MAX * SYMBOLS_MAX],
    };
    for _ in 0..PASSES_MAX {
        let chosen = joining.choose();
        if chosen.is_empty() {
            break;
        }
        joining.texts.iter_mut().for_each(|text| join(text, &chosen));
    }
    let mut uses = vec![0u32; joining.expansions.len()];
    joining.texts.iter().flatten().for_each(|symbol| uses[usize::from(*symbol)] += 1);
    let worth = |(expansion, uses): &(Vec<u8>, u32)| expansion.len() >= PHRASE_BYTES_MIN && *uses >= USES_MIN;
    joining.expansions.into_iter().zip(uses).filter(worth).map(|(expansion, _)| expansion).collect()
}

impl Joining {
    /// The pairs to join in this pass, each with its new symbol. No symbol is in two of them.
    fn choose(&mut self) -> Pairs<u16> {
        let savings = self.savings();
        let best = savings.first().map_or(0.0, |(saving, _)| *saving);
        let mut taken = vec![false; self.expansions.len()];
        let mut chosen = Pairs::default();
        for (saving, pair) in savings {
            let room = self.expansions.len() < SYMBOLS_MAX && chosen.len() < JOINS_IN_A_PASS;
            if saving < best * SAVING_SHARE || !room {
                break;
            }
            let (left, right) = halves(pair);
            if !taken[left] && !taken[right] {
                (taken[left], taken[right]) = (true, true);
                chosen.insert(pair, self.expansions.len() as u16);
                self.expansions.push([self.expansions[left].as_slice(), &self.expansions[right]].concat());
            }
        }
        chosen
    }

    /// What each pair would save, in bits, best first.
    fn savings(&mut self) -> Vec<(f64, u32)> {
        let Joining { texts, expansions, meetings } = self;
        let mut singles = vec![0u32; expansions.len()];
        let pairs = || texts.iter().flat_map(|text| text.windows(2)).map(|window| (window[0], window[1]));
        texts.iter().flatten().for_each(|symbol| singles[usize::from(*symbol)] += 1);
        pairs().for_each(|(left, right)| meetings[place(left, right)] += 1);
        let total: u32 = singles.iter().sum();
        let mut savings = Vec::new();
        for (left, right) in pairs() {
            // Taken at the first visit, so that the table is clear for the next pass.
            let count = std::mem::take(&mut meetings[place(left, right)]);
            if count < MEETINGS_MIN {
                continue;
            }
            let length = expansions[usize::from(left)].len() + expansions[usize::from(right)].len();
            let by_chance = f64::from(singles[usize::from(left)]) * f64::from(singles[usize::from(right)])
                / f64::from(total.max(1));
            let saving = f64::from(count) * (f64::from(count) / by_chance).log2() - (length * 8) as f64;
            if length <= PHRASE_BYTES_MAX && saving >= SAVING_BITS_MIN {
                savings.push((saving, pair(left, right)));
            }
        }
        savings.sort_by(|left, right| right.0.total_cmp(&left.0).then(left.1.cmp(&right.1)));
        savings
    }
}

/// Puts the new symbols in place of the chosen pairs, from the left.
fn join(text: &mut Vec<u16>, chosen: &Pairs<u16>) {
    let (mut read, mut write) = (0, 0);
    while read < text.len() {
        let joined = text.get(read + 1).and_then(|right| chosen.get(&pair(text[read], *right)));
        (text[write], read) = match joined {
            Some(symbol) => (*symbol, read + 2),
            None => (text[read], read + 1),
        };
        write += 1;
    }
    text.truncate(write);
}
