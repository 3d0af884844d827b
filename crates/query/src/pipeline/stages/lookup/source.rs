//! The run of a `$lookup`.
//!
//! At first every document has its own query of the other collection, which uses an index if there is one. If there is none and the
//! documents that were looked at in vain add up, the collection is read into a table, and the rest is looked for there.
//! Reading it yields like any query; the document that waits for it is kept.
//!
//! A search in a large table waits for memory. Documents that will be looked up next do not depend on each other: several of them are pulled
//! and looked for one right after the other, so that the processor waits for all of them at once (`Ahead`).

use super::hash_join::{Builder, HashTable, Matches};
use super::local_values::equality;
use super::{Lookup, LookupSpec};
use crate::executor::Collections;
use crate::memory::Held;
use crate::pipeline::stages::set_field::with_field;
use crate::pipeline::stages::unwind::Unwinding;
use crate::pipeline::stages::{documents, match_stage};
use crate::pipeline::{DocumentSource, PipelineContext, Pulled, SharedStage, StageFacts, parse_pipeline};
use crate::stage::StageNode;
use bstr::BStr;
use pando_base::{Error, Result};
use pando_catalog::{Collection, IndexKind};
use pando_doc::{ArrayBuilder, Doc, DocBuilder, DocRef, FieldPath, Value, doc};
use pando_expr::SharedCollator;
use pando_operation::Operation;
use smallvec::{SmallVec, smallvec};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// A table pays after so many documents were looked at one by one,
const EXAMINED_MIN: u64 = 256;
/// or after so many queries.
const LOOKUPS_MIN: u64 = 16;
/// So many documents are looked up at once at most. What leads to them has room in the processor's nearest cache.
const AHEAD_MAX: usize = 32;

/// How documents are found.
enum Join {
    /// By a query each; whether a table would do is not known yet.
    Open,
    /// By a query each, to the end.
    Nested,
    /// The table is being filled.
    Building(Builder, Box<dyn DocumentSource>),
    /// In a table.
    Table(HashTable),
}

/// Where what belongs to a document comes from.
enum Found {
    /// Out of the table.
    Listed(<Matches as IntoIterator>::IntoIter),
    /// By a query.
    Asked(Box<dyn DocumentSource>),
}

impl Found {
    fn next(&mut self, context: &mut PipelineContext<'_>) -> Result<Pulled> {
        match self {
            Found::Listed(documents) => Ok(documents.next().map_or(Pulled::Exhausted, Pulled::Document)),
            Found::Asked(source) => source.next(context),
        }
    }

    fn asked(&self) -> Option<&dyn DocumentSource> {
        match self {
            Found::Listed(_) => None,
            Found::Asked(source) => Some(&**source),
        }
    }

    fn asked_mut(&mut self) -> Option<&mut Box<dyn DocumentSource>> {
        match self {
            Found::Listed(_) => None,
            Found::Asked(source) => Some(source),
        }
    }
}

/// A look-up whose documents go out one by one.
struct Open {
    document: Doc,
    found: Found,
    given: i64,
}

/// Documents that were pulled and looked up before it was their turn, in a table.
#[derive(Default)]
struct Ahead {
    /// None where a query has to find what belongs to a document.
    waiting: VecDeque<(Doc, Option<Matches>)>,
    /// What comes behind them.
    then: Option<Result<Pulled>>,
    /// How many were pulled at once last time. Few at first: whoever wants only the first results has no more read than that.
    stride: usize,
}

/// What was looked at, for `explain` and to see when a table pays.
#[derive(Default)]
struct Examined {
    lookups: u64,
    documents: u64,
    keys: u64,
    collection_scans: u64,
    indexes: BTreeSet<String>,
}

pub(super) struct LookupSource {
    source: Box<dyn DocumentSource>,
    spec: LookupSpec,
    join: Join,
    open: Option<Open>,
    /// A document that waits for the table.
    pending: Option<Doc>,
    ahead: Ahead,
    examined: Examined,
    /// What the table takes.
    held: Held,
}

impl LookupSource {
    pub(super) fn new(source: Box<dyn DocumentSource>, spec: LookupSpec) -> LookupSource {
        let (ahead, examined) = (Ahead::default(), Examined::default());
        let held = spec.lookup.parser.resources.account.held();
        LookupSource { source, spec, join: Join::Open, open: None, pending: None, ahead, examined, held }
    }

    fn lookup(&self) -> &Lookup {
        &self.spec.lookup
    }

    /// The stages that find what belongs to a document.
    fn stages(&self, document: DocRef<'_>) -> Result<Vec<SharedStage>> {
        let lookup = self.lookup();
        let mut parser = lookup.parser.clone();
        for (name, expression) in &lookup.variables {
            let value = expression.evaluate_document(document)?.into_value();
            parser.context.set_variable(BStr::new(name), value);
        }
        let mut stages = lookup.pipeline.clone().unwrap_or_default();
        if let Some((local, foreign)) = &lookup.fields {
            // Documents of the pipeline's own come first.
            let place = usize::from(documents::begin(stages.first().map(Doc::view)));
            stages.insert(place, doc! { "$match": equality(document, local, foreign) });
        }
        let mut parsed = parse_pipeline(&stages, &parser)?;
        parsed.extend(self.matching());
        Ok(parsed)
    }

    /// What found documents have to fulfil beside that.
    fn matching(&self) -> Option<SharedStage> {
        self.spec.matching.as_ref().map(|matching| match_stage::of(Arc::clone(matching)))
    }

    /// A query for what belongs to a document.
    fn asked(&self, context: &mut PipelineContext<'_>, document: &Doc) -> Result<Found> {
        let stages = self.stages(document.view())?;
        let collator = &self.lookup().parser.context.collator;
        let engine = context.engine.patient();
        engine.pipeline_source(context.operation, &self.lookup().from, &stages, collator).map(Found::Asked)
    }

    /// The next document with what belongs to it.
    fn next_found(&mut self, context: &mut PipelineContext<'_>) -> Result<std::result::Result<(Doc, Found), Pulled>> {
        if self.ahead.waiting.is_empty() {
            if let Some(then) = self.ahead.then.take() {
                return then.map(Err);
            }
            let document = match self.next_local(context)? {
                Pulled::Document(document) => document,
                other => return Ok(Err(other)),
            };
            self.look_ahead(context, document)?;
        }
        let Some((document, listed)) = self.ahead.waiting.pop_front() else { return Ok(Err(Pulled::Exhausted)) };
        let found = match listed {
            Some(listed) => Found::Listed(listed.into_iter()),
            None => self.asked(context, &document)?,
        };
        Ok(Ok((document, found)))
    }

    /// Looks a document up, with several behind it if there is a table.
    fn look_ahead(&mut self, context: &mut PipelineContext<'_>, first: Doc) -> Result<()> {
        let mut documents: SmallVec<[Doc; AHEAD_MAX]> = smallvec![first];
        let is_in_table = matches!(self.join, Join::Table(_));
        self.ahead.stride = if is_in_table { (self.ahead.stride * 2).clamp(1, AHEAD_MAX) } else { 1 };
        while documents.len() < self.ahead.stride {
            match self.source.next(context) {
                Ok(Pulled::Document(document)) => documents.push(document),
                other => {
                    self.ahead.then = Some(other);
                    break;
                }
            }
        }
        let found = match (&self.join, &self.lookup().fields) {
            (Join::Table(table), Some((local, _))) => table.find_each(&documents, local)?,
            _ => vec![None; documents.len()],
        };
        self.ahead.waiting.extend(documents.into_iter().zip(found));
        Ok(())
    }

    /// The next document that something is looked up for, after what has to be done before it.
    fn next_local(&mut self, context: &mut PipelineContext<'_>) -> Result<Pulled> {
        let document = match self.pending.take() {
            Some(document) => document,
            None => match self.source.next(context)? {
                Pulled::Document(document) => document,
                other => return Ok(other),
            },
        };
        let pulled = match self.prepare(context) {
            Ok(None) => return Ok(Pulled::Document(document)),
            Ok(Some(waiting)) => Ok(waiting),
            Err(error) => Err(error),
        };
        self.pending = Some(document);
        pulled
    }

    /// Reads the other collection into a table, if that pays; says so if others are to run first.
    fn prepare(&mut self, context: &mut PipelineContext<'_>) -> Result<Option<Pulled>> {
        let is_enough = self.examined.documents >= EXAMINED_MIN || self.examined.lookups >= LOOKUPS_MIN;
        if matches!(self.join, Join::Open) && is_enough && self.examined.lookups >= 2 {
            self.join = self.begun(context)?;
        }
        let memory_bytes_max = self.lookup().parser.resources.join_memory_bytes_max;
        while let Join::Building(table, source) = &mut self.join {
            match source.next(context)? {
                Pulled::Document(document) => table.add(document.view())?,
                Pulled::Yield(cause) => return Ok(Some(Pulled::Yield(cause))),
                Pulled::Exhausted => {
                    note(&mut self.examined, Some(&**source), context.engine.is_explaining);
                    let Join::Building(table, _) = std::mem::replace(&mut self.join, Join::Nested) else { break };
                    self.join = Join::Table(table.finish());
                    break;
                }
            }
            let table_bytes = table.memory_bytes() as u64;
            if table_bytes > memory_bytes_max {
                self.join = Join::Nested;
                self.held.set(0)?;
            } else {
                self.held.set(table_bytes)?;
            }
        }
        Ok(None)
    }

    /// A table that is to be filled, if a table would do.
    fn begun(&self, context: &mut PipelineContext<'_>) -> Result<Join> {
        let lookup = self.lookup();
        let Some((_, foreign)) = lookup.fields.as_ref().filter(|_| lookup.pipeline.is_none()) else {
            return Ok(Join::Nested);
        };
        let collator = &lookup.parser.context.collator;
        // Of a view it is not known what indexes there are below it.
        let collection = context.engine.collections.open(context.operation, &lookup.from)?;
        let is_without_index = collection.is_some_and(|collection| !has_index(&collection, foreign, collator));
        if !is_without_index || lookup.parser.resources.join_memory_bytes_max == 0 {
            return Ok(Join::Nested);
        }
        let stages: Vec<SharedStage> = self.matching().into_iter().collect();
        let source = context.engine.pipeline_source(context.operation, &lookup.from, &stages, collator)?;
        Ok(Join::Building(Builder::new(foreign.clone(), collator.clone()), source))
    }

    /// The next found document in its place.
    fn next_unwound(&mut self, context: &mut PipelineContext<'_>, unwinding: &Unwinding) -> Result<Pulled> {
        loop {
            let Some(open) = &mut self.open else {
                let (document, found) = match self.next_found(context)? {
                    Ok(found) => found,
                    Err(other) => return Ok(other),
                };
                self.open = Some(Open { document, found, given: 0 });
                continue;
            };
            let (value, index) = match open.found.next(context)? {
                Pulled::Document(found) => {
                    open.given += 1;
                    (Some(found), Value::Int64(open.given - 1))
                }
                Pulled::Yield(cause) => return Ok(Pulled::Yield(cause)),
                Pulled::Exhausted => {
                    note(&mut self.examined, open.found.asked(), context.engine.is_explaining);
                    if open.given > 0 || !unwinding.keeps_empty {
                        self.open = None;
                        continue;
                    }
                    (None, Value::Null)
                }
            };
            let placed = value.as_ref().map(|found| Value::Document(found.view()));
            let mut result = with_field(open.document.view(), &self.spec.lookup.into, placed);
            if let Some(name) = &unwinding.index_name {
                result = with_field(result.view(), name, Some(index));
            }
            if value.is_none() {
                self.open = None;
            }
            return Ok(Pulled::Document(result));
        }
    }

    #[cold]
    fn too_large(&self, limit_bytes: u64) -> Error {
        let reason = format!(
            "Total size of documents in {} matching pipeline's $lookup stage exceeds {limit_bytes} bytes",
            self.lookup().from.collection()
        );
        Error::location(4568, reason)
    }

    fn gathered(&mut self, context: &mut PipelineContext<'_>, document: &Doc, mut found: Found) -> Result<Pulled> {
        let mut list = ArrayBuilder::new();
        let (mut size_bytes, limit_bytes) = (0, self.lookup().parser.resources.lookup_bytes_max);
        loop {
            match found.next(context)? {
                Pulled::Document(document) => {
                    size_bytes += document.size_bytes() as u64;
                    if size_bytes > limit_bytes {
                        return Err(self.too_large(limit_bytes));
                    }
                    list.push(document);
                }
                Pulled::Exhausted => break,
                Pulled::Yield(cause) => return Ok(Pulled::Yield(cause)),
            }
        }
        note(&mut self.examined, found.asked(), context.engine.is_explaining);
        let list = list.finish();
        Ok(Pulled::Document(with_field(document.view(), &self.lookup().into, Some(Value::Array(list.view())))))
    }
}

/// Counts what a query that is over has looked at.
fn note(examined: &mut Examined, source: Option<&dyn DocumentSource>, with_names: bool) {
    examined.lookups += 1;
    let Some(executor) = source.and_then(|source| source.executor()) else { return };
    let (root, counted) = (executor.root(), executor.root().examined());
    examined.documents += counted.documents;
    examined.keys += counted.keys;
    examined.collection_scans += u64::from(root.has("COLLSCAN"));
    if with_names {
        note_indexes(root, &mut examined.indexes);
    }
}

fn note_indexes(node: &StageNode, names: &mut BTreeSet<String>) {
    let mut described = DocBuilder::new();
    node.stage().describe(&mut described);
    let described = described.finish();
    // Documents are found by `_id` in its index.
    let is_by_id = node.name() == "IDHACK";
    names.extend(described.get("indexName").and_then(|name| name.as_str()).map(str::to_owned));
    names.extend(is_by_id.then(|| "_id_".to_owned()));
    node.children().iter().for_each(|child| note_indexes(child, names));
}

/// True if queries for values of this field need not look at every document.
fn has_index(collection: &Collection, foreign: &FieldPath, collator: &Option<SharedCollator>) -> bool {
    let collation = collator.as_ref().map(|collator| collator.specification());
    if collection.cluster_field().is_some_and(|field| foreign.text() == field) {
        return true;
    }
    collection.ready_indexes().filter(|index| index.descriptor.is_visible()).any(|index| {
        let descriptor = &index.descriptor;
        let is_first = descriptor.key_pattern.view().first().is_some_and(|first| first.name == foreign.text());
        let is_known = match descriptor.kind {
            IndexKind::Btree | IndexKind::Hashed => is_first,
            IndexKind::Wildcard => true,
            _ => false,
        };
        is_known && descriptor.partial_filter.is_none() && descriptor.collation.as_ref() == collation
    })
}

impl DocumentSource for LookupSource {
    fn next(&mut self, context: &mut PipelineContext<'_>) -> Result<Pulled> {
        if let Some(unwinding) = self.spec.unwinding.clone() {
            return self.next_unwound(context, &unwinding);
        }
        let (document, found) = match self.next_found(context)? {
            Ok(found) => found,
            Err(other) => return Ok(other),
        };
        let pulled = self.gathered(context, &document, found)?;
        if matches!(pulled, Pulled::Yield(_)) {
            // Its query begins anew.
            self.ahead.waiting.push_front((document, None));
        }
        Ok(pulled)
    }

    fn save(&mut self) {
        self.source.save();
        if let Some(source) = self.open.as_mut().and_then(|open| open.found.asked_mut()) {
            source.save();
        }
        if let Join::Building(_, source) = &mut self.join {
            source.save();
        }
    }

    fn restore(&mut self, operation: &mut Operation, collections: &dyn Collections) -> Result<()> {
        self.source.restore(operation, collections)?;
        if let Join::Building(_, source) = &mut self.join {
            source.restore(operation, collections)?;
        }
        let asked = self.open.as_mut().and_then(|open| open.found.asked_mut());
        asked.map_or(Ok(()), |source| source.restore(operation, collections))
    }

    fn before(&self) -> Option<&dyn DocumentSource> {
        Some(&*self.source)
    }

    fn before_mut(&mut self) -> Option<&mut dyn DocumentSource> {
        Some(&mut *self.source)
    }

    fn facts(&self) -> StageFacts {
        let examined = &self.examined;
        let count = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let mut details = DocBuilder::new();
        details.append("totalDocsExamined", count(examined.documents));
        details.append("totalKeysExamined", count(examined.keys));
        details.append("collectionScans", count(examined.collection_scans));
        details.array("indexesUsed", |names| examined.indexes.iter().for_each(|name| names.push(name.as_str())));
        if self.lookup().fields.is_some() {
            let strategy = match &self.join {
                Join::Building(..) | Join::Table(_) => "HashJoin",
                _ if examined.indexes.is_empty() => "NestedLoopJoin",
                _ => "IndexedLoopJoin",
            };
            details.append("strategy", strategy);
        }
        StageFacts { used_disk: false, details: details.finish() }
    }
}
