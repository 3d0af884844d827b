//! What a `$changeStream` is asked for, and whether that is allowed.

use super::super::options::{document, string, unknown, wrong_type};
use super::scope::{Scope, Watched};
use super::token::ResumeToken;
use crate::pipeline::StreamBeginning;
use pando_base::{Error, ErrorCode, Namespace, Result, Timestamp, bail, ensure};
use pando_doc::{DocRef, Element, Value};

const STAGE: &str = "$changeStream";

/// The document after an update.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum FullDocument {
    /// Not given.
    #[default]
    Default,
    /// As it is when the event is read.
    UpdateLookup,
    /// As it was right after the update, or null.
    WhenAvailable,
    /// As it was right after the update.
    Required,
}

/// The document before a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum BeforeChange {
    /// Not given.
    #[default]
    Off,
    /// As it was, or null.
    WhenAvailable,
    /// As it was.
    Required,
}

impl FullDocument {
    const NAMES: [(&'static str, FullDocument); 4] = [
        ("default", FullDocument::Default),
        ("updateLookup", FullDocument::UpdateLookup),
        ("whenAvailable", FullDocument::WhenAvailable),
        ("required", FullDocument::Required),
    ];

    /// True if it is made of the document before the update.
    pub(super) fn is_of_its_time(self) -> bool {
        matches!(self, FullDocument::WhenAvailable | FullDocument::Required)
    }
}

impl BeforeChange {
    const NAMES: [(&'static str, BeforeChange); 3] = [
        ("off", BeforeChange::Off),
        ("whenAvailable", BeforeChange::WhenAvailable),
        ("required", BeforeChange::Required),
    ];
}

/// What a stream shows, from where on.
#[derive(Clone, Debug)]
pub struct StreamOptions {
    pub(super) scope: Scope,
    pub(super) full_document: FullDocument,
    pub(super) before_change: BeforeChange,
    /// Events and fields beyond the classic ones.
    pub(super) shows_expanded: bool,
    /// Updates are shown as the oplog has them.
    pub(super) shows_raw_updates: bool,
    /// A document is looked up only in the very collection that it was changed in.
    pub(super) matches_uuid: bool,
    /// Where it begins: the client's token, or a moment.
    pub(super) beginning: ResumeToken,
    /// The version of tokens behind the beginning.
    pub(super) token_version: i32,
}

/// The options as they are written.
#[derive(Default)]
struct Written<'a> {
    resume_after: Option<DocRef<'a>>,
    start_after: Option<DocRef<'a>>,
    start_at: Option<Timestamp>,
    full_document: FullDocument,
    before_change: BeforeChange,
    all_changes_for_cluster: bool,
    shows_migrations: bool,
    shows_system: bool,
    may_run_on_config: bool,
    may_run_on_system: bool,
    shows_expanded: bool,
    shows_raw_updates: bool,
    matches_uuid: bool,
}

/// Options that may be null, which says nothing.
const KNOWN: [&str; 13] = [
    "resumeAfter",
    "startAfter",
    "startAtOperationTime",
    "fullDocument",
    "fullDocumentBeforeChange",
    "allChangesForCluster",
    "showMigrationEvents",
    "showSystemEvents",
    "allowToRunOnConfigDB",
    "allowToRunOnSystemNS",
    "showExpandedEvents",
    "showRawUpdateDescription",
    "matchCollectionUUIDForUpdateLookup",
];

impl<'a> Written<'a> {
    fn read(options: DocRef<'a>) -> Result<Written<'a>> {
        let mut written = Written::default();
        for option in options.elements() {
            if option.value.is_nullish() && KNOWN.iter().any(|known| option.name == *known) {
                continue;
            }
            match &**option.name {
                b"resumeAfter" => written.resume_after = Some(document(STAGE, option)?),
                b"startAfter" => written.start_after = Some(document(STAGE, option)?),
                b"startAtOperationTime" => {
                    let time = option.value.as_timestamp();
                    written.start_at = Some(time.ok_or_else(|| wrong_type(STAGE, option, "type 'timestamp'"))?);
                }
                b"fullDocument" => written.full_document = one_of(option, &FullDocument::NAMES)?,
                b"fullDocumentBeforeChange" => written.before_change = one_of(option, &BeforeChange::NAMES)?,
                b"allChangesForCluster" => written.all_changes_for_cluster = truth(option)?,
                b"showMigrationEvents" => written.shows_migrations = truth(option)?,
                b"showSystemEvents" => written.shows_system = truth(option)?,
                b"allowToRunOnConfigDB" => written.may_run_on_config = truth(option)?,
                b"allowToRunOnSystemNS" => written.may_run_on_system = truth(option)?,
                b"showExpandedEvents" => written.shows_expanded = truth(option)?,
                b"showRawUpdateDescription" => written.shows_raw_updates = truth(option)?,
                b"matchCollectionUUIDForUpdateLookup" => written.matches_uuid = truth(option)?,
                _ => return Err(unknown(STAGE, option)),
            }
        }
        Ok(written)
    }

    /// What a stream on this collection or database follows.
    fn watched(&self, namespace: &Namespace) -> Watched {
        match (self.all_changes_for_cluster, namespace.is_collectionless_aggregate()) {
            (true, _) => Watched::Cluster,
            (false, true) => Watched::Database(namespace.database().to_owned()),
            (false, false) => Watched::Collection(namespace.clone()),
        }
    }

    /// The token of the client, if it came with one.
    fn token(&self) -> Result<Option<ResumeToken>> {
        self.start_after.or(self.resume_after).map(ResumeToken::parse).transpose()
    }

    fn check_namespace(&self, namespace: &Namespace) -> Result<()> {
        let is_whole = namespace.is_collectionless_aggregate();
        ensure!(
            !self.all_changes_for_cluster || (namespace.is_admin() && is_whole),
            ErrorCode::InvalidOptions,
            "A $changeStream with 'allChangesForCluster:true' may only be opened on the 'admin' database, and with no \
             collection name; found {namespace}"
        );
        let is_open = match namespace.is_admin() {
            true => self.all_changes_for_cluster,
            false => !namespace.is_local() && (!namespace.is_config() || self.may_run_on_config),
        };
        ensure!(
            is_open,
            ErrorCode::InvalidNamespace,
            "$changeStream may not be opened on the internal {} database",
            namespace.database()
        );
        ensure!(
            is_whole || !namespace.is_system() || self.may_run_on_system,
            ErrorCode::InvalidNamespace,
            "$changeStream may not be opened on the internal {namespace} collection"
        );
        Ok(())
    }

    fn check_beginning(&self, token: Option<&ResumeToken>, namespace: &Namespace) -> Result<()> {
        ensure!(
            self.start_at.is_none() || token.is_none(),
            ErrorCode::location(40674),
            "Only one type of resume option is allowed, but multiple were found"
        );
        let Some(token) = token else { return Ok(()) };
        ensure!(
            self.resume_after.is_none() || !token.from_invalidate,
            ErrorCode::InvalidResumeToken,
            "Attempting to resume a change stream using 'resumeAfter' is not allowed from an invalidate notification"
        );
        ensure!(
            token.uuid.is_some() || namespace.is_collectionless_aggregate() || token.is_high_water_mark(),
            ErrorCode::InvalidResumeToken,
            "Attempted to resume a single-collection stream, but the resume token does not include a UUID"
        );
        Ok(())
    }
}

/// What a stream with these options follows on this collection or database.
pub(in crate::pipeline) fn watched(value: Value<'_>, namespace: &Namespace) -> Result<Watched> {
    Ok(Written::read(written(value)?)?.watched(namespace))
}

/// The options, which are a document.
pub(super) fn written(value: Value<'_>) -> Result<DocRef<'_>> {
    value.as_document().ok_or_else(|| {
        let reason = format!("{STAGE} must take a nested object but found: {STAGE}: {value}");
        Error::location(6188500, reason)
    })
}

impl StreamOptions {
    /// Reads them for a stream on this collection or database.
    pub(super) fn parse(
        options: DocRef<'_>,
        namespace: &Namespace,
        beginning: Option<StreamBeginning>,
    ) -> Result<StreamOptions> {
        let written = Written::read(options)?;
        let Some(beginning) = beginning else {
            bail!(ErrorCode::location(40573), "The $changeStream stage is only supported on replica sets");
        };
        written.check_namespace(namespace)?;
        ensure!(
            written.resume_after.is_none() || written.start_after.is_none(),
            ErrorCode::location(50865),
            "Do not specify both 'resumeAfter' and 'startAfter' in a $changeStream stage"
        );
        let token = written.token()?;
        written.check_beginning(token.as_ref(), namespace)?;
        let moment = written.start_at.unwrap_or(beginning.now.next());
        let mut token = token.unwrap_or_else(|| ResumeToken::high_water_mark(moment, beginning.token_version));
        let token_version = token.version.max(beginning.token_version);
        if token.is_high_water_mark() {
            token.version = token_version;
        }
        Ok(StreamOptions {
            scope: Scope::new(
                written.watched(namespace),
                written.shows_system,
                written.shows_migrations,
                written.shows_expanded,
            ),
            full_document: written.full_document,
            before_change: written.before_change,
            shows_expanded: written.shows_expanded,
            shows_raw_updates: written.shows_raw_updates,
            matches_uuid: written.matches_uuid,
            beginning: token,
            token_version,
        })
    }

    /// True if documents before changes are needed.
    pub(super) fn needs_pre_images(&self) -> bool {
        self.before_change != BeforeChange::Off || self.full_document.is_of_its_time()
    }
}

fn one_of<T: Copy>(option: Element<'_>, names: &[(&str, T)]) -> Result<T> {
    let text = string(STAGE, option)?;
    names.iter().find(|(name, _)| *name == text).map(|(_, mode)| *mode).ok_or_else(|| {
        let name = option.name;
        Error::bad_value(format!("Enumeration value '{text}' for field '{STAGE}.{name}' is not a valid value."))
    })
}

fn truth(option: Element<'_>) -> Result<bool> {
    match option.value {
        Value::Bool(truth) => Ok(truth),
        Value::Null | Value::Undefined => Ok(false),
        value if value.is_number() => Ok(value.is_true()),
        _ => Err(wrong_type(STAGE, option, "types '[bool, int, decimal, double, long]'")),
    }
}
