//! Which document is asked for: a few very often, most hardly ever.
//!
//! The distribution is YCSB's: zipfian with constant 0.99, drawn by the method of Gray and others ("Quickly generating
//! billion-record synthetic databases"). *Scrambled* draws from ten billion ranks and hashes the rank, so that the favourites
//! lie anywhere among the documents; *latest* counts back from the newest document.

use super::data::fnv_hash;
use crate::workload::Random;

const CONSTANT: f64 = 0.99;
/// YCSB draws scrambled ranks from so many, whatever the number of documents ...
const SCRAMBLED_RANKS: u64 = 10_000_000_000;
/// ... and this is their zeta, which would take minutes to add up.
const SCRAMBLED_ZETA: f64 = 26.469_028_201_783_02;

/// Draws ranks; rank 0 is the favourite.
#[derive(Clone, Debug)]
pub struct Zipfian {
    ranks: u64,
    zeta: f64,
    alpha: f64,
    eta: f64,
}

impl Zipfian {
    /// Over so many ranks.
    pub fn new(ranks: u64) -> Zipfian {
        Zipfian::with_zeta(ranks.max(2), zeta(ranks.max(2)))
    }

    /// Over YCSB's ten billion.
    pub fn scrambled() -> Zipfian {
        Zipfian::with_zeta(SCRAMBLED_RANKS, SCRAMBLED_ZETA)
    }

    fn with_zeta(ranks: u64, total: f64) -> Zipfian {
        let eta = (1.0 - (2.0 / ranks as f64).powf(1.0 - CONSTANT)) / (1.0 - zeta(2) / total);
        Zipfian { ranks, zeta: total, alpha: 1.0 / (1.0 - CONSTANT), eta }
    }

    /// The next rank.
    pub fn rank(&self, random: &mut Random) -> u64 {
        let share = (random.bits() >> 11) as f64 / (1_u64 << 53) as f64;
        let position = share * self.zeta;
        if position < 1.0 {
            return 0;
        }
        if position < 1.0 + 0.5_f64.powf(CONSTANT) {
            return 1;
        }
        let rank = self.ranks as f64 * (self.eta * share - self.eta + 1.0).powf(self.alpha);
        (rank as u64).min(self.ranks - 1)
    }

    /// A rank spread over so many documents.
    pub fn spread(&self, random: &mut Random, documents: u64) -> u64 {
        fnv_hash(self.rank(random)) % documents.max(1)
    }
}

fn zeta(ranks: u64) -> f64 {
    (1..=ranks).map(|rank| (rank as f64).powf(-CONSTANT)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_come_with_their_shares() {
        let zipfian = Zipfian::new(1000);
        let mut random = Random::stream(1, 1);
        let mut counts = vec![0_u64; 1000];
        (0..200_000).for_each(|_| counts[zipfian.rank(&mut random) as usize] += 1);
        let expected = |rank: usize| 200_000.0 * ((rank + 1) as f64).powf(-CONSTANT) / zeta(1000);
        for rank in [0, 1] {
            assert!((counts[rank] as f64 / expected(rank) - 1.0).abs() < 0.05, "{rank}: {}", counts[rank]);
        }
        let tail: u64 = counts[500..].iter().sum();
        assert!((tail as f64) > 0.04 * 200_000.0 && (tail as f64) < 0.16 * 200_000.0, "{tail}");
    }

    #[test]
    fn scrambled_favourites_lie_anywhere() {
        let zipfian = Zipfian::scrambled();
        let mut random = Random::stream(1, 2);
        let mut counts = vec![0_u64; 10_000];
        (0..100_000).for_each(|_| counts[zipfian.spread(&mut random, 10_000) as usize] += 1);
        let favourite = counts.iter().enumerate().max_by_key(|(_, count)| **count).map(|(place, _)| place as u64);
        assert_eq!(favourite, Some(fnv_hash(0) % 10_000));
        assert!(counts.iter().filter(|count| **count > 0).count() > 5000);
    }
}
