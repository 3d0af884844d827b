//! Which namespaces a client may create and write.

use super::{NAMESPACE_LENGTH_MAX, Namespace};
use crate::{ErrorCode, Result, ensure};

impl Namespace {
    /// True if the database's name is valid (a dollar allowed) and there is a collection.
    pub fn is_valid(&self) -> bool {
        self.database_name().is_valid() && self.has_collection()
    }

    /// The check on a namespace that a command names.
    pub fn validate(&self) -> Result<()> {
        ensure!(self.is_valid(), ErrorCode::InvalidNamespace, "Invalid namespace specified '{self}'");
        Ok(())
    }

    /// True if a collection may be called so: not empty, no dot in front, no dollar, no NUL.
    pub fn is_valid_collection_name(collection: &str) -> bool {
        !collection.is_empty()
            && !collection.starts_with('.')
            && !collection.bytes().any(|byte| matches!(byte, 0 | b'$'))
    }

    /// Whether a client may create this collection, whether by asking for it or by writing into it.
    pub fn validate_for_create(&self) -> Result<()> {
        ensure!(
            self.database_name().is_valid_for_create() && self.has_collection(),
            ErrorCode::InvalidNamespace,
            "Invalid namespace: {self}"
        );
        ensure!(
            Namespace::is_valid_collection_name(self.collection()),
            ErrorCode::InvalidNamespace,
            "Invalid collection name: {}",
            self.collection()
        );
        if self.is_system_profile() {
            return Ok(());
        }
        ensure!(
            !self.is_system() || self.is_client_system(),
            ErrorCode::InvalidNamespace,
            "Invalid system namespace: {self}"
        );
        ensure!(
            !self.is_normal() || self.as_str().len() <= NAMESPACE_LENGTH_MAX,
            ErrorCode::InvalidNamespace,
            "Fully qualified namespace is too long. Namespace: {self} Max: {NAMESPACE_LENGTH_MAX}"
        );
        let allowed = !self.collection().contains(".system.")
            || self.is_cached_chunks()
            || (self.is_config() && self.is_client_system());
        let code = if self.is_timeseries_buckets() { ErrorCode::InvalidNamespace } else { ErrorCode::BadValue };
        ensure!(allowed, code, "Invalid namespace: {self}");
        Ok(())
    }

    /// Whether a client may write here. The oplog is closed to clients while it is one.
    pub fn validate_for_write(&self, is_replicating: bool) -> Result<()> {
        let closed = self.is_system_profile() || self.is_system_views() || (self.is_oplog() && is_replicating);
        ensure!(!closed, ErrorCode::InvalidNamespace, "cannot write to {self}");
        self.validate_for_create()
    }

    /// True if clients may touch it although it is a "system." collection.
    pub fn is_client_system(&self) -> bool {
        let collection = self.collection();
        let here = match self.database() {
            "admin" => is_client_system_of_admin(collection),
            "config" => is_client_system_of_config(collection),
            "local" => matches!(collection, "system.replset" | "system.healthlog" | "system.collections_to_restore"),
            _ => false,
        };
        here || matches!(collection, "system.users" | "system.js" | "system.views")
            || self.is_temporary_resharding()
            || self.timeseries_view().is_some_and(|view| Namespace::is_valid_collection_name(view.collection()))
            || self.is_change_stream_pre_images()
            || self.is_change_collection()
            || self.is_system_statistics()
    }
}

fn is_client_system_of_admin(collection: &str) -> bool {
    matches!(collection, "system.roles" | "system.version" | "system.keys" | "system.backup_users" | "system.new_users")
}

fn is_client_system_of_config(collection: &str) -> bool {
    let is_named = matches!(
        collection,
        "system.sessions"
            | "system.indexBuilds"
            | "system.sharding_ddl_coordinators"
            | "sharding_configsvr_coordinators"
    );
    is_named || collection.contains(".system.resharding.")
}
