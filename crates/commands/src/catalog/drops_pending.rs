//! Databases that are being dropped: nobody makes a collection there, also while `dropDatabase` waits without locks.

use pando_base::{DatabaseName, ErrorCode, Namespace, Result, ensure};
use parking_lot::Mutex;

/// The databases that are being dropped.
#[derive(Debug, Default)]
pub struct DropsPending(Mutex<Vec<DatabaseName>>);

/// One of them, until this is dropped.
pub(super) struct DropPending<'a> {
    all: &'a DropsPending,
    database: DatabaseName,
}

impl DropsPending {
    /// Notes that a database is being dropped. The caller holds it in X.
    pub(super) fn enter(&self, database: &DatabaseName) -> Result<DropPending<'_>> {
        let mut pending = self.0.lock();
        ensure!(
            !pending.contains(database),
            ErrorCode::DatabaseDropPending,
            "{database} is in the process of being dropped."
        );
        pending.push(database.clone());
        Ok(DropPending { all: self, database: database.clone() })
    }

    /// Refuses a new collection in a database that is being dropped.
    pub(crate) fn check(&self, namespace: &Namespace) -> Result<()> {
        ensure!(
            !self.0.lock().contains(&namespace.database_name()),
            ErrorCode::DatabaseDropPending,
            "Cannot create collection {namespace} - database is in the process of being dropped."
        );
        Ok(())
    }
}

impl Drop for DropPending<'_> {
    fn drop(&mut self) {
        self.all.0.lock().retain(|other| *other != self.database);
    }
}
