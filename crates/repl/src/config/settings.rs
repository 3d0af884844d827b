//! What the configuration says about the whole set.

use super::member::append_small;
use super::range::in_range;
use crate::write_concern::WriteConcern;
use pando_base::{Error, ErrorCode, Result};
use pando_doc::{Doc, DocBuilder, DocRef, ObjectId, Value};
use pando_session::fields::{Fields, document, object_id, safe_boolean, whole_number};

/// The sub-document `settings`.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// `chainingAllowed`: secondaries may follow secondaries.
    pub chaining_allowed: bool,
    /// `heartbeatIntervalMillis`.
    pub heartbeat_interval_ms: i64,
    /// `heartbeatTimeoutSecs`.
    pub heartbeat_timeout_seconds: i64,
    /// `electionTimeoutMillis`.
    pub election_timeout_ms: i64,
    /// `catchUpTimeoutMillis`; −1 for ever.
    pub catch_up_timeout_ms: i64,
    /// `catchUpTakeoverDelayMillis`; −1 never.
    pub catch_up_takeover_delay_ms: i64,
    /// `getLastErrorModes`: names for write concerns by tags: each tag and the number of values that must be reached.
    pub modes: Doc,
    /// `replicaSetId`: one for the life of the set.
    pub replica_set_id: Option<ObjectId>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            chaining_allowed: true,
            heartbeat_interval_ms: 2000,
            heartbeat_timeout_seconds: 10,
            election_timeout_ms: 10_000,
            catch_up_timeout_ms: -1,
            catch_up_takeover_delay_ms: 30_000,
            modes: Doc::new(),
            replica_set_id: None,
        }
    }
}

impl Settings {
    /// Reads the sub-document; fields that it does not know are passed over.
    pub fn parse(settings: DocRef<'_>) -> Result<Settings> {
        let fields = Fields::of("ReplSetConfigSettings", settings);
        let usual = Settings::default();
        let number = |name: &str, default: i64, minimum: i64| -> Result<i64> {
            let given = fields.optional(name, whole_number)?.unwrap_or(default);
            in_range("ReplSetConfigSettings", name, given, minimum..=i64::MAX)
        };
        if let Some(defaults) = fields.optional("getLastErrorDefaults", document)? {
            check_defaults(defaults)?;
        }
        let replica_set_id = fields.optional("replicaSetId", object_id)?;
        if replica_set_id == Some(ObjectId::from_bytes([0; 12])) {
            return Err(Error::bad_value("replicaSetId field value cannot be null"));
        }
        Ok(Settings {
            chaining_allowed: fields.optional("chainingAllowed", safe_boolean)?.unwrap_or(usual.chaining_allowed),
            heartbeat_interval_ms: number("heartbeatIntervalMillis", usual.heartbeat_interval_ms, 1)?,
            heartbeat_timeout_seconds: number("heartbeatTimeoutSecs", usual.heartbeat_timeout_seconds, 1)?,
            election_timeout_ms: number("electionTimeoutMillis", usual.election_timeout_ms, 1)?,
            catch_up_timeout_ms: number("catchUpTimeoutMillis", usual.catch_up_timeout_ms, -1)?,
            catch_up_takeover_delay_ms: number("catchUpTakeoverDelayMillis", usual.catch_up_takeover_delay_ms, -1)?,
            modes: fields.optional("getLastErrorModes", document)?.map(modes).transpose()?.unwrap_or_default(),
            replica_set_id,
        })
    }

    /// The sub-document.
    pub fn to_doc(&self) -> Doc {
        let mut builder = DocBuilder::new();
        builder.append("chainingAllowed", self.chaining_allowed);
        append_small(&mut builder, "heartbeatIntervalMillis", self.heartbeat_interval_ms);
        append_small(&mut builder, "heartbeatTimeoutSecs", self.heartbeat_timeout_seconds);
        append_small(&mut builder, "electionTimeoutMillis", self.election_timeout_ms);
        append_small(&mut builder, "catchUpTimeoutMillis", self.catch_up_timeout_ms);
        append_small(&mut builder, "catchUpTakeoverDelayMillis", self.catch_up_takeover_delay_ms);
        builder.append("getLastErrorModes", &self.modes);
        builder.document("getLastErrorDefaults", |defaults| {
            defaults.append("w", 1);
            defaults.append("wtimeout", 0);
        });
        builder.append_some("replicaSetId", self.replica_set_id);
        builder.finish()
    }
}

/// The set's own default is a thing of the past: only the value that means nothing is allowed.
fn check_defaults(defaults: DocRef<'_>) -> Result<()> {
    if defaults.is_empty() {
        return Ok(());
    }
    let parsed = WriteConcern::parse(defaults)?;
    if parsed.is_plain() {
        return Ok(());
    }
    Err(Error::location(
        5624101,
        "May not specify a non-default value for getLastErrorDefaults in the replica set configuration; use \
         setDefaultRWConcern instead.",
    ))
}

/// `{name: {tag: count}}`.
fn modes(modes: DocRef<'_>) -> Result<Doc> {
    for mode in modes.elements() {
        let wrong = |reason: String| Err(Error::new(ErrorCode::TypeMismatch, reason));
        let Value::Document(constraints) = mode.value else {
            return wrong(format!("Expected settings.getLastErrorModes.{} to be an object", mode.name));
        };
        for constraint in constraints.elements() {
            match constraint.value.as_number().map(|_| whole_number(constraint.value)) {
                None => return wrong(format!("Expected {}.{} to be a number", mode.name, constraint.name)),
                Some(Ok(count)) if count > 0 => {}
                Some(_) => {
                    let reason =
                        format!("Value for getLastErrorModes.{}.{} must be positive", mode.name, constraint.name);
                    return Err(Error::bad_value(reason));
                }
            }
        }
    }
    Ok(modes.to_doc())
}
