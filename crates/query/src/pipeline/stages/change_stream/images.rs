//! The documents before and after a change, added to events.
//!
//! Before: as it was kept in `config.system.preimages` when the change was made. After: made of that and of the change; or
//! looked up, which gives the document as it is by now. Filters of the client that do not look at these fields are moved in front
//! of these stages, so that events which nobody sees need no document.

use super::event::{EventFacts, PreImageId};
use super::options::{BeforeChange, FullDocument, StreamOptions};
use super::state::StreamState;
use crate::executor::cause_of;
use crate::pipeline::source::pass_on_to_source;
use crate::pipeline::{DocumentSource, Modified, PipelineContext, Pulled, SharedStage, StageSpec};
use crate::stage::find_by_id;
use pando_base::{ErrorCode, Namespace, Result, bail, ensure};
use pando_doc::{Collator, Doc, DocBuilder, FieldPath, Value, doc};
use pando_operation::Conflicts;
use pando_oplog::UpdateChange;
use std::sync::Arc;

const BEFORE: &str = "fullDocumentBeforeChange";
const AFTER: &str = "fullDocument";

/// Which document a stage adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    Before,
    After,
}

#[derive(Debug)]
struct ImageSpec {
    which: Which,
    options: Arc<StreamOptions>,
    state: Arc<StreamState>,
}

/// The stages that a stream needs.
pub(super) fn stages(options: &Arc<StreamOptions>, state: &Arc<StreamState>) -> Vec<SharedStage> {
    let stage = |which| -> SharedStage {
        Arc::new(ImageSpec { which, options: Arc::clone(options), state: Arc::clone(state) })
    };
    let before = (options.before_change != BeforeChange::Off).then(|| stage(Which::Before));
    let after = (options.full_document != FullDocument::Default).then(|| stage(Which::After));
    before.into_iter().chain(after).collect()
}

impl StageSpec for ImageSpec {
    fn name(&self) -> &'static str {
        "$changeStream"
    }

    fn start(&self, source: Box<dyn DocumentSource>) -> Result<Box<dyn DocumentSource>> {
        let (which, options, state) = (self.which, Arc::clone(&self.options), Arc::clone(&self.state));
        Ok(Box::new(ImageSource { source, which, options, state, waiting: None, conflicts: Conflicts::default() }))
    }

    fn to_doc(&self) -> Doc {
        let stage = match self.which {
            Which::Before => "internalAddPreImage",
            Which::After => "$_internalChangeStreamAddPostImage",
        };
        doc! { "$changeStream": { "stage": stage } }
    }

    fn modified(&self) -> Modified {
        let name = if self.which == Which::Before { BEFORE } else { AFTER };
        FieldPath::parse(name).map_or(Modified::Everything, |path| Modified::Paths(vec![path]))
    }
}

struct ImageSource {
    source: Box<dyn DocumentSource>,
    which: Which,
    options: Arc<StreamOptions>,
    state: Arc<StreamState>,
    /// An event whose document could not be read yet: somebody's transaction was in the way.
    waiting: Option<Doc>,
    conflicts: Conflicts,
}

impl DocumentSource for ImageSource {
    fn next(&mut self, context: &mut PipelineContext<'_>) -> Result<Pulled> {
        let document = match self.waiting.take() {
            Some(document) => document,
            None => match self.source.next(context)? {
                Pulled::Document(document) => document,
                other => return Ok(other),
            },
        };
        let facts = self.state.event()?;
        let added = match self.which {
            Which::Before => self.before(context, &facts),
            Which::After => self.after(context, &facts, &document),
        };
        let added = match added {
            Ok(added) => added,
            Err(error) => {
                let cause = cause_of(context.operation, &mut self.conflicts, error)?;
                self.waiting = Some(document);
                return Ok(Pulled::Yield(cause));
            }
        };
        self.conflicts.got_on();
        let Some((name, image)) = added else { return Ok(Pulled::Document(document)) };
        let size_bytes = document.size_bytes() + image.as_ref().map_or(0, Doc::size_bytes) + 32;
        let mut builder = DocBuilder::with_capacity(size_bytes);
        document.view().raw_elements().filter(|field| field.name != name).for_each(|field| builder.append_raw(field));
        match &image {
            Some(image) => builder.append(name, image),
            None => builder.append(name, Value::Null),
        }
        Ok(Pulled::Document(builder.finish()))
    }

    pass_on_to_source!();
}

/// The field's name, and the document; none if it is not there any more.
type Added = Option<(&'static str, Option<Doc>)>;

impl ImageSource {
    fn before(&self, context: &mut PipelineContext<'_>, facts: &EventFacts) -> Result<Added> {
        if !matches!(facts.operation_type, "update" | "replace" | "delete") {
            return Ok(None);
        }
        let image = facts.pre_image.map_or(Ok(None), |id| kept(context, id))?;
        ensure!(
            image.is_some() || self.options.before_change != BeforeChange::Required,
            ErrorCode::NoMatchingDocument,
            "Change stream was configured to require a pre-image for all update, delete and replace events, but the \
             pre-image was not found for event: {}",
            told(facts)
        );
        Ok(Some((BEFORE, image)))
    }

    fn after(&self, context: &mut PipelineContext<'_>, facts: &EventFacts, event: &Doc) -> Result<Added> {
        if facts.operation_type != "update" {
            return Ok(None);
        }
        let image = match self.options.full_document {
            FullDocument::UpdateLookup => self.look_up(context, facts)?,
            _ => made(context, facts, event)?,
        };
        ensure!(
            image.is_some() || self.options.full_document != FullDocument::Required,
            ErrorCode::NoMatchingDocument,
            "Change stream was configured to require a post-image for all update events, but the post-image was not \
             found for event: {}",
            told(facts)
        );
        Ok(Some((AFTER, image)))
    }

    /// The document as it is by now. The read has the time of the event or a later one.
    fn look_up(&self, context: &mut PipelineContext<'_>, facts: &EventFacts) -> Result<Option<Doc>> {
        let (Some(namespace), Some(key)) = (&facts.namespace, &facts.document_key) else { return Ok(None) };
        let Some(id) = key.get("_id") else { return Ok(None) };
        let Some(collection) = context.engine.collections.open(context.operation, namespace)? else { return Ok(None) };
        if self.options.matches_uuid && facts.token.uuid != Some(collection.uuid) {
            return Ok(None);
        }
        let collation = collection.options.collation.clone().unwrap_or_default();
        let parsed = context.engine.parse_context(context.operation, &collation, &Doc::new(), None)?;
        let collator = parsed.collator.as_deref().map(|collator| collator as &dyn Collator);
        let found = find_by_id(context.operation, &collection, id, collator)?;
        Ok(found.map(|(_, document)| document))
    }
}

/// The document that was kept.
fn kept(context: &mut PipelineContext<'_>, id: PreImageId) -> Result<Option<Doc>> {
    let images = context.engine.collections.open(context.operation, Namespace::pre_images())?;
    let Some(images) = images else { return Ok(None) };
    let id = id.to_doc();
    let Some((_, found)) = find_by_id(context.operation, &images, Value::Document(id.view()), None)? else {
        return Ok(None);
    };
    match found.get("preImage") {
        Some(Value::Document(image)) => Ok(Some(image.to_doc())),
        _ => bail!(ErrorCode::location(6148000), "Pre-image document must contain the 'preImage' field"),
    }
}

/// The document after an update, of the one before it and the change.
fn made(context: &mut PipelineContext<'_>, facts: &EventFacts, event: &Doc) -> Result<Option<Doc>> {
    let before = match event.get(BEFORE) {
        Some(Value::Document(before)) => Some(before.to_doc()),
        Some(_) => None,
        None => facts.pre_image.map_or(Ok(None), |id| kept(context, id))?,
    };
    let (Some(before), Some(change)) = (before, &facts.change) else { return Ok(None) };
    UpdateChange::parse(change.view())?.apply(before.view()).map(Some)
}

/// The event in an error.
fn told(facts: &EventFacts) -> Doc {
    let mut builder = DocBuilder::new();
    builder.append("operationType", facts.operation_type);
    if let Some(namespace) = &facts.namespace {
        builder.document("ns", |ns| {
            ns.append("db", namespace.database());
            ns.append("coll", namespace.collection());
        });
    }
    builder.append("clusterTime", facts.cluster_time);
    builder.append_some("txnNumber", facts.txn_number);
    builder.finish()
}
