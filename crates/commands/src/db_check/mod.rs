//! `dbCheck`: the documents of a collection, or of all of a database, are hashed in batches by their `_id`. Each batch is an entry of
//! the oplog, by which other members compare their own documents; what was found is written to `local.system.healthlog`.
//!
//! The command starts a check and does not wait for it; a node makes one check after the other. A check ends when the node is no
//! longer primary.

mod batch;
mod health_log;
mod job;

pub use job::{DbChecks, keep_checking};

use crate::arguments::{SafeBool, SafeLong, is_generic};
use crate::{AccessRequest, Class, CommandRow, Data, Invocation, SecondaryOk, arguments, run_boxed};
use job::{Limits, Range, Run};
use pando_base::{AnyFailPoint, AnyParameter, ErrorCode, Namespace, Parameter, Result, ensure};
use pando_doc::{DocBuilder, DocRef, OwnedValue, Value};
use pando_repl::ReplGate;
use pando_repl::write_concern::WriteConcern;
use pando_security::{Action, Target};

/// Of every so many batches one is written to the health log, unless something is wrong.
pub(crate) static LOGGED_BATCHES: Parameter<i32> = Parameter::new(
    "dbCheckHealthLogEveryNBatches",
    25,
    "Of so many batches of dbCheck in which nothing is wrong one is written to the health log.",
)
.at_least(1)
.at_most(10_000);

/// All of them.
pub static PARAMETERS: &[&dyn AnyParameter] = &[&LOGGED_BATCHES];
/// All of them.
pub static FAIL_POINTS: &[&dyn AnyFailPoint] = &[&job::BEFORE_RUN, &job::BEFORE_ENTRY];

/// The commands of this area.
pub static ROWS: &[CommandRow] = &[ROW];

const ROW: CommandRow = CommandRow {
    name: "dbCheck",
    help: "Validate replica set consistency.\n{ dbCheck: <collection>, minKey: <exclusive>, maxKey: <inclusive>, maxCount, \
           maxSize, maxCountPerSecond, maxDocsPerBatch, maxBytesPerBatch, maxBatchTimeMillis } or { dbCheck: 1 }",
    run: |invocation, reply| run_boxed(std::future::ready(run(invocation, reply))),
    class: Class::Catalog,
    secondary_ok: SecondaryOk::Never,
    privileges: crate::Access::Checked(may_check),
    ..CommandRow::DEFAULT
};

fn may_check(request: &AccessRequest<'_>) -> Result<bool> {
    Ok(request.may(Target::Any, Action::DbCheck))
}

arguments! {
    /// What the check of one collection takes.
    struct OfCollection<'a> of "dbCheck" {
        min: Option<Value<'a>> = "minKey",
        max: Option<Value<'a>> = "maxKey",
        count: Option<SafeLong> = "maxCount",
        size: Option<SafeLong> = "maxSize",
        rate: Option<SafeLong> = "maxCountPerSecond",
        batch_documents: SafeLong = "maxDocsPerBatch" or SafeLong(5000),
        batch_bytes: SafeLong = "maxBytesPerBatch" or SafeLong(20 << 20),
        batch_ms: SafeLong = "maxBatchTimeMillis" or SafeLong(1000),
        snapshot_read: SafeBool = "snapshotRead" or SafeBool(true),
        concern: Option<DocRef<'a>> = "batchWriteConcern",
    }
}

/// Bounds of collections that a check of a whole database does not take.
const OF_ONE: [&str; 4] = ["minKey", "maxKey", "maxCount", "maxSize"];

impl OfCollection<'_> {
    fn limits(&self) -> Result<Limits> {
        let within = |value: i64, least: i64, most: i64, name: &str| -> Result<i64> {
            ensure!(
                (least..=most).contains(&value),
                ErrorCode::location(51024),
                "BSON field '{name}' value must be >= {least} and <= {most}, actual value '{value}'"
            );
            Ok(value)
        };
        if let Some(concern) = self.concern.filter(|concern| !concern.is_empty()) {
            WriteConcern::parse(concern)?;
        }
        let most = |limit: Option<SafeLong>| limit.map_or(i64::MAX, |limit| limit.0);
        Ok(Limits {
            documents: most(self.count),
            bytes: most(self.size),
            documents_per_second: most(self.rate),
            batch_documents: within(self.batch_documents.0, 1, 10_000, "maxDocsPerBatch")?,
            batch_bytes: within(self.batch_bytes.0, 102_400, 268_435_456, "maxBytesPerBatch")?,
            batch_ms: within(self.batch_ms.0, 10, 20_000, "maxBatchTimeMillis")?,
        })
    }
}

fn run(invocation: &Invocation, _: &mut DocBuilder) -> Result<()> {
    let data = invocation.data()?;
    let arguments = OfCollection::parse(&invocation.request)?;
    let runs = match invocation.target() {
        Value::String(name) => vec![run_of(invocation, data, &name.to_string(), &arguments)?],
        number if number.is_number() => runs_of_database(invocation, data, &arguments)?,
        other => {
            let place = crate::arguments::Place::of_command("");
            return Err(place.field("dbCheck".into()).wrong_type(other.value_type(), &[pando_doc::ValueType::Int64]));
        }
    };
    ensure!(
        data.replication.is_replicated(),
        ErrorCode::NotYetInitialized,
        "dbCheck is about the members of a replica set, and this node is in none"
    );
    data.checks.start(Run(runs))
}

fn run_of(invocation: &Invocation, data: &Data, name: &str, arguments: &OfCollection<'_>) -> Result<Range> {
    let namespace = Namespace::new(&invocation.database, name)?;
    ensure!(
        data.catalog.latest().view(&namespace)?.is_none(),
        ErrorCode::CommandNotSupportedOnView,
        "Namespace {namespace} is a view, not a collection"
    );
    let Some(collection) = data.catalog.latest().collection(&namespace).cloned() else {
        return Err(pando_base::Error::new(ErrorCode::NamespaceNotFound, format!("Collection {name} not found")));
    };
    ensure!(
        namespace.is_replicated(),
        ErrorCode::location(40619),
        "Cannot run dbCheck on {namespace} because it is not replicated"
    );
    ensure!(arguments.snapshot_read.0, ErrorCode::location(6769500), "dbCheck no longer supports snapshotRead:false");
    let bound = |given: Option<Value<'_>>, end: Value<'_>| given.unwrap_or(end).to_owned();
    Ok(Range {
        namespace,
        uuid: collection.uuid,
        min: bound(arguments.min, Value::MinKey),
        max: bound(arguments.max, Value::MaxKey),
        limits: arguments.limits()?,
    })
}

fn runs_of_database(invocation: &Invocation, data: &Data, arguments: &OfCollection<'_>) -> Result<Vec<Range>> {
    for element in invocation.body().raw_elements().skip(1).filter(|element| !is_generic(element.name)) {
        let is_of_one = OF_ONE.iter().any(|name| element.name == *name);
        ensure!(!is_of_one, ErrorCode::IDLUnknownField, "BSON field 'dbCheck.{}' is an unknown field.", element.name);
    }
    let database = &invocation.database;
    ensure!(!database.is_local(), ErrorCode::InvalidNamespace, "Cannot run dbCheck on local database");
    let latest = data.catalog.latest();
    ensure!(latest.has_database(database), ErrorCode::NamespaceNotFound, "Database {database} not found");
    ensure!(arguments.snapshot_read.0, ErrorCode::location(6769501), "dbCheck no longer supports snapshotRead:false");
    let limits = arguments.limits()?;
    let replicated = latest.collections(database).filter(|collection| collection.namespace.is_replicated());
    let whole = |collection: &std::sync::Arc<pando_catalog::Collection>| Range {
        namespace: collection.namespace.clone(),
        uuid: collection.uuid,
        min: OwnedValue::MinKey,
        max: OwnedValue::MaxKey,
        limits: limits.clone(),
    };
    Ok(replicated.map(whole).collect())
}
