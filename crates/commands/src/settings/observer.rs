//! Keeps the cache of settings in step with their documents: what cannot be read is refused before it is written, what can is
//! taken over when it is committed.

use super::{ClusterSettings, Kept};
use pando_base::{DatabaseName, Namespace, Result};
use pando_doc::DocRef;
use pando_env::Env;
use pando_operation::Operation;
use pando_oplog::OpObserver;
use pando_oplog::observer::{Delete, DropCollection, Inserts, RenameCollection, Update};
use std::sync::Arc;

/// Watches the collections that settings are kept in.
pub struct SettingsObserver {
    settings: Arc<ClusterSettings>,
    env: Env,
}

impl SettingsObserver {
    /// An observer for this cache.
    pub fn new(settings: &Arc<ClusterSettings>, env: &Env) -> SettingsObserver {
        SettingsObserver { settings: Arc::clone(settings), env: env.clone() }
    }

    fn now_ms(env: &Env) -> i64 {
        i64::try_from(env.clock().wall_ms()).unwrap_or(i64::MAX)
    }

    fn written(&self, operation: &mut Operation, kept: Kept, document: DocRef<'_>) -> Result<()> {
        self.settings.check(kept, document)?;
        let (settings, env, document) = (Arc::clone(&self.settings), self.env.clone(), document.to_doc());
        operation.recovery_unit.on_commit(move |_| {
            let taken = settings.take(kept, &document, SettingsObserver::now_ms(&env));
            debug_assert!(taken.is_ok(), "it was checked");
        })?;
        Ok(())
    }

    fn emptied(&self, operation: &mut Operation, namespace: &Namespace) -> Result<()> {
        let Some(kept) = Kept::of(namespace) else { return Ok(()) };
        let (settings, env) = (Arc::clone(&self.settings), self.env.clone());
        operation.recovery_unit.on_commit(move |_| settings.forget_all(kept, SettingsObserver::now_ms(&env)))?;
        Ok(())
    }
}

impl OpObserver<Operation> for SettingsObserver {
    fn on_inserts(&self, operation: &mut Operation, inserts: &Inserts<'_>) -> Result<()> {
        let Some(kept) = Kept::of(inserts.collection.namespace) else { return Ok(()) };
        inserts.inserts.iter().try_for_each(|insert| self.written(operation, kept, insert.document))
    }

    fn on_update(&self, operation: &mut Operation, update: &Update<'_>) -> Result<()> {
        let Some(kept) = Kept::of(update.collection.namespace) else { return Ok(()) };
        self.written(operation, kept, update.post_image)
    }

    fn on_delete(&self, operation: &mut Operation, delete: &Delete<'_>) -> Result<()> {
        let Some(kept) = Kept::of(delete.collection.namespace) else { return Ok(()) };
        let Some(id) = delete.pre_image.get("_id").and_then(|id| id.as_str().map(str::to_owned)) else { return Ok(()) };
        let (settings, env) = (Arc::clone(&self.settings), self.env.clone());
        operation.recovery_unit.on_commit(move |_| settings.forget(kept, &id, SettingsObserver::now_ms(&env)))?;
        Ok(())
    }

    fn on_drop_collection(&self, operation: &mut Operation, drop: &DropCollection<'_>) -> Result<()> {
        self.emptied(operation, drop.collection.namespace)
    }

    fn on_rename_collection(&self, operation: &mut Operation, rename: &RenameCollection<'_>) -> Result<()> {
        self.emptied(operation, rename.from)
    }

    fn on_drop_database(&self, operation: &mut Operation, database: &DatabaseName) -> Result<()> {
        let gone = Kept::ALL.into_iter().filter(|kept| kept.namespace().database() == database.as_str());
        gone.map(Kept::namespace).try_for_each(|namespace| self.emptied(operation, namespace))
    }
}
