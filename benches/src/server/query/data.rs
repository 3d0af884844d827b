//! What is asked about: sales, and the customers that they went to.
//!
//! A sale has a number that is a permutation of the sales' numbers and is indexed, a category, an amount, a customer, three tags, twelve words
//! with a text index, and a note: about 350 bytes. A customer has a code, which no index knows, and a region; there is one for every hundred sales.

use crate::server::data::FieldSink;
use crate::workload::Random;

/// Sales to a customer.
const SALES_PER_CUSTOMER: u64 = 100;
const CATEGORIES: u64 = 20;
const REGIONS: u64 = 50;
const TAGS: u64 = 500;
const TAGS_PER_SALE: u64 = 3;
const WORDS: u64 = 20_000;
const WORDS_PER_SALE: u64 = 12;
/// Amounts lie below this.
pub const AMOUNT_LIMIT: u64 = 10_000;
/// The golden section: multiples of it lie apart alike, however many there are.
const GOLDEN_SECTION: f64 = 0.618_033_988_749_895;
const SALT: u64 = 0x5a1e_0000;
const NOTE: &str = "left at the door of the neighbours, as the customer wished it to be";

/// Which documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collection {
    /// Many.
    Sales,
    /// A hundredth of that.
    Customers,
}

impl Collection {
    /// As the servers know it.
    pub fn name(self) -> &'static str {
        match self {
            Collection::Sales => "sales",
            Collection::Customers => "customers",
        }
    }

    /// How many documents there are, for so many sales.
    pub fn count(self, sales: u64) -> u64 {
        match self {
            Collection::Sales => sales,
            Collection::Customers => (sales / SALES_PER_CUSTOMER).max(1),
        }
    }

    /// The fields of a document besides its key.
    pub fn write_fields(self, number: u64, sales: u64, sink: &mut impl FieldSink) {
        let mut random = Random::stream(SALT + self as u64, number);
        match self {
            Collection::Customers => {
                sink.whole("code", number as i64);
                sink.text("region", &format!("region{:02}", random.below(REGIONS)));
            }
            Collection::Sales => {
                let permuted = u128::from(number) * u128::from(scattering_factor(sales)) % u128::from(sales.max(1));
                sink.whole("number", permuted as i64);
                sink.text("category", &format!("category{:02}", random.below(CATEGORIES)));
                sink.whole("amount", random.below(AMOUNT_LIMIT) as i64);
                sink.whole("customer", random.below(Collection::Customers.count(sales)) as i64);
                let first_tag = random.below(TAGS);
                let tags = (0..TAGS_PER_SALE).map(|offset| format!("tag{}", (first_tag + offset * 7) % TAGS));
                sink.list("tags", &tags.collect::<Vec<_>>());
                let words: Vec<String> = (0..WORDS_PER_SALE).map(|_| word(random.below(WORDS))).collect();
                sink.text("words", &words.join(" "));
                sink.text("note", NOTE);
            }
        }
    }
}

/// What to multiply by so that each number comes once and neighbours lie far apart: a range of a twentieth has every twentieth record, whatever
/// the number of sales. Anything that only had no divisor in common with it would scatter some sizes and leave others in their order.
fn scattering_factor(sales: u64) -> u64 {
    let from = (sales as f64 * GOLDEN_SECTION) as u64;
    (from.max(1)..).find(|factor| greatest_common_divisor(*factor, sales) == 1).unwrap_or(1)
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// A word of the vocabulary.
pub fn word(number: u64) -> String {
    format!("word{number}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_once_and_scatter_alike_at_every_size() {
        for sales in [1, 2, 20_000, 100_000] {
            let factor = scattering_factor(sales);
            let mut place_of: Vec<u64> = vec![u64::MAX; sales as usize];
            (0..sales).for_each(|number| place_of[(number * factor % sales) as usize] = number);
            assert!(!place_of.contains(&u64::MAX), "{sales}");
            let mut places = place_of[..place_of.len() / 20].to_vec();
            places.sort_unstable();
            assert!(places.windows(2).all(|pair| pair[1] - pair[0] < 40 && pair[1] - pair[0] > 8), "{sales}");
        }
    }
}
