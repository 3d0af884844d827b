//! The names of users and roles: each belongs to a database.

use pando_base::{Error, Result};
use pando_doc::{DocBuilder, DocRef, Value};
use std::fmt;

/// The database of users whom somebody else vouches for, as a certificate's issuer does.
pub const EXTERNAL_DATABASE: &str = "$external";

/// A user.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UserName {
    /// The user's own name.
    pub user: String,
    /// The database that defines it.
    pub database: String,
}

/// A role.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RoleName {
    /// The role's own name.
    pub role: String,
    /// The database that defines it.
    pub database: String,
}

impl UserName {
    /// A user of a database.
    pub fn new(user: impl Into<String>, database: impl Into<String>) -> UserName {
        UserName { user: user.into(), database: database.into() }
    }

    /// The servers of a deployment, to each other.
    pub fn internal() -> UserName {
        UserName::new("__system", "local")
    }

    /// The `_id` of its document, and how it is told apart in one string.
    pub fn id(&self) -> String {
        format!("{}.{}", self.database, self.user)
    }

    /// Writes `user` and `db`.
    pub fn append_to(&self, document: &mut DocBuilder) {
        document.append("user", &self.user);
        document.append("db", &self.database);
    }

    /// Reads `{user, db}` or a name alone, which is then of the given database.
    pub fn read(value: Value<'_>, database: &str) -> Result<UserName> {
        read(value, "user", database).map(|(user, database)| UserName { user, database })
    }
}

impl RoleName {
    /// A role of a database.
    pub fn new(role: impl Into<String>, database: impl Into<String>) -> RoleName {
        RoleName { role: role.into(), database: database.into() }
    }

    /// The `_id` of its document.
    pub fn id(&self) -> String {
        format!("{}.{}", self.database, self.role)
    }

    /// Writes `role` and `db`.
    pub fn append_to(&self, document: &mut DocBuilder) {
        document.append("role", &self.role);
        document.append("db", &self.database);
    }

    /// Reads `{role, db}` or a name alone, which is then of the given database.
    pub fn read(value: Value<'_>, database: &str) -> Result<RoleName> {
        read(value, "role", database).map(|(role, database)| RoleName { role, database })
    }

    /// Reads an array of them.
    pub fn read_all(value: Value<'_>, database: &str) -> Result<Vec<RoleName>> {
        let Some(array) = value.as_array() else {
            return Err(Error::type_mismatch(format!(
                "a list of roles must be an array, not {}",
                value.value_type().name()
            )));
        };
        array.values().map(|value| RoleName::read(value, database)).collect()
    }
}

/// Refuses a document in which a field stands twice: it says who may do what, and must not say two
/// things.
pub(crate) fn refuse_repeated(document: DocRef<'_>, what: &str) -> Result<()> {
    match document.repeated_name() {
        None => Ok(()),
        Some(name) => Err(Error::location(40413, format!("BSON field '{what}.{name}' is a duplicate field"))),
    }
}

fn read(value: Value<'_>, field: &str, database: &str) -> Result<(String, String)> {
    match value {
        Value::String(_) => match value.as_str() {
            Some("") => Err(Error::bad_value(format!("{field} name must be non-empty"))),
            Some(name) => Ok((name.to_owned(), database.to_owned())),
            None => Err(Error::bad_value(format!("{field} name is not valid UTF-8"))),
        },
        Value::Document(document) => read_document(document, field),
        other => Err(Error::bad_value(format!(
            "{} name must be either a document or string, not {}",
            if field == "role" { "Role" } else { "User" },
            other.value_type().name()
        ))),
    }
}

fn read_document(document: DocRef<'_>, field: &str) -> Result<(String, String)> {
    refuse_repeated(document, field)?;
    let mut found = (None, None);
    for element in document.elements() {
        let text = element.value.as_str().map(str::to_owned);
        let place = match &**element.name {
            name if name == field.as_bytes() => &mut found.0,
            b"db" => &mut found.1,
            b"tenant" => continue,
            // What older versions have kept beside the name of a role is read over.
            _ if field == "role" => continue,
            other => {
                let other = String::from_utf8_lossy(other);
                return Err(Error::bad_value(format!("{field} document has an unknown field: {other}")));
            }
        };
        let wrong = || Error::bad_value(format!("{field} names must contain a string \"{field}\" and a string \"db\""));
        *place = Some(text.ok_or_else(wrong)?);
    }
    match found {
        (Some(name), Some(database)) if !name.is_empty() && !database.is_empty() => Ok((name, database)),
        _ => Err(Error::bad_value(format!("{field} names must contain both a \"{field}\" and a \"db\" field"))),
    }
}

impl fmt::Display for UserName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.user, self.database)
    }
}

impl fmt::Display for RoleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.role, self.database)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::doc;

    #[test]
    fn u10_names_are_read_in_both_forms() {
        let given = doc! { "roles": ["read", { "role": "x", "db": "other" }], "bad": [{ "role": "x" }], "no": [1] };
        let roles = RoleName::read_all(given.get("roles").unwrap(), "here").unwrap();
        assert_eq!(roles, [RoleName::new("read", "here"), RoleName::new("x", "other")]);
        assert!(RoleName::read_all(given.get("bad").unwrap(), "here").is_err());
        assert!(RoleName::read_all(given.get("no").unwrap(), "here").is_err());
        let twice = doc! { "roles": [{ "role": "x", "db": "here", "db": "other" }] };
        let error = RoleName::read_all(twice.get("roles").unwrap(), "here").unwrap_err();
        assert_eq!(error.code().number(), 40413);
        let older = doc! { "roles": [{ "role": "x", "db": "other", "hasRole": true, "canDelegate": false }] };
        assert_eq!(RoleName::read_all(older.get("roles").unwrap(), "here").unwrap(), roles[1..]);
        assert_eq!(roles[1].to_string(), "x@other");
        assert_eq!(UserName::new("u", "d").id(), "d.u");
    }
}
