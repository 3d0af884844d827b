//! Settings of the whole deployment: kept as documents in collections, so that they are replicated and survive, and cached
//! here, so that every command can ask for them.
//!
//! | document | what it sets |
//! | --- | --- |
//! | `admin.system.version`, `_id` "featureCompatibilityVersion" | the version whose formats are written |
//! | `config.settings`, `_id` "ReadWriteConcernDefaults" | the concerns of commands that give none |
//! | `config.clusterParameters`, one each | cluster parameters |
//! | `config.user_writes_critical_sections` | whether clients' writes are blocked |
//!
//! The cache follows the write path ([`SettingsObserver`]), whoever writes; at start [`ClusterSettings::load`] fills it. The commands of this
//! area change the documents, one command at a time, and never the cache.
//!
//! Locks: `defaults` and `cluster_parameters` are leaves, held for a copy. That there are no defaults, which is usual, is known without one.

mod cluster_parameters;
mod compatibility;
mod defaults;
mod gate;
mod get_cluster_parameter;
mod get_default_rw_concern;
mod observer;
mod set_cluster_parameter;
mod set_default_rw_concern;
mod set_feature_compatibility_version;
mod set_user_write_block_mode;

pub use observer::SettingsObserver;
pub use set_user_write_block_mode::check_user_write;

pub(crate) use compatibility::{DISABLE_TRANSITION_TO_LAST_CONTINUOUS, REQUIRE_CONFIRM};
pub(crate) use compatibility::{append_version_numbers, oldest_wire_version};
pub(crate) use gate::{GATES_NEW_FEATURES, capped_size, check_kept_expression, check_new_index};
pub(crate) use get_default_rw_concern::append_defaults;

use crate::{CommandRow, Data, FEATURE_COMPATIBILITY_VERSION, Invocation};
use defaults::Defaults;
use pando_base::{Error, Namespace, ParameterSet, Result};
use pando_doc::{Doc, DocBuilder, DocRef, Value};
use pando_repl::ReplGate;
use pando_repl::WriteConcernOutcome;
use pando_repl::write_concern::{Provenance, WriteConcern};
use parking_lot::RwLock;
use set_user_write_block_mode::EVERYWHERE;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

/// The commands of this area.
pub static ROWS: &[CommandRow] = &[
    get_cluster_parameter::ROW,
    get_default_rw_concern::ROW,
    set_cluster_parameter::ROW,
    set_default_rw_concern::ROW,
    set_feature_compatibility_version::ROW,
    set_user_write_block_mode::ROW,
];

/// A collection that settings are kept in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    Compatibility,
    Defaults,
    ClusterParameters,
    WriteBlocks,
}

impl Kept {
    const ALL: [Kept; 4] = [Kept::Compatibility, Kept::Defaults, Kept::ClusterParameters, Kept::WriteBlocks];

    /// Where it lies.
    fn namespace(self) -> &'static Namespace {
        static SETTINGS: LazyLock<Option<Namespace>> = LazyLock::new(|| Namespace::parse("config.settings").ok());
        static PARAMETERS: LazyLock<Option<Namespace>> =
            LazyLock::new(|| Namespace::parse("config.clusterParameters").ok());
        static WRITE_BLOCKS: LazyLock<Option<Namespace>> =
            LazyLock::new(|| Namespace::parse("config.user_writes_critical_sections").ok());
        let own = Namespace::server_configuration();
        debug_assert!(SETTINGS.is_some() && PARAMETERS.is_some() && WRITE_BLOCKS.is_some(), "they are names");
        match self {
            Kept::Compatibility => own,
            Kept::Defaults => SETTINGS.as_ref().unwrap_or(own),
            Kept::ClusterParameters => PARAMETERS.as_ref().unwrap_or(own),
            Kept::WriteBlocks => WRITE_BLOCKS.as_ref().unwrap_or(own),
        }
    }

    /// What is kept there, if it is settings.
    fn of(namespace: &Namespace) -> Option<Kept> {
        match namespace.as_str() {
            "admin.system.version" => Some(Kept::Compatibility),
            "config.settings" => Some(Kept::Defaults),
            "config.clusterParameters" => Some(Kept::ClusterParameters),
            "config.user_writes_critical_sections" => Some(Kept::WriteBlocks),
            _ => None,
        }
    }
}

/// What the deployment is set to, as far as it is not at its defaults.
pub struct ClusterSettings {
    parameters: Arc<ParameterSet>,
    defaults: RwLock<Arc<Defaults>>,
    has_defaults: AtomicBool,
    cluster_parameters: RwLock<BTreeMap<String, Doc>>,
    blocks_user_writes: AtomicBool,
    /// Held by the command that changes settings.
    changing: tokio::sync::Mutex<()>,
}

impl ClusterSettings {
    /// Settings of which nothing is known yet. The version is kept among the parameters, where getParameter shows it.
    pub fn new(parameters: &Arc<ParameterSet>) -> ClusterSettings {
        ClusterSettings {
            parameters: Arc::clone(parameters),
            defaults: RwLock::default(),
            has_defaults: AtomicBool::new(false),
            cluster_parameters: RwLock::default(),
            blocks_user_writes: AtomicBool::new(false),
            changing: tokio::sync::Mutex::new(()),
        }
    }

    /// Reads what the collections have.
    pub async fn load(&self, data: &Data, now_ms: i64) -> Result<()> {
        let mut operation = data.services.internal_operation("settings");
        for kept in Kept::ALL {
            for document in crate::stored::find(data, &mut operation, kept.namespace(), Doc::new()).await? {
                self.take(kept, &document, now_ms)?;
            }
        }
        Ok(())
    }

    /// The write concern of commands that give none; none if nobody has set one.
    #[inline]
    pub fn default_write_concern(&self) -> Option<WriteConcern> {
        self.defaults_if_any().and_then(|defaults| defaults.write.clone())
    }

    /// The read concern of commands that give none, as it is put in its place; none if nobody has set one.
    #[inline]
    pub fn default_read_concern(&self) -> Option<Doc> {
        let defaults = self.defaults_if_any()?;
        let level = defaults.read.as_ref()?;
        let mut concern = DocBuilder::new();
        concern.append_all(level.view());
        concern.append("provenance", Provenance::CustomDefault.as_str());
        Some(concern.finish())
    }

    /// May clients not write to databases of their own?
    #[inline]
    pub(crate) fn are_user_writes_blocked(&self) -> bool {
        self.blocks_user_writes.load(Ordering::Acquire)
    }

    /// After how many seconds documents that are kept for change streams expire; none if they do with the oplog alone.
    pub fn pre_images_expire_after_seconds(&self) -> Option<i64> {
        let parameters = self.cluster_parameters.read();
        let images = parameters.get("changeStreamOptions")?.get("preAndPostImages")?.as_document()?;
        images.get("expireAfterSeconds").filter(|seconds| seconds.is_number()).map(|seconds| seconds.to_i64_or_zero())
    }

    #[inline]
    fn defaults_if_any(&self) -> Option<Arc<Defaults>> {
        self.has_defaults.load(Ordering::Acquire).then(|| Arc::clone(&self.defaults.read()))
    }

    /// Can the cache take the document? Asked before the document is written.
    fn check(&self, kept: Kept, document: DocRef<'_>) -> Result<()> {
        match kept {
            Kept::Compatibility => compatibility::State::of_stored(document).map(|_| ()),
            Kept::Defaults => Defaults::of_stored(document, 0).map(|_| ()),
            Kept::ClusterParameters | Kept::WriteBlocks => Ok(()),
        }
    }

    /// A document is there, or is another now.
    fn take(&self, kept: Kept, document: &Doc, now_ms: i64) -> Result<()> {
        match kept {
            Kept::Compatibility => {
                if let Some(state) = compatibility::State::of_stored(document.view())? {
                    self.parameters.set(&FEATURE_COMPATIBILITY_VERSION, state.shown().bytes().into())?;
                }
            }
            Kept::Defaults => {
                if let Some(defaults) = Defaults::of_stored(document.view(), now_ms)? {
                    self.set_defaults(defaults);
                }
            }
            Kept::ClusterParameters => {
                if let Some(name) = document.get("_id").and_then(|id| id.as_str().map(str::to_owned)) {
                    self.cluster_parameters.write().insert(name, document.clone());
                }
            }
            Kept::WriteBlocks => {
                let is_everywhere = document.get("_id") == Some(Value::String(EVERYWHERE.into()));
                if is_everywhere {
                    let is_blocking = document.get("blockUserWrites").is_some_and(|blocks| blocks.is_true());
                    self.blocks_user_writes.store(is_blocking, Ordering::Release);
                }
            }
        }
        Ok(())
    }

    /// A document is gone.
    fn forget(&self, kept: Kept, id: &str, now_ms: i64) {
        match kept {
            // The version of a deployment does not end with its document.
            Kept::Compatibility => {}
            Kept::Defaults if id == defaults::ID => self.set_defaults(Defaults::unset(now_ms)),
            Kept::Defaults => {}
            Kept::ClusterParameters => {
                self.cluster_parameters.write().remove(id);
            }
            Kept::WriteBlocks if id == EVERYWHERE => self.blocks_user_writes.store(false, Ordering::Release),
            Kept::WriteBlocks => {}
        }
    }

    /// A collection is gone.
    fn forget_all(&self, kept: Kept, now_ms: i64) {
        match kept {
            Kept::Compatibility => {}
            Kept::Defaults => self.set_defaults(Defaults::unset(now_ms)),
            Kept::ClusterParameters => self.cluster_parameters.write().clear(),
            Kept::WriteBlocks => self.blocks_user_writes.store(false, Ordering::Release),
        }
    }

    fn set_defaults(&self, defaults: Defaults) {
        let is_any = defaults.read.is_some() || defaults.write.is_some();
        *self.defaults.write() = Arc::new(defaults);
        self.has_defaults.store(is_any, Ordering::Release);
    }
}

/// Waits until a majority has what the command has written, whatever the client asks for.
async fn wait_for_majority(invocation: &Invocation, data: &Data) -> Result<()> {
    if !data.replication.is_replicated() {
        return Ok(());
    }
    let majority = WriteConcern::majority(Provenance::InternalWriteDefault);
    let last = invocation.last_commit();
    match data.replication.wait_for_write_concern(&invocation.context, &majority, last).await {
        WriteConcernOutcome::Satisfied => Ok(()),
        WriteConcernOutcome::Failed { error, .. } => Err(error),
    }
}

/// The text under a name.
fn text_field(document: DocRef<'_>, name: &str) -> Result<Option<String>> {
    match document.get(name) {
        None => Ok(None),
        Some(value) => match value.as_str() {
            Some(text) => Ok(Some(text.to_owned())),
            None => Err(Error::type_mismatch(format!("the field '{name}' must be a string: {document}"))),
        },
    }
}
