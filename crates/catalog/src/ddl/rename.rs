//! Renaming a collection inside its database. To another database documents are copied, which is for those who write
//! documents.

use super::drop::require_no_builds;
use super::{Observers, require_unit};
use crate::Collection;
use crate::catalog::Catalog;
use pando_base::{ErrorCode, Namespace, Result, bail, ensure};
use pando_operation::Operation;
use pando_oplog::observer::RenameCollection;
use std::sync::Arc;

/// How a collection is renamed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RenameOptions {
    /// A collection that is in the way is dropped.
    pub drop_target: bool,
    /// A temporary collection stays one.
    pub stay_temp: bool,
}

impl Catalog {
    /// Renames a collection.
    pub fn rename_collection(
        self: &Arc<Self>,
        operation: &mut Operation,
        observers: &Observers,
        from: &Namespace,
        to: &Namespace,
        options: RenameOptions,
    ) -> Result<Arc<Collection>> {
        require_unit(operation)?;
        check_names(from, to)?;
        let source = self.source_of_rename(operation, from)?;
        require_no_builds(&source)?;
        let target = self.target_of_rename(operation, to, options)?;
        let dropped_record_count = match &target {
            Some(target) => u64::try_from(target.records.num_records()?).unwrap_or(0),
            None => 0,
        };
        if let Some(target) = &target {
            require_no_builds(target)?;
            self.remove_entry(operation, target)?;
        }
        let renamed = self.modify(operation, &source, |entry| {
            entry.namespace = to.clone();
            entry.options.temp &= options.stay_temp;
            Ok(())
        })?;
        observers.on_rename_collection(
            operation,
            &RenameCollection {
                from,
                to,
                uuid: source.uuid,
                dropped_target: target.as_ref().map(|target| target.uuid),
                dropped_record_count,
                stay_temp: options.stay_temp,
                from_migrate: false,
            },
        )?;
        Ok(renamed)
    }

    fn source_of_rename(&self, operation: &mut Operation, from: &Namespace) -> Result<Arc<Collection>> {
        if let Some(source) = self.collection_for_write(operation, from)? {
            ensure!(
                source.options.encrypted_fields.is_none(),
                ErrorCode::IllegalOperation,
                "Cannot rename an encrypted collection"
            );
            return Ok(source);
        }
        ensure!(!self.is_view(operation, from)?, ErrorCode::CommandNotSupportedOnView, "cannot rename view: {from}");
        bail!(ErrorCode::NamespaceNotFound, "Source collection {from} does not exist")
    }

    fn target_of_rename(
        &self,
        operation: &mut Operation,
        to: &Namespace,
        options: RenameOptions,
    ) -> Result<Option<Arc<Collection>>> {
        let Some(target) = self.collection_for_write(operation, to)? else {
            ensure!(
                !self.is_view(operation, to)?,
                ErrorCode::NamespaceExists,
                "a view already exists with that name: {to}"
            );
            return Ok(None);
        };
        ensure!(options.drop_target, ErrorCode::NamespaceExists, "target namespace exists");
        ensure!(
            target.options.encrypted_fields.is_none(),
            ErrorCode::IllegalOperation,
            "Cannot rename to an existing encrypted collection"
        );
        Ok(Some(target))
    }
}

fn check_names(from: &Namespace, to: &Namespace) -> Result<()> {
    ensure!(to.is_valid(), ErrorCode::InvalidNamespace, "Invalid target namespace: {to}");
    ensure!(
        from.database_name() == to.database_name(),
        ErrorCode::CommandFailed,
        "Source and destination collections must be on the same database"
    );
    ensure!(from != to, ErrorCode::IllegalOperation, "Can't rename a collection to itself");
    ensure!(
        from.is_replicated() == to.is_replicated(),
        ErrorCode::IllegalOperation,
        "Cannot rename collections between a replicated and an unreplicated database"
    );
    ensure!(
        !from.is_system_views() && !to.is_system_views(),
        ErrorCode::IllegalOperation,
        "renaming system.views collection or renaming to system.views is not allowed"
    );
    ensure!(!from.is_oplog() && !to.is_oplog(), ErrorCode::IllegalOperation, "can't rename the oplog or to it");
    ensure!(
        !from.is_timeseries_buckets() || to.is_timeseries_buckets(),
        ErrorCode::IllegalOperation,
        "Cannot rename timeseries buckets collection '{from}' to a namespace that is not timeseries buckets '{to}'."
    );
    Ok(())
}
