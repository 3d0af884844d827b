//! What tables hold, and who sees which version of it.
//!
//! A key's *chain* is everything ever written to it, in write order: its own versions and the truncations that cover it.
//! Nothing is ever removed from a chain except what was rolled back.

use bytes::Bytes;
use pando_base::Timestamp;
use pando_storage::{PrepareBehaviour, Result, StorageError, TableOptions, TableSize};
use std::collections::BTreeMap;

/// Who wrote a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    /// The open transaction of this number.
    Open(u64),
    /// A transaction that committed with this sequence.
    Committed(u64),
}

/// When a version counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Whose it is.
    pub writer: Writer,
    /// From when timestamped readers see it; none means at every time.
    pub commit: Timestamp,
    /// From when it is stable.
    pub durable: Timestamp,
}

impl Stamp {
    /// True for what rollback to `stable`, or a checkpoint at it, leaves out.
    pub fn is_after(&self, stable: Timestamp) -> bool {
        self.commit.is_some() && self.durable > stable
    }
}

/// One value, or a deletion, of one key.
#[derive(Clone, Debug)]
pub struct Version {
    /// The place in the order of all writes.
    pub order: u64,
    /// When it counts.
    pub stamp: Stamp,
    /// None for a deletion.
    pub value: Option<Bytes>,
}

/// The deletion of a range.
#[derive(Clone, Debug)]
pub struct Truncation {
    /// The place in the order of all writes.
    pub order: u64,
    /// When it counts.
    pub stamp: Stamp,
    /// The first key.
    pub start: Vec<u8>,
    /// The key after the last; none for all.
    pub end: Option<Vec<u8>>,
}

impl Truncation {
    /// True if the key is in the range.
    pub fn covers(&self, key: &[u8]) -> bool {
        is_in_range(key, &self.start, self.end.as_deref())
    }

    /// True if some possible key is in both ranges.
    pub fn overlaps(&self, start: &[u8], end: Option<&[u8]>) -> bool {
        end.is_none_or(|end| self.start.as_slice() < end) && self.end.as_deref().is_none_or(|own_end| start < own_end)
    }
}

/// True for `start <= key < end`.
pub fn is_in_range(key: &[u8], start: &[u8], end: Option<&[u8]>) -> bool {
    start <= key && end.is_none_or(|end| key < end)
}

/// A change of a table's records and bytes.
#[derive(Clone, Debug)]
pub struct SizeChange {
    /// When it counts.
    pub stamp: Stamp,
    /// By how much.
    pub change: TableSize,
}

/// One link of a key's chain.
#[derive(Clone, Debug)]
pub struct Link {
    /// The place in the order of all writes.
    pub order: u64,
    /// When it counts.
    pub stamp: Stamp,
    /// None for a deletion.
    pub value: Option<Bytes>,
    /// It comes from a truncation.
    pub is_truncation: bool,
}

/// One table.
#[derive(Clone, Debug)]
pub struct TableData {
    /// Its name.
    pub ident: String,
    /// As created.
    pub options: TableOptions,
    /// It can no longer be found, but open cursors go on.
    pub dropped: bool,
    /// By key, each in write order.
    pub points: BTreeMap<Vec<u8>, Vec<Version>>,
    /// In write order.
    pub truncations: Vec<Truncation>,
    /// In write order.
    pub sizes: Vec<SizeChange>,
}

impl TableData {
    /// An empty table.
    pub fn new(ident: &str, options: &TableOptions) -> TableData {
        TableData {
            ident: ident.to_owned(),
            options: options.clone(),
            dropped: false,
            points: BTreeMap::new(),
            truncations: Vec::new(),
            sizes: Vec::new(),
        }
    }

    /// Everything written to the key, newest first.
    pub fn chain(&self, key: &[u8]) -> Vec<Link> {
        let versions = self.points.get(key).into_iter().flatten().map(|version| Link {
            order: version.order,
            stamp: version.stamp,
            value: version.value.clone(),
            is_truncation: false,
        });
        let truncations = self.truncations.iter().filter(|truncation| truncation.covers(key)).map(|truncation| Link {
            order: truncation.order,
            stamp: truncation.stamp,
            value: None,
            is_truncation: true,
        });
        let mut chain: Vec<Link> = versions.chain(truncations).collect();
        chain.sort_by_key(|link| std::cmp::Reverse(link.order));
        chain
    }

    /// The sum of committed changes for which `counts` holds.
    pub fn size(&self, counts: impl Fn(&Stamp) -> bool) -> TableSize {
        let mut size = TableSize::default();
        for change in &self.sizes {
            if matches!(change.stamp.writer, Writer::Committed(_)) && counts(&change.stamp) {
                size += change.change;
            }
        }
        size
    }

    /// Keeps only what has a stamp for which `stays` holds.
    pub fn retain(&mut self, stays: impl Fn(&Stamp) -> bool) {
        for versions in self.points.values_mut() {
            versions.retain(|version| stays(&version.stamp));
        }
        self.points.retain(|_, versions| !versions.is_empty());
        self.truncations.retain(|truncation| stays(&truncation.stamp));
        self.sizes.retain(|change| stays(&change.stamp));
    }

    /// True if nothing was ever written, or all of it was rolled back.
    pub fn is_untouched(&self) -> bool {
        self.points.is_empty() && self.truncations.is_empty()
    }
}

/// What a prepared transaction shows to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// Its place in the order of commits.
    pub sequence: u64,
    /// Its prepare timestamp.
    pub timestamp: Timestamp,
}

/// What one reader sees.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// The reader's own transaction.
    pub transaction: Option<u64>,
    /// Commits up to here are in the snapshot.
    pub sequence: u64,
    /// The read timestamp, if any.
    pub timestamp: Option<Timestamp>,
    /// What it does about prepared versions.
    pub prepare: PrepareBehaviour,
}

impl View {
    /// True if a committed version is in this view.
    pub fn sees(&self, sequence: u64, commit: Timestamp) -> bool {
        sequence <= self.sequence && (commit.is_none() || self.timestamp.is_none_or(|read| commit <= read))
    }

    /// True if a prepared version would be in this view had it committed at its prepare timestamp.
    pub fn meets(&self, prepared: &Prepared) -> bool {
        self.sees(prepared.sequence, prepared.timestamp)
    }

    /// The value that this view has of a chain: the first link, newest first, that it sees.
    pub fn read(&self, chain: &[Link], prepared: impl Fn(u64) -> Option<Prepared>) -> Result<Option<Bytes>> {
        for link in chain {
            match link.stamp.writer {
                Writer::Open(number) if Some(number) == self.transaction => return Ok(link.value.clone()),
                Writer::Open(number) => {
                    let met = prepared(number).is_some_and(|prepared| self.meets(&prepared));
                    if met && self.prepare == PrepareBehaviour::Enforce {
                        return Err(StorageError::PrepareConflict);
                    }
                }
                Writer::Committed(sequence) if self.sees(sequence, link.stamp.commit) => return Ok(link.value.clone()),
                Writer::Committed(_) => {}
            }
        }
        Ok(None)
    }

    /// Whether this view's transaction may write on top of a chain.
    pub fn check_write(&self, chain: &[Link], prepared: impl Fn(u64) -> Option<Prepared>) -> Result<()> {
        let by_another = |link: &&Link| !self.transaction.is_some_and(|own| link.stamp.writer == Writer::Open(own));
        let Some(newest) = chain.iter().find(by_another) else { return Ok(()) };
        match newest.stamp.writer {
            Writer::Committed(sequence) if self.sees(sequence, newest.stamp.commit) => Ok(()),
            Writer::Committed(_) => Err(StorageError::WriteConflict),
            Writer::Open(number) => match prepared(number) {
                Some(prepared) if self.meets(&prepared) => Err(StorageError::PrepareConflict),
                _ => Err(StorageError::WriteConflict),
            },
        }
    }
}

/// All tables: what a checkpoint copies.
#[derive(Clone, Debug, Default)]
pub struct Data {
    /// By id; dropped ones stay for their cursors.
    pub tables: BTreeMap<u64, TableData>,
    /// The sequence of the last commit or prepare.
    pub sequence: u64,
    /// The last place given in the order of writes.
    pub order: u64,
    /// The last table id given; none is used twice.
    pub last_table: u64,
}

impl Data {
    /// The next place in the order of writes.
    pub fn next_order(&mut self) -> u64 {
        self.order += 1;
        self.order
    }

    /// The next sequence.
    pub fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// The id of the table with this name.
    pub fn id_of(&self, ident: &str) -> Option<u64> {
        self.tables.iter().find(|(_, table)| !table.dropped && table.ident == ident).map(|(id, _)| *id)
    }
}
