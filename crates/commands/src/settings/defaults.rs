//! The concerns of commands that give none (`setDefaultRWConcern`), and the document they are kept in.

use pando_base::{Error, ErrorCode, Result, Timestamp, ensure};
use pando_doc::{Doc, DocBuilder, DocRef, Value};
use pando_repl::read_concern::{Level, ReadConcern};
use pando_repl::write_concern::{Provenance, WriteConcern};

/// The document's `_id`.
pub(super) const ID: &str = "ReadWriteConcernDefaults";

/// The defaults that somebody has set.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Defaults {
    /// `{level: ...}`.
    pub(super) read: Option<Doc>,
    pub(super) write: Option<WriteConcern>,
    /// When they were set, by the set's clock and by that on the wall.
    pub(super) set_at: Option<(Timestamp, i64)>,
    /// When this node took them over.
    pub(super) taken_ms: i64,
}

impl Defaults {
    /// None are set, or none any more.
    pub(super) fn unset(now_ms: i64) -> Defaults {
        Defaults { taken_ms: now_ms, ..Defaults::default() }
    }

    /// Reads a document of `config.settings`; none if it is about something else.
    pub(super) fn of_stored(document: DocRef<'_>, now_ms: i64) -> Result<Option<Defaults>> {
        if document.get("_id").and_then(|id| id.as_str()) != Some(ID) {
            return Ok(None);
        }
        let part = |name: &str| match document.get(name) {
            None => Ok(None),
            Some(Value::Document(part)) => Ok(Some(part)),
            Some(other) => Err(Error::type_mismatch(format!(
                "BSON field 'RWDefaultsWriteObserver.{name}' is the wrong type '{}', expected type 'object'",
                other.value_type().name()
            ))),
        };
        let op_time = document.get("updateOpTime").and_then(|time| time.as_timestamp());
        let wall_ms = match document.get("updateWallClockTime") {
            Some(Value::DateTime(wall_ms)) => Some(wall_ms),
            _ => None,
        };
        Ok(Some(Defaults {
            read: part("defaultReadConcern")?.map(read_default).transpose()?.flatten(),
            write: part("defaultWriteConcern")?.map(write_default).transpose()?.flatten(),
            set_at: op_time.zip(wall_ms),
            taken_ms: now_ms,
        }))
    }

    /// The document that is kept.
    pub(super) fn to_stored(&self) -> Doc {
        let mut document = DocBuilder::new();
        document.append("_id", ID);
        self.append_to(&mut document);
        document.finish()
    }

    /// The fields that are kept and shown.
    pub(super) fn append_to(&self, out: &mut DocBuilder) {
        out.append_some("defaultReadConcern", self.read.as_ref());
        out.append_some("defaultWriteConcern", self.write.as_ref().map(shown));
        if let Some((op_time, wall_ms)) = self.set_at {
            out.append("updateOpTime", op_time);
            out.append("updateWallClockTime", Value::DateTime(wall_ms));
        }
    }
}

/// A write concern without where it comes from.
pub(super) fn shown(concern: &WriteConcern) -> Doc {
    let mut shown = DocBuilder::new();
    for element in concern.to_doc().view().elements().filter(|element| element.name != "provenance") {
        shown.append_element(element);
    }
    shown.finish()
}

/// The level that becomes the default; none if it is to be unset.
pub(super) fn read_default(concern: DocRef<'_>) -> Result<Option<Doc>> {
    if concern.is_empty() {
        return Ok(None);
    }
    let parsed = ReadConcern::parse(concern)?;
    let level = parsed.level.as_str();
    let is_fit = matches!(parsed.level, Level::Local | Level::Available | Level::Majority);
    ensure!(is_fit, ErrorCode::BadValue, "level: '{level}' is not suitable for the default read concern");
    for name in ["afterOpTime", "afterClusterTime", "atClusterTime"] {
        let is_given = concern.contains(name);
        ensure!(!is_given, ErrorCode::BadValue, "'{name}' is not suitable for the default read concern");
    }
    let has_source = concern.contains("provenance");
    ensure!(!has_source, ErrorCode::BadValue, "'provenance' must be unset in default read concern");
    let mut default = DocBuilder::new();
    default.append("level", level);
    Ok(Some(default.finish()))
}

/// The write concern that becomes the default; none if it is to be unset.
pub(super) fn write_default(concern: DocRef<'_>) -> Result<Option<WriteConcern>> {
    if concern.is_empty() {
        return Ok(None);
    }
    // One that is null is a mode without a name, which no set has.
    ensure!(
        concern.get("w").is_none_or(|members| !members.is_nullish()),
        ErrorCode::UnknownReplWriteConcern,
        "No write concern mode named '' found in replica set configuration"
    );
    let parsed = WriteConcern::parse(concern)?;
    ensure!(parsed.is_explicit, ErrorCode::BadValue, "Default write concern must have 'w' field.");
    ensure!(
        !parsed.is_unacknowledged(),
        ErrorCode::BadValue,
        "Unacknowledged write concern is not suitable for the default write concern"
    );
    let has_source = concern.contains("provenance");
    ensure!(!has_source, ErrorCode::BadValue, "'provenance' must be unset in default write concern");
    Ok(Some(WriteConcern { provenance: Provenance::CustomDefault, ..parsed }))
}
