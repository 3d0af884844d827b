//! The workloads: which operations, in which mix, on which documents.
//!
//! Every connection has a [`Chooser`] with a random stream of its own, so both systems meet the same questions in the same
//! order on each connection. What they share is in [`Shared`]: how far the inserts have come. A reader of the newest documents
//! takes those that were acknowledged, as YCSB does: all below the least that is still under way.

use super::data::{Collection, amounts, orders_of, tag_count, user_field_count};
use super::operation::Operation;
use super::skew::Zipfian;
use crate::workload::Random;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Documents of one bulk insert.
pub const BATCH_DOCUMENTS: u64 = 1000;
/// Documents of an indexed range.
const RANGE_DOCUMENTS: u64 = 100;
/// Documents that an aggregation with an index gathers.
const AGGREGATE_DOCUMENTS: u64 = 1000;
/// YCSB E scans up to so many.
const SCAN_DOCUMENTS: u64 = 100;
const SALT: u64 = 0x10ad_0000;

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Workload {
    /// Find by `_id`, every document as likely.
    Find,
    /// A hundred documents by a secondary index.
    Range,
    /// Nine documents by an element of an indexed list.
    Tag,
    /// `$match` of a thousand by an index, and `$group`.
    Aggregate,
    /// `$match` without an index, and `$group`.
    AggregateScan,
    /// One field by `_id`.
    Update,
    /// Half reads, half updates.
    YcsbA,
    /// 95 % reads, 5 % updates.
    YcsbB,
    /// Reads only.
    YcsbC,
    /// Half reads, half read-modify-writes.
    YcsbF,
    /// 95 % reads of the newest, 5 % inserts.
    YcsbD,
    /// 95 % scans in key order, 5 % inserts.
    YcsbE,
    /// One document at a time.
    Insert,
    /// A thousand at a time.
    InsertMany,
    /// The same beside the peer's fastest way to load.
    InsertManyCopy,
}

impl Workload {
    /// In the order in which they run: what only reads comes first, what makes data grow comes last.
    pub const ALL: [Workload; 15] = [
        Workload::Find,
        Workload::Range,
        Workload::Tag,
        Workload::Aggregate,
        Workload::AggregateScan,
        Workload::Update,
        Workload::YcsbA,
        Workload::YcsbB,
        Workload::YcsbC,
        Workload::YcsbF,
        Workload::YcsbD,
        Workload::YcsbE,
        Workload::Insert,
        Workload::InsertMany,
        Workload::InsertManyCopy,
    ];

    /// As in the JSON.
    pub fn name(self) -> &'static str {
        match self {
            Workload::Find => "find",
            Workload::Range => "range",
            Workload::Tag => "tag",
            Workload::Aggregate => "aggregate",
            Workload::AggregateScan => "aggregate_scan",
            Workload::Update => "update",
            Workload::YcsbA => "ycsb_a",
            Workload::YcsbB => "ycsb_b",
            Workload::YcsbC => "ycsb_c",
            Workload::YcsbD => "ycsb_d",
            Workload::YcsbE => "ycsb_e",
            Workload::YcsbF => "ycsb_f",
            Workload::Insert => "insert",
            Workload::InsertMany => "insert_many",
            Workload::InsertManyCopy => "insert_many_copy",
        }
    }

    /// As in the table.
    pub fn label(self) -> &'static str {
        match self {
            Workload::Find => "find by _id",
            Workload::Range => "indexed range, 100",
            Workload::Tag => "indexed list, 9",
            Workload::Aggregate => "match+group, 1,000",
            Workload::AggregateScan => "match+group, scan",
            Workload::Update => "update by _id",
            Workload::YcsbA => "YCSB A 50/50 update",
            Workload::YcsbB => "YCSB B 95/5 update",
            Workload::YcsbC => "YCSB C read",
            Workload::YcsbD => "YCSB D read latest",
            Workload::YcsbE => "YCSB E scan",
            Workload::YcsbF => "YCSB F read-modify",
            Workload::Insert => "insert",
            Workload::InsertMany => "insertMany, 1,000",
            Workload::InsertManyCopy => "insertMany and COPY",
        }
    }

    /// What throughput and costs are counted in: a bulk insert counts its documents.
    pub fn units_per_operation(self) -> u64 {
        if self.is_bulk() { BATCH_DOCUMENTS } else { 1 }
    }

    /// Whether `inserts` has to be empty at first.
    pub fn fills_inserts(self) -> bool {
        self == Workload::Insert || self.is_bulk()
    }

    /// Whether something is asked of it.
    pub fn is_judged(self) -> bool {
        use Workload::{Find, Insert, InsertMany, Update, YcsbA, YcsbB, YcsbC};
        matches!(self, Find | Update | YcsbA | YcsbB | YcsbC | Insert | InsertMany)
    }

    fn is_bulk(self) -> bool {
        matches!(self, Workload::InsertMany | Workload::InsertManyCopy)
    }
}

/// What all connections of a system's run share.
pub struct Shared {
    /// Loaded before the first workload.
    users: u64,
    /// So many orders.
    pub orders: u64,
    next_user: AtomicU64,
    next_insert: AtomicU64,
    /// For each connection the user that it is inserting, or the greatest number.
    under_way: Vec<AtomicU64>,
}

impl Shared {
    /// Before the first workload.
    pub fn new(users: u64, connections_max: usize) -> Shared {
        Shared {
            users,
            orders: orders_of(users),
            next_user: AtomicU64::new(users),
            next_insert: AtomicU64::new(0),
            under_way: (0..connections_max).map(|_| AtomicU64::new(u64::MAX)).collect(),
        }
    }

    /// Below this number every user is there.
    fn acknowledged(&self) -> u64 {
        // The counter first: an insert that starts after this look is not below it.
        let next = self.next_user.load(Ordering::SeqCst);
        self.under_way.iter().map(|number| number.load(Ordering::SeqCst)).fold(next, u64::min)
    }

    fn begin_insert(&self, connection: usize) -> u64 {
        let place = self.under_way.get(connection);
        // A number that cannot be too high yet, so that no reader overtakes between the two steps.
        if let Some(place) = place {
            place.store(self.next_user.load(Ordering::SeqCst), Ordering::SeqCst);
        }
        let number = self.next_user.fetch_add(1, Ordering::SeqCst);
        if let Some(place) = place {
            place.store(number, Ordering::SeqCst);
        }
        number
    }

    fn end_insert(&self, connection: usize) {
        if let Some(place) = self.under_way.get(connection) {
            place.store(u64::MAX, Ordering::SeqCst);
        }
    }
}

/// What a connection does next: one operation, or two that count as one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Turn {
    /// First this.
    pub first: Operation,
    /// And then this.
    pub second: Option<Operation>,
}

/// Chooses for one connection.
pub struct Chooser {
    workload: Workload,
    connection: usize,
    random: Random,
    scrambled: Zipfian,
    latest: Zipfian,
    shared: Arc<Shared>,
}

impl Chooser {
    /// For this connection of a phase; `latest` is over the users.
    pub fn new(workload: Workload, connection: usize, latest: Zipfian, shared: Arc<Shared>) -> Chooser {
        let random = Random::stream(SALT + workload as u64, connection as u64);
        Chooser { workload, connection, random, scrambled: Zipfian::scrambled(), latest, shared }
    }

    /// The turn that was chosen last is over.
    pub fn answered(&self) {
        self.shared.end_insert(self.connection);
    }

    /// The next turn. The one before has been answered.
    pub fn next(&mut self) -> Turn {
        let percent = self.random.below(100);
        let first = match self.workload {
            Workload::Find => Operation::Find { number: self.random.below(self.shared.users) },
            Workload::Range => self.range(RANGE_DOCUMENTS, |from, length| Operation::Range { from, length }),
            Workload::Tag => Operation::Tag { tag: self.random.below(tag_count(self.shared.orders)) },
            Workload::Aggregate => {
                self.range(AGGREGATE_DOCUMENTS, |from, length| Operation::Aggregate { from, length })
            }
            Workload::AggregateScan => self.aggregate_scan(),
            Workload::Update => {
                let number = self.random.below(self.shared.users);
                self.update(number)
            }
            Workload::YcsbA => self.read_or_update(percent < 50),
            Workload::YcsbB => self.read_or_update(percent < 95),
            Workload::YcsbC => self.read_or_update(true),
            Workload::YcsbF => return self.read_modify_write(percent < 50),
            Workload::YcsbD if percent < 95 => self.read_latest(),
            Workload::YcsbE if percent < 95 => self.scan(),
            Workload::YcsbD | Workload::YcsbE => self.insert_user(),
            Workload::Insert => self.insert(),
            Workload::InsertMany => self.insert_many(),
            Workload::InsertManyCopy => self.load(),
        };
        Turn { first, second: None }
    }

    fn user(&mut self) -> u64 {
        self.scrambled.spread(&mut self.random, self.shared.users)
    }

    fn update(&mut self, number: u64) -> Operation {
        let field = self.random.below(user_field_count()) as usize;
        Operation::Update { number, field, version: self.random.bits() }
    }

    fn read_or_update(&mut self, read: bool) -> Operation {
        let number = self.user();
        if read { Operation::Find { number } } else { self.update(number) }
    }

    fn read_modify_write(&mut self, only_read: bool) -> Turn {
        let number = self.user();
        let second = if only_read { None } else { Some(self.update(number)) };
        Turn { first: Operation::Find { number }, second }
    }

    fn read_latest(&mut self) -> Operation {
        let newest = self.shared.acknowledged() - 1;
        let number = newest.saturating_sub(self.latest.rank(&mut self.random));
        Operation::Find { number }
    }

    fn scan(&mut self) -> Operation {
        Operation::Scan { number: self.user(), length: 1 + self.random.below(SCAN_DOCUMENTS) }
    }

    fn insert_user(&mut self) -> Operation {
        let number = self.shared.begin_insert(self.connection);
        Operation::Insert { collection: Collection::Users, number }
    }

    fn insert(&mut self) -> Operation {
        let number = self.shared.next_insert.fetch_add(1, Ordering::Relaxed);
        Operation::Insert { collection: Collection::Inserts, number }
    }

    fn insert_many(&mut self) -> Operation {
        let from = self.shared.next_insert.fetch_add(BATCH_DOCUMENTS, Ordering::Relaxed);
        Operation::InsertMany { collection: Collection::Inserts, from, count: BATCH_DOCUMENTS }
    }

    fn load(&mut self) -> Operation {
        let from = self.shared.next_insert.fetch_add(BATCH_DOCUMENTS, Ordering::Relaxed);
        Operation::Load { collection: Collection::Inserts, from, count: BATCH_DOCUMENTS }
    }

    fn range(&mut self, length: u64, operation: impl Fn(u64, u64) -> Operation) -> Operation {
        let length = length.min(self.shared.orders);
        operation(self.random.below(self.shared.orders - length + 1), length)
    }

    fn aggregate_scan(&mut self) -> Operation {
        let amounts = amounts();
        Operation::AggregateScan { amount: amounts.start + self.random.below(amounts.end - amounts.start) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chooser(workload: Workload, shared: &Arc<Shared>) -> Chooser {
        Chooser::new(workload, 0, Zipfian::new(1000), Arc::clone(shared))
    }

    fn count(workload: Workload, wanted: impl Fn(&Turn) -> bool) -> usize {
        let mut chooser = chooser(workload, &Arc::new(Shared::new(1000, 4)));
        let mut next = || {
            chooser.answered();
            chooser.next()
        };
        (0..10_000).filter(|_| wanted(&next())).count()
    }

    #[test]
    fn mixes_are_as_named() {
        let is_update = |turn: &Turn| matches!(turn.first, Operation::Update { .. });
        let is_insert = |turn: &Turn| matches!(turn.first, Operation::Insert { .. });
        assert!(count(Workload::YcsbA, is_update).abs_diff(5000) < 300);
        assert!(count(Workload::YcsbB, is_update).abs_diff(500) < 100);
        assert_eq!(count(Workload::YcsbC, is_update), 0);
        assert!(count(Workload::YcsbD, is_insert).abs_diff(500) < 100);
        assert!(count(Workload::YcsbE, is_insert).abs_diff(500) < 100);
        assert!(count(Workload::YcsbF, |turn| turn.second.is_some()).abs_diff(5000) < 300);
    }

    #[test]
    fn the_newest_that_is_read_was_acknowledged() {
        let shared = Arc::new(Shared::new(1000, 4));
        assert_eq!(shared.acknowledged(), 1000);
        assert_eq!((shared.begin_insert(0), shared.begin_insert(1)), (1000, 1001));
        shared.end_insert(1);
        assert_eq!(shared.acknowledged(), 1000, "1000 is still under way");
        shared.end_insert(0);
        assert_eq!(shared.acknowledged(), 1002);
    }

    #[test]
    fn connections_ask_differently_but_every_run_alike() {
        let shared = Arc::new(Shared::new(100_000, 4));
        let turns = |connection| {
            let mut chooser = Chooser::new(Workload::Find, connection, Zipfian::new(2), Arc::clone(&shared));
            (0..10).map(|_| chooser.next()).collect::<Vec<_>>()
        };
        assert_eq!(turns(0), turns(0));
        assert_ne!(turns(0), turns(1));
    }
}
