//! What transactions did, as their clients saw it.

use std::collections::BTreeMap;

/// The key of a list or of a register.
pub(super) type Key = i32;

/// One step of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The value was put at the end of the list.
    Append(Key, i32),
    /// The list was that.
    ReadList(Key, Vec<i32>),
    /// The register became that.
    Write(Key, i32),
    /// The register was that; zero before the first write.
    Read(Key, i32),
}

/// What became of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Committed,
    Aborted,
    /// The answer to the commit never came.
    Unknown,
}

#[derive(Clone, Debug)]
pub(super) struct Transaction {
    pub(super) steps: Vec<Step>,
    pub(super) outcome: Outcome,
}

impl Transaction {
    pub(super) fn is_committed(&self) -> bool {
        self.outcome == Outcome::Committed
    }
}

/// All of it, and what was there at the end.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    pub(super) transactions: Vec<Transaction>,
    pub(super) lists: BTreeMap<Key, Vec<i32>>,
    pub(super) registers: BTreeMap<Key, i32>,
    /// Every value is written once.
    pub(super) last_value: i32,
}
