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
/// No divisor of any number of sales that is asked for.
const PERMUTING_PRIME: u64 = 1_000_003;
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
                let permuted = u128::from(number) * u128::from(PERMUTING_PRIME) % u128::from(sales.max(1));
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

/// A word of the vocabulary.
pub fn word(number: u64) -> String {
    format!("word{number}")
}
