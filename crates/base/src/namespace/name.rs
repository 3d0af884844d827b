//! "database.collection" in one string.

use super::database::{DatabaseName, checked_length};
use super::tenant::TenantId;
use crate::{Error, ErrorCode, Result, Uuid, ensure};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The full name of a collection, a view, or of what stands in for one ("db.$cmd"). Without a collection it is a
/// database's name only.
///
/// Order: names without tenant first, then by the bytes of the whole text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Namespace {
    tenant: Option<TenantId>,
    /// `database`, or `database.collection`; the first dot is the one between.
    text: Arc<str>,
    database_length: u8,
}

impl Namespace {
    /// A collection of a database. The collection may be empty.
    pub fn new(database: &DatabaseName, collection: &str) -> Result<Namespace> {
        Namespace::join(database.tenant, database.as_str(), database.length, collection)
    }

    /// A collection by both names, without tenant.
    pub fn of(database: &str, collection: &str) -> Result<Namespace> {
        let length = check_database(database)?;
        Namespace::join(None, database, length, collection)
    }

    /// Splits "database.collection" at the first dot; without a dot it is a database alone.
    pub fn parse(text: &str) -> Result<Namespace> {
        Namespace::parse_with_tenant(None, text)
    }

    /// The same for a tenant's namespace. The text is without the tenant.
    pub fn parse_with_tenant(tenant: Option<TenantId>, text: &str) -> Result<Namespace> {
        let (database, collection) = text.split_once('.').unwrap_or((text, ""));
        let length = check_database(database)?;
        Namespace::join(tenant, database, length, collection)
    }

    fn join(tenant: Option<TenantId>, database: &str, database_length: u8, collection: &str) -> Result<Namespace> {
        ensure!(
            !collection.contains('\0'),
            ErrorCode::InvalidNamespace,
            "namespaces cannot have embedded null characters"
        );
        ensure!(
            !collection.starts_with('.'),
            ErrorCode::InvalidNamespace,
            "Collection names cannot start with '.': {collection}"
        );
        if collection.is_empty() {
            return Ok(Namespace { tenant, text: Arc::from(database), database_length });
        }
        let mut text = String::with_capacity(database.len() + 1 + collection.len());
        text.push_str(database);
        text.push('.');
        text.push_str(collection);
        Ok(Namespace { tenant, text: Arc::from(text), database_length })
    }

    /// The whole name without tenant, as in "ns" fields.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The database's part.
    pub fn database(&self) -> &str {
        self.text.get(..usize::from(self.database_length)).unwrap_or_default()
    }

    /// The collection's part; empty if it is a database's name only.
    pub fn collection(&self) -> &str {
        self.text.get(usize::from(self.database_length) + 1..).unwrap_or_default()
    }

    /// The database's name. It shares the text.
    pub fn database_name(&self) -> DatabaseName {
        DatabaseName { tenant: self.tenant, text: Arc::clone(&self.text), length: self.database_length }
    }

    /// The tenant, if it has one.
    pub fn tenant(&self) -> Option<TenantId> {
        self.tenant
    }

    /// Another collection of the same database.
    pub fn sibling(&self, collection: &str) -> Result<Namespace> {
        Namespace::join(self.tenant, self.database(), self.database_length, collection)
    }

    /// The same name in the same database, for names we make ourselves from a valid one.
    pub(super) fn made(database: &DatabaseName, prefix: &str, rest: &str) -> Namespace {
        debug_assert!(!prefix.is_empty() && !prefix.starts_with('.') && !prefix.contains('\0') && !rest.contains('\0'));
        let text = Arc::from(format!("{}.{prefix}{rest}", database.as_str()));
        Namespace { tenant: database.tenant, text, database_length: database.length }
    }
}

/// Checks a database's part; where it was cut off at a dot it has none, but a caller of [`Namespace::of`] may err.
fn check_database(database: &str) -> Result<u8> {
    ensure!(!database.contains('\0'), ErrorCode::InvalidNamespace, "namespaces cannot have embedded null characters");
    ensure!(
        !database.contains('.'),
        ErrorCode::InvalidNamespace,
        "'.' is an invalid character in a db name: {database}"
    );
    checked_length(database)
}

impl From<DatabaseName> for Namespace {
    fn from(database: DatabaseName) -> Namespace {
        Namespace { tenant: database.tenant, text: Arc::from(database.as_str()), database_length: database.length }
    }
}

impl FromStr for Namespace {
    type Err = Error;

    fn from_str(text: &str) -> Result<Namespace> {
        Namespace::parse(text)
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(tenant) = self.tenant {
            write!(f, "{tenant}_")?;
        }
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Namespace({self})")
    }
}

/// What a command names: a collection by name, or one of a database by its id.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum NamespaceOrUuid {
    /// By name.
    Namespace(Namespace),
    /// By id.
    Uuid {
        /// The database it must be in.
        database: DatabaseName,
        /// The collection's id.
        uuid: Uuid,
    },
}

impl NamespaceOrUuid {
    /// The database either way.
    pub fn database_name(&self) -> DatabaseName {
        match self {
            NamespaceOrUuid::Namespace(namespace) => namespace.database_name(),
            NamespaceOrUuid::Uuid { database, .. } => database.clone(),
        }
    }
}

impl fmt::Display for NamespaceOrUuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NamespaceOrUuid::Namespace(namespace) => namespace.fmt(f),
            NamespaceOrUuid::Uuid { uuid, .. } => uuid.fmt(f),
        }
    }
}
