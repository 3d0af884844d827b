//! What a privilege is about: patterns that stand in roles, and the targets that commands have.
//!
//! Most collections belong to their database's pattern and to "any normal resource". Those whose names begin with "system."
//! do not, nor do `local.replset.*`: they are reached only by their own name, by their collection name in all databases, or
//! by "any resource". The databases "local" and "config" are no normal resources. The collections behind time-series have
//! patterns of their own.

use crate::names::refuse_repeated;
use pando_base::{Error, ErrorCode, Namespace, Result, bail, ensure};
use pando_doc::{DocBuilder, DocRef, Value};

const BUCKETS_PREFIX: &str = "system.buckets.";

/// A pattern that a privilege is granted on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resource {
    /// The whole deployment: `{cluster: true}`.
    Cluster,
    /// Everything: `{anyResource: true}`.
    Any,
    /// Every normal database and collection: `{db: "", collection: ""}`.
    AnyNormal,
    /// A database with its normal collections: `{db, collection: ""}`.
    Database(String),
    /// The collections of this name in all databases: `{db: "", collection}`.
    Collection(String),
    /// One collection: `{db, collection}`.
    Exact(String, String),
    /// The buckets of all time-series: `{db: "", system_buckets: ""}`.
    AnyBuckets,
    /// The buckets of all time-series of a database: `{db, system_buckets: ""}`.
    BucketsOfDatabase(String),
    /// The buckets of the time-series of this name in all databases: `{db: "", system_buckets}`.
    BucketsOfCollection(String),
    /// The buckets of one time-series: `{db, system_buckets}`.
    ExactBuckets(String, String),
}

/// What a command wants to touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'a> {
    /// The deployment.
    Cluster,
    /// Everything there is.
    Any,
    /// Every normal resource.
    AnyNormal,
    /// A database.
    Database(&'a str),
    /// A collection: its database and its name.
    Collection(&'a str, &'a str),
}

impl<'a> Target<'a> {
    /// A collection, or the database if the namespace has none.
    pub fn of(namespace: &'a Namespace) -> Target<'a> {
        match namespace.has_collection() {
            true => Target::Collection(namespace.database(), namespace.collection()),
            false => Target::Database(namespace.database()),
        }
    }
}

/// May "any normal resource" mean this database?
pub(crate) fn is_normal_database(database: &str) -> bool {
    database != "local" && database != "config"
}

/// Is the collection one of its database's own, rather than of the server's?
pub(crate) fn is_normal_collection(database: &str, collection: &str) -> bool {
    !(collection.starts_with("system.") || database == "local" && collection.starts_with("replset."))
}

/// The time-series whose buckets a collection has.
pub(crate) fn bucketed(collection: &str) -> Option<&str> {
    collection.strip_prefix(BUCKETS_PREFIX).filter(|name| !name.is_empty())
}

impl Resource {
    /// Reads the document of a resource.
    pub fn read(document: DocRef<'_>) -> Result<Resource> {
        refuse_repeated(document, "resource")?;
        let (mut database, mut collection, mut buckets) = (None, None, None);
        let (mut is_cluster, mut is_any) = (false, false);
        for element in document.elements() {
            match &**element.name {
                b"db" => database = Some(text(element.value, "db")?),
                b"collection" => collection = Some(text(element.value, "collection")?),
                b"system_buckets" => buckets = Some(text(element.value, "system_buckets")?),
                b"cluster" => is_cluster = truth(element.value, "cluster")?,
                b"anyResource" => is_any = truth(element.value, "anyResource")?,
                other => bail!(
                    ErrorCode::location(40415),
                    "BSON field 'resource.{}' is an unknown field.",
                    String::from_utf8_lossy(other)
                ),
            }
        }
        let kinds =
            usize::from(is_cluster) + usize::from(is_any) + usize::from(collection.is_some() || buckets.is_some());
        ensure!(
            kinds == 1 && database.is_some() == (collection.is_some() || buckets.is_some()),
            ErrorCode::BadValue,
            "a resource must have only one of 'cluster', 'anyResource', or 'db' with 'collection' or 'system_buckets'"
        );
        let database = database.unwrap_or_default();
        let name_is_valid = database.is_empty()
            || pando_base::DatabaseName::new(&database)
                .is_ok_and(|name| name.is_valid() || database == crate::EXTERNAL_DATABASE);
        ensure!(name_is_valid, ErrorCode::BadValue, "{database} is not a valid database name");
        for name in collection.iter().chain(&buckets) {
            let is_valid = !name.starts_with('.') && !name.contains(['$', '\0']);
            ensure!(is_valid, ErrorCode::BadValue, "{name} is not a valid collection name");
        }
        Ok(match (is_cluster, is_any, collection, buckets) {
            (true, ..) => Resource::Cluster,
            (_, true, ..) => Resource::Any,
            (_, _, Some(_), Some(_)) => {
                bail!(ErrorCode::BadValue, "a resource must have only one of 'collection' and 'system_buckets'")
            }
            (_, _, Some(collection), None) => match (database.is_empty(), collection.is_empty()) {
                (true, true) => Resource::AnyNormal,
                (true, false) => Resource::Collection(collection),
                (false, true) => Resource::Database(database),
                (false, false) => Resource::Exact(database, collection),
            },
            (_, _, None, buckets) => {
                let collection = buckets.unwrap_or_default();
                match (database.is_empty(), collection.is_empty()) {
                    (true, true) => Resource::AnyBuckets,
                    (true, false) => Resource::BucketsOfCollection(collection),
                    (false, true) => Resource::BucketsOfDatabase(database),
                    (false, false) => Resource::ExactBuckets(database, collection),
                }
            }
        })
    }

    /// The database that it is in, if it is in one.
    pub fn database(&self) -> Option<&str> {
        match self {
            Resource::Database(database) | Resource::Exact(database, _) => Some(database),
            Resource::BucketsOfDatabase(database) | Resource::ExactBuckets(database, _) => Some(database),
            _ => None,
        }
    }

    /// Writes its document.
    pub fn append_to(&self, document: &mut DocBuilder) {
        let mut both = |database: &str, field: &str, name: &str| {
            document.append("db", database);
            document.append(field, name);
        };
        match self {
            Resource::Cluster => document.append("cluster", true),
            Resource::Any => document.append("anyResource", true),
            Resource::AnyNormal => both("", "collection", ""),
            Resource::Database(database) => both(database, "collection", ""),
            Resource::Collection(name) => both("", "collection", name),
            Resource::Exact(database, name) => both(database, "collection", name),
            Resource::AnyBuckets => both("", "system_buckets", ""),
            Resource::BucketsOfDatabase(database) => both(database, "system_buckets", ""),
            Resource::BucketsOfCollection(name) => both("", "system_buckets", name),
            Resource::ExactBuckets(database, name) => both(database, "system_buckets", name),
        }
    }
}

fn text(value: Value<'_>, field: &str) -> Result<String> {
    let wrong = || {
        Error::type_mismatch(format!(
            "BSON field 'resource.{field}' is the wrong type '{}', expected type 'string'",
            value.value_type().name()
        ))
    };
    value.as_str().map(str::to_owned).ok_or_else(wrong)
}

fn truth(value: Value<'_>, field: &str) -> Result<bool> {
    match value {
        Value::Bool(true) => Ok(true),
        Value::Bool(false) => Err(Error::bad_value(format!("resource field '{field}' must be true when it is there"))),
        other => Err(Error::type_mismatch(format!(
            "BSON field 'resource.{field}' is the wrong type '{}', expected type 'bool'",
            other.value_type().name()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::doc;

    #[test]
    fn u10_resources_are_read_and_written() {
        let good = [
            doc! { "cluster": true },
            doc! { "anyResource": true },
            doc! { "db": "", "collection": "" },
            doc! { "db": "a", "collection": "" },
            doc! { "db": "", "collection": "c" },
            doc! { "db": "a", "collection": "c" },
            doc! { "db": "", "system_buckets": "" },
            doc! { "db": "a", "system_buckets": "" },
            doc! { "db": "", "system_buckets": "c" },
            doc! { "db": "a", "system_buckets": "c" },
        ];
        for resource in good {
            let mut written = DocBuilder::new();
            Resource::read(resource.view()).unwrap().append_to(&mut written);
            assert_eq!(written.finish(), resource);
        }
        let bad = [
            doc! {},
            doc! { "db": "a" },
            doc! { "collection": "a" },
            doc! { "cluster": true, "anyResource": true },
            doc! { "cluster": false },
            doc! { "cluster": true, "db": "", "collection": "" },
            doc! { "db": 1, "collection": "" },
            doc! { "db": "a b", "collection": "" },
            doc! { "nonsense": true },
        ];
        for resource in bad {
            assert!(Resource::read(resource.view()).is_err(), "{resource}");
        }
    }
}
