//! When a version was written and who can see it.
//!
//! Sequences order commits as snapshots see them; commit timestamps order them as timestamped readers see them; durable
//! timestamps decide what a rollback to stable removes. A settled stamp (all zero) is visible to everyone.

use bytes::Bytes;
use pando_base::Timestamp;

/// When a version was committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Stamp {
    /// The commit's place in the order of commits; 0 when every snapshot that can exist sees it.
    pub sequence: u64,
    /// The commit timestamp; [`Timestamp::NONE`] for an untimestamped write, which every read timestamp sees.
    pub commit: Timestamp,
    /// The durable timestamp; `NONE` exactly when `commit` is.
    pub durable: Timestamp,
}

impl Stamp {
    /// Visible to every snapshot at every read timestamp.
    pub const SETTLED: Stamp = Stamp { sequence: 0, commit: Timestamp::NONE, durable: Timestamp::NONE };

    /// A stamp whose durable timestamp equals its commit timestamp.
    pub const fn new(sequence: u64, commit: Timestamp) -> Stamp {
        Stamp { sequence, commit, durable: commit }
    }

    /// True if nothing needs to be compared to see this version.
    pub fn is_settled(&self) -> bool {
        self.sequence == 0 && self.commit.is_none()
    }

    /// False if the version was rolled back: timestamped and durable only after the fence.
    pub fn is_alive(&self, fence: Timestamp) -> bool {
        self.commit.is_none() || self.durable <= fence
    }
}

/// What a reader may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadPoint {
    /// The snapshot: commits up to and including this sequence.
    pub sequence: u64,
    /// The read timestamp; [`Timestamp::MAX`] reads without one.
    pub timestamp: Timestamp,
}

impl ReadPoint {
    /// Everything that was ever committed.
    pub const LATEST: ReadPoint = ReadPoint { sequence: u64::MAX, timestamp: Timestamp::MAX };

    /// True if a version with this stamp is visible here.
    pub fn sees(&self, stamp: &Stamp) -> bool {
        stamp.sequence <= self.sequence && (stamp.commit.is_none() || stamp.commit <= self.timestamp)
    }
}

/// One version of a key, as given to the writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version<'a> {
    /// When it was committed.
    pub stamp: Stamp,
    /// The value; `None` if this version deletes the key.
    pub value: Option<&'a [u8]>,
}

/// What a point read found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// The visible version has a value.
    Found {
        /// The value; usually a slice of a cached block.
        value: Bytes,
        /// When it was committed.
        stamp: Stamp,
    },
    /// The visible version is a deletion.
    Deleted {
        /// When it was committed.
        stamp: Stamp,
    },
    /// The base has no visible version.
    Absent,
}

/// The deletion of all keys of a range.
///
/// A range tombstone acts on *older runs* only. Where the run that holds it also has versions of a key in the range that
/// are older than the tombstone, whoever writes the run puts a point deletion with the tombstone's stamp above them.
/// That keeps the order within a run free of comparisons between settled stamps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeTombstone {
    /// The first deleted key.
    pub start: Bytes,
    /// The first key that is not deleted; `None` deletes to the end of the table.
    pub end: Option<Bytes>,
    /// When it was committed.
    pub stamp: Stamp,
}

impl RangeTombstone {
    /// True if the key lies in the range.
    pub fn covers(&self, key: &[u8]) -> bool {
        self.start.as_ref() <= key && self.end.as_ref().is_none_or(|end| key < end.as_ref())
    }
}
