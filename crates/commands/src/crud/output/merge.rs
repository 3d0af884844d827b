//! `$merge`: each result is brought together with a document of a collection, or becomes one.

use super::Turns;
use crate::crud::collections::{check_can_write, collection_for_insert, refuse_view};
use crate::locking::unlock;
use crate::{Data, Invocation};
use pando_base::{Error, ErrorCode, Namespace, Result, ensure};
use pando_catalog::Collection;
use pando_collection::InsertOptions;
use pando_doc::{Array, Doc, DocBuilder, DocRef, FieldPath, OwnedValue, Value, doc, get_path};
use pando_operation::Operation;
use pando_query::request::{AggregateRequest, UpdateRequest};
use pando_query::write::InsertDocument;
use std::sync::Arc;

/// How often a result is tried that others insert at the same time.
const ATTEMPTS_MAX: u32 = 10;

/// What becomes of a document that is there.
enum Matched {
    /// It gets the result's fields.
    Merge,
    /// It becomes the result.
    Replace,
    /// It stays.
    Keep,
    /// That is an error.
    Fail,
    /// A pipeline decides.
    Pipeline(Array),
}

/// What becomes of a result that finds none.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NotMatched {
    Insert,
    Discard,
    Fail,
}

/// The stage as written.
struct Merge<'a> {
    data: &'a Data,
    namespace: &'a Namespace,
    on: Vec<String>,
    matched: Matched,
    not_matched: NotMatched,
    bypass_validation: bool,
}

pub(super) async fn run(
    invocation: &Invocation,
    data: &Data,
    operation: &mut Operation,
    namespace: &Namespace,
    specification: &Doc,
    request: &AggregateRequest,
    mut source: Turns<'_>,
) -> Result<()> {
    check_can_write(invocation, data, namespace)?;
    refuse_view(data, namespace)?;
    let merge = Merge::parse(data, namespace, specification, request.bypass_document_validation)?;
    while let Some(documents) = source.next(operation).await? {
        let collection = collection_for_insert(data, operation, namespace).await?;
        merge.check_unique(&collection)?;
        for document in documents {
            merge.one(operation, &collection, document).await?;
        }
        unlock(operation);
    }
    Ok(())
}

impl<'a> Merge<'a> {
    fn parse(
        data: &'a Data,
        namespace: &'a Namespace,
        specification: &Doc,
        bypass_validation: bool,
    ) -> Result<Merge<'a>> {
        for element in specification.elements() {
            let is_known = matches!(&**element.name, b"into" | b"on" | b"let" | b"whenMatched" | b"whenNotMatched");
            let reason = || format!("BSON field '$merge.{}' is an unknown field.", element.name);
            ensure!(is_known, ErrorCode::IDLUnknownField, "{}", reason());
        }
        let has_let = specification.get("let").is_some();
        ensure!(!has_let, ErrorCode::NotImplemented, "'let' of $merge is not built yet");
        let (matched, not_matched) = (matched(specification)?, not_matched(specification)?);
        let keeps_or_fails = matches!(matched, Matched::Keep | Matched::Fail);
        ensure!(
            !keeps_or_fails || not_matched == NotMatched::Insert,
            ErrorCode::location(51181),
            "Combination of $merge modes is not supported"
        );
        Ok(Merge { data, namespace, on: on_fields(specification)?, matched, not_matched, bypass_validation })
    }

    /// The fields must lead to one document at most, which a unique index sees to.
    fn check_unique(&self, collection: &Collection) -> Result<()> {
        if let [only] = self.on.as_slice()
            && only == "_id"
        {
            return Ok(());
        }
        let fits = |pattern: DocRef<'_>| {
            pattern.field_count() == self.on.len()
                && pattern.elements().all(|field| self.on.iter().any(|name| field.name == name.as_str()))
        };
        let is_unique = collection.ready_indexes().any(|index| {
            let descriptor = &index.descriptor;
            descriptor.unique && descriptor.partial_filter.is_none() && fits(descriptor.key_pattern.view())
        });
        ensure!(is_unique, ErrorCode::location(51183), "Cannot find index to verify that join fields will be unique");
        Ok(())
    }

    async fn one(&self, operation: &mut Operation, collection: &Arc<Collection>, document: Doc) -> Result<()> {
        let document = self.data.query.prepare_insert(operation, document.view())?.unwrap_or(document);
        let filter = self.filter(&document)?;
        for attempt in 1.. {
            if let Some(update) = self.update(&filter, &document)
                && self.data.query.update(operation, &update).await?.n > 0
            {
                return Ok(());
            }
            match self.not_matched {
                NotMatched::Discard => return Ok(()),
                NotMatched::Fail => {
                    let reason = "$merge could not find a matching document in the target collection for at least one \
                                  document in the source collection";
                    return Err(Error::new(ErrorCode::MergeStageNoMatchingDocument, reason));
                }
                NotMatched::Insert => {}
            }
            match self.insert(operation, collection, &document).await {
                Err(error) if self.is_same_key(&error) => match self.matched {
                    Matched::Keep => return Ok(()),
                    Matched::Fail => return Err(error),
                    // Somebody has inserted it since the look.
                    _ if attempt < ATTEMPTS_MAX => operation.recovery_unit.abandon_snapshot()?,
                    _ => return Err(error),
                },
                outcome => return outcome,
            }
        }
        Ok(())
    }

    /// The document that the result belongs to.
    fn filter(&self, document: &Doc) -> Result<Doc> {
        let mut filter = DocBuilder::new();
        for name in &self.on {
            let value = FieldPath::parse(name).ok().and_then(|path| get_path(document.view(), &path));
            let is_fit = value.is_some_and(|value| !matches!(value, Value::Null | Value::Undefined | Value::Array(_)));
            ensure!(
                is_fit,
                ErrorCode::location(51132),
                "$merge write error: 'on' field cannot be missing, null, undefined or an array"
            );
            filter.document(name, |equals| equals.append_some("$eq", value));
        }
        Ok(filter.finish())
    }

    fn update(&self, filter: &Doc, document: &Doc) -> Option<UpdateRequest> {
        let request = |update: OwnedValue| UpdateRequest {
            bypass_document_validation: self.bypass_validation,
            ..UpdateRequest::new(self.namespace.clone(), filter.clone(), update)
        };
        let by_pipeline = |pipeline: &Array| UpdateRequest {
            constants: doc! { "new": document },
            ..request(OwnedValue::Array(pipeline.clone()))
        };
        match &self.matched {
            Matched::Keep | Matched::Fail => None,
            Matched::Replace => Some(request(OwnedValue::Document(document.clone()))),
            Matched::Pipeline(pipeline) => Some(by_pipeline(pipeline)),
            Matched::Merge => {
                let stage = doc! { "$replaceWith": { "$mergeObjects": ["$$ROOT", "$$new"] } };
                let mut pipeline = pando_doc::ArrayBuilder::new();
                pipeline.push(&stage);
                Some(by_pipeline(&pipeline.finish()))
            }
        }
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
    match specification.get("on") {
        None => Ok(vec!["_id".to_owned()]),
        Some(Value::Array(names)) => {
            let names: Vec<String> = names.values().map(name).collect::<Result<_>>()?;
            ensure!(
                !names.is_empty(),
                ErrorCode::location(51187),
                "If explicitly specifying $merge 'on', must include at least one field"
            );
            Ok(names)
        }
        Some(Value::String(text)) => Ok(vec![text.to_string()]),
        Some(other) => {
            let reason = format!(
                "$merge 'on' field  must be either a string or an array of strings, but found {}",
                other.value_type()
            );
            Err(Error::location(51186, reason))
        }
    }
}

fn matched(specification: &Doc) -> Result<Matched> {
    match specification.get("whenMatched") {
        None => Ok(Matched::Merge),
        Some(Value::Array(pipeline)) => Ok(Matched::Pipeline(pipeline.to_array())),
        Some(value) => match value.as_str() {
            Some("merge") => Ok(Matched::Merge),
            Some("replace") => Ok(Matched::Replace),
            Some("keepExisting") => Ok(Matched::Keep),
            Some("fail") => Ok(Matched::Fail),
            other => Err(no_such_mode("whenMatched", other)),
        },
    }
}

fn not_matched(specification: &Doc) -> Result<NotMatched> {
    match specification.get("whenNotMatched").map(|value| value.as_str()) {
        None | Some(Some("insert")) => Ok(NotMatched::Insert),
        Some(Some("discard")) => Ok(NotMatched::Discard),
        Some(Some("fail")) => Ok(NotMatched::Fail),
        Some(other) => Err(no_such_mode("whenNotMatched", other)),
    }
}

fn no_such_mode(field: &str, mode: Option<&str>) -> Error {
    let mode = mode.unwrap_or_default();
    Error::bad_value(format!("Enumeration value '{mode}' for field '$merge.{field}' is not a valid value."))
}
