//! `godinsert`: adds a document without the checks of `insert`. For tests. What is written under a replica set is in the oplog, which
//! is the only log that its tables have.

use crate::crud::collection_for_insert;
use crate::{Access, CommandRow, Invocation, NamespaceOf, SecondaryOk, run_boxed};
use pando_base::{Component, Error, Result, Severity, log};
use pando_collection::{InsertOptions, InsertStatement};
use pando_doc::Value;
use pando_operation::write_conflict_retry;

pub(super) const ROW: CommandRow = CommandRow {
    name: "godinsert",
    help: "internal. for testing only.",
    run: |invocation, _| run_boxed(run(invocation)),
    secondary_ok: SecondaryOk::Always,
    is_for_tests: true,
    takes_write_concern: true,
    namespace: NamespaceOf::FirstField,
    privileges: Access::Nothing,
    ..CommandRow::DEFAULT
};

async fn run(invocation: &Invocation) -> Result<()> {
    let data = invocation.data()?;
    let namespace = invocation.collection()?;
    let message = "Test-only command 'godinsert' invoked";
    let name = namespace.collection();
    log!(invocation.node.log, Severity::Info, Component::Command, 20505, message, "collection" = name);
    let Some(Value::Document(document)) = invocation.body().get("obj") else {
        return Err(Error::location(10065, "invalid parameter: expected an object (obj)"));
    };
    let mut operation = invocation.operation()?;
    let collection = collection_for_insert(data, &mut operation, &namespace).await?;
    write_conflict_retry(&mut operation, "godinsert", &namespace, |operation| {
        operation.in_unit_of_work(|operation| {
            let statement = InsertStatement::new(document);
            let options = InsertOptions::default();
            data.write_path().insert_documents(operation, &collection, &[statement], options).map(|_| ())
        })
    })
    .await
}
