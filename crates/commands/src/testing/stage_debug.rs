//! `stageDebug`: runs a plan that is given node by node.

use crate::crud::lock_for_write;
use crate::locking::unlock;
use crate::{Access, CommandRow, Invocation, run_boxed};
use pando_base::{Error, ErrorCode, Namespace, Result};
use pando_doc::{DocBuilder, Value};

pub(super) const ROW: CommandRow = CommandRow {
    name: "stageDebug",
    help: "",
    run: |invocation, reply| run_boxed(run(invocation, reply)),
    is_for_tests: true,
    privileges: Access::Nothing,
    ..CommandRow::DEFAULT
};

crate::arguments! {
    /// The document form of the command's own value.
    struct Wish<'a> of "stageDebug" {
        collection: &'a str = "collection",
        plan: pando_doc::DocRef<'a> = "plan",
    }
}

async fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let data = invocation.data()?;
    let Value::Document(wish) = invocation.target() else {
        return Err(Error::failed_to_parse("stageDebug takes an object with a collection and a plan"));
    };
    let wish = Wish::parse_fields(wish, &crate::arguments::Place::of_command("stageDebug"), false)?;
    let namespace = Namespace::new(&invocation.database, wish.collection)?;
    namespace.validate()?;
    let mut operation = invocation.operation()?;
    let missing = || Error::new(ErrorCode::NamespaceNotFound, format!("Couldn't find collection {namespace}"));
    let collection = lock_for_write(data, &mut operation, &namespace).await?.ok_or_else(missing)?;
    let found = data.query.run_given_plan(&mut operation, &collection, wish.plan).await;
    unlock(&operation);
    reply.array("results", |results| found.iter().flatten().for_each(|document| results.push(document)));
    found.map(|_| ())
}
