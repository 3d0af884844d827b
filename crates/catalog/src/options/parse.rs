//! Reading options, field by field.

use super::{
    CAPPED_MAX_DOCUMENTS_LIMIT, CAPPED_SIZE_BYTES_MAX, ClusteredIndex, CollectionOptions, ValidationAction,
    ValidationLevel,
};
use crate::engine_options::check_engine_options;
use pando_base::{Error, ErrorCode, Result, Uuid, bail, ensure};
use pando_doc::{Doc, DocRef, Element, JsonFormat, Value, doc_to_json};

/// Arguments that every command may have.
const GENERIC_ARGUMENTS: [&str; 24] = [
    "apiVersion",
    "apiStrict",
    "apiDeprecationErrors",
    "maxTimeMS",
    "maxTimeMSOpOnly",
    "readConcern",
    "writeConcern",
    "databaseVersion",
    "shardVersion",
    "comment",
    "lsid",
    "txnNumber",
    "autocommit",
    "startTransaction",
    "coordinator",
    "$db",
    "$clusterTime",
    "$readPreference",
    "$audit",
    "$client",
    "$configServerState",
    "$configTime",
    "$topologyTime",
    "txnRetryCounter",
];

/// What is being read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Command,
    Catalog,
}

/// Refuses what no clustered collection can have, whatever it is clustered by.
fn check_clustered_alone(options: DocRef<'_>) -> Result<()> {
    if options.get("clusteredIndex").is_none_or(|clustered| !clustered.is_true()) {
        return Ok(());
    }
    ensure!(
        !options.contains("viewOn"),
        ErrorCode::location(6026500),
        "The 'clusteredIndex' option is not supported with views"
    );
    ensure!(
        options.get("autoIndexId").is_none_or(|makes| makes.is_true()),
        ErrorCode::location(6026501),
        "The 'clusteredIndex' option does not support {{autoIndexId: false}}"
    );
    Ok(())
}

impl CollectionOptions {
    /// Reads the fields of a `create` command, its own name left out. Arguments that every command may have are skipped.
    pub fn parse_command(options: DocRef<'_>) -> Result<CollectionOptions> {
        check_clustered_alone(options)?;
        ensure!(
            !options.contains("pipeline") || options.contains("viewOn"),
            ErrorCode::InvalidOptions,
            "'pipeline' requires 'viewOn' to also be specified"
        );
        let parsed = CollectionOptions::parse(options, Source::Command)?;
        // Also one that is false.
        parsed.check(options.contains("clusteredIndex"))?;
        Ok(parsed)
    }

    /// Reads `md.options` of the durable catalog, or options from the oplog.
    pub fn parse_stored(options: DocRef<'_>) -> Result<CollectionOptions> {
        CollectionOptions::parse(options, Source::Catalog)
    }

    fn parse(options: DocRef<'_>, source: Source) -> Result<CollectionOptions> {
        let mut parsed = CollectionOptions::default();
        for element in options.elements() {
            if !parsed.parse_field(element, source)? {
                let name = element.name;
                let is_generic = GENERIC_ARGUMENTS.iter().any(|generic| name == *generic);
                ensure!(
                    is_generic,
                    ErrorCode::InvalidOptions,
                    "The field '{name}' is not a valid collection option. Options: {}",
                    doc_to_json(options, JsonFormat::Relaxed)
                );
            }
        }
        ensure!(
            parsed.view_on.is_some() || parsed.pipeline.as_ref().is_none_or(pando_doc::Array::is_empty),
            ErrorCode::BadValue,
            "'pipeline' cannot be specified without 'viewOn'"
        );
        Ok(parsed)
    }

    /// Takes in one field; false if there is no such option.
    fn parse_field(&mut self, element: Element<'_>, source: Source) -> Result<bool> {
        let (name, value): (&[u8], _) = (element.name, element.value);
        match name {
            b"uuid" if source == Source::Catalog => self.uuid = Some(parse_uuid(value)?),
            b"capped" => self.capped = value.is_true(),
            b"size" if value.is_number() => self.capped_size_bytes = capped_size(value)?,
            b"max" if value.is_number() => self.capped_documents_max = capped_documents(value)?,
            // Old versions stored anything here.
            b"size" | b"max" | b"flags" | b"$nExtents" => {}
            b"autoIndexId" => self.auto_index_id = Some(value.is_true()),
            b"temp" => self.temp = value.is_true(),
            b"changeStreamPreAndPostImages" => self.pre_and_post_images = parse_images(value)?,
            b"storageEngine" => self.storage_engine = Some(parse_storage_engine(value, source)?),
            b"indexOptionDefaults" => self.index_option_defaults = Some(parse_index_defaults(value, source)?),
            b"validator" => self.validator = Some(document(value, "validator")?),
            b"validationAction" => self.validation_action = Some(parse_action(value)?),
            b"validationLevel" => self.validation_level = Some(parse_level(value)?),
            b"collation" => self.collation = Some(parse_collation(value, source)?),
            b"clusteredIndex" => self.clustered_index = ClusteredIndex::parse(value)?,
            b"expireAfterSeconds" => self.expire_after_seconds = Some(parse_expiry(value)?),
            b"viewOn" => self.view_on = Some(parse_view_on(value)?),
            b"pipeline" => self.pipeline = Some(parse_pipeline(value)?),
            b"idIndex" if source == Source::Command => self.id_index = Some(parse_id_index(value)?),
            b"timeseries" => self.timeseries = Some(typed_document(value, "timeseries")?),
            b"encryptedFields" => self.encrypted_fields = Some(typed_document(value, "encryptedFields")?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Options that need or exclude each other.
    fn check(&self, mentions_cluster: bool) -> Result<()> {
        self.check_capped(mentions_cluster)?;
        self.check_expiry()?;
        self.check_view()?;
        self.check_timeseries()
    }

    fn check_capped(&self, mentions_cluster: bool) -> Result<()> {
        if mentions_cluster {
            ensure!(
                self.capped_size_bytes == 0,
                ErrorCode::location(6049200),
                "'size' field for capped collections is not allowed on clustered collections. Did you mean 'capped: true' \
                 with 'expireAfterSeconds'?"
            );
            ensure!(
                self.capped_documents_max == 0,
                ErrorCode::location(6049204),
                "'max' field for capped collections is not allowed on clustered collections. Did you mean 'capped: true' \
                 with 'expireAfterSeconds'?"
            );
            let expires = !self.capped || self.expire_after_seconds.is_some();
            ensure!(
                expires,
                ErrorCode::location(6049201),
                "A capped clustered collection requires the 'expireAfterSeconds' field"
            );
            ensure!(
                self.id_index.is_none() || self.clustered_index.is_none(),
                ErrorCode::InvalidOptions,
                "The 'clusteredIndex' option is not supported with the 'idIndex' option"
            );
            return Ok(());
        }
        ensure!(
            !self.capped || self.capped_size_bytes > 0,
            ErrorCode::InvalidOptions,
            "the 'size' field is required when 'capped' is true"
        );
        ensure!(
            self.capped || (self.capped_size_bytes == 0 && self.capped_documents_max == 0),
            ErrorCode::InvalidOptions,
            "the 'capped' field needs to be true when either the 'size' or 'max' fields are present"
        );
        Ok(())
    }

    fn check_expiry(&self) -> Result<()> {
        ensure!(
            self.expire_after_seconds.is_none() || self.is_clustered() || self.timeseries.is_some(),
            ErrorCode::InvalidOptions,
            "'expireAfterSeconds' is only supported on time-series collections or when the 'clusteredIndex' option is \
             specified"
        );
        Ok(())
    }

    fn check_view(&self) -> Result<()> {
        if !self.is_view() {
            return Ok(());
        }
        let rows = [
            (self.capped, "capped"),
            (self.capped_size_bytes > 0, "size"),
            (self.capped_documents_max > 0, "max"),
            (self.auto_index_id.is_some(), "autoIndexId"),
            (self.id_index.is_some(), "idIndex"),
            (self.storage_engine.is_some(), "storageEngine"),
            (self.validator.is_some(), "validator"),
            (self.validation_level.is_some(), "validationLevel"),
            (self.validation_action.is_some(), "validationAction"),
            (self.index_option_defaults.is_some(), "indexOptionDefaults"),
            (self.pre_and_post_images, "changeStreamPreAndPostImages"),
            (self.encrypted_fields.is_some(), "encryptedFields"),
        ];
        match rows.into_iter().find(|(is_set, _)| *is_set) {
            Some((_, name)) => bail!(ErrorCode::InvalidOptions, "the '{name}' option is not supported on a view"),
            None => Ok(()),
        }
    }

    fn check_timeseries(&self) -> Result<()> {
        if self.timeseries.is_none() {
            return Ok(());
        }
        let rows = [
            (self.capped, "capped"),
            (self.auto_index_id.is_some(), "autoIndexId"),
            (self.id_index.is_some(), "idIndex"),
            // Buckets that are restored bring a validator with them.
            (self.validation_level.is_some(), "validationLevel"),
            (self.validation_action.is_some(), "validationAction"),
            (self.is_view(), "viewOn"),
            (self.pre_and_post_images, "changeStreamPreAndPostImages"),
            (self.encrypted_fields.is_some(), "encryptedFields"),
        ];
        match rows.into_iter().find(|(is_set, _)| *is_set) {
            Some((_, name)) => {
                bail!(ErrorCode::InvalidOptions, "time-series collections are not supported with the '{name}' option")
            }
            None => Ok(()),
        }
    }
}

pub(crate) fn parse_uuid(value: Value<'_>) -> Result<Uuid> {
    match value {
        Value::Binary { subtype: 4, bytes } => Uuid::from_slice(bytes),
        _ => Err(Error::new(ErrorCode::InvalidUUID, "uuid must be a 16-byte binary field with UUID (4) subtype")),
    }
}

fn capped_size(value: Value<'_>) -> Result<i64> {
    let size_bytes = value.to_i64_or_zero();
    ensure!(size_bytes >= 0, ErrorCode::BadValue, "size has to be >= 0");
    ensure!(size_bytes <= CAPPED_SIZE_BYTES_MAX, ErrorCode::BadValue, "size cannot exceed 1 PB");
    Ok(size_bytes)
}

/// Nothing and less mean no limit.
fn capped_documents(value: Value<'_>) -> Result<i64> {
    let documents = value.to_i64_or_zero();
    ensure!(
        documents < CAPPED_MAX_DOCUMENTS_LIMIT,
        ErrorCode::BadValue,
        "max in a capped collection has to be < 2^31 or not set"
    );
    Ok(documents.max(0))
}

fn parse_images(value: Value<'_>) -> Result<bool> {
    let Value::Document(images) = value else {
        bail!(ErrorCode::InvalidOptions, "'changeStreamPreAndPostImages' option must be a document");
    };
    let unknown = images.elements().find(|element| element.name != "enabled");
    if let Some(unknown) = unknown {
        let name = unknown.name;
        bail!(ErrorCode::IDLUnknownField, "BSON field 'changeStreamPreAndPostImages.{name}' is an unknown field.");
    }
    match images.get("enabled") {
        Some(Value::Bool(enabled)) => Ok(enabled),
        Some(_) => bail!(ErrorCode::TypeMismatch, "'changeStreamPreAndPostImages.enabled' must be a bool"),
        None => bail!(
            ErrorCode::location(40414),
            "BSON field 'changeStreamPreAndPostImages.enabled' is missing but a required field"
        ),
    }
}

fn parse_storage_engine(value: Value<'_>, source: Source) -> Result<Doc> {
    let Value::Document(engines) = value else {
        bail!(ErrorCode::TypeMismatch, "'storageEngine' must be a document");
    };
    for element in engines.elements() {
        let name = element.name;
        ensure!(
            element.value.as_document().is_some(),
            ErrorCode::BadValue,
            "'storageEngine.{name}' has to be an embedded document."
        );
    }
    if source == Source::Command {
        check_engine_options(engines)?;
    }
    Ok(engines.to_doc())
}

/// What indexes of the collection are to have: options of the engine and nothing else.
fn parse_index_defaults(value: Value<'_>, source: Source) -> Result<Doc> {
    let defaults = typed_document(value, "indexOptionDefaults")?;
    for element in defaults.view().elements() {
        let name = element.name;
        ensure!(
            name == "storageEngine",
            ErrorCode::IDLUnknownField,
            "BSON field 'indexOptionDefaults.{name}' is an unknown field."
        );
        if !element.value.is_nullish() {
            parse_storage_engine(element.value, source)?;
        }
    }
    Ok(defaults)
}

fn document(value: Value<'_>, name: &str) -> Result<Doc> {
    match value {
        Value::Document(document) => Ok(document.to_doc()),
        _ => bail!(ErrorCode::BadValue, "'{name}' has to be a document."),
    }
}

fn typed_document(value: Value<'_>, name: &str) -> Result<Doc> {
    match value {
        Value::Document(document) => Ok(document.to_doc()),
        _ => bail!(ErrorCode::TypeMismatch, "'{name}' must be a document"),
    }
}

fn parse_action(value: Value<'_>) -> Result<ValidationAction> {
    let Some(name) = value.as_str() else { bail!(ErrorCode::BadValue, "'validationAction' has to be a string.") };
    ValidationAction::parse(name).ok_or_else(|| {
        Error::bad_value(format!("Enumeration value '{name}' for field 'validationAction' is not a valid value."))
    })
}

fn parse_level(value: Value<'_>) -> Result<ValidationLevel> {
    let Some(name) = value.as_str() else { bail!(ErrorCode::BadValue, "'validationLevel' has to be a string.") };
    ValidationLevel::parse(name).ok_or_else(|| {
        Error::bad_value(format!("Enumeration value '{name}' for field 'validationLevel' is not a valid value."))
    })
}

fn parse_collation(value: Value<'_>, source: Source) -> Result<Doc> {
    let collation = document(value, "collation")?;
    ensure!(
        source != Source::Command || collation.get("locale").is_some_and(|locale| !locale.is_nullish()),
        ErrorCode::location(40414),
        "BSON field 'create.collation.locale' is missing but a required field"
    );
    ensure!(!collation.is_empty(), ErrorCode::BadValue, "'collation' cannot be an empty document.");
    Ok(collation)
}

/// "off" of `collMod` never gets here: it removes the option.
fn parse_expiry(value: Value<'_>) -> Result<i64> {
    ensure!(value.is_number(), ErrorCode::BadValue, "'expireAfterSeconds' must be a number.");
    let seconds = value.to_i64_or_zero();
    ensure!(
        (0..=i64::from(i32::MAX)).contains(&seconds),
        ErrorCode::InvalidOptions,
        "TTL index 'expireAfterSeconds' option must be within an acceptable range, try a different number than {seconds}"
    );
    Ok(seconds)
}

fn parse_view_on(value: Value<'_>) -> Result<String> {
    let Some(view_on) = value.as_str() else { bail!(ErrorCode::BadValue, "'viewOn' has to be a string.") };
    ensure!(!view_on.is_empty(), ErrorCode::BadValue, "'viewOn' cannot be empty.'");
    Ok(view_on.to_owned())
}

fn parse_pipeline(value: Value<'_>) -> Result<pando_doc::Array> {
    let Value::Array(pipeline) = value else { bail!(ErrorCode::BadValue, "'pipeline' has to be an array.") };
    for stage in pipeline.values() {
        ensure!(
            stage.as_document().is_some(),
            ErrorCode::TypeMismatch,
            "Each element of the 'pipeline' array must be an object"
        );
    }
    Ok(pipeline.to_array())
}

fn parse_id_index(value: Value<'_>) -> Result<Doc> {
    let Value::Document(specification) = value else {
        bail!(ErrorCode::TypeMismatch, "'idIndex' has to be an object.");
    };
    ensure!(!specification.is_empty(), ErrorCode::FailedToParse, "idIndex cannot be empty");
    Ok(specification.to_doc())
}
