//! One request to a server, in words that belong to no system.

use super::data::{Collection, orders_per_tag};

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Operation {
    /// A user by its key.
    Find {
        /// Which.
        number: u64,
    },
    /// Users in the order of their keys, from one on.
    Scan {
        /// The first.
        number: u64,
        /// At most so many.
        length: u64,
    },
    /// One field of a user, durably.
    Update {
        /// Which.
        number: u64,
        /// Its field.
        field: usize,
        /// What the new value is made from.
        version: u64,
    },
    /// One document, durably.
    Insert {
        /// Where.
        collection: Collection,
        /// Which.
        number: u64,
    },
    /// Many documents at once, durably.
    InsertMany {
        /// Where.
        collection: Collection,
        /// The first.
        from: u64,
        /// How many.
        count: u64,
    },
    /// The same in whatever way is fastest.
    Load {
        /// Where.
        collection: Collection,
        /// The first.
        from: u64,
        /// How many.
        count: u64,
    },
    /// Orders by their indexed number.
    Range {
        /// The least number.
        from: u64,
        /// How many.
        length: u64,
    },
    /// Orders by an indexed element of their list.
    Tag {
        /// Which tag.
        tag: u64,
    },
    /// Count and sum by category of orders found by their indexed number.
    Aggregate {
        /// The least number.
        from: u64,
        /// How many.
        length: u64,
    },
    /// Count and sum by category of orders that no index finds.
    AggregateScan {
        /// The least amount.
        amount: u64,
    },
}

impl Operation {
    /// Whether this many documents, found or changed, can be right.
    pub fn check(&self, documents: u64) -> Result<(), String> {
        let (low, high) = match *self {
            Operation::Find { .. } | Operation::Update { .. } | Operation::Insert { .. } => (1, 1),
            Operation::Scan { length, .. } => (1, length),
            Operation::InsertMany { count, .. } | Operation::Load { count, .. } => (count, count),
            Operation::Range { length, .. } => (length, length),
            Operation::Tag { .. } => (orders_per_tag(), orders_per_tag()),
            Operation::Aggregate { .. } | Operation::AggregateScan { .. } => (1, u64::MAX),
        };
        if (low..=high).contains(&documents) {
            return Ok(());
        }
        let wanted = if low == high { low.to_string() } else { format!("at least {low}") };
        Err(format!("{documents} documents where {wanted} were expected, in answer to {self:?}"))
    }
}
