//! `prepareTransaction`: a transaction promises that it can commit, and waits to be told. Coordinators of transactions over several
//! shards send it; on its own it is a command for tests.
//!
//! Sent again it tells the same time, and the write concern is waited for once more.

use super::ENDING;
use crate::{Access, CommandRow, Invocation, run_boxed};
use pando_base::{Error, ErrorCode, Namespace, Result, ensure};
use pando_doc::DocBuilder;
use pando_operation::Operation;
use pando_repl::{OplogWriter, ReplGate};
use pando_security::Action;
use pando_session::TransactionState;

pub(super) const ROW: CommandRow = CommandRow {
    name: "prepareTransaction",
    help: "Prepares a transaction on this shard; sent by a router or by the coordinator of a transaction's commit",
    is_in_api_version_1: false,
    skips_api_version_check: true,
    privileges: Access::Cluster(&[Action::Internal]),
    run: |invocation, reply| run_boxed(run(invocation, reply)),
    ..ENDING
};

crate::arguments! {
    struct Arguments<'a> of "prepareTransaction" {
        _coordinator_id: Option<&'a str> = "coordinatorId",
    }
}

async fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    Arguments::parse(&invocation.request)?;
    let data = invocation.data()?;
    ensure!(
        invocation.node.options.test_commands_enabled,
        ErrorCode::NoShardingEnabled,
        "Cannot accept sharding commands if not started with --shardsvr"
    );
    let statement = invocation
        .transaction()
        .ok_or_else(|| Error::new(ErrorCode::CommandFailed, "prepareTransaction must be run within a transaction"))?;
    invocation.set_has_written();
    if let TransactionState::Prepared(entry) = statement.state() {
        reply.append("prepareTimestamp", entry.timestamp);
        return Ok(());
    }
    let mut operation = invocation.operation()?;
    data.replication.check_can_write(Namespace::admin_command())?;
    ensure!(
        !data.catalog.has_uncommitted(&operation),
        ErrorCode::OperationNotSupportedInTransaction,
        "Cannot create new collections inside distributed transactions"
    );
    check_collections(invocation, &mut operation)?;
    operation.context.check()?;
    let entry = data.oplog_writer().prepare_transaction(&mut operation, statement.of()).await?;
    statement.prepared(entry);
    // The node may change its role meanwhile.
    operation.locker.unlock_replication_state_for_prepare();
    reply.append("prepareTimestamp", entry.timestamp);
    Ok(())
}

/// Temporary collections do not outlive the node; what is prepared does.
fn check_collections(invocation: &Invocation, operation: &mut Operation) -> Result<()> {
    let catalog = &invocation.data()?.catalog;
    for uuid in OplogWriter::transaction_collections(operation)? {
        let Some(collection) = catalog.collection_for_write_by_uuid(operation, &uuid)? else { continue };
        ensure!(
            !collection.options.temp,
            ErrorCode::OperationNotSupportedInTransaction,
            "prepareTransaction failed because one of the transaction operations was done against a temporary collection \
             '{}'.",
            collection.namespace
        );
    }
    Ok(())
}
