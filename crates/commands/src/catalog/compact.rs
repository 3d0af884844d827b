//! `compact`: gives back what a collection and its indexes do not need on disk. The engine merges by itself what is worth it; here
//! it is told to merge everything, table by table, beside readers and writers. Who kills the command keeps what is done by then.
//! The reply says how many bytes became free.

use super::storage_stats::collection_disk_bytes;
use crate::arguments::SafeBool;
use crate::timeseries::on_buckets;
use crate::{Access, Action, CommandRow, Invocation, NamespaceOf, arguments, run_boxed};
use pando_base::{Error, ErrorCode, Result, bail, ensure};
use pando_catalog::Collection;
use pando_doc::{DocBuilder, Number};
use pando_env::Place;
use pando_repl::ReplGate;
use pando_storage::Table;

pub(super) const ROW: CommandRow = CommandRow {
    name: "compact",
    help: "compact collection\nwarning: this operation is slow. you can cancel with killOp()\n{ compact : <collection_name>, \
           [force:<bool>] }\n  force - allows to run on a replica set primary\n",
    run: |invocation, reply| run_boxed(std::future::ready(run(invocation, reply))),
    namespace: NamespaceOf::FirstField,
    privileges: Access::Collection(&[Action::Compact]),
    place: Place::Lanes,
    ..CommandRow::DEFAULT
};

arguments! {
    struct CompactArguments<'a> of "compact" lenient {
        force: SafeBool = "force" or SafeBool(false),
    }
}

fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let data = invocation.data()?;
    let arguments = CompactArguments::parse(&invocation.request)?;
    let namespace = on_buckets(data, &invocation.collection()?)?;
    let is_primary = data.replication.is_replicated() && data.replication.is_writable_primary();
    ensure!(
        !is_primary || arguments.force.0,
        ErrorCode::IllegalOperation,
        "will not run compact on an active replica set primary as this will slow down other running operations. use \
         force:true to force"
    );
    let latest = data.catalog.latest();
    let Some(collection) = latest.collection(&namespace) else {
        let is_view = latest.view(&namespace)?.is_some();
        ensure!(!is_view, ErrorCode::CommandNotSupportedOnView, "can't compact a view");
        bail!(ErrorCode::NamespaceNotFound, "collection does not exist");
    };
    let before_bytes = collection_disk_bytes(collection)?;
    for table in tables(collection) {
        invocation.context.check()?;
        let mut outcome = Ok(());
        invocation.node.env.tasks().blocking(&mut || {
            let mut goes_on = || invocation.context.check().is_ok();
            outcome = data.services.engine.compact_table(table, &mut goes_on).map_err(Error::from);
        });
        outcome?;
    }
    invocation.context.check()?;
    let after_bytes = collection_disk_bytes(collection)?;
    // One that is being written to may be larger than before.
    reply.append(
        "bytesFreed",
        Number::narrowest(i64::try_from(before_bytes.saturating_sub(after_bytes)).unwrap_or(i64::MAX)),
    );
    Ok(())
}

/// The documents, then the indexes.
fn tables(collection: &Collection) -> impl Iterator<Item = &Table> {
    std::iter::once(collection.records.table()).chain(collection.indexes.iter().map(|index| index.data.table()))
}
