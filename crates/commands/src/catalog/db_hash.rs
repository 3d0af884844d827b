//! `dbHash`: a hash of each collection's documents and of all together, by which members of a set are compared.
//!
//! Documents are hashed in the order of their `_id`, those of capped collections in their own order. What is not replicated is
//! left out. The database is locked in S, so that all hashes are of one moment.

use crate::locking::lock_database;
use crate::{Access, Action, Class, CommandRow, Data, Invocation, run_boxed};
use md5::{Digest, Md5};
use pando_base::operation::slice;
use pando_base::{Component, DatabaseName, ErrorCode, Result, Severity, Uuid, bail, ensure, log};
use pando_catalog::Collection;
use pando_doc::{ArrayRef, Doc, DocBuilder, Value, doc};
use pando_env::Place;
use pando_locks::Mode;
use pando_operation::Operation;
use pando_query::executor::{BatchOutcome, DocumentSink, YieldCause};
use pando_query::request::{FindRequest, Hint};
use pando_storage::Direction;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What stands in place of the hash of a collection whose documents have no order.
const NO_ORDER: &str = "no _id _index";

pub(super) const ROW: CommandRow = CommandRow {
    name: "dbHash",
    aliases: &["dbhash"],
    help: "hashes of the collections of a database",
    run: |invocation, reply| run_boxed(run(invocation, reply)),
    class: Class::Read,
    is_stopped_when_abandoned: true,
    privileges: Access::Database(&[Action::DbHash]),
    place: Place::Lanes,
    ..CommandRow::DEFAULT
};

/// What the command asks for; fields that it does not know are not looked at.
struct Wish {
    /// Only these; empty for all.
    names: BTreeSet<String>,
    skips_temporary: bool,
    capped_by_id: bool,
}

impl Wish {
    fn of(invocation: &Invocation) -> Result<Wish> {
        let body = invocation.body();
        let is_set = |name: &str| body.get(name).is_some_and(|value| value.is_true());
        let mut names = BTreeSet::new();
        if let Some(Value::Array(wanted)) = body.get("collections") {
            names = read_names(wanted)?;
        }
        ensure!(
            invocation.target().as_str() != Some(""),
            ErrorCode::InvalidNamespace,
            "Cannot pass empty string for 'dbHash' field"
        );
        Ok(Wish {
            names,
            skips_temporary: is_set("skipTempCollections"),
            capped_by_id: is_set("useIndexScanForCappedCollections"),
        })
    }

    fn is_for(&self, collection: &Collection) -> bool {
        let (namespace, name) = (&collection.namespace, collection.namespace.collection());
        namespace.is_replicated()
            && !name.starts_with("tmp.mr.")
            && !(self.skips_temporary && collection.options.temp)
            && (self.names.is_empty() || self.names.contains(name))
    }
}

fn read_names(wanted: ArrayRef<'_>) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for value in wanted.values() {
        match value.as_str() {
            Some(name) => names.insert(name.to_owned()),
            None => bail!(ErrorCode::BadValue, "collections entries have to be strings"),
        };
    }
    Ok(names)
}

/// A collection's part of the reply.
struct Hashed {
    hash: String,
    uuid: Uuid,
    is_capped: bool,
}

async fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let data = invocation.data()?;
    let wish = Wish::of(invocation)?;
    let start_ns = invocation.context.now_ns();
    let mut operation = invocation.operation()?;
    lock_database(&mut operation, &invocation.database, Mode::S).await?;
    let mut outcome = None;
    let tasks = invocation.node.env.tasks();
    tasks.blocking(&mut || outcome = Some(hash_all(invocation, data, &mut operation, &invocation.database, &wish)));
    let Some(hashed) = outcome.transpose()? else { bail!(ErrorCode::InternalError, "nothing was hashed") };
    reply.append("host", &invocation.node.options.host);
    let mut all = Md5::new();
    reply.document("collections", |collections| {
        for (name, found) in &hashed {
            collections.append(name, &found.hash);
            all.update(found.hash.as_bytes());
        }
    });
    reply.array("capped", |capped| {
        hashed.iter().filter(|(_, found)| found.is_capped).for_each(|(name, _)| capped.push(name.as_str()));
    });
    reply.document("uuids", |uuids| {
        for (name, found) in &hashed {
            uuids.append(name, Value::Binary { subtype: 4, bytes: found.uuid.as_bytes() });
        }
    });
    reply.append("md5", hex(all));
    let elapsed_ms = invocation.context.now_ns().saturating_sub(start_ns) / 1_000_000;
    reply.append("timeMillis", i32::try_from(elapsed_ms).unwrap_or(i32::MAX));
    Ok(())
}

fn hash_all(
    invocation: &Invocation,
    data: &Data,
    operation: &mut Operation,
    database: &DatabaseName,
    wish: &Wish,
) -> Result<BTreeMap<String, Hashed>> {
    let mut view = data.catalog.establish(operation)?;
    let collections = view.collections(&data.catalog, operation, database)?;
    let mut hashed = BTreeMap::new();
    pando_query::fail_points::check_plan()?;
    for collection in collections.into_iter().filter(|collection| wish.is_for(collection)) {
        let hash = hash(invocation, data, operation, &collection, wish)?;
        let found = Hashed { hash, uuid: collection.uuid, is_capped: collection.is_capped() };
        hashed.insert(collection.namespace.collection().to_owned(), found);
    }
    Ok(hashed)
}

/// Takes all documents.
struct HashSink(Md5);

impl DocumentSink for HashSink {
    fn offer(&mut self, document: &Doc) -> bool {
        self.0.update(document.bytes());
        true
    }

    fn is_full(&self) -> bool {
        false
    }
}

fn hash(
    invocation: &Invocation,
    data: &Data,
    operation: &mut Operation,
    collection: &Arc<Collection>,
    wish: &Wish,
) -> Result<String> {
    let mut request = FindRequest::new(collection.namespace.clone());
    let is_in_order = (collection.is_capped() && !wish.capped_by_id) || collection.is_clustered();
    request.hint = match collection.id_index() {
        _ if is_in_order => Hint::Natural(Direction::Forward),
        Some(_) => Hint::KeyPattern(doc! { "_id": 1 }),
        None => {
            let (log, namespace) = (&invocation.node.log, &collection.namespace);
            let message = "Can't find _id index for namespace";
            log!(log, Severity::Info, Component::Command, 20455, message, "namespace" = namespace);
            return Ok(NO_ORDER.to_owned());
        }
    };
    let mut executor = data.query.find_in(operation, &request, Some(Arc::clone(collection)))?;
    let mut sink = HashSink(Md5::new());
    loop {
        match executor.next_batch(operation, &mut sink)? {
            BatchOutcome::Full | BatchOutcome::Exhausted => return Ok(hex(sink.0)),
            // Nobody can write meanwhile: it goes on in the same snapshot, unless it was told to stop.
            BatchOutcome::Yield(YieldCause::Time) => {
                slice::pause_if_over(&operation.context);
                operation.context.check()?;
            }
            BatchOutcome::Yield(_) => bail!(ErrorCode::WriteConflict, "dbHash met a conflict; try again"),
        }
    }
}

/// A digest as commands show it.
pub(crate) fn hex(digest: Md5) -> String {
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
