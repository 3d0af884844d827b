//! What every command takes: sessions, concerns, deadlines, the API version, and what travels between servers.
//!
//! Dispatch parses them once. They are kept owned and small: documents share the request's bytes.

use super::cluster::{check_database_version, check_shard_version};
use super::field::Place;
use bstr::BStr;
use pando_base::{Error, ErrorCode, Result, Timestamp, Uuid, bail, ensure};
use pando_doc::{Doc, DocBuilder, OwnedValue, RawElement, Value, ValueType};
use pando_security::TimeProof;
use pando_wire::Command;

/// Names that every command takes.
const GENERIC: &[&str] = &[
    "$audit",
    "$client",
    "$clusterTime",
    "$configServerState",
    "$configTime",
    "$db",
    "$oplogQueryData",
    "$queryOptions",
    "$readPreference",
    "$replData",
    "$tenant",
    "$topologyTime",
    "allowImplicitCollectionCreation",
    "apiDeprecationErrors",
    "apiStrict",
    "apiVersion",
    "autocommit",
    "clientOperationKey",
    "comment",
    "coordinator",
    "databaseVersion",
    "expectPrefix",
    "help",
    "lsid",
    "maxTimeMS",
    "maxTimeMSOpOnly",
    "mayBypassWriteBlocking",
    "readConcern",
    "shardVersion",
    "startTransaction",
    "stmtId",
    "tracking_info",
    "txnNumber",
    "txnRetryCounter",
    "writeConcern",
];

/// Ends a search.
const NO_PLACE: u8 = u8::MAX;

/// The places of the names in [`GENERIC`] by a number that none of them shares with another. Every field of every request is
/// looked for: most have a number of their own, and are passed over without a look at any name.
const PLACES: [u8; NUMBERS] = places();
const NUMBERS: usize = 256;

const fn places() -> [u8; NUMBERS] {
    let mut places = [NO_PLACE; NUMBERS];
    let mut place = 0;
    while place < GENERIC.len() {
        let number = number(GENERIC[place].as_bytes());
        assert!(places[number] == NO_PLACE, "two names share a number: choose other factors");
        places[number] = place as u8;
        place += 1;
    }
    places
}

const FACTORS: (usize, usize, usize) = (1, 3, 6);

/// A number from the length, the second byte and the last one. The factors were found by trying.
const fn number(name: &[u8]) -> usize {
    match name {
        [_, second, .., last] => {
            (name.len() * FACTORS.0 + *second as usize * FACTORS.1 + *last as usize * FACTORS.2) % NUMBERS
        }
        _ => 0,
    }
}

/// Where a name stands that is known to be in [`GENERIC`].
const fn place(name: &str) -> u8 {
    let found = PLACES[number(name.as_bytes())];
    let (name, known) = (name.as_bytes(), GENERIC[found as usize].as_bytes());
    assert!(name.len() == known.len(), "the name is not among them");
    let mut at = 0;
    while at < name.len() {
        assert!(name[at] == known[at], "the name is not among them");
        at += 1;
    }
    found
}

/// Where the name stands in [`GENERIC`].
#[inline]
fn place_of(name: &BStr) -> Option<u8> {
    let place = *PLACES.get(number(name))?;
    (GENERIC.get(usize::from(place))?.as_bytes() == &**name).then_some(place)
}

const DATABASE: u8 = place("$db");
const SESSION: u8 = place("lsid");
const TRANSACTION_NUMBER: u8 = place("txnNumber");
const AUTOCOMMIT: u8 = place("autocommit");
const START_TRANSACTION: u8 = place("startTransaction");
const RETRY_COUNTER: u8 = place("txnRetryCounter");
const READ_CONCERN: u8 = place("readConcern");
const WRITE_CONCERN: u8 = place("writeConcern");
const AUDIT: u8 = place("$audit");
const READ_PREFERENCE: u8 = place("$readPreference");
const CLUSTER_TIME: u8 = place("$clusterTime");
const MAX_TIME: u8 = place("maxTimeMS");
const MAX_TIME_OF_OPERATION: u8 = place("maxTimeMSOpOnly");
const COMMENT: u8 = place("comment");
const API_VERSION: u8 = place("apiVersion");
const API_STRICT: u8 = place("apiStrict");
const API_DEPRECATION_ERRORS: u8 = place("apiDeprecationErrors");
const CLIENT_OPERATION_KEY: u8 = place("clientOperationKey");
const HELP: u8 = place("help");
const TENANT: u8 = place("$tenant");
const EXPECT_PREFIX: u8 = place("expectPrefix");
const SHARD_VERSION: u8 = place("shardVersion");
const DATABASE_VERSION: u8 = place("databaseVersion");
const COORDINATOR: u8 = place("coordinator");
const MAY_BYPASS_WRITE_BLOCKING: u8 = place("mayBypassWriteBlocking");

/// Does every command take a field of this name?
pub fn is_generic(name: &BStr) -> bool {
    place_of(name).is_some()
}

/// A logical session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionId {
    /// The id that the client chose.
    pub id: Uuid,
    /// The hash of the user it belongs to, where the client says so.
    pub user: Option<[u8; 32]>,
    /// The whole document as it was sent.
    pub document: Doc,
}

/// The API that the client declares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiParameters {
    /// The version; only "1" exists.
    pub version: Option<String>,
    /// Refuse what is not in it.
    pub strict: Option<bool>,
    /// Refuse what is deprecated in it.
    pub deprecation_errors: Option<bool>,
}

impl ApiParameters {
    /// As messages show them.
    pub fn to_doc(&self) -> Doc {
        let mut shown = DocBuilder::new();
        shown.append_some("apiVersion", self.version.as_deref());
        shown.append_some("apiStrict", self.strict);
        shown.append_some("apiDeprecationErrors", self.deprecation_errors);
        shown.finish()
    }
}

/// What every command takes.
#[derive(Clone, Debug, Default)]
pub struct GenericArguments {
    /// The session.
    pub session: Option<SessionId>,
    /// The number of the session's transaction or retryable write.
    pub transaction_number: Option<i64>,
    /// False inside a transaction.
    pub autocommit: Option<bool>,
    /// The first command of a transaction.
    pub start_transaction: Option<bool>,
    /// Which attempt of a router's this is.
    pub transaction_retry_counter: Option<i64>,
    /// The read concern, as sent.
    pub read_concern: Option<Doc>,
    /// The write concern, as sent.
    pub write_concern: Option<Doc>,
    /// The read preference, as sent.
    pub read_preference: Option<Doc>,
    /// The newest cluster time that the client has seen.
    pub cluster_time: Option<Timestamp>,
    /// Who says that it was given out.
    pub cluster_time_proof: Option<TimeProof>,
    /// How long the command may take; zero is no limit.
    pub max_time_ms: u64,
    /// What the client says about the command.
    pub comment: Option<OwnedValue>,
    /// The API.
    pub api: ApiParameters,
    /// The client's own key for the operation.
    pub client_operation_key: Option<Uuid>,
    /// Only help is wanted.
    pub wants_help: bool,
    /// Another server says for whom it asks.
    pub impersonates: bool,
    /// A router says how it knows the database's placement.
    pub has_database_version: bool,
    /// This node is to lead the commit of the transaction over shards.
    pub coordinator: Option<bool>,
    /// Another server says that its client may write where clients must not.
    pub may_bypass_write_blocking: Option<bool>,
}

impl GenericArguments {
    /// The level of the read concern, if it has one.
    pub fn read_concern_level(&self) -> Option<&str> {
        self.read_concern.as_ref()?.get("level")?.as_str()
    }

    /// Finds them in a request.
    pub fn parse(request: &Command, is_internal: bool) -> Result<GenericArguments> {
        let mut found = GenericArguments::default();
        found.read(request, is_internal).map(|_| found)
    }

    /// Finds them in a request, in the place where they stay; gives the field that names the database, which is found on the way.
    pub fn read<'r>(&mut self, request: &'r Command, is_internal: bool) -> Result<Option<RawElement<'r>>> {
        let mut database = None;
        for element in request.body().raw_elements().skip(1) {
            let Some(place) = place_of(element.name) else {
                ensure!(
                    element.name != "$maxTimeMS",
                    ErrorCode::InvalidOptions,
                    "no such command option $maxTimeMs; use maxTimeMS instead"
                );
                continue;
            };
            if place == DATABASE {
                database = Some(element);
                continue;
            }
            self.take(request, place, element, is_internal)?;
        }
        Ok(database)
    }

    fn take(&mut self, request: &Command, place: u8, element: RawElement<'_>, is_internal: bool) -> Result<()> {
        let Some(value) = element.value() else { return Ok(()) };
        match place {
            SESSION => self.session = Some(session(request, value)?),
            TRANSACTION_NUMBER => self.transaction_number = transaction_number(value)?,
            AUTOCOMMIT => self.autocommit = boolean("OperationSessionInfo", element)?,
            START_TRANSACTION => self.start_transaction = boolean("OperationSessionInfo", element)?,
            RETRY_COUNTER => self.transaction_retry_counter = value.as_number().and_then(|it| it.to_i64_exact()),
            READ_CONCERN => self.read_concern = document(request, element)?,
            WRITE_CONCERN => self.write_concern = document(request, element)?,
            AUDIT => self.impersonates = names_others(value)?,
            READ_PREFERENCE => self.read_preference = document(request, element)?,
            CLUSTER_TIME => {
                self.cluster_time = cluster_time(value)?;
                self.cluster_time_proof = time_proof(value);
            }
            MAX_TIME => self.max_time_ms = checked_time_ms(request, value)?,
            MAX_TIME_OF_OPERATION => {
                let reason = "Can not specify maxTimeMSOpOnly for non internal clients";
                ensure!(is_internal, ErrorCode::InvalidOptions, "{reason}");
                self.max_time_ms = max_time_ms("maxTimeMSOpOnly", value)?;
            }
            COMMENT => self.comment = Some(value.to_shared(&Doc::trusted(request.body_bytes()))),
            API_VERSION => self.api.version = api_version(value)?,
            API_STRICT => self.api.strict = boolean("APIParametersFromClient", element)?,
            API_DEPRECATION_ERRORS => self.api.deprecation_errors = boolean("APIParametersFromClient", element)?,
            CLIENT_OPERATION_KEY => self.client_operation_key = uuid(value),
            HELP => self.wants_help = value.is_true(),
            TENANT => {
                bail!(ErrorCode::InvalidOptions, "Multitenancy not enabled, cannot set $tenant in command body");
            }
            // It tells how names begin where there are tenants. Here there are none, and nothing begins otherwise.
            EXPECT_PREFIX => drop(boolean(&request.name().to_string(), element)?),
            SHARD_VERSION => check_shard_version(element)?,
            DATABASE_VERSION => {
                check_database_version(element)?;
                self.has_database_version = true;
            }
            COORDINATOR => self.coordinator = boolean("OperationSessionInfo", element)?,
            MAY_BYPASS_WRITE_BLOCKING => {
                let Value::Bool(truth) = value else {
                    let found = value.value_type().name();
                    bail!(ErrorCode::location(13111), "wrong type for field ({}) {found} != bool", element.name);
                };
                self.may_bypass_write_blocking = Some(truth);
            }
            _ => {}
        }
        Ok(())
    }

    /// The session belongs to this user, whom the connection is known to be.
    pub fn set_session_user(&mut self, user: [u8; 32]) {
        if let Some(session) = self.session.as_mut().filter(|session| session.user.is_none()) {
            session.user = Some(user);
            let mut document = DocBuilder::new();
            document.append_all(session.document.view());
            document.append("uid", Value::Binary { subtype: 0, bytes: &user });
            session.document = document.finish();
        }
    }

    /// Does the client allow a node to answer that is not primary?
    pub fn allows_secondary(&self) -> Result<bool> {
        let Some(preference) = &self.read_preference else { return Ok(false) };
        match preference.get("mode").and_then(|mode| mode.as_str().map(str::to_owned)).as_deref() {
            Some("primary") | None => Ok(false),
            Some("primaryPreferred" | "secondary" | "secondaryPreferred" | "nearest") => Ok(true),
            Some(other) => {
                bail!(ErrorCode::BadValue, "Enumeration value '{other}' for field 'mode' is not a valid value.")
            }
        }
    }

    /// Is it part of a transaction?
    pub fn is_in_transaction(&self) -> bool {
        self.autocommit == Some(false)
    }
}

fn session(request: &Command, value: Value<'_>) -> Result<SessionId> {
    let outer = Place::of_command("OperationSessionInfo");
    let place = outer.field(BStr::new("lsid"));
    let Value::Document(document) = value else {
        return Err(place.wrong_type(value.value_type(), &[ValueType::Document]));
    };
    let (mut id, mut uid) = (None, None);
    for element in document.raw_elements() {
        match &**element.name {
            b"id" => id = id.or_else(|| element.value()),
            b"uid" => uid = uid.or_else(|| element.value()),
            _ => {}
        }
    }
    let id = id.ok_or_else(|| place.missing("id"))?;
    let id = uuid(id).ok_or_else(|| place.field(BStr::new("id")).wrong_type(id.value_type(), &[ValueType::Binary]))?;
    let user = match uid {
        Some(Value::Binary { bytes, .. }) => bytes.try_into().ok(),
        _ => None,
    };
    Ok(SessionId { id, user, document: Doc::trusted(request.share(document.bytes())) })
}

fn uuid(value: Value<'_>) -> Option<Uuid> {
    match value {
        Value::Binary { subtype: 4, bytes } => bytes.try_into().ok().map(Uuid::from_bytes),
        _ => None,
    }
}

fn transaction_number(value: Value<'_>) -> Result<Option<i64>> {
    match value {
        // Whether it is negative is looked at together with the session.
        Value::Int64(number) => Ok(Some(number)),
        Value::Null | Value::Undefined => Ok(None),
        other => {
            let outer = Place::of_command("OperationSessionInfo");
            Err(outer.field(BStr::new("txnNumber")).wrong_type(other.value_type(), &[ValueType::Int64]))
        }
    }
}

fn boolean(structure: &str, element: RawElement<'_>) -> Result<Option<bool>> {
    match element.value() {
        Some(Value::Bool(truth)) => Ok(Some(truth)),
        Some(Value::Null | Value::Undefined) | None => Ok(None),
        Some(other) => {
            let outer = Place::of_command(structure);
            Err(outer.field(element.name).wrong_type(other.value_type(), &[ValueType::Bool]))
        }
    }
}

fn document(request: &Command, element: RawElement<'_>) -> Result<Option<Doc>> {
    match element.value() {
        Some(Value::Document(document)) => Ok(Some(Doc::trusted(request.share(document.bytes())))),
        Some(Value::Null | Value::Undefined) | None => Ok(None),
        Some(other) => {
            let reason =
                format!("\"{}\" had the wrong type. Expected object, found {}", element.name, other.value_type());
            Err(Error::type_mismatch(reason))
        }
    }
}

/// Old routers put a timestamp without a signature there; only the time is looked at until there are keys.
fn cluster_time(value: Value<'_>) -> Result<Option<Timestamp>> {
    let Value::Document(document) = value else {
        bail!(
            ErrorCode::TypeMismatch,
            "\"$clusterTime\" had the wrong type. Expected object, found {}",
            value.value_type()
        );
    };
    let time = document.get("clusterTime").and_then(|time| time.as_timestamp());
    ensure!(time.is_some(), ErrorCode::NoSuchKey, "Missing expected field \"clusterTime\"");
    Ok(time)
}

/// The signature of a cluster time; none if there is none, or nothing like one.
fn time_proof(value: Value<'_>) -> Option<TimeProof> {
    let signature = value.as_document()?.get("signature")?.as_document()?;
    let Value::Binary { bytes, .. } = signature.get("hash")? else { return None };
    Some(TimeProof { hash: bytes.try_into().ok()?, key_id: signature.get("keyId")?.to_i64_exact()? })
}

/// `maxTimeMS` of a request. Two commands declare it as a number themselves, and say so.
fn checked_time_ms(request: &Command, value: Value<'_>) -> Result<u64> {
    const DECLARING: [&str; 2] = ["aggregate", "getMore"];
    const NUMBERS: &[ValueType] = &[ValueType::Int64, ValueType::Int32, ValueType::Decimal, ValueType::Double];
    if !value.is_number()
        && let Some(command) = request.body().raw_elements().next().map(|first| first.name)
        && let Some(declaring) = DECLARING.into_iter().find(|declaring| command == *declaring)
    {
        let outer = Place::of_command(declaring);
        return match value.is_nullish() {
            true => Ok(0),
            false => Err(outer.field(BStr::new("maxTimeMS")).wrong_type(value.value_type(), NUMBERS)),
        };
    }
    max_time_ms("maxTimeMS", value)
}

fn max_time_ms(name: &str, value: Value<'_>) -> Result<u64> {
    let Some(number) = value.as_number() else { bail!(ErrorCode::BadValue, "{name} must be a number") };
    let whole = number.truncated_i64();
    let is_in_range = (0..=i64::from(i32::MAX)).contains(&whole);
    ensure!(is_in_range, ErrorCode::BadValue, "{whole} value for {name} is out of range [0, {}]", i32::MAX);
    ensure!(number.to_i64_exact().is_some(), ErrorCode::BadValue, "{name} has non-integral value");
    Ok(whole as u64)
}

fn api_version(value: Value<'_>) -> Result<Option<String>> {
    match value {
        Value::String(text) => Ok(Some(text.to_string())),
        Value::Null | Value::Undefined => Ok(None),
        other => {
            let outer = Place::of_command("APIParametersFromClient");
            Err(outer.field(BStr::new("apiVersion")).wrong_type(other.value_type(), &[ValueType::String]))
        }
    }
}

/// Does another server say for whom it asks?
fn names_others(value: Value<'_>) -> Result<bool> {
    let Value::Document(audit) = value else {
        bail!(ErrorCode::TypeMismatch, "The '$audit' field must be an object, found {}", value.value_type().name());
    };
    Ok(["$impersonatedUser", "$impersonatedUsers", "$impersonatedRoles"].iter().any(|name| audit.contains(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_sorted() {
        assert!(GENERIC.is_sorted());
        assert!(GENERIC.iter().all(|name| is_generic(BStr::new(name))));
        assert!(["", "$", "db", "lsic", "$db\0"].iter().all(|name| !is_generic(BStr::new(name))));
        assert!(!is_generic(BStr::new("a".repeat(1000).as_str())));
        assert!(is_generic(BStr::new("lsid")) && !is_generic(BStr::new("lsids")));
    }
}
