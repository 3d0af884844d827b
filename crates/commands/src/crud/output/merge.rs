//! `$merge`: each result is brought together with a document of a collection, or becomes one.

use super::Turns;
use crate::crud::collections::{check_can_write, collection_for_insert, refuse_view};
use crate::locking::unlock;
use crate::{Data, Invocation};
use bstr::BStr;
use pando_base::{Category, Error, ErrorCode, Namespace, Result, ensure};
use pando_catalog::Collection;
use pando_collection::InsertOptions;
use pando_doc::{Array, Doc, DocBuilder, DocRef, FieldPath, OwnedValue, RawElement, Value, doc, get_path};
use pando_expr::expression::check_user_variable;
use pando_expr::{Expression, ParseContext};
use pando_operation::Operation;
use pando_query::pipeline::{MergeOutput, WhenMatched, WhenNotMatched};
use pando_query::request::{AggregateRequest, UpdateRequest};
use pando_query::write::InsertDocument;
use std::sync::Arc;

/// How often a result is tried that others insert at the same time.
const ATTEMPTS_MAX: u32 = 10;

/// The stage as written.
pub(super) struct Merge<'a> {
    data: &'a Data,
    namespace: &'a Namespace,
    on: Vec<String>,
    /// What the pipeline of `whenMatched` sees beside `$$new`.
    variables: Vec<(String, Expression)>,
    /// The values of the command's own variables.
    command_variables: Doc,
    matched: &'a WhenMatched,
    not_matched: WhenNotMatched,
    bypass_validation: bool,
    /// How the pipeline compares strings.
    collation: Option<Doc>,
}

pub(super) async fn run(
    invocation: &Invocation,
    data: &Data,
    operation: &mut Operation,
    target: &MergeOutput,
    request: &AggregateRequest,
    mut source: Turns<'_>,
) -> Result<()> {
    let namespace = &target.namespace;
    check_can_write(invocation, data, namespace, None)?;
    refuse_view(data, namespace)?;
    let merge = checked(data, operation, target, request)?;
    while let Some(documents) = source.next(operation).await? {
        let results = documents.into_iter().map(|document| merge.prepared(operation, document));
        let results: Vec<ResultToMerge> = results.collect::<Result<_>>()?;
        let collection = collection_for_insert(data, operation, namespace).await?;
        merge.check_unique(Some(&collection))?;
        data.query.fix_times(operation);
        let outcome = merge.batch(operation, &collection, results).await;
        unlock(operation);
        outcome?;
    }
    Ok(())
}

/// Reads what is to be done, and sees that the fields lead to one document at most.
pub(super) fn checked<'a>(
    data: &'a Data,
    operation: &Operation,
    target: &'a MergeOutput,
    request: &AggregateRequest,
) -> Result<Merge<'a>> {
    let catalog = data.catalog.latest();
    let read = catalog.collection(&request.namespace).map(|collection| &**collection);
    let context = data.query.parse_context(operation, &request.collation, &request.variables, read)?;
    let merge = Merge::parse(data, target, &context, request.bypass_document_validation)?;
    merge.check_unique(catalog.collection(&target.namespace).map(|collection| &**collection))?;
    Ok(merge)
}

/// A result on its way into the collection.
struct ResultToMerge {
    /// What it is brought together with.
    filter: Doc,
    document: Doc,
    /// The same with an `_id`, if it had none.
    with_id: Option<Doc>,
}

impl<'a> Merge<'a> {
    fn parse(
        data: &'a Data,
        target: &'a MergeOutput,
        context: &ParseContext,
        bypass_validation: bool,
    ) -> Result<Merge<'a>> {
        let MergeOutput { namespace, matched, not_matched, specification } = target;
        let variables = variables(specification, matched, context)?;
        let on = on_fields(specification)?;
        let collation = context.collator.as_ref().map(|collator| collator.specification().clone());
        Ok(Merge {
            data,
            namespace,
            on,
            variables,
            command_variables: context.variables.clone(),
            matched,
            not_matched: *not_matched,
            bypass_validation,
            collation,
        })
    }

    /// The fields must lead to one document at most, which a unique index sees to.
    fn check_unique(&self, collection: Option<&Collection>) -> Result<()> {
        if let [only] = self.on.as_slice()
            && only == "_id"
        {
            return Ok(());
        }
        let mut indexes = collection.into_iter().flat_map(Collection::ready_indexes);
        let fits = |pattern: DocRef<'_>| {
            pattern.field_count() == self.on.len()
                && pattern.elements().all(|field| self.on.iter().any(|name| field.name == name.as_str()))
        };
        let is_unique = indexes.any(|index| {
            let descriptor = &index.descriptor;
            descriptor.unique
                && descriptor.partial_filter.is_none()
                && descriptor.collation == self.collation
                && descriptor.key_pattern.view().elements().all(|field| field.value.is_number())
                && fits(descriptor.key_pattern.view())
        });
        ensure!(is_unique, ErrorCode::location(51183), "Cannot find index to verify that join fields will be unique");
        Ok(())
    }

    /// What is known of a result before anything is written.
    fn prepared(&self, operation: &Operation, document: Doc) -> Result<ResultToMerge> {
        let with_id = self.data.query.prepare_insert(operation, document.view())?;
        // A document that is found by other fields keeps its `_id`.
        let is_by_id = self.on.iter().any(|name| name == "_id");
        let document = if is_by_id { with_id.clone().unwrap_or(document) } else { document };
        Ok(ResultToMerge { filter: self.filter(&document)?, document, with_id })
    }

    /// Brings all results of a batch in; then the first error is told.
    async fn batch(
        &self,
        operation: &mut Operation,
        collection: &Arc<Collection>,
        results: Vec<ResultToMerge>,
    ) -> Result<()> {
        let mut first_error = None;
        for result in &results {
            match self.one(operation, collection, result).await {
                Ok(()) => {}
                Err(error) if error.code().is(Category::Interruption) => return Err(error),
                Err(error) => {
                    first_error.get_or_insert(error);
                    operation.recovery_unit.abandon_snapshot()?;
                }
            }
        }
        first_error.map_or(Ok(()), |error| Err(self.told(error)))
    }

    /// An error as it is told for the whole stage.
    fn told(&self, error: Error) -> Error {
        match (self.matched, error.code()) {
            (WhenMatched::Fail, ErrorCode::DuplicateKey) if self.is_same_key(&error) => error.context(
                "$merge with whenMatched: fail found an existing document with the same values for the 'on' fields",
            ),
            (_, ErrorCode::DuplicateKey) => error.context("$merge failed due to a DuplicateKey error"),
            _ => error,
        }
    }

    async fn one(&self, operation: &mut Operation, collection: &Arc<Collection>, result: &ResultToMerge) -> Result<()> {
        let ResultToMerge { filter, document, with_id } = result;
        for attempt in 1.. {
            if let Some(update) = self.update(filter, document)?
                && self.data.query.update(operation, &update).await?.n > 0
            {
                return Ok(());
            }
            match self.not_matched {
                WhenNotMatched::Discard => return Ok(()),
                WhenNotMatched::Fail => {
                    let reason = "$merge could not find a matching document in the target collection for at least one \
                                  document in the source collection";
                    return Err(Error::new(ErrorCode::MergeStageNoMatchingDocument, reason));
                }
                WhenNotMatched::Insert => {}
            }
            let inserted = self.as_inserted(with_id.as_ref().unwrap_or(document));
            match self.insert(operation, collection, &inserted).await {
                Err(error) if self.is_same_key(&error) => match self.matched {
                    WhenMatched::Keep => return Ok(()),
                    WhenMatched::Fail => return Err(error),
                    // Somebody has inserted it since the look.
                    _ if attempt < ATTEMPTS_MAX => operation.recovery_unit.abandon_snapshot()?,
                    _ => return Err(error),
                },
                outcome => return outcome,
            }
        }
        Ok(())
    }

    /// The result as it is inserted. Where it would have been merged, it comes as an update that makes the document: first
    /// what it was looked for by, then its fields in the order of their names.
    fn as_inserted(&self, document: &Doc) -> Doc {
        if !matches!(self.matched, WhenMatched::Merge | WhenMatched::Keep) {
            return document.clone();
        }
        let rank = |name: &BStr| match name == "_id" {
            true => 0,
            false => self.on.iter().position(|on| name == on.as_str()).map_or(usize::MAX, |place| place + 1),
        };
        let mut fields: Vec<RawElement<'_>> = document.view().raw_elements().collect();
        fields.sort_by(|left, right| (rank(left.name), left.name).cmp(&(rank(right.name), right.name)));
        let mut inserted = DocBuilder::with_capacity(document.size_bytes());
        fields.into_iter().for_each(|field| inserted.append_raw(field));
        inserted.finish()
    }

    /// The document that the result belongs to.
    fn filter(&self, document: &Doc) -> Result<Doc> {
        let mut filter = DocBuilder::new();
        for name in &self.on {
            let value = FieldPath::parse(name).ok().and_then(|path| get_path(document.view(), &path));
            let is_array = matches!(value, Some(Value::Array(_)));
            ensure!(!is_array, ErrorCode::location(51185), "$merge write error: 'on' field '{name}' is an array");
            let is_fit = value.is_some_and(|value| !value.is_nullish());
            ensure!(
                is_fit,
                ErrorCode::location(51132),
                "$merge write error: 'on' field '{name}' cannot be missing, null, undefined or an array"
            );
            filter.document(name, |equals| equals.append_some("$eq", value));
        }
        Ok(filter.finish())
    }

    /// The variables of the pipeline for a result.
    fn constants(&self, document: &Doc) -> Result<Doc> {
        let mut constants = DocBuilder::new();
        // Those of the whole command first; the stage's own take their place.
        let is_own = |name: &BStr| name == "new" || self.variables.iter().any(|(own, _)| name == own.as_str());
        let others = self.command_variables.elements().filter(|variable| !is_own(variable.name));
        others.for_each(|variable| constants.append_element(variable));
        constants.append("new", document);
        for (name, expression) in &self.variables {
            constants.append_some(name, expression.evaluate_document(document.view())?.into_value());
        }
        Ok(constants.finish())
    }

    fn update(&self, filter: &Doc, document: &Doc) -> Result<Option<UpdateRequest>> {
        let constants = self.constants(document)?;
        let request = |update: OwnedValue| UpdateRequest {
            bypass_document_validation: self.bypass_validation,
            ..UpdateRequest::new(self.namespace.clone(), filter.clone(), update)
        };
        let by_pipeline = |pipeline: &Array| UpdateRequest {
            constants: constants.clone(),
            ..request(OwnedValue::Array(pipeline.clone()))
        };
        Ok(match self.matched {
            WhenMatched::Keep | WhenMatched::Fail => None,
            WhenMatched::Replace => Some(request(OwnedValue::Document(document.clone()))),
            WhenMatched::Pipeline(pipeline) => Some(by_pipeline(pipeline)),
            WhenMatched::Merge => {
                let stage = doc! { "$replaceWith": { "$mergeObjects": ["$$ROOT", "$$new"] } };
                let mut pipeline = pando_doc::ArrayBuilder::new();
                pipeline.push(&stage);
                Some(by_pipeline(&pipeline.finish()))
            }
        })
    }

    async fn insert(&self, operation: &mut Operation, collection: &Arc<Collection>, document: &Doc) -> Result<()> {
        let insert = InsertDocument { document: document.clone(), statement_ids: pando_oplog::StatementIds::None };
        let options = InsertOptions { bypass_validation: self.bypass_validation, ..InsertOptions::default() };
        let outcomes =
            self.data.query.insert(operation, collection, std::slice::from_ref(&insert), true, options).await;
        outcomes.into_iter().collect()
    }

    /// Is it the error that a document with the same fields is there?
    fn is_same_key(&self, error: &Error) -> bool {
        let details = error.details().map(DocRef::trusted);
        let pattern = details.and_then(|details| details.get("keyPattern")).and_then(|pattern| pattern.as_document());
        error.code() == ErrorCode::DuplicateKey
            && pattern.is_some_and(|pattern| {
                pattern.elements().all(|field| self.on.iter().any(|name| field.name == name.as_str()))
            })
    }
}

fn on_fields(specification: &Doc) -> Result<Vec<String>> {
    let name = |value: Value<'_>| {
        let wrong = || Error::location(51134, "$merge 'on' array elements must be strings");
        value.as_str().map(str::to_owned).ok_or_else(wrong)
    };
    let checked = |names: Vec<String>| -> Result<Vec<String>> {
        names.iter().try_for_each(|name| FieldPath::parse(name).map(|_| ()))?;
        Ok(names)
    };
    match specification.get("on") {
        None | Some(Value::Null) => Ok(vec!["_id".to_owned()]),
        Some(Value::Array(names)) => {
            let names: Vec<String> = names.values().map(name).collect::<Result<_>>()?;
            ensure!(
                !names.is_empty(),
                ErrorCode::location(51187),
                "If explicitly specifying $merge 'on', must include at least one field"
            );
            checked(names)
        }
        Some(Value::String(text)) => checked(vec![text.to_string()]),
        Some(other) => {
            let reason = format!(
                "$merge 'on' field  must be either a string or an array of strings, but found {}",
                other.value_type()
            );
            Err(Error::location(51186, reason))
        }
    }
}

/// The variables of `let`, which only a pipeline can use.
fn variables(specification: &Doc, matched: &WhenMatched, context: &ParseContext) -> Result<Vec<(String, Expression)>> {
    let written = match specification.get("let") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Document(written)) => written,
        Some(other) => {
            let found = other.value_type();
            let reason = format!("BSON field '$merge.let' is the wrong type '{found}', expected type 'object'");
            return Err(Error::type_mismatch(reason));
        }
    };
    if !matches!(matched, WhenMatched::Pipeline(_)) {
        let mode = specification.get("whenMatched").and_then(|mode| mode.as_str()).unwrap_or("merge");
        let reason = format!("Cannot use 'let' variables with 'whenMatched: {mode}' mode");
        return Err(Error::location(51199, reason));
    }
    let mut variables = Vec::new();
    for variable in written.elements() {
        if variable.name == "new" {
            let is_root = matches!(variable.value, Value::String(text) if text == "$$ROOT");
            ensure!(
                is_root,
                ErrorCode::location(51273),
                "'let' may not define a value for the reserved 'new' variable other than '$$ROOT'"
            );
            continue;
        }
        check_user_variable(variable.name)?;
        variables.push((variable.name.to_string(), Expression::parse(variable.value, context)?.optimize()?));
    }
    Ok(variables)
}
