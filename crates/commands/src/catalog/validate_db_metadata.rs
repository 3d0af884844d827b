//! `validateDBMetadata`: would the views, validators and indexes of a database be allowed in an API version?

use crate::arguments::Place;
use crate::locking::lock_for_read;
use crate::stable_api::check_operators;
use crate::{Access, CommandRow, Data, Invocation, arguments, run_boxed};
use pando_base::{DatabaseName, Error, ErrorCode, Namespace, Result, ensure};
use pando_catalog::{Collection, ViewDefinition};
use pando_doc::{DocBuilder, DocRef, Value};

/// Errors beyond so many bytes are left out, and the reply says so.
const ERRORS_BYTES_MAX: usize = 16 * 1024 * 1024;

pub(super) const ROW: CommandRow = CommandRow {
    name: "validateDBMetadata",
    help: "checks that the stored metadata of a database/collection is valid within a particular API version. If 'db' \
           parameter is specified, only runs validation against that database, if not the validation will be run againt \
           all dbs. Similarly if 'collection' parameter is specified, the validation is only run against that \
           collection, if not the validation is run against all collections.",
    run: |invocation, reply| run_boxed(run(invocation, reply)),
    privileges: Access::Checked(crate::access::may_validate_metadata),
    place: pando_env::Place::Lanes,
    ..CommandRow::DEFAULT
};

arguments! {
    struct MetadataArguments<'a> of "validateDBMetadata" {
        database: Option<&'a str> = "db",
        collection: Option<&'a str> = "collection",
        api: DocRef<'a> = "apiParameters",
    }
}

arguments! {
    struct ApiArguments<'a> of "validateDBMetadata.apiParameters" {
        version: &'a str = "version",
        strict: Option<bool> = "strict",
        deprecation_errors: Option<bool> = "deprecationErrors",
    }
}

/// What was found.
struct Findings {
    is_strict_first: bool,
    errors: Vec<(Namespace, String)>,
    size_bytes: usize,
    has_more: bool,
}

impl Findings {
    fn add(&mut self, namespace: &Namespace, reason: String) {
        self.size_bytes = self.size_bytes.saturating_add(namespace.as_str().len() + reason.len() + 100);
        if self.size_bytes > ERRORS_BYTES_MAX {
            self.has_more = true;
        } else {
            self.errors.push((namespace.clone(), reason));
        }
    }

    fn view(&mut self, view: &ViewDefinition) {
        if !self.is_strict_first {
            return;
        }
        for stage in view.pipeline.view().values().filter_map(|stage| stage.as_document()) {
            if let Err(error) = check_operators(Value::Document(stage)) {
                self.add(&view.namespace, error.reason().to_owned());
                return;
            }
        }
    }

    fn collection(&mut self, collection: &Collection) {
        if !self.is_strict_first {
            return;
        }
        let validator = collection.options.validator.as_ref();
        if let Some(Err(error)) = validator.map(|validator| check_operators(Value::Document(validator.view()))) {
            self.add(&collection.namespace, error.reason().to_owned());
        }
        for index in &collection.indexes {
            let has_special = |name: &[u8]| matches!(name, b"text" | b"geoHaystack" | b"columnstore");
            let pattern = index.descriptor.key_pattern.view();
            let is_special = pattern
                .elements()
                .any(|element| element.value.as_str().is_some_and(|kind| has_special(kind.as_bytes())));
            let is_sparse = index.descriptor.specification.get("sparse").is_some_and(|value| value.is_true());
            if is_special || is_sparse {
                let reason = format!("The index with name {} is not allowed in API version 1.", index.name());
                self.add(&collection.namespace, reason);
            }
        }
    }
}

async fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let data = invocation.data()?;
    let arguments = MetadataArguments::parse(&invocation.request)?;
    let place = Place::of_command("validateDBMetadata.apiParameters");
    let api = ApiArguments::parse_fields(arguments.api, &place, false)?;
    let mut operation = invocation.operation()?;
    lock_for_read(&mut operation).await?;
    let mut findings = Findings {
        is_strict_first: api.strict == Some(true) && api.version == "1",
        errors: Vec::new(),
        size_bytes: 0,
        has_more: false,
    };
    let latest = data.catalog.latest();
    let databases: Vec<DatabaseName> = match arguments.database {
        Some(name) => {
            ensure!(!name.is_empty(), ErrorCode::location(28539), "need a valid database name");
            let database = DatabaseName::new(name)?;
            // What cannot be the name of a database at all was refused with the name.
            ensure!(
                database.validate().is_ok() || name.contains(['.', '\0']),
                ErrorCode::location(13280),
                "invalid db name: {name}"
            );
            database.validate()?;
            vec![database]
        }
        None => latest.databases().cloned().collect(),
    };
    if let (Some(collection), Some(database)) = (arguments.collection, databases.first()) {
        Namespace::new(database, collection)?.validate()?;
    }
    for database in databases.iter().filter(|database| latest.has_database(database)) {
        examine(data, database, arguments.collection, &mut findings)?;
    }
    reply.array("apiVersionErrors", |errors| {
        for (namespace, reason) in &findings.errors {
            let error = Error::new(ErrorCode::APIStrictError, reason.clone());
            errors.document(|out| {
                out.append("ns", namespace.as_str());
                out.append("code", error.code().number());
                out.append("codeName", &*error.code().name());
                out.append("errmsg", error.reason());
            });
        }
    });
    if findings.has_more {
        reply.append("hasMoreErrors", true);
    }
    Ok(())
}

fn examine(data: &Data, database: &DatabaseName, only: Option<&str>, findings: &mut Findings) -> Result<()> {
    let latest = data.catalog.latest();
    let is_wanted = |namespace: &Namespace| only.is_none_or(|name| namespace.collection() == name);
    for view in latest.views(database).iter().flat_map(|views| views.iter()).filter(|view| is_wanted(&view.namespace)) {
        findings.view(view);
    }
    for collection in latest.collections(database).filter(|collection| is_wanted(&collection.namespace)) {
        findings.collection(collection);
    }
    Ok(())
}
