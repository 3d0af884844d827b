//! Updates: what becomes of a document.
//!
//! An update is a replacement document, a document of operators (`$set`, `$push`, …), or a pipeline. Operators are parsed into a tree by
//! path (`node`), in which two of them must not overlap; `apply` walks the tree and the document together. The document is taken
//! apart lazily (`mutable`): what no path leads to stays the bytes that it was. The plain case, fields of the document itself, is
//! done on its bytes (`splice`).
//!
//! Invariants: operators on one level are applied in the order of their names, numbers by value, so that new fields have the
//! order that MongoDB gives them; an `_id` never changes; an update that changes nothing says so.
//!
//! Time and object ids are handed in. What an update does to an index or the oplog is not known here: the outcome tells which
//! fields changed, where that is known without comparing.

mod apply;
mod apply_array;
mod array_filter;
mod bit;
mod fill;
mod mutable;
mod node;
mod operation;
mod oplog_update;
mod parse;
mod path;
mod pipeline;
mod pull;
mod push;
mod replacement;
mod splice;
mod upsert;

#[cfg(test)]
mod tests;

use crate::ParseContext;
use crate::context::SharedCollator;
use array_filter::ArrayFilter;
use bstr::BStr;
use pando_base::{Error, Result, Timestamp};
use pando_doc::{Doc, DocRef, FieldPath, Value};
use splice::Spliced;

pub use oplog_update::{OplogUpdates, parse_oplog_update};

pub use node::PathPart;
pub use splice::ChangedField;

/// How large a document may become.
const SIZE_BYTES_MAX: usize = pando_doc::USER_SIZE_BYTES_MAX;

/// A parsed update.
#[derive(Clone, Debug)]
pub struct Update {
    form: Form,
}

#[derive(Clone, Debug)]
enum Form {
    Replacement(Doc),
    Operators(Box<Operators>),
    Pipeline(Vec<pipeline::Step>),
}

#[derive(Clone)]
struct Operators {
    root: node::Object,
    filters: Vec<ArrayFilter>,
    collator: Option<SharedCollator>,
    needs_match_details: bool,
}

impl std::fmt::Debug for Operators {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.root.fmt(f)
    }
}

/// What applying an update needs to know beside the document.
#[derive(Clone, Copy, Debug, Default)]
pub struct UpdateContext<'u> {
    /// The present, in milliseconds since 1970: what `$currentDate` sets.
    pub now: i64,
    /// The present as a timestamp.
    pub timestamp: Timestamp,
    /// True if the document is new: `$setOnInsert` counts.
    pub is_insert: bool,
    /// The place in an array that the filter matched: what `$` stands for.
    pub array_index: Option<&'u BStr>,
    /// Fields that must not change beside `_id`, such as a shard key.
    pub immutable_paths: &'u [FieldPath],
}

/// What became of a document.
#[derive(Clone, Debug)]
pub struct UpdateOutcome {
    /// The new document.
    pub doc: Doc,
    /// True if it is the old one.
    pub is_noop: bool,
    /// The fields that changed, in the order of the new document, if that is known: anything may have changed otherwise.
    pub changed_fields: Option<Vec<ChangedField>>,
}

impl Update {
    /// Reads an update: a document or, for a pipeline, an array.
    pub fn parse(spec: Value<'_>, array_filters: &[DocRef<'_>], context: &ParseContext) -> Result<Update> {
        // A replacement has no use for them, and does not mind.
        let form = match spec {
            Value::Array(_) if !array_filters.is_empty() => {
                let reason = "arrayFilters may not be specified for pipeline-syle updates";
                return Err(Error::failed_to_parse(reason));
            }
            Value::Array(stages) => Form::Pipeline(pipeline::parse(stages, context)?),
            Value::Document(doc) if is_operators(doc) => {
                Form::Operators(Box::new(parse::parse(doc, array_filters, context)?))
            }
            Value::Document(doc) => Form::Replacement(replacement::parse(doc)?),
            _ => return Err(Error::failed_to_parse("Update argument must be either an object or an array")),
        };
        Ok(Update { form })
    }

    /// Checks that the stages of a pipeline are stages; anything else passes.
    pub fn check_stage_names(update: Value<'_>) -> Result<()> {
        match update {
            Value::Array(stages) => pipeline::check_names(stages),
            _ => Ok(()),
        }
    }

    /// True if it replaces the whole document.
    pub fn is_replacement(&self) -> bool {
        matches!(self.form, Form::Replacement(_))
    }

    /// Tells of every operator where it is and whether it pushes to an array; nothing for updates of another form.
    pub fn visit_operators(&self, visit: &mut dyn FnMut(&[PathPart<'_>], bool)) {
        if let Form::Operators(operators) = &self.form {
            operators.root.visit(&mut Vec::new(), visit);
        }
    }

    /// True if it is a pipeline.
    pub fn is_pipeline(&self) -> bool {
        matches!(self.form, Form::Pipeline(_))
    }

    /// True for a replacement that leaves the `_id` to the document. It is written even if nothing changes by it.
    pub fn is_replacement_without_id(&self) -> bool {
        matches!(&self.form, Form::Replacement(replacement) if !replacement.view().contains("_id"))
    }

    /// True if it has a positional `$`, so that the place the filter matched must be known.
    pub fn needs_match_details(&self) -> bool {
        matches!(&self.form, Form::Operators(operators) if operators.needs_match_details)
    }

    /// The document as updated.
    pub fn apply(&self, doc: DocRef<'_>, context: &UpdateContext<'_>) -> Result<UpdateOutcome> {
        let outcome = self.applied(doc, context)?;
        pando_base::operation::ended()?;
        Ok(outcome)
    }

    fn applied(&self, doc: DocRef<'_>, context: &UpdateContext<'_>) -> Result<UpdateOutcome> {
        let updated = match &self.form {
            Form::Replacement(replacement) => replacement::apply(replacement, doc),
            Form::Operators(operators) => match splice::apply(operators, doc, context)? {
                Some(spliced) => return spliced_outcome(spliced, doc, context),
                None => apply::apply(operators, doc, context)?,
            },
            Form::Pipeline(steps) => pipeline::apply(steps, doc)?,
        };
        if updated.bytes() == doc.bytes() && !self.is_replacement_without_id() {
            return Ok(UpdateOutcome { doc: updated, is_noop: true, changed_fields: None });
        }
        replacement::check_immutable(doc, updated.view(), context.immutable_paths, self.is_replacement())?;
        check_size(&updated)?;
        pando_doc::check_user_depth(updated.view())?;
        Ok(UpdateOutcome { doc: updated, is_noop: false, changed_fields: None })
    }
}

/// The `_id` is as it was, and so is the depth unless a new value has one.
fn spliced_outcome(spliced: Spliced, old: DocRef<'_>, context: &UpdateContext<'_>) -> Result<UpdateOutcome> {
    let Some(doc) = spliced.doc else {
        return Ok(UpdateOutcome { doc: old.to_doc(), is_noop: true, changed_fields: None });
    };
    if !context.immutable_paths.is_empty() {
        replacement::check_immutable(old, doc.view(), context.immutable_paths, false)?;
    }
    check_size(&doc)?;
    if spliced.has_nested {
        pando_doc::check_user_depth(doc.view())?;
    }
    Ok(UpdateOutcome { doc, is_noop: false, changed_fields: spliced.fields })
}

fn check_size(updated: &Doc) -> Result<()> {
    if updated.size_bytes() > SIZE_BYTES_MAX {
        let reason = format!("Resulting document after update is larger than {SIZE_BYTES_MAX}");
        return Err(Error::location(17419, reason));
    }
    Ok(())
}

fn is_operators(doc: DocRef<'_>) -> bool {
    doc.raw_elements().next().is_some_and(|first| first.name.starts_with(b"$"))
}
