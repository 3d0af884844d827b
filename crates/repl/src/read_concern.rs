//! Read concerns: what clients ask for, and the rules between the fields. The waiting is the node's.

use crate::write_concern::Provenance;
use pando_base::{Error, ErrorCode, Result, Timestamp};
use pando_doc::{Doc, DocBuilder, DocRef};
use pando_oplog::OpTime;
use pando_session::extract;
use pando_session::fields::{Fields, document};

/// What a read concern may say.
const FIELDS: &[&str] = &[
    "level",
    "afterClusterTime",
    "atClusterTime",
    "afterOpTime",
    "provenance",
    "allowTransactionTableSnapshot",
    "$_waitLastStableRecoveryTimestamp",
];

/// How much of the set must have what is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Level {
    /// This node: its newest data.
    #[default]
    Local,
    /// This node, orphans of a sharded collection included.
    Available,
    /// A majority.
    Majority,
    /// A majority, and nobody has anything newer.
    Linearizable,
    /// A majority, at one point in time.
    Snapshot,
}

impl Level {
    /// The text in the field `level`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Level::Local => "local",
            Level::Available => "available",
            Level::Majority => "majority",
            Level::Linearizable => "linearizable",
            Level::Snapshot => "snapshot",
        }
    }

    fn parse(name: &str) -> Result<Level> {
        let all = [Level::Local, Level::Available, Level::Majority, Level::Linearizable, Level::Snapshot];
        all.into_iter().find(|level| level.as_str() == name).ok_or_else(|| {
            let reason =
                "readConcern.level must be either 'local', 'majority', 'linearizable', 'available', or 'snapshot'";
            Error::failed_to_parse(reason)
        })
    }
}

/// What a read asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadConcern {
    /// `level`; the default if it was not given.
    pub level: Level,
    /// Was the level given?
    pub is_explicit: bool,
    /// `afterClusterTime`: what is read must include everything up to then.
    pub after_cluster_time: Option<Timestamp>,
    /// `atClusterTime`: what is read is as of then.
    pub at_cluster_time: Option<Timestamp>,
    /// `afterOpTime`: the same as after a cluster time, for servers among themselves.
    pub after_op_time: Option<OpTime>,
}

/// The level, if it is all that the document has: mostly it is.
fn only_level(concern: DocRef<'_>) -> Option<&str> {
    let first = concern.raw_elements().next()?;
    let is_alone = first.name == "level" && first.bytes.len() == concern.element_bytes().len();
    first.value().filter(|_| is_alone)?.as_str()
}

impl ReadConcern {
    /// Reads the field `readConcern` of a command.
    pub fn of_command(command: DocRef<'_>) -> Result<ReadConcern> {
        match Fields::of("command", command).optional("readConcern", document)? {
            Some(concern) => ReadConcern::parse(concern),
            None => Ok(ReadConcern::default()),
        }
    }

    /// Reads a read concern.
    pub fn parse(concern: DocRef<'_>) -> Result<ReadConcern> {
        if let Some(level) = only_level(concern) {
            return Ok(ReadConcern { level: Level::parse(level)?, is_explicit: true, ..ReadConcern::default() });
        }
        let stranger = concern.elements().find(|element| !FIELDS.iter().any(|known| element.name == *known));
        if let Some(stranger) = stranger {
            let reason = format!("Unrecognized option in readConcern: {}", stranger.name);
            return Err(Error::new(ErrorCode::InvalidOptions, reason));
        }
        let level = extract::text(concern, "level")?.map(Level::parse).transpose()?;
        // Where a concern comes from matters to routers; it is read for its errors alone.
        if let Some(source) = concern.get("provenance") {
            Provenance::parse("ReadConcernArgs", source)?;
        }
        let after_op_time = extract::document(concern, "afterOpTime")?.map(OpTime::parse).transpose()?;
        let parsed = ReadConcern {
            level: level.unwrap_or_default(),
            is_explicit: level.is_some(),
            after_cluster_time: extract::timestamp(concern, "afterClusterTime")?,
            at_cluster_time: extract::timestamp(concern, "atClusterTime")?,
            after_op_time,
        };
        parsed.check()?;
        Ok(parsed)
    }

    fn check(&self) -> Result<()> {
        let is_null = |time: Option<Timestamp>| time.is_some_and(Timestamp::is_none);
        let follows = matches!(self.level, Level::Local | Level::Majority | Level::Snapshot);
        let refusals = [
            (
                self.after_cluster_time.is_some() && self.after_op_time.is_some(),
                "Can not specify both afterClusterTime and afterOpTime",
            ),
            (
                self.after_cluster_time.is_some() && self.at_cluster_time.is_some(),
                "Specifying a timestamp for readConcern snapshot in a causally consistent session is not allowed. See \
                 https://docs.mongodb.com/manual/core/read-isolation-consistency-recency/#causal-consistency",
            ),
            (
                self.after_cluster_time.is_some() && !follows,
                "afterClusterTime field can be set only if level is equal to majority, local, or snapshot",
            ),
            (
                self.after_op_time.is_some() && self.level == Level::Snapshot,
                "afterOpTime field can be set only if level is equal to majority or local",
            ),
            (
                self.at_cluster_time.is_some() && self.level != Level::Snapshot,
                "atClusterTime field can be set only if level is equal to snapshot",
            ),
            (is_null(self.after_cluster_time), "afterClusterTime cannot be a null timestamp"),
            (is_null(self.at_cluster_time), "atClusterTime cannot be a null timestamp"),
            (
                self.at_cluster_time.is_some_and(|time| time.seconds() == 0),
                "atClusterTime cannot be a timestamp of zero seconds",
            ),
        ];
        match refusals.into_iter().find(|(refused, _)| *refused) {
            Some((_, reason)) => Err(Error::new(ErrorCode::InvalidOptions, reason)),
            None => Ok(()),
        }
    }

    /// As replies and the log show it.
    pub fn to_doc(&self) -> Doc {
        let mut builder = DocBuilder::new();
        builder.append("level", self.level.as_str());
        builder.append_some("afterClusterTime", self.after_cluster_time);
        builder.append_some("atClusterTime", self.at_cluster_time);
        builder.append("provenance", if self.is_explicit { "clientSupplied" } else { "implicitDefault" });
        builder.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::doc;

    #[test]
    fn r8_levels_and_times() {
        let time = Timestamp::new(5, 1);
        let cases = [
            (doc! {}, Level::Local),
            (doc! { "level": "available" }, Level::Available),
            (doc! { "level": "majority", "afterClusterTime": time }, Level::Majority),
            (doc! { "level": "linearizable" }, Level::Linearizable),
            (doc! { "level": "snapshot", "atClusterTime": time }, Level::Snapshot),
            (doc! { "afterOpTime": { "ts": time, "t": 1_i64 } }, Level::Local),
        ];
        for (document, level) in cases {
            assert_eq!(ReadConcern::parse(document.view()).unwrap().level, level);
        }
    }

    #[test]
    fn r8_refusals() {
        let (time, none) = (Timestamp::new(5, 1), Timestamp::NONE);
        let cases = [
            (doc! { "level": "most" }, 9),
            (doc! { "level": 1 }, 14),
            (doc! { "x": 1 }, 72),
            (doc! { "level": "available", "afterClusterTime": time }, 72),
            (doc! { "level": "linearizable", "afterClusterTime": time }, 72),
            (doc! { "level": "majority", "atClusterTime": time }, 72),
            (doc! { "level": "snapshot", "atClusterTime": time, "afterClusterTime": time }, 72),
            (doc! { "afterClusterTime": time, "afterOpTime": { "ts": time, "t": 1_i64 } }, 72),
            (doc! { "afterClusterTime": none }, 72),
        ];
        for (document, code) in cases {
            assert_eq!(ReadConcern::parse(document.view()).unwrap_err().code().number(), code, "{document:?}");
        }
    }
}
