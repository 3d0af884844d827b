//! A write concern as it is written: `{w, j, fsync, wtimeout, provenance}`.

use crate::config::MEMBERS_MAX;
use pando_base::{Error, Result};
use pando_doc::{Doc, DocBuilder, DocRef, Number, Value};
use pando_session::fields::{Fields, document, safe_boolean, text};

/// Who must have a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Acknowledgement {
    /// So many members. Zero: the client does not even wait for the reply.
    Members(u32),
    /// More than half of those that vote.
    Majority,
    /// A name from `getLastErrorModes`.
    Mode(String),
    /// So many members of each of these tags.
    Tags(Doc),
}

/// What must be on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Sync {
    /// Nothing was said.
    #[default]
    Unset,
    /// `j: false`.
    None,
    /// `j: true`.
    Journal,
    /// `fsync: true`, which has long meant the journal.
    Fsync,
}

/// Where a write concern comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Provenance {
    /// The request.
    #[default]
    ClientSupplied,
    /// The server's own default.
    ImplicitDefault,
    /// The default of the cluster, set by setDefaultRWConcern.
    CustomDefault,
    /// The default of the set's configuration.
    GetLastErrorDefaults,
    /// A task of the server's.
    InternalWriteDefault,
}

impl Provenance {
    /// The text in the field `provenance`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Provenance::ClientSupplied => "clientSupplied",
            Provenance::ImplicitDefault => "implicitDefault",
            Provenance::CustomDefault => "customDefault",
            Provenance::GetLastErrorDefaults => "getLastErrorDefaults",
            Provenance::InternalWriteDefault => "internalWriteDefault",
        }
    }

    const ALL: [Provenance; 5] = [
        Provenance::ClientSupplied,
        Provenance::ImplicitDefault,
        Provenance::CustomDefault,
        Provenance::GetLastErrorDefaults,
        Provenance::InternalWriteDefault,
    ];

    /// Reads the field `provenance` of a read or write concern, which is named for messages; none of null.
    pub fn parse(concern: &str, value: Value<'_>) -> Result<Option<Provenance>> {
        if value.is_nullish() {
            return Ok(None);
        }
        let Value::String(name) = value else {
            let found = value.value_type().name();
            let reason =
                format!("BSON field '{concern}.provenance' is the wrong type '{found}', expected type 'string'");
            return Err(Error::type_mismatch(reason));
        };
        let known = Provenance::ALL.into_iter().find(|provenance| name == provenance.as_str());
        known.map(Some).ok_or_else(|| {
            let reason = format!("Enumeration value '{name}' for field '{concern}.provenance' is not a valid value.");
            Error::bad_value(reason)
        })
    }
}

/// What a write has to wait for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteConcern {
    /// `w`.
    pub acknowledgement: Acknowledgement,
    /// `j` and `fsync`.
    pub sync: Sync,
    /// `wtimeout`; zero for none.
    pub timeout_ms: i64,
    /// Where it comes from.
    pub provenance: Provenance,
    /// Was `w` given?
    pub is_explicit: bool,
}

impl WriteConcern {
    /// `{w: 1}`, as where nothing is asked for.
    pub const fn one(provenance: Provenance) -> WriteConcern {
        let acknowledgement = Acknowledgement::Members(1);
        WriteConcern { acknowledgement, sync: Sync::Unset, timeout_ms: 0, provenance, is_explicit: false }
    }

    /// `{w: "majority"}`.
    pub const fn majority(provenance: Provenance) -> WriteConcern {
        let acknowledgement = Acknowledgement::Majority;
        WriteConcern { acknowledgement, sync: Sync::Unset, timeout_ms: 0, provenance, is_explicit: false }
    }

    /// Reads the field `writeConcern` of a command; none if it is missing or empty.
    pub fn of_command(command: DocRef<'_>) -> Result<Option<WriteConcern>> {
        match command.get("writeConcern") {
            None => Ok(None),
            Some(Value::Document(concern)) if concern.is_empty() => Ok(None),
            Some(Value::Document(concern)) => WriteConcern::parse(concern).map(Some),
            Some(value) => {
                let kind = value.value_type().name();
                let reason = format!("\"writeConcern\" had the wrong type. Expected object, found {kind}");
                Err(Error::type_mismatch(reason))
            }
        }
    }

    /// Reads a write concern.
    pub fn parse(concern: DocRef<'_>) -> Result<WriteConcern> {
        if concern.is_empty() {
            return Err(Error::failed_to_parse("write concern object cannot be empty"));
        }
        let fields = Fields::of("writeConcern", concern);
        let known = ["w", "j", "fsync", "wtimeout", "provenance", "wElectionId", "wOpTime", "getLastError"];
        let [members, journal, fsync, wtimeout, provenance, ..] = fields.all(&known)?;
        let acknowledgement = members.map(acknowledgement).transpose()?;
        let journal = fields.read("j", journal, safe_boolean)?;
        let sync = match (journal, fields.read("fsync", fsync, safe_boolean)?) {
            (Some(true), Some(true)) => {
                return Err(Error::failed_to_parse("fsync and j options cannot be used together"));
            }
            (Some(true), _) => Sync::Journal,
            (_, Some(true)) => Sync::Fsync,
            (Some(false), _) => Sync::None,
            (None, _) => Sync::Unset,
        };
        Ok(WriteConcern {
            is_explicit: acknowledgement.is_some(),
            acknowledgement: acknowledgement.unwrap_or(Acknowledgement::Members(1)),
            sync,
            timeout_ms: wtimeout.map(timeout).transpose()?.unwrap_or(0),
            provenance: match provenance {
                Some(value) => Provenance::parse("writeConcern", value)?.unwrap_or_default(),
                None => Provenance::default(),
            },
        })
    }

    /// Is it `{w: 1, wtimeout: 0}`, which asks for nothing?
    pub fn is_plain(&self) -> bool {
        self.acknowledgement == Acknowledgement::Members(1) && self.timeout_ms == 0 && self.sync == Sync::Unset
    }

    /// Does the client want to know nothing of what became of its writes, not even that they are on the disk?
    pub fn wants_no_outcome(&self) -> bool {
        self.is_unacknowledged() && matches!(self.sync, Sync::None | Sync::Unset)
    }

    /// Does the client want no reply?
    pub fn is_unacknowledged(&self) -> bool {
        self.acknowledgement == Acknowledgement::Members(0)
    }

    /// Must other members have the write?
    pub fn needs_members(&self) -> bool {
        !matches!(self.acknowledgement, Acknowledgement::Members(0 | 1))
    }

    /// Must the write be on this node's disk before it is acknowledged?
    pub fn needs_journal(&self, majority_means_journal: bool) -> bool {
        match self.sync {
            Sync::Journal | Sync::Fsync => true,
            Sync::None => false,
            Sync::Unset => self.acknowledgement == Acknowledgement::Majority && majority_means_journal,
        }
    }

    /// As replies show it.
    pub fn to_doc(&self) -> Doc {
        let mut builder = DocBuilder::new();
        match &self.acknowledgement {
            Acknowledgement::Members(count) => builder.append("w", i32::try_from(*count).unwrap_or(i32::MAX)),
            Acknowledgement::Majority => builder.append("w", "majority"),
            Acknowledgement::Mode(name) => builder.append("w", name),
            Acknowledgement::Tags(tags) => builder.append("w", tags),
        }
        match self.sync {
            Sync::Unset => {}
            Sync::None => builder.append("j", false),
            Sync::Journal => builder.append("j", true),
            Sync::Fsync => builder.append("fsync", true),
        }
        match i32::try_from(self.timeout_ms) {
            Ok(timeout) => builder.append("wtimeout", timeout),
            Err(_) => builder.append("wtimeout", self.timeout_ms),
        }
        builder.append("provenance", self.provenance.as_str());
        builder.finish()
    }
}

fn acknowledgement(value: Value<'_>) -> Result<Acknowledgement> {
    if value.is_number() {
        if value.as_number().is_some_and(Number::is_nan) {
            return Err(Error::failed_to_parse("w cannot be NaN"));
        }
        // A fraction is cut off.
        let (count, most) = (value.to_i64_or_zero(), MEMBERS_MAX as i64);
        return match u32::try_from(count) {
            Ok(members) if count <= most => Ok(Acknowledgement::Members(members)),
            _ => Err(Error::failed_to_parse(format!(
                "w has to be a non-negative number and not greater than {most}; found: {count}"
            ))),
        };
    }
    match value {
        Value::String(_) => match text(value) {
            Ok("majority") => Ok(Acknowledgement::Majority),
            Ok(name) => Ok(Acknowledgement::Mode(name.to_owned())),
            Err(_) => Err(Error::failed_to_parse("w has to be a number, string, or object")),
        },
        Value::Document(_) => tags(document(value).unwrap_or(DocRef::EMPTY)),
        Value::Null | Value::Undefined => Ok(Acknowledgement::Members(1)),
        _ => Err(Error::failed_to_parse("w has to be a number, string, or object")),
    }
}

fn tags(tags: DocRef<'_>) -> Result<Acknowledgement> {
    if tags.is_empty() {
        return Err(Error::failed_to_parse("tagged write concern requires tags"));
    }
    match tags.elements().find(|tag| !tag.value.is_number()) {
        Some(tag) => {
            let kind = tag.value.value_type().name();
            Err(Error::failed_to_parse(format!(
                "tags must be a single level document with only number values; found: {kind}"
            )))
        }
        None => Ok(Acknowledgement::Tags(tags.to_doc())),
    }
}

/// Anything is taken for a number, as ever; what is none means no limit.
fn timeout(value: Value<'_>) -> Result<i64> {
    let milliseconds = value.to_i64_or_zero();
    if milliseconds > i64::from(i32::MAX) {
        return Err(Error::failed_to_parse("wtimeout must be a 32-bit integer"));
    }
    Ok(milliseconds)
}
