//! The options of a collection: what `create` takes and the durable catalog keeps.
//!
//! Documents inside (validator, collation, timeseries, clusteredIndex…) are kept as they came; what they mean is the
//! business of the layers that use them. Here it is checked what can be checked without them: types, limits and options
//! that exclude each other.
//!
//! Two readers: [`CollectionOptions::parse_command`] for `create`, and [`CollectionOptions::parse_stored`] for the catalog,
//! which knows the id and not `idIndex`. What is written reads back equal.

mod clustered;
mod parse;
pub(crate) use parse::parse_uuid;
#[cfg(test)]
mod tests;

pub use clustered::ClusteredIndex;

use pando_base::Uuid;
use pando_doc::{Array, Doc, DocBuilder, Number, Value};

/// The largest capped size: 1 PB.
pub const CAPPED_SIZE_BYTES_MAX: i64 = 1 << 50;
/// `max` of a capped collection is below this.
const CAPPED_MAX_DOCUMENTS_LIMIT: i64 = 1 << 31;

/// What happens to documents that a validator refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValidationAction {
    /// The write fails.
    Error,
    /// The write succeeds, and the log tells.
    Warn,
}

impl ValidationAction {
    /// By its name.
    pub fn parse(name: &str) -> Option<ValidationAction> {
        match name {
            "error" => Some(ValidationAction::Error),
            "warn" => Some(ValidationAction::Warn),
            _ => None,
        }
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            ValidationAction::Error => "error",
            ValidationAction::Warn => "warn",
        }
    }
}

/// Which writes a validator sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValidationLevel {
    /// None.
    Off,
    /// All.
    Strict,
    /// Inserts, and updates of documents that were valid.
    Moderate,
}

impl ValidationLevel {
    /// By its name.
    pub fn parse(name: &str) -> Option<ValidationLevel> {
        match name {
            "off" => Some(ValidationLevel::Off),
            "strict" => Some(ValidationLevel::Strict),
            "moderate" => Some(ValidationLevel::Moderate),
            _ => None,
        }
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            ValidationLevel::Off => "off",
            ValidationLevel::Strict => "strict",
            ValidationLevel::Moderate => "moderate",
        }
    }
}

/// The options of a collection.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CollectionOptions {
    /// The collection's id. None only before it was created.
    pub uuid: Option<Uuid>,
    /// Old documents give way to new ones.
    pub capped: bool,
    /// The most bytes of a capped collection.
    pub capped_size_bytes: i64,
    /// The most documents of a capped collection; zero for no limit.
    pub capped_documents_max: i64,
    /// Whether there is an index on `_id`, where that was said.
    pub auto_index_id: Option<bool>,
    /// Goes away at restart.
    pub temp: bool,
    /// Documents before and after a change are kept for change streams.
    pub pre_and_post_images: bool,
    /// Opaque options for engines by name.
    pub storage_engine: Option<Doc>,
    /// Defaults for indexes.
    pub index_option_defaults: Option<Doc>,
    /// What documents must match.
    pub validator: Option<Doc>,
    /// What happens if they do not.
    pub validation_action: Option<ValidationAction>,
    /// When it is looked at.
    pub validation_level: Option<ValidationLevel>,
    /// How strings are compared by default.
    pub collation: Option<Doc>,
    /// Documents are stored by the value of this field.
    pub clustered_index: Option<ClusteredIndex>,
    /// Documents of a clustered or time-series collection expire.
    pub expire_after_seconds: Option<i64>,
    /// What a time-series collection is like.
    pub timeseries: Option<Doc>,
    /// Which fields clients encrypt.
    pub encrypted_fields: Option<Doc>,
    /// The collection or view that this is a view of.
    pub view_on: Option<String>,
    /// What a view does to it.
    pub pipeline: Option<Array>,
    /// The specification of the index on `_id`; only for `create`, never stored.
    pub id_index: Option<Doc>,
}

impl CollectionOptions {
    /// True if this describes a view.
    pub fn is_view(&self) -> bool {
        self.view_on.is_some()
    }

    /// True if documents are stored by the value of one of their fields.
    pub fn is_clustered(&self) -> bool {
        self.clustered_index.is_some()
    }

    /// What happens to documents that the validator refuses.
    pub fn validation_action_or_default(&self) -> ValidationAction {
        self.validation_action.unwrap_or(ValidationAction::Error)
    }

    /// When the validator is looked at.
    pub fn validation_level_or_default(&self) -> ValidationLevel {
        self.validation_level.unwrap_or(ValidationLevel::Strict)
    }

    /// As the durable catalog has it.
    pub fn to_doc(&self) -> Doc {
        let mut builder = DocBuilder::new();
        if let Some(uuid) = &self.uuid {
            builder.append("uuid", Value::Binary { subtype: 4, bytes: uuid.as_bytes() });
        }
        self.append_public(&mut builder);
        builder.finish()
    }

    /// As the oplog and `listCollections` have it: without the id.
    pub fn to_doc_without_uuid(&self) -> Doc {
        let mut builder = DocBuilder::new();
        self.append_public(&mut builder);
        builder.finish()
    }

    fn append_public(&self, builder: &mut DocBuilder) {
        if self.capped {
            builder.append("capped", true);
            builder.append("size", Number::narrowest(self.capped_size_bytes));
            if self.capped_documents_max > 0 {
                builder.append("max", Number::narrowest(self.capped_documents_max));
            }
        }
        builder.append_some("autoIndexId", self.auto_index_id);
        if self.temp {
            builder.append("temp", true);
        }
        if self.pre_and_post_images {
            builder.document("changeStreamPreAndPostImages", |images| images.append("enabled", true));
        }
        builder.append_some("storageEngine", self.storage_engine.as_ref());
        builder.append_some("indexOptionDefaults", self.index_option_defaults.as_ref());
        builder.append_some("validator", self.validator.as_ref());
        builder.append_some("validationLevel", self.validation_level.map(ValidationLevel::name));
        builder.append_some("validationAction", self.validation_action.map(ValidationAction::name));
        builder.append_some("collation", self.collation.as_ref());
        builder.append_some("viewOn", self.view_on.as_deref());
        builder.append_some("pipeline", self.pipeline.as_ref());
        match &self.clustered_index {
            Some(clustered) if clustered.legacy => builder.append("clusteredIndex", true),
            Some(clustered) => builder.append("clusteredIndex", &clustered.specification),
            None => {}
        }
        builder.append_some("expireAfterSeconds", self.expire_after_seconds);
        builder.append_some("timeseries", self.timeseries.as_ref());
        builder.append_some("encryptedFields", self.encrypted_fields.as_ref());
    }
}
