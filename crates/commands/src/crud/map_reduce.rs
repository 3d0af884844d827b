//! `mapReduce`: deprecated, and run as the aggregation that does the same.
//!
//! The map function becomes an expression that gives all that it emits for a document, the reduce function an accumulator, finalize an
//! expression again; `out` becomes `$out` or `$merge`. So it yields, spills and is killed as other pipelines are.

use super::aggregate::run_to_end;
use super::reading::{begin_read_with, shared_or_empty};
use super::stored_functions;
use crate::arguments::{SafeBool, SafeLong};
use crate::table::run_boxed;
use crate::{Access, Admission, Class, CommandRow, Data, Invocation, NamespaceOf, SecondaryOk, arguments};
use pando_base::{Error, ErrorCode, Namespace, OperationKind, Result, ensure};
use pando_doc::{Doc, DocBuilder, DocRef, Value, doc};
use pando_env::Place;
use pando_query::executor::StoredFunctions;
use pando_query::request::AggregateRequest;

pub(super) const ROW: CommandRow = CommandRow {
    name: "mapReduce",
    aliases: &["mapreduce"],
    help: "Runs the mapReduce command. See http://dochub.mongodb.org/core/mapreduce for details.",
    run: |invocation, reply| run_boxed(run(invocation, reply)),
    class: Class::Read,
    secondary_ok: SecondaryOk::OptIn,
    takes_write_concern: true,
    takes_read_concern: true,
    is_stopped_when_abandoned: true,
    admission: Admission::Read,
    kind: OperationKind::Command,
    namespace: NamespaceOf::FirstField,
    privileges: Access::Checked(crate::access::may_map_reduce),
    place: Place::Lanes,
    ..CommandRow::DEFAULT
};

arguments! {
    pub(super) struct MapReduceArguments<'a> of "mapReduce" {
        map: Value<'a> = "map",
        reduce: Value<'a> = "reduce",
        out: Value<'a> = "out",
        query: Option<DocRef<'a>> = "query",
        sort: Option<DocRef<'a>> = "sort",
        collation: Option<DocRef<'a>> = "collation",
        limit: Option<SafeLong> = "limit",
        finalize: Option<Value<'a>> = "finalize",
        scope: Option<DocRef<'a>> = "scope",
        verbose: Option<SafeBool> = "verbose",
        bypass_validation: SafeBool = "bypassDocumentValidation" or SafeBool(false),
        js_mode: Option<SafeBool> = "jsMode",
    }
}

/// What becomes of the results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// They are in the reply.
    Inline,
    /// They take the place of a collection.
    Replace(Target),
    /// They take the place of documents with the same id.
    Merge(Target),
    /// They are reduced with the documents that have the same id.
    Reduce(Target),
}

/// A collection, in a database that may have been named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) database: Option<String>,
    pub(crate) collection: String,
}

impl Output {
    pub(crate) fn parse(out: Value<'_>) -> Result<Output> {
        let options = match out {
            Value::String(collection) => {
                return Ok(Output::Replace(Target { database: None, collection: collection.to_string() }));
            }
            Value::Document(options) => options,
            _ => return Err(Error::bad_value("'out' must be either a string or an object")),
        };
        if let Some(inline) = options.get("inline") {
            ensure!(options.field_count() == 1, ErrorCode::InvalidOptions, "'inline' must be specified alone");
            ensure!(inline.to_double() == Some(1.0), ErrorCode::BadValue, "'inline' takes only numeric '1'");
            return Ok(Output::Inline);
        }
        let mut known = 1;
        for name in ["sharded", "nonAtomic"] {
            if let Some(value) = options.get(name) {
                known += 1;
                let is_bool = matches!(value, Value::Bool(_));
                ensure!(is_bool, ErrorCode::BadValue, "{name} field value must be boolean");
                ensure!(value == Value::Bool(true), ErrorCode::BadValue, "{name} field value must be true");
            }
        }
        let modes = ["replace", "merge", "reduce"];
        let Some((mode, value)) = modes.iter().find_map(|mode| Some((*mode, options.get(mode)?))) else {
            return Err(Error::bad_value("'out' requires 'replace', 'merge' or 'reduce'"));
        };
        let Value::String(collection) = value else {
            let reason = format!("'{mode}' supports only string consisting of output collection name");
            return Err(Error::bad_value(reason));
        };
        let database = match options.get("db") {
            None => None,
            Some(Value::String(database)) => {
                let name = database.to_string();
                let is_internal = matches!(name.as_str(), "admin" | "local" | "config");
                ensure!(!is_internal, ErrorCode::CommandNotSupported, "cannot target internal database as output");
                known += 1;
                Some(name)
            }
            Some(_) => return Err(Error::bad_value("db field value must be string")),
        };
        let reason = "'out' supports only output type with collection name, optional 'sharded' and optional 'db'";
        ensure!(options.field_count() == known, ErrorCode::BadValue, "{reason}");
        let reason = "Cannot use mapReduce to create a new sharded collection. Please create and shard the target collection before proceeding.";
        ensure!(options.get("sharded").is_none(), ErrorCode::InvalidOptions, "{reason}");
        let target = Target { database, collection: collection.to_string() };
        Ok(match mode {
            "replace" => Output::Replace(target),
            "merge" => Output::Merge(target),
            _ => Output::Reduce(target),
        })
    }

    pub(crate) fn target(&self) -> Option<&Target> {
        match self {
            Output::Inline => None,
            Output::Replace(target) | Output::Merge(target) | Output::Reduce(target) => Some(target),
        }
    }
}

/// The source of a function.
fn code(name: &str, value: Value<'_>) -> Result<String> {
    match value {
        Value::String(code) | Value::Code(code) => Ok(code.to_string()),
        _ => Err(Error::bad_value(format!("'{name}' must be of string or code type"))),
    }
}

fn function(source: &str, arguments: Doc) -> Doc {
    let arguments = arguments.get("args").map(Value::to_owned);
    let mut call = DocBuilder::new();
    call.append("body", source);
    call.append_some("args", arguments.as_ref().map(pando_doc::OwnedValue::view));
    call.append("lang", "js");
    doc! { "$function": call.finish() }
}

impl MapReduceArguments<'_> {
    /// The aggregation that does the same.
    pub(super) fn request(
        &self,
        invocation: &Invocation,
        namespace: Namespace,
        output: &Output,
    ) -> Result<AggregateRequest> {
        let (map, reduce) = (code("map", self.map)?, code("reduce", self.reduce)?);
        let finalize = match self.finalize {
            None | Some(Value::Null) => None,
            Some(value) => Some(code("finalize", value)?),
        };
        let mut pipeline = Vec::new();
        if let Some(query) = self.query {
            pipeline.push(doc! { "$match": query });
        }
        if let Some(sort) = self.sort {
            let reason = "The mapReduce sort option must have at least one sort key";
            ensure!(!sort.is_empty(), ErrorCode::location(15976), "{reason}");
            pipeline.push(doc! { "$sort": sort });
        }
        if let Some(SafeLong(limit)) = self.limit {
            let reason = "The limit specified to mapReduce must be positive";
            ensure!(limit > 0, ErrorCode::location(15958), "{reason}");
            pipeline.push(doc! { "$limit": limit });
        }
        let emit = doc! { "$_internalJsEmit": { "eval": map.as_str(), "this": "$$ROOT" } };
        pipeline.push(doc! { "$project": { "emits": emit, "_id": 0 } });
        pipeline.push(doc! { "$unwind": { "path": "$emits" } });
        let accumulated = doc! { "$_internalJsReduce": { "data": "$emits", "eval": reduce.as_str() } };
        pipeline.push(doc! { "$group": { "_id": "$emits.k", "value": accumulated } });
        let finalized = finalize.as_ref().map(|source| {
            doc! { "$project": { "_id": 1, "value": (function(source, doc! { "args": ["$_id", "$value"] })) } }
        });
        pipeline.extend(finalized.clone());
        if let Some(target) = output.target() {
            let database = target.database.as_deref().unwrap_or(invocation.database.as_str());
            pipeline.push(output_stage(output, database, &target.collection, &reduce, finalized));
        }
        Ok(AggregateRequest {
            collation: shared_or_empty(invocation, self.collation),
            bypass_document_validation: self.bypass_validation.0,
            is_map_reduce: true,
            javascript_scope: self.scope.map(|scope| scope.to_doc()),
            ..AggregateRequest::new(namespace, pipeline)
        })
    }
}

fn output_stage(output: &Output, database: &str, collection: &str, reduce: &str, finalized: Option<Doc>) -> Doc {
    let into = doc! { "db": database, "coll": collection };
    match output {
        Output::Inline | Output::Replace(_) => doc! { "$out": into },
        Output::Merge(_) => {
            doc! { "$merge": { "into": into, "on": "_id", "whenMatched": "replace", "whenNotMatched": "insert" } }
        }
        Output::Reduce(_) => {
            let both = function(reduce, doc! { "args": ["$_id", ["$value", "$$new.value"]] });
            let mut changes = pando_doc::ArrayBuilder::new();
            changes.push(doc! { "$project": { "value": both } });
            finalized.into_iter().for_each(|stage| changes.push(stage));
            doc! { "$merge": { "into": into, "on": "_id", "whenMatched": (changes.finish()), "whenNotMatched": "insert" } }
        }
    }
}

async fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let data = invocation.data()?;
    let namespace = invocation.collection()?;
    let arguments = MapReduceArguments::parse(&invocation.request)?;
    let output = Output::parse(arguments.out)?;
    let waits = invocation.generic.write_concern.as_ref().is_some_and(|concern| !concern.is_empty());
    ensure!(!waits || output != Output::Inline, ErrorCode::InvalidOptions, "Command does not support writeConcern");
    let request = arguments.request(invocation, namespace, &output)?;
    let reason = "mapReduce on a view is not supported";
    ensure!(!super::views::is_view(data, &request.namespace)?, ErrorCode::CommandNotSupportedOnView, "{reason}");
    let results = aggregate(invocation, data, &request, arguments.scope, &output)
        .await
        .map_err(|error| error.context("MapReduce internal error"))?;
    match output.target() {
        None => reply.array("results", |array| results.iter().for_each(|document| array.push(document))),
        Some(Target { database: None, collection }) => reply.append("result", collection.as_str()),
        Some(Target { database: Some(database), collection }) => {
            reply.append("result", doc! { "db": database.as_str(), "collection": collection.as_str() });
        }
    }
    Ok(())
}

async fn aggregate(
    invocation: &Invocation,
    data: &Data,
    request: &AggregateRequest,
    scope: Option<DocRef<'_>>,
    output: &Output,
) -> Result<Vec<Doc>> {
    let mut operation = invocation.operation()?;
    stored_functions::load(invocation, data, &mut operation).await?;
    if let Some(scope) = scope {
        let stored = operation.extensions.remove::<StoredFunctions>().map(|stored| stored.0).unwrap_or_default();
        let mut all = DocBuilder::new();
        all.append_all(stored.view());
        all.append_all(scope);
        operation.extensions.insert(StoredFunctions(all.finish()));
    }
    begin_read_with(data, &mut operation, invocation.generic.read_concern.as_ref()).await?;
    if *output == Output::Inline {
        return run_to_end(data, &mut operation, request).await;
    }
    let aggregation = data.query.aggregate(&mut operation, request, None)?;
    super::output::run(invocation, data, &mut operation, request, aggregation).await?;
    Ok(Vec::new())
}
