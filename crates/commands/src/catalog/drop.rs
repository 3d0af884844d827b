//! `drop`: a collection or a view goes. One that is not there is as good as dropped.

use super::building::lock_without_builds;
use super::change::change;
use super::fail_points::{self, rest_at};
use super::names::check_uuid;
use super::system_views::ViewDocuments;
use crate::{Access, Action, Class, CommandRow, Data, Invocation, NamespaceOf, SecondaryOk, arguments, run_boxed};
use pando_base::{ErrorCode, Namespace, Result, Uuid, bail, ensure};
use pando_doc::DocBuilder;

pub(super) const ROW: CommandRow = CommandRow {
    name: "drop",
    help: "drop a collection\n{drop : <collectionName>}",
    run: |invocation, reply| run_boxed(run(invocation, reply)),
    class: Class::Catalog,
    secondary_ok: SecondaryOk::Never,
    is_in_api_version_1: true,
    takes_write_concern: true,
    namespace: NamespaceOf::FirstField,
    privileges: Access::Collection(&[Action::DropCollection]),
    counts_in_top: false,
    ..CommandRow::DEFAULT
};

arguments! {
    struct DropArguments<'a> of "drop" {
        collection_uuid: Option<Uuid> = "collectionUUID",
    }
}

async fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let data = invocation.data()?;
    let arguments = DropArguments::parse(&invocation.request)?;
    let namespace = invocation.collection()?;
    let is_live_oplog = namespace.is_oplog() && invocation.node.replication.is_replica_set();
    ensure!(!is_live_oplog, ErrorCode::location(5255000), "can't drop live oplog while replicating");
    ensure!(
        !namespace.is_oplog(),
        ErrorCode::location(5255001),
        "can't drop oplog on storage engines that support replSetResizeOplog command"
    );
    check_droppable(&namespace)?;
    ensure!(
        !namespace.is_system_profile() || data.profiler.settings(&namespace.database_name()).level == 0,
        ErrorCode::IllegalOperation,
        "turn off profiling before dropping system.profile collection"
    );
    let system_views = Namespace::system_views(&namespace.database_name());
    let mut operation = invocation.operation()?;
    let is_view = data.catalog.latest().view(&namespace)?.is_some();
    let buckets = namespace.timeseries_buckets();
    let is_timeseries = data.catalog.latest().view(&namespace)?.is_some_and(|view| view.is_timeseries());
    let series = namespace.timeseries_view().filter(|_| namespace.is_timeseries_buckets());
    let names: Vec<&Namespace> = match &series {
        Some(series) => vec![&namespace, series, &system_views],
        None if is_timeseries => vec![&namespace, &buckets, &system_views],
        None if is_view => vec![&namespace, &system_views],
        None => vec![&namespace],
    };
    lock_without_builds(data, &mut operation, &names, "collection drop").await?;
    check_uuid(data, &namespace, arguments.collection_uuid)?;
    rest_at(&fail_points::DURING_DROP, &operation.context, &namespace).await?;
    if let Some(collection) = data.catalog.collection_for_write(&mut operation, &namespace)? {
        change(&mut operation, "drop", &namespace, |operation| {
            data.catalog.drop_collection(operation, &*data.observers, &namespace).map(|_| ())
        })
        .await?;
        if let Some(series) = &series {
            data.query.buckets.forget_collection(collection.uuid);
            drop_view(data, &mut operation, series).await?;
        }
        reply.append("nIndexesWas", super::names::index_count(&collection));
        reply.append("ns", namespace.as_str());
    } else if is_timeseries && drop_view(data, &mut operation, &namespace).await? {
        data.top.forget(&namespace);
        if let Some(collection) = data.catalog.collection_for_write(&mut operation, &buckets)? {
            change(&mut operation, "drop", &buckets, |operation| {
                data.catalog.drop_collection(operation, &*data.observers, &buckets).map(|_| ())
            })
            .await?;
            data.query.buckets.forget_collection(collection.uuid);
            reply.append("nIndexesWas", super::names::index_count(&collection));
        }
        reply.append("ns", namespace.as_str());
    } else if is_view && drop_view(data, &mut operation, &namespace).await? {
        data.top.forget(&namespace);
        reply.append("ns", namespace.as_str());
    }
    Ok(())
}

/// False if somebody else was faster.
async fn drop_view(data: &Data, operation: &mut pando_operation::Operation, namespace: &Namespace) -> Result<bool> {
    let writer = ViewDocuments(data.write_path());
    let dropped =
        change(operation, "drop", namespace, |operation| data.catalog.drop_view(operation, &writer, namespace)).await;
    match dropped {
        Err(error) if error.code() == ErrorCode::NamespaceNotFound => Ok(false),
        outcome => outcome.map(|()| true),
    }
}

/// Collections that the server lives by stay.
fn check_droppable(namespace: &Namespace) -> Result<()> {
    let is_droppable = !namespace.is_system()
        || namespace == Namespace::health_log()
        || namespace == Namespace::sessions()
        || namespace == Namespace::keys()
        || namespace.is_system_profile()
        || namespace.is_system_views()
        || namespace.is_temporary_resharding()
        || namespace.is_timeseries_buckets()
        || namespace.is_change_stream_pre_images()
        || namespace.is_change_collection()
        || namespace.is_system_javascript()
        || namespace.is_system_statistics();
    if !is_droppable {
        bail!(ErrorCode::IllegalOperation, "cannot drop system collection {namespace}");
    }
    Ok(())
}
