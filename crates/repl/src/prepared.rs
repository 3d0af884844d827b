//! Prepared transactions after a restart: each is made anew from its oplog entries, as it was when the node ended, and put into its
//! session, where it waits for its end.
//!
//! Which they are the table of sessions tells: its records follow from the oplog, so that recovery has brought them up to its end.
//! Nobody else reads or writes yet; so the locks that a transaction had are free, and what it wrote nobody has changed since.

use crate::apply::Applier;
use crate::gate::ReplGate;
use crate::startup::ReplicationParts;
use pando_base::{Component, Error, ErrorCode, Namespace, Result, Severity, log};
use pando_catalog::Collection;
use pando_doc::DocRef;
use pando_locks::{GlobalLockOptions, Mode, ResourceId, Wait};
use pando_operation::{Operation, UnitOfWork};
use pando_oplog::OplogEntry;
use pando_session::{DurableState, SessionRecord, TransactionAccount};
use pando_storage::{Direction, OplogPin, Urgency};
use std::sync::Arc;

impl ReplicationParts {
    /// Makes the prepared transactions anew; how many. After recovery, before anybody reads or writes.
    pub async fn rebuild_prepared(&self) -> Result<usize> {
        if !self.node.is_replicated() {
            return Ok(0);
        }
        let mut rebuilt = 0;
        for record in self.prepared_records()? {
            match self.rebuild(&record).await {
                Ok(()) => rebuilt += 1,
                // The node was alone in between, without an oplog: nobody can tell any more what was prepared.
                Err(error) if error.code() == ErrorCode::IncompleteTransactionHistory => {
                    let message = "A prepared transaction could not be made anew";
                    let session = record.session.to_string();
                    let log = &self.services.log;
                    let (severity, component) = (Severity::Error, Component::Replication);
                    log!(log, severity, component, 21848, message, "session" = session, "error" = &error);
                }
                Err(error) => return Err(error.context(format!("making {} anew", record.session))),
            }
        }
        self.node.stable().prepared_entries().started();
        Ok(rebuilt)
    }

    fn prepared_records(&self) -> Result<Vec<SessionRecord>> {
        let Some(collection) = self.catalog.latest().collection(Namespace::session_transactions()).cloned() else {
            return Ok(Vec::new());
        };
        let mut operation = self.services.internal_operation("Replication");
        let mut cursor = collection.records.cursor(Direction::Forward);
        let mut found = Vec::new();
        while let Some(record) = cursor.next(&mut operation.recovery_unit)? {
            let record = SessionRecord::parse(DocRef::parse(record.value)?)?;
            if record.state == Some(DurableState::Prepared) {
                found.push(record);
            }
        }
        Ok(found)
    }

    async fn rebuild(&self, record: &SessionRecord) -> Result<()> {
        let mut operation = Box::new(self.services.internal_operation("Replication"));
        operation.recovery_unit.set_urgency(Urgency::Exempt)?;
        operation.recovery_unit.set_recovering(true)?;
        operation.retry_policy.secondary = true;
        UnitOfWork::begin(&mut operation).release();
        operation.locker.set_shared_two_phase(true);
        let outcome = self.write_again(&mut operation, record).await;
        let (id, client) = (operation.context.id(), Arc::clone(operation.context.client()));
        // What is dropped is rolled back.
        let stash = operation.stash();
        let kept = outcome?;
        let now_ns = self.services.env.clock().monotonic_ns();
        let account = TransactionAccount::begin(record.txn_number, id, client, now_ns, record.last_write_ms);
        self.node.stable().prepared_entries().prepared(record.last_write.timestamp, kept);
        self.writer.enter_prepared(record, account, stash);
        Ok(())
    }

    /// Locks and writes what it had; its entries are kept.
    async fn write_again(&self, operation: &mut Operation, record: &SessionRecord) -> Result<Arc<dyn OplogPin>> {
        let chain = self.applier.transaction_chain(record.last_write)?;
        let first = chain.first().map(|entry| OplogEntry::parse(entry.view())).transpose()?;
        let first = first.map_or(record.last_write, |entry| entry.op_time);
        let kept = self.node.stable().prepared_entries().keep(first.timestamp)?;
        operation.locker.hold_global(Mode::IX, GlobalLockOptions::default(), &Wait::FOREVER).await?;
        for uuid in Applier::collections_of(&chain)? {
            let collection = self.catalog.latest().collection_by_uuid(&uuid).cloned();
            let gone = || Error::new(ErrorCode::NamespaceNotFound, format!("the collection {uuid} is gone"));
            hold(operation, &collection.ok_or_else(gone)?).await?;
        }
        let size = self.applier.apply_prepared(operation, &chain)?;
        operation.extensions.insert(size);
        UnitOfWork::resume(operation).prepare(record.last_write.timestamp)?;
        operation.locker.unlock_replication_state_for_prepare();
        Ok(kept)
    }
}

async fn hold(operation: &mut Operation, collection: &Arc<Collection>) -> Result<()> {
    let namespace = &collection.namespace;
    let tenant = namespace.tenant();
    let tenant = tenant.as_ref().map(|tenant| &tenant.0[..]);
    let database = ResourceId::database(tenant, namespace.database().as_bytes());
    let resource = ResourceId::collection(tenant, namespace.as_str().as_bytes());
    let of_tenant = tenant.map(ResourceId::tenant);
    operation.locker.hold_collection(of_tenant, database, resource, Mode::IX, &Wait::FOREVER).await
}
