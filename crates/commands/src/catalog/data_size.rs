//! `dataSize`: how many documents a range of a collection has, and how many bytes.

use super::copy::next_documents;
use super::names::full_name;
use crate::arguments::{SafeBool, SafeLong};
use crate::locking::lock_for_read;
use crate::{Access, Action, Admission, CommandRow, Data, Invocation, NamespaceOf, SecondaryOk, arguments, run_boxed};
use pando_base::{ErrorCode, Namespace, RecordId, Result, bail, ensure};
use pando_catalog::Collection;
use pando_doc::{Doc, DocBuilder, DocRef, Value};
use pando_env::Place;
use pando_operation::Operation;
use pando_query::FindPlan;
use pando_query::executor::{DocumentSink, drive, yield_now};
use pando_query::request::{FindRequest, Hint};

pub(super) const ROW: CommandRow = CommandRow {
    name: "dataSize",
    aliases: &["datasize"],
    help: "determine data size for a set of data in a certain range",
    run: |invocation, reply| run_boxed(run(invocation, reply)),
    secondary_ok: SecondaryOk::Always,
    is_stopped_when_abandoned: true,
    admission: Admission::Read,
    namespace: NamespaceOf::FullName,
    privileges: Access::Collection(&[Action::Find]),
    place: Place::Lanes,
    ..CommandRow::DEFAULT
};

arguments! {
    struct DataSizeArguments<'a> of "dataSize" {
        min: Option<DocRef<'a>> = "min",
        max: Option<DocRef<'a>> = "max",
        key_pattern: Option<DocRef<'a>> = "keyPattern",
        estimate: SafeBool = "estimate" or SafeBool(false),
        max_size: Option<SafeLong> = "maxSize",
        max_objects: Option<SafeLong> = "maxObjects",
    }
}

/// Adds up documents until there are enough.
struct Sum {
    documents: i64,
    size_bytes: i64,
    size_bytes_max: Option<i64>,
    documents_max: Option<i64>,
}

impl Sum {
    fn is_enough(&self) -> bool {
        self.size_bytes_max.is_some_and(|max| self.size_bytes > max)
            || self.documents_max.is_some_and(|max| self.documents > max)
    }
}

impl DocumentSink for Sum {
    fn offer(&mut self, document: &Doc) -> bool {
        self.documents += 1;
        self.size_bytes += document.size_bytes() as i64;
        true
    }

    fn is_full(&self) -> bool {
        self.is_enough()
    }
}

async fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let data = invocation.data()?;
    let arguments = DataSizeArguments::parse(&invocation.request)?;
    let namespace = full_name(invocation.target(), "dataSize.dataSize")?;
    let bound = |bound: Option<DocRef<'_>>| bound.filter(|bound| !bound.is_empty()).map(DocRef::to_doc);
    let (min, max) = (bound(arguments.min), bound(arguments.max));
    let negation = if min.is_some() { "" } else { "not " };
    ensure!(min.is_some() == max.is_some(), ErrorCode::BadValue, "Max must {negation}be set if min is {negation}set.");
    let started_ns = invocation.node.env.clock().monotonic_ns();
    let mut operation = invocation.operation()?;
    lock_for_read(&mut operation).await?;
    let mut sum = Sum {
        documents: 0,
        size_bytes: 0,
        size_bytes_max: positive(arguments.max_size),
        documents_max: positive(arguments.max_objects),
    };
    ensure!(
        data.catalog.latest().view(&namespace)?.is_none(),
        ErrorCode::CommandNotSupportedOnView,
        "Namespace {namespace} is a view, not a collection"
    );
    let collection = data.collections().open(&mut operation, &namespace)?;
    match (&collection, min, max) {
        (None, ..) => {}
        (Some(collection), ..) if collection.records.num_records()? == 0 => {}
        (Some(collection), Some(min), Some(max)) => {
            let given = arguments.key_pattern.filter(|pattern| !pattern.is_empty());
            let wanted = given.map_or_else(|| key_pattern_of(min.view()), DocRef::to_doc);
            let Some(pattern) = index_with(collection, wanted.view(), true) else {
                bail!(ErrorCode::OperationFailed, "Couldn't find valid index containing key pattern");
            };
            let bound = |given: &Doc| extended(given.view(), pattern.view(), false);
            let bounds = (bound(&min), bound(&max), pattern.clone());
            range(data, &mut operation, &namespace, bounds, &mut sum).await?;
        }
        (Some(collection), ..) if arguments.estimate.0 && !sum.has_limits() => {
            sum.documents = collection.records.num_records()?;
            sum.size_bytes = collection.records.data_size_bytes()?;
        }
        (Some(collection), ..) => scan(&mut operation, collection, &mut sum).await?,
    }
    let elapsed_ns = invocation.node.env.clock().monotonic_ns().saturating_sub(started_ns);
    reply.append("size", sum.size_bytes);
    reply.append("numObjects", sum.documents);
    reply.append("millis", i64::try_from(elapsed_ns / 1_000_000).unwrap_or(i64::MAX));
    if collection.is_some() {
        reply.append("estimate", arguments.estimate.0);
    }
    if sum.is_enough() {
        reply.append("maxReached", true);
    }
    Ok(())
}

impl Sum {
    fn has_limits(&self) -> bool {
        self.size_bytes_max.is_some() || self.documents_max.is_some()
    }
}

fn positive(limit: Option<SafeLong>) -> Option<i64> {
    limit.map(|limit| limit.0).filter(|limit| *limit > 0)
}

/// The pattern with the fields of a bound, all ascending.
fn key_pattern_of(bound: DocRef<'_>) -> Doc {
    bound.elements().map(|element| (element.name, 1)).collect()
}

/// The key pattern of an index that begins with these fields and has every document, once if it has to be so.
pub(super) fn index_with(collection: &Collection, wanted: DocRef<'_>, once: bool) -> Option<Doc> {
    let begins = |pattern: DocRef<'_>| {
        pattern.field_count() >= wanted.field_count()
            && wanted.elements().zip(pattern.elements()).all(|(one, other)| {
                one.name == other.name && one.value.is_number() && one.value.to_double() == other.value.to_double()
            })
    };
    if collection.options.clustered_index.as_ref().is_some_and(|clustered| clustered.has_key(wanted)) {
        return Some(wanted.to_doc());
    }
    let mut usable = collection.indexes.iter().filter(|index| {
        let descriptor = &index.descriptor;
        let is_whole = descriptor.partial_filter.is_none() && !descriptor.sparse;
        is_whole && !(once && index.multikey.is_multikey()) && begins(descriptor.key_pattern.view())
    });
    usable.next().map(|index| index.descriptor.key_pattern.clone())
}

/// A bound with a value for each field of the pattern: where it has none, what comes before everything or behind it.
pub(super) fn extended(bound: DocRef<'_>, pattern: DocRef<'_>, is_behind: bool) -> Doc {
    let mut out = DocBuilder::new();
    for element in pattern.elements() {
        let is_descending = element.value.to_double().is_some_and(|way| way < 0.0);
        let end = if is_descending != is_behind { Value::MaxKey } else { Value::MinKey };
        match bound.elements().find(|given| given.name == element.name) {
            Some(given) => out.append_element(given),
            None => out.append(element.name, end),
        }
    }
    out.finish()
}

async fn scan(operation: &mut Operation, collection: &Collection, sum: &mut Sum) -> Result<()> {
    let mut after: Option<RecordId> = None;
    pando_query::fail_points::check_plan()?;
    loop {
        operation.context.check()?;
        let documents = next_documents(operation, collection, after.as_ref())?;
        let Some((last, _)) = documents.last() else { return Ok(()) };
        after = Some(last.clone());
        for (_, document) in &documents {
            sum.offer(document);
            if sum.is_enough() {
                return Ok(());
            }
        }
        yield_now().await;
    }
}

/// Documents between two keys of an index.
async fn range(
    data: &Data,
    operation: &mut Operation,
    namespace: &Namespace,
    (min, max, key_pattern): (Doc, Doc, Doc),
    sum: &mut Sum,
) -> Result<()> {
    let request = FindRequest { min, max, hint: Hint::KeyPattern(key_pattern), ..FindRequest::new(namespace.clone()) };
    let plan = match data.query.find(operation, &request) {
        // Nothing lies between bounds in the wrong order.
        Err(error) if error.code() == ErrorCode::location(51175) => return Ok(()),
        plan => plan?,
    };
    let FindPlan::Executor(mut executor) = plan else {
        bail!(ErrorCode::OperationFailed, "Couldn't find valid index containing key pattern")
    };
    while !sum.is_full() && !drive(&mut *executor, operation, data.collections(), sum).await? {}
    Ok(())
}
