//! `captrunc`: the newest documents of a capped collection go. For tests.

use super::change::lock_exclusively;
use super::empty_capped::find_capped;
use crate::arguments::{SafeBool, SafeLong};
use crate::{Access, Class, CommandRow, Invocation, NamespaceOf, SecondaryOk, arguments, run_boxed};
use pando_base::{ErrorCode, RecordId, Result, ensure};
use pando_catalog::Collection;
use pando_collection::DeleteArguments;
use pando_doc::{Doc, DocBuilder};
use pando_env::Place;
use pando_operation::{Operation, write_conflict_retry};
use pando_storage::Direction;

pub(super) const ROW: CommandRow = CommandRow {
    name: "captrunc",
    help: "truncate the newest documents of a capped collection",
    run: |invocation, reply| run_boxed(run(invocation, reply)),
    class: Class::Catalog,
    secondary_ok: SecondaryOk::Never,
    namespace: NamespaceOf::FirstField,
    is_for_tests: true,
    privileges: Access::Nothing,
    place: Place::Lanes,
    ..CommandRow::DEFAULT
};

arguments! {
    struct CapTruncArguments<'a> of "captrunc" {
        count: SafeLong = "n",
        is_inclusive: SafeBool = "inc" or SafeBool(false),
    }
}

async fn run(invocation: &Invocation, _reply: &mut DocBuilder) -> Result<()> {
    let data = invocation.data()?;
    let arguments = CapTruncArguments::parse(&invocation.request)?;
    let namespace = invocation.collection()?;
    let count = usize::try_from(arguments.count.0).ok().filter(|count| *count > 0);
    ensure!(count.is_some(), ErrorCode::BadValue, "'n' must be a positive integer");
    // The n-th document from the end stays, unless it is meant too.
    let count = count.unwrap_or(1) - usize::from(!arguments.is_inclusive.0);
    let mut operation = invocation.operation()?;
    lock_exclusively(data, &mut operation, &[&namespace]).await?;
    let collection = find_capped(data, &mut operation, &namespace)?;
    for (record_id, document) in newest(&mut operation, &collection, count)? {
        let delete = DeleteArguments::new(record_id, document.view());
        write_conflict_retry(&mut operation, "captrunc", &namespace, |operation| {
            data.write_path().delete_document(operation, &collection, &delete)
        })
        .await?;
    }
    Ok(())
}

fn newest(operation: &mut Operation, collection: &Collection, count: usize) -> Result<Vec<(RecordId, Doc)>> {
    let mut found = Vec::new();
    let mut cursor = collection.records.cursor(Direction::Reverse);
    while found.len() < count {
        let Some(record) = cursor.next(&mut operation.recovery_unit)? else { break };
        found.push((record.id, Doc::trusted(record.value.to_vec())));
    }
    drop(cursor);
    operation.recovery_unit.abandon_snapshot()?;
    Ok(found)
}
