//! One view.

use pando_base::{DatabaseName, ErrorCode, Namespace, Result, bail, ensure};
use pando_doc::{Array, Doc, DocBuilder, DocRef, Value};

/// What a view is.
#[derive(Clone, Debug, PartialEq)]
pub struct ViewDefinition {
    /// Its name.
    pub namespace: Namespace,
    /// What it is a view of.
    pub view_on: Namespace,
    /// What it does to that.
    pub pipeline: Array,
    /// How strings are compared; none for bytes.
    pub collation: Option<Doc>,
}

impl ViewDefinition {
    /// True if it stands for a time-series collection: a view on its buckets.
    pub fn is_timeseries(&self) -> bool {
        self.view_on.is_timeseries_buckets()
    }

    /// The document in `system.views`.
    pub fn to_doc(&self) -> Doc {
        let mut builder = DocBuilder::new();
        builder.append("_id", self.namespace.as_str());
        builder.append("viewOn", self.view_on.collection());
        builder.append("pipeline", &self.pipeline);
        builder.append_some("collation", self.collation.as_ref());
        builder.finish()
    }

    /// Reads a document of a database's `system.views`.
    pub fn parse(database: &DatabaseName, document: DocRef<'_>) -> Result<ViewDefinition> {
        let mut valid = document.repeated_name().is_none();
        for element in document.elements() {
            valid &= match element.name {
                name if name == "_id" || name == "viewOn" => element.value.as_str().is_some(),
                name if name == "pipeline" => is_pipeline(element.value),
                name if name == "collation" => element.value.as_document().is_some(),
                name => name == "timeseries",
            };
        }
        let id = document.get("_id").and_then(|id| id.as_str());
        let view_on = document.get("viewOn").and_then(|name| name.as_str());
        let pipeline = document.get("pipeline").and_then(|pipeline| pipeline.as_array());
        let (true, Some(id), Some(view_on), Some(pipeline)) = (valid, id, view_on, pipeline) else {
            bail!(
                ErrorCode::InvalidViewDefinition,
                "found invalid view definition while reading '{database}.system.views'"
            );
        };
        let namespace = Namespace::parse_with_tenant(database.tenant(), id)?;
        let fits =
            namespace.database() == database.as_str() && Namespace::is_valid_collection_name(namespace.collection());
        ensure!(
            fits && Namespace::is_valid_collection_name(view_on),
            ErrorCode::InvalidViewDefinition,
            "found invalid view definition {id} while reading '{database}.system.views'"
        );
        let collation = document.get("collation").and_then(|collation| collation.as_document());
        Ok(ViewDefinition {
            view_on: namespace.sibling(view_on)?,
            namespace,
            pipeline: pipeline.to_array(),
            collation: collation.filter(|collation| !is_simple(*collation)).map(DocRef::to_doc),
        })
    }

    /// True if its first stage asks for statistics of what it stands on.
    pub(super) fn begins_with_statistics(&self) -> bool {
        let first = self.pipeline.values().next().and_then(|stage| stage.as_document());
        first.is_some_and(|stage| stage.contains("$collStats"))
    }

    /// Bytes of its pipeline's stages.
    pub(super) fn pipeline_bytes(&self) -> usize {
        self.pipeline.values().filter_map(|stage| stage.as_document()).map(DocRef::size_bytes).sum()
    }
}

fn is_pipeline(value: Value<'_>) -> bool {
    value.as_array().is_some_and(|pipeline| pipeline.values().all(|stage| stage.as_document().is_some()))
}

/// True for the collation that compares bytes.
pub(crate) fn is_simple(collation: DocRef<'_>) -> bool {
    collation.get("locale").is_none_or(|locale| locale.as_str() == Some("simple"))
}
