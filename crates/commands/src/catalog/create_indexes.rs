//! `createIndexes`: one or more indexes of a collection, which is created if it is not there.

use super::building::{await_other_build, await_own_build};
use super::change::{change, is_a_view, lock_exclusively, lock_to_create};
use super::collation;
use super::fail_points::TTL_REGISTERED;
use super::names::{check_uuid, index_count};
use super::partial_filter::{check_partial_filter, check_wildcard_projection};
use crate::arguments::SafeBool;
use crate::timeseries::{buckets_index, timeseries};
use crate::{
    Access, Action, Class, CommandRow, Data, Invocation, NamespaceOf, SecondaryOk, arguments, locking, run_boxed,
};
use pando_base::{Component, Error, ErrorCode, Namespace, Result, Severity, Uuid, ensure, log};
use pando_catalog::{Collection, CollectionOptions, IndexDescriptor, IndexKind, PreparedIndex};
use pando_doc::{Doc, DocBuilder, DocRef, Value};
use pando_env::Place;
use pando_index::IndexAccess;
use pando_index_build::{ActiveBuild, COMMIT_QUORUM_ENABLED, CommitQuorum, StartBuild};
use pando_locks::Mode;
use pando_operation::Operation;
use pando_repl::ReplGate;
use pando_storage::Direction;
use std::sync::Arc;

pub(super) const ROW: CommandRow = CommandRow {
    name: "createIndexes",
    help: "create one or more indexes on a collection",
    run: |invocation, reply| run_boxed(run(invocation, reply)),
    class: Class::Catalog,
    secondary_ok: SecondaryOk::Never,
    is_allowed_in_transaction: true,
    needs_local_transaction: true,
    is_in_api_version_1: true,
    takes_write_concern: true,
    namespace: NamespaceOf::FirstField,
    privileges: Access::Collection(&[Action::CreateIndex]),
    place: Place::Lanes,
    ..CommandRow::DEFAULT
};

arguments! {
    struct CreateIndexesArguments<'a> of "createIndexes" {
        version: Option<Value<'a>> = "v",
        indexes: Vec<DocRef<'a>> = "indexes",
        ignore_unknown_options: SafeBool = "ignoreUnknownIndexOptions" or SafeBool(false),
        commit_quorum: Option<Value<'a>> = "commitQuorum",
        return_on_start: Option<SafeBool> = "returnOnStart",
        is_timeseries: Option<SafeBool> = "isTimeseriesNamespace",
        collection_uuid: Option<Uuid> = "collectionUUID",
    }
}

/// What became of an attempt.
enum Attempt {
    /// The indexes are there.
    Done(Outcome),
    /// A build was begun, with so many indexes before.
    Started(Arc<ActiveBuild>, i32),
    /// Somebody else builds some of them: this has to end first.
    Join(Arc<ActiveBuild>),
    /// Too many builds are under way.
    Full,
    /// Somebody has made the collection meanwhile.
    Overtaken,
}

/// What the reply tells.
#[derive(Clone, Copy)]
struct Outcome {
    /// None if the build goes on after the reply.
    counts: Option<(i32, i32)>,
    /// None if nothing had to be looked at beyond the indexes.
    created_collection: Option<bool>,
}

async fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let data = invocation.data()?;
    let arguments = CreateIndexesArguments::parse(&invocation.request)?;
    let namespace = invocation.collection()?;
    let timeseries = timeseries(data, &namespace)?;
    let namespace = timeseries.as_ref().map_or(namespace, |found| found.buckets.namespace.clone());
    let is_replica_set = invocation.node.replication.is_replica_set();
    namespace.validate_for_write(is_replica_set)?;
    let is_kept_out = namespace.is_system_views() || namespace == *Namespace::session_transactions();
    ensure!(!is_kept_out, ErrorCode::IllegalOperation, "not allowed to create index on {namespace}");
    ensure!(
        arguments.commit_quorum.is_none() || is_replica_set,
        ErrorCode::BadValue,
        "Standalones can't specify commitQuorum"
    );
    let given: Vec<Doc> = match &timeseries {
        Some(found) => {
            arguments.indexes.iter().map(|index| buckets_index(*index, &found.options)).collect::<Result<_>>()?
        }
        None => arguments.indexes.iter().map(|index| index.to_doc()).collect(),
    };
    let given: Vec<DocRef<'_>> = given.iter().map(Doc::view).collect();
    let specifications = specifications(&namespace, &given, arguments.ignore_unknown_options.0)?;
    for specification in &specifications {
        crate::settings::check_new_index(&invocation.node.parameters, specification.view())?;
    }
    ensure!(
        invocation.transaction().is_none() || !namespace.is_system() || namespace.is_timeseries_buckets(),
        ErrorCode::OperationNotSupportedInTransaction,
        "Cannot create indexes on system collection {namespace} within a transaction."
    );
    let is_two_phase = is_replica_set && namespace.is_replicated();
    let votes = invocation.node.parameters.get(&COMMIT_QUORUM_ENABLED);
    let quorum = commit_quorum(data, arguments.commit_quorum, is_two_phase, votes)?;
    let mut operation = invocation.operation()?;
    if let Some(count) = count_if_all_exist(data, &mut operation, &namespace, &specifications).await? {
        check_uuid(data, &namespace, arguments.collection_uuid)?;
        let outcome = Outcome { counts: Some((count, count)), created_collection: None };
        append_outcome(outcome, specifications.len(), is_two_phase.then_some(arguments.commit_quorum), reply);
        return Ok(());
    }
    let outcome = loop {
        // In a transaction only a collection of its own gets indexes.
        let is_exclusive = invocation.transaction().is_none() && data.catalog.latest().collection(&namespace).is_some();
        match is_exclusive {
            true => lock_exclusively(data, &mut operation, &[&namespace]).await?,
            false => lock_to_create(data, &mut operation, &namespace).await?,
        }
        check_uuid(data, &namespace, arguments.collection_uuid)?;
        let request = Request { data, specifications: &specifications, quorum: &quorum, is_two_phase };
        let attempt = match data.catalog.collection_for_write(&mut operation, &namespace)? {
            Some(_) if !is_exclusive && invocation.transaction().is_none() => Attempt::Overtaken,
            Some(collection) => request.on_existing(&mut operation, &collection).await?,
            None => on_new(data, &mut operation, &namespace, &specifications).await?,
        };
        match attempt {
            Attempt::Done(outcome) => break outcome,
            Attempt::Overtaken => locking::unlock(&operation),
            Attempt::Join(build) => await_other_build(&mut operation, &build).await?,
            Attempt::Full => {
                locking::unlock(&operation);
                data.index_builds.wait_for_turn(&invocation.context).await?;
            }
            Attempt::Started(build, count_before) => {
                if arguments.return_on_start.is_some_and(|returns| returns.0) {
                    break Outcome { counts: None, created_collection: Some(false) };
                }
                let finished = await_own_build(data, &mut operation, &build).await?;
                let count_after = i32::try_from(finished.index_count).unwrap_or(i32::MAX);
                break Outcome { counts: Some((count_before, count_after)), created_collection: Some(false) };
            }
        }
    };
    let expires = |specification: &Doc| specification.view().contains("expireAfterSeconds");
    if TTL_REGISTERED.is_on() && specifications.iter().any(expires) {
        let message = "Hanging due to hangTTLCollectionCacheAfterRegisteringInfo fail point";
        log!(invocation.node.log, Severity::Info, Component::Index, 4664000, message);
        locking::unlock(&operation);
        TTL_REGISTERED.rest(&operation.context).await?;
    }
    append_outcome(outcome, specifications.len(), is_two_phase.then_some(arguments.commit_quorum), reply);
    Ok(())
}

/// How many indexes there are, if all that are wanted are among them: then nobody has to make way.
async fn count_if_all_exist(
    data: &Data,
    operation: &mut Operation,
    namespace: &Namespace,
    specifications: &[Doc],
) -> Result<Option<i32>> {
    if data.catalog.latest().collection(namespace).is_none() {
        return Ok(None);
    }
    locking::lock_collection(operation, namespace, Mode::IX).await?;
    let collection = data.catalog.collection_for_write(operation, namespace)?;
    let found = match &collection {
        Some(collection) => {
            let (wanted, built_by_others) = prepare_all(data, collection, specifications)?;
            (wanted.is_empty() && built_by_others.is_empty()).then(|| index_count(collection))
        }
        None => None,
    };
    if found.is_none() {
        locking::unlock(operation);
    }
    Ok(found)
}

/// Who has to be ready before the indexes are.
fn commit_quorum(data: &Data, given: Option<Value<'_>>, is_two_phase: bool, votes: bool) -> Result<CommitQuorum> {
    let Some(given) = given else {
        return if votes { Ok(CommitQuorum::default()) } else { CommitQuorum::parse(Value::Int32(0)) };
    };
    ensure!(data.replication.is_replicated(), ErrorCode::BadValue, "Standalones can't specify commitQuorum");
    ensure!(
        votes,
        ErrorCode::BadValue,
        "commitQuorum is supported only for two phase index builds with commit quorum support enabled"
    );
    let quorum = CommitQuorum::parse(given)?;
    if is_two_phase {
        quorum.check_satisfiable(&data.index_builds.membership())?;
    }
    Ok(quorum)
}

/// The specifications, each of which could be an index by itself.
fn specifications(namespace: &Namespace, given: &[DocRef<'_>], ignores_unknown: bool) -> Result<Vec<Doc>> {
    ensure!(!given.is_empty(), ErrorCode::BadValue, "Must specify at least one index to create");
    let whole = |specification: &DocRef<'_>| match ignores_unknown {
        true => with_whole_collation(namespace, pando_catalog::known_fields_of_index(*specification).view()),
        false => with_whole_collation(namespace, *specification),
    };
    given.iter().map(whole).collect()
}

fn with_whole_collation(namespace: &Namespace, specification: DocRef<'_>) -> Result<Doc> {
    pando_catalog::validate_index_spec(specification)?;
    let may_be_hidden = !namespace.is_system() || namespace.is_timeseries_buckets();
    ensure!(
        may_be_hidden || !specification.contains("hidden"),
        ErrorCode::BadValue,
        "Can't hide index on system collection"
    );
    collation::with_complete(specification)
}

/// The collection and its indexes appear at once.
async fn on_new(
    data: &Data,
    operation: &mut Operation,
    namespace: &Namespace,
    specifications: &[Doc],
) -> Result<Attempt> {
    if data.catalog.latest().view(namespace)?.is_some() {
        return Err(is_a_view(namespace));
    }
    namespace.validate_for_create()?;
    ensure!(
        !specifications.iter().any(|specification| specification.view().contains("clustered")),
        ErrorCode::location(6100900),
        "Cannot implicitly create a new collection with createIndex 'clustered' option"
    );
    let in_transaction = operation.in_multi_document_transaction();
    let made = change(operation, "createIndexes", namespace, |operation| {
        let options = CollectionOptions::default();
        let created = data.catalog.create_collection(operation, &*data.observers, namespace, options)?;
        let count_before = index_count(&created);
        let collection = add_to_empty(data, operation, created, specifications)?;
        Ok(Outcome { counts: Some((count_before, index_count(&collection))), created_collection: Some(true) })
    })
    .await;
    match made {
        Err(error) if error.code() == ErrorCode::NamespaceExists && !in_transaction => Ok(Attempt::Overtaken),
        made => made.map(Attempt::Done),
    }
}

/// What a client wants of a collection that is there.
struct Request<'a> {
    data: &'a Data,
    specifications: &'a [Doc],
    quorum: &'a CommitQuorum,
    is_two_phase: bool,
}

impl Request<'_> {
    /// The collection is locked in X.
    async fn on_existing(&self, operation: &mut Operation, collection: &Arc<Collection>) -> Result<Attempt> {
        let data = self.data;
        let count_before = index_count(collection);
        let (wanted, built_by_others) = prepare_all(data, collection, self.specifications)?;
        if let Some(name) = built_by_others.first() {
            let builds = data.index_builds.of_collection(collection.uuid);
            let build = builds.into_iter().find(|build| build.index_names.contains(name));
            let nobody =
                || Error::new(ErrorCode::IndexBuildAlreadyInProgress, format!("Index already being built: {name}"));
            return build.map(Attempt::Join).ok_or_else(nobody);
        }
        if wanted.is_empty() {
            let counts = Some((count_before, count_before));
            return Ok(Attempt::Done(Outcome { counts, created_collection: None }));
        }
        let namespace = &collection.namespace;
        let is_older =
            || data.catalog.latest().collection(namespace).is_some_and(|other| other.uuid == collection.uuid);
        ensure!(
            !operation.in_multi_document_transaction() || !is_older(),
            ErrorCode::OperationNotSupportedInTransaction,
            "Cannot create new indexes on existing collection {namespace} in a multi-document transaction."
        );
        if is_empty(operation, collection)? {
            let next = change(operation, "createIndexes", namespace, |operation| {
                // As they were given: of what is complete nobody can tell that the simple collation was asked for.
                add_to_empty(data, operation, Arc::clone(collection), self.specifications)
            })
            .await?;
            let counts = Some((count_before, index_count(&next)));
            return Ok(Attempt::Done(Outcome { counts, created_collection: Some(false) }));
        }
        ensure!(
            !operation.in_multi_document_transaction(),
            ErrorCode::OperationNotSupportedInTransaction,
            "Cannot create new indexes on non-empty collection {namespace} in a multi-document transaction."
        );
        if !data.index_builds.has_turn() {
            return Ok(Attempt::Full);
        }
        let (quorum, is_two_phase) = (self.quorum.clone(), self.is_two_phase);
        let start = StartBuild { collection, specifications: &wanted, quorum, is_two_phase };
        let build = data.index_builds.start(operation, start).await?;
        Ok(Attempt::Started(build, count_before))
    }
}

/// What is new of the specifications, in the form that is stored, and the names of those that somebody else builds. Two that are
/// the same are one; what conflicts among them is found when the second is added.
fn prepare_all(data: &Data, collection: &Collection, specifications: &[Doc]) -> Result<(Vec<Doc>, Vec<String>)> {
    let mut wanted: Vec<Doc> = Vec::with_capacity(specifications.len());
    let mut built_by_others = Vec::new();
    for specification in specifications {
        match data.catalog.prepare_index(collection, specification.view())? {
            PreparedIndex::New(completed) if !wanted.contains(&completed) => {
                check_buildable(data, &collection.namespace, &completed)?;
                wanted.push(completed);
            }
            PreparedIndex::BeingBuilt(name) => built_by_others.push(name),
            PreparedIndex::New(_) | PreparedIndex::Exists(_) => {}
        }
    }
    Ok((wanted, built_by_others))
}

/// Refuses now what would fail at the first document: kinds of index that there are not yet, filters that do not parse.
fn check_buildable(data: &Data, namespace: &Namespace, specification: &Doc) -> Result<()> {
    let descriptor = IndexDescriptor::parse(specification.view())?;
    ensure!(
        descriptor.kind != IndexKind::TwoDSphereBucket || namespace.is_timeseries_buckets(),
        ErrorCode::CannotCreateIndex,
        "Index type '2dsphere_bucket' is only supported on the buckets of time-series collections"
    );
    if let Some(filter) = &descriptor.partial_filter {
        check_partial_filter(filter.view())?;
    }
    if let Some(Value::Document(projection)) = specification.get("wildcardProjection") {
        check_wildcard_projection(projection)?;
    }
    IndexAccess::new(&descriptor, &**data.write_path().indexing().hooks()).map(|_| ())
}

/// Adds indexes to a collection without documents, in the operation's unit of work.
pub(crate) fn add_to_empty(
    data: &Data,
    operation: &mut Operation,
    mut collection: Arc<Collection>,
    specifications: &[Doc],
) -> Result<Arc<Collection>> {
    for specification in specifications {
        if let PreparedIndex::New(completed) = data.catalog.prepare_index(&collection, specification.view())? {
            check_buildable(data, &collection.namespace, &completed)?;
            collection = data.catalog.create_index_on_empty(operation, &*data.observers, &collection, &completed)?;
        }
    }
    Ok(collection)
}

fn is_empty(operation: &mut Operation, collection: &Collection) -> Result<bool> {
    let mut cursor = collection.records.cursor(Direction::Forward);
    let is_empty = cursor.next(&mut operation.recovery_unit)?.is_none();
    drop(cursor);
    if !operation.in_multi_document_transaction() {
        operation.recovery_unit.abandon_snapshot()?;
    }
    Ok(is_empty)
}

fn append_outcome(
    outcome: Outcome,
    specification_count: usize,
    quorum: Option<Option<Value<'_>>>,
    reply: &mut DocBuilder,
) {
    let Outcome { counts, created_collection } = outcome;
    if let Some((count_before, count_after)) = counts {
        reply.append("numIndexesBefore", count_before);
        reply.append("numIndexesAfter", count_after);
    }
    reply.append_some("createdCollectionAutomatically", created_collection);
    match quorum {
        Some(Some(given)) => reply.append("commitQuorum", given),
        Some(None) => reply.append("commitQuorum", "votingMembers"),
        None => {}
    }
    let Some((count_before, count_after)) = counts else { return };
    if count_after == count_before {
        reply.append("note", "all indexes already exist");
    } else if usize::try_from(count_after - count_before).is_ok_and(|added| added < specification_count) {
        reply.append("note", "index already exists");
    }
}
