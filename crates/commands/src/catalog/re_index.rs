//! `reIndex`: the indexes of a collection are made anew. Only on a node that stands alone.

use super::change::{change, lock_exclusively};
use super::fail_points;
use super::names::index_count;
use crate::{Access, Action, Class, CommandRow, Invocation, NamespaceOf, SecondaryOk, arguments, run_boxed};
use pando_base::{ErrorCode, Result, bail, ensure};
use pando_catalog::INDEX_VERSION;
use pando_doc::{Doc, DocBuilder, DocRef};
use pando_env::Place;
use std::sync::Arc;

/// What a process ends with that a test has cut off.
const EXIT_ABRUPT: i32 = 14;

pub(super) const ROW: CommandRow = CommandRow {
    name: "reIndex",
    help: "re-index a collection (can only be run on a standalone mongod)",
    run: |invocation, reply| run_boxed(run(invocation, reply)),
    class: Class::Catalog,
    secondary_ok: SecondaryOk::Always,
    namespace: NamespaceOf::FirstField,
    privileges: Access::Collection(&[Action::ReIndex]),
    place: Place::Lanes,
    ..CommandRow::DEFAULT
};

arguments! {
    struct ReIndexArguments<'a> of "reIndex" {}
}

async fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let data = invocation.data()?;
    ReIndexArguments::parse(&invocation.request)?;
    let namespace = invocation.collection()?;
    ensure!(
        !invocation.node.replication.is_replica_set(),
        ErrorCode::IllegalOperation,
        "reIndex is only allowed on a standalone mongod instance."
    );
    let mut operation = invocation.operation()?;
    lock_exclusively(data, &mut operation, &[&namespace]).await?;
    let Some(collection) = data.catalog.collection_for_write(&mut operation, &namespace)? else {
        let is_view = data.catalog.latest().view(&namespace)?.is_some();
        ensure!(!is_view, ErrorCode::CommandNotSupportedOnView, "can't re-index a view");
        bail!(ErrorCode::NamespaceNotFound, "collection does not exist");
    };
    let specifications: Vec<Doc> =
        collection.indexes.iter().map(|index| in_latest_version(index.descriptor.specification.view())).collect();
    let bare = change(&mut operation, "reIndex", &namespace, |operation| {
        let mut next = Arc::clone(&collection);
        for index in &collection.indexes {
            next = data.catalog.remove_index(operation, &next, index.name())?;
        }
        Ok(next)
    })
    .await?;
    if fail_points::RE_INDEX_CRASH.should_fail() {
        data.services.engine.flush_log()?;
        invocation.node.machine.end_abruptly(EXIT_ABRUPT);
    }
    let built = data.index_builds.build_exclusively(&mut operation, &bare, &specifications).await?;
    reply.append("nIndexesWas", index_count(&collection));
    reply.append("nIndexes", index_count(&built));
    reply.array("indexes", |array| specifications.iter().for_each(|specification| array.push(specification)));
    Ok(())
}

/// What is made anew is made in the latest version.
fn in_latest_version(specification: DocRef<'_>) -> Doc {
    let mut latest = DocBuilder::with_capacity(specification.size_bytes());
    for element in specification.elements() {
        match element.name == "v" {
            true => latest.append("v", INDEX_VERSION),
            false => latest.append(element.name, element.value),
        }
    }
    latest.finish()
}
