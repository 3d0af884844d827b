//! The name of a database.

use super::{DATABASE_LENGTH_MAX, TenantId};
use crate::{Error, ErrorCode, Result, ensure};
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A database's name, with its tenant if it has one. It may share the text of the namespace it was taken from.
#[derive(Clone)]
pub struct DatabaseName {
    pub(super) tenant: Option<TenantId>,
    /// The name, and after `length` bytes perhaps a collection's.
    pub(super) text: Arc<str>,
    pub(super) length: u8,
}

impl DatabaseName {
    /// Where users, roles and the server's own version live.
    pub const ADMIN: &'static str = "admin";
    /// What the cluster knows of itself.
    pub const CONFIG: &'static str = "config";
    /// What a node keeps to itself: the oplog, its vote.
    pub const LOCAL: &'static str = "local";
    /// Users whom another system authenticates.
    pub const EXTERNAL: &'static str = "$external";

    /// A name without tenant.
    pub fn new(name: &str) -> Result<DatabaseName> {
        DatabaseName::with_tenant(None, name)
    }

    /// A name of a tenant's database.
    pub fn with_tenant(tenant: Option<TenantId>, name: &str) -> Result<DatabaseName> {
        ensure!(!name.contains('.'), ErrorCode::InvalidNamespace, "'.' is an invalid character in a db name: {name}");
        ensure!(
            !name.contains('\0'),
            ErrorCode::InvalidNamespace,
            "database names cannot have embedded null characters"
        );
        let length = checked_length(name)?;
        Ok(DatabaseName { tenant, text: Arc::from(name), length })
    }

    /// The name alone.
    pub fn as_str(&self) -> &str {
        // The length lies at the end or at the dot, so the text can be cut there.
        self.text.get(..usize::from(self.length)).unwrap_or_default()
    }

    /// The tenant, if it has one.
    pub fn tenant(&self) -> Option<TenantId> {
        self.tenant
    }

    /// True for "admin".
    pub fn is_admin(&self) -> bool {
        self.as_str() == DatabaseName::ADMIN
    }

    /// True for "config".
    pub fn is_config(&self) -> bool {
        self.as_str() == DatabaseName::CONFIG
    }

    /// True for "local".
    pub fn is_local(&self) -> bool {
        self.as_str() == DatabaseName::LOCAL
    }

    /// True for the databases that are the server's own.
    pub fn is_internal(&self) -> bool {
        self.is_admin() || self.is_config() || self.is_local()
    }

    /// True if commands may name it: not empty, no slash, backslash, blank, dot, quote or NUL. A dollar is allowed here.
    pub fn is_valid(&self) -> bool {
        is_valid(self.as_str(), true)
    }

    /// True if a database of this name may be created: valid and without a dollar.
    pub fn is_valid_for_create(&self) -> bool {
        is_valid(self.as_str(), false)
    }

    /// The check every command makes before it runs.
    pub fn validate(&self) -> Result<()> {
        ensure!(self.is_valid(), ErrorCode::InvalidNamespace, "Invalid database name: '{}'", self.as_str());
        Ok(())
    }

    /// True if both are the same but for the case of letters; also if they are the same.
    pub fn eq_ignore_case(&self, other: &DatabaseName) -> bool {
        self.tenant == other.tenant && self.as_str().eq_ignore_ascii_case(other.as_str())
    }

    /// The check before a database is created: `existing` must not differ from this name in case alone.
    pub fn check_case(&self, existing: &DatabaseName) -> Result<()> {
        ensure!(
            self == existing || !self.eq_ignore_case(existing),
            ErrorCode::DatabaseDifferCase,
            "db already exists with different case already have: [{existing}] trying to create [{self}]"
        );
        Ok(())
    }
}

/// The length as it is kept.
pub(super) fn checked_length(name: &str) -> Result<u8> {
    let too_long = || {
        let reason = format!("db name must be at most {DATABASE_LENGTH_MAX} characters, found: {}", name.len());
        Error::new(ErrorCode::InvalidNamespace, reason)
    };
    u8::try_from(name.len()).ok().filter(|length| usize::from(*length) <= DATABASE_LENGTH_MAX).ok_or_else(too_long)
}

fn is_valid(name: &str, dollar_allowed: bool) -> bool {
    let is_bad =
        |byte: u8| matches!(byte, b'\0' | b'/' | b'\\' | b'.' | b' ' | b'"') || (byte == b'$' && !dollar_allowed);
    !name.is_empty() && name.len() <= DATABASE_LENGTH_MAX && !name.bytes().any(is_bad)
}

impl PartialEq for DatabaseName {
    fn eq(&self, other: &DatabaseName) -> bool {
        self.tenant == other.tenant && self.as_str() == other.as_str()
    }
}

impl Eq for DatabaseName {}

impl Ord for DatabaseName {
    fn cmp(&self, other: &DatabaseName) -> Ordering {
        self.tenant.cmp(&other.tenant).then_with(|| self.as_str().cmp(other.as_str()))
    }
}

impl PartialOrd for DatabaseName {
    fn partial_cmp(&self, other: &DatabaseName) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Hash for DatabaseName {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.tenant.hash(state);
        self.as_str().hash(state);
    }
}

impl fmt::Display for DatabaseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(tenant) = self.tenant {
            write!(f, "{tenant}_")?;
        }
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for DatabaseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DatabaseName({self})")
    }
}
