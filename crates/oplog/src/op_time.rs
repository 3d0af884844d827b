//! When an operation happened: the term of the primary that wrote it and its timestamp.

use crate::fields::{Fields, long, timestamp};
use pando_base::{Result, Timestamp};
use pando_doc::{DocBuilder, DocRef};

/// The place of an entry in the oplog. Terms decide first, so a new primary's entries come after an old one's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpTime {
    /// The primary's term.
    pub term: i64,
    /// The entry's timestamp.
    pub timestamp: Timestamp,
}

impl OpTime {
    /// Before every entry; what `prevOpTime` of a session's first write says.
    pub const NULL: OpTime = OpTime { term: -1, timestamp: Timestamp(0) };

    /// A place in the oplog.
    pub const fn new(timestamp: Timestamp, term: i64) -> OpTime {
        OpTime { term, timestamp }
    }

    /// Is it before every entry?
    pub fn is_null(self) -> bool {
        self.timestamp.0 == 0
    }

    /// Reads `{ts, t}`.
    pub fn parse(document: DocRef<'_>) -> Result<OpTime> {
        let fields = Fields::of("OpTimeBase", document);
        let term = fields.optional("t", long)?.unwrap_or(OpTime::NULL.term);
        Ok(OpTime { term, timestamp: fields.required("ts", timestamp)? })
    }

    /// Writes `{ts, t}` under a name.
    pub fn append_as(self, name: &str, builder: &mut DocBuilder) {
        let open = builder.begin_document(name);
        self.append_to(builder);
        builder.end(open);
    }

    /// Writes `ts` and `t`.
    pub(crate) fn append_to(self, builder: &mut DocBuilder) {
        builder.append("ts", self.timestamp);
        builder.append("t", self.term);
    }
}
