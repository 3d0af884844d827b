//! Users: their documents, and what is known of a user who has logged in.

use crate::names::{RoleName, UserName, refuse_repeated};
use crate::privilege::Privileges;
use crate::restrictions::Restrictions;
use crate::roles::{Resolved, append_roles};
use crate::scram::{Mechanism, ScramCredentials};
use pando_base::{Error, ErrorCode, Result, Uuid, ensure};
use pando_doc::{Doc, DocBuilder, DocRef, Value};
use std::net::IpAddr;

/// A user as `admin.system.users` has it.
#[derive(Clone, Debug, PartialEq)]
pub struct UserDocument {
    /// The user.
    pub name: UserName,
    /// Unlike that of any other user, also of one of the same name after this one is dropped.
    pub id: Option<Uuid>,
    /// What is stored of the password.
    pub credentials: Vec<ScramCredentials>,
    /// Somebody else vouches for the user.
    pub is_external: bool,
    /// The user's roles.
    pub roles: Vec<RoleName>,
    /// What the administrator noted.
    pub custom_data: Option<Doc>,
    /// From where the user may come.
    pub restrictions: Restrictions,
}

impl UserDocument {
    /// Reads a document.
    pub fn read(document: DocRef<'_>) -> Result<UserDocument> {
        refuse_repeated(document, "user")?;
        let text = |field: &str| {
            let wrong = || {
                Error::new(ErrorCode::UnsupportedFormat, format!("User document needs '{field}' field to be a string"))
            };
            document.get(field).and_then(|value| value.as_str()).map(str::to_owned).ok_or_else(wrong)
        };
        let name = UserName { user: text("user")?, database: text("db")? };
        ensure!(
            !name.user.is_empty() && !name.database.is_empty(),
            ErrorCode::UnsupportedFormat,
            "User document needs 'user' and 'db' fields to be non-empty"
        );
        let id = match document.get("userId") {
            Some(Value::Binary { subtype: 4, bytes }) => bytes.try_into().ok().map(Uuid::from_bytes),
            _ => None,
        };
        let stored = document.get("credentials").and_then(|stored| stored.as_document());
        let is_external = stored.is_some_and(|stored| stored.get("external").is_some_and(|value| value.is_true()));
        let mut credentials = Vec::new();
        for mechanism in Mechanism::ALL {
            if let Some(Value::Document(stored)) = stored.and_then(|stored| stored.get(mechanism.name())) {
                credentials.push(ScramCredentials::read(mechanism, stored)?);
            }
        }
        let roles = document.get("roles").map(|roles| RoleName::read_all(roles, &name.database)).transpose()?;
        let restrictions = document.get("authenticationRestrictions").map(Restrictions::read).transpose()?;
        let custom_data = document.get("customData").and_then(|data| data.as_document()).map(DocRef::to_doc);
        Ok(UserDocument {
            name,
            id,
            credentials,
            is_external,
            roles: roles.unwrap_or_default(),
            custom_data,
            restrictions: restrictions.unwrap_or_default(),
        })
    }

    /// The document.
    pub fn to_doc(&self) -> Doc {
        let mut document = DocBuilder::new();
        document.append("_id", self.name.id());
        if let Some(id) = &self.id {
            document.append("userId", Value::Binary { subtype: 4, bytes: id.as_bytes() });
        }
        self.name.append_to(&mut document);
        document.append("credentials", self.credentials_document());
        document.append_some("customData", self.custom_data.as_ref());
        document.array("roles", |array| append_roles(array, &self.roles));
        if !self.restrictions.is_empty() {
            document.append("authenticationRestrictions", self.restrictions.document());
        }
        document.finish()
    }

    /// The document below `credentials`.
    pub fn credentials_document(&self) -> Doc {
        let mut document = DocBuilder::new();
        if self.is_external {
            document.append("external", true);
        }
        for credentials in &self.credentials {
            document.append(credentials.mechanism.name(), credentials.to_doc());
        }
        document.finish()
    }

    /// The mechanisms that the user can use.
    pub fn mechanisms(&self) -> Vec<&'static str> {
        match self.is_external {
            true => vec!["external"],
            false => self.credentials.iter().map(|credentials| credentials.mechanism.name()).collect(),
        }
    }

    /// What is stored for a mechanism.
    pub fn credentials_for(&self, mechanism: Mechanism) -> Option<&ScramCredentials> {
        self.credentials.iter().find(|credentials| credentials.mechanism == mechanism)
    }
}

/// A user with everything that their roles come to.
#[derive(Clone, Debug)]
pub struct User {
    /// As stored.
    pub document: UserDocument,
    /// What the roles come to.
    pub resolved: Resolved,
}

impl User {
    /// Puts a user together.
    pub fn new(document: UserDocument, resolved: Resolved) -> User {
        User { document, resolved }
    }

    /// The servers of a deployment, to each other.
    pub fn internal() -> User {
        let document = UserDocument {
            name: UserName::internal(),
            id: None,
            credentials: Vec::new(),
            is_external: false,
            roles: vec![RoleName::new("__system", "admin")],
            custom_data: None,
            restrictions: Restrictions::default(),
        };
        let resolved = Resolved {
            roles: document.roles.iter().cloned().collect(),
            privileges: Privileges::all(),
            ..Resolved::default()
        };
        User::new(document, resolved)
    }

    /// The name.
    pub fn name(&self) -> &UserName {
        &self.document.name
    }

    /// What the user may do.
    pub fn privileges(&self) -> &Privileges {
        &self.resolved.privileges
    }

    /// May the user come from there and reach that?
    pub fn may_come(&self, client: IpAddr, server: IpAddr) -> bool {
        let own = std::iter::once(&self.document.restrictions);
        own.chain(&self.resolved.restrictions).all(|restrictions| restrictions.are_met(client, server))
    }

    /// Is it said from where the user may come? Whoever comes from no address does not meet that.
    pub fn is_restricted(&self) -> bool {
        let own = std::iter::once(&self.document.restrictions);
        own.chain(&self.resolved.restrictions).any(|restrictions| !restrictions.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::doc;

    #[test]
    fn u10_user_documents_are_read_as_they_are_written() {
        let credentials = ScramCredentials::new(Mechanism::ScramSha256, "p", b"0123456789", 4096);
        let document = doc! {
            "_id": "d.u", "userId": (Value::Binary { subtype: 4, bytes: &[7; 16] }), "user": "u", "db": "d",
            "credentials": { "SCRAM-SHA-256": (credentials.to_doc()) },
            "customData": { "x": 1 },
            "roles": [{ "role": "read", "db": "d" }],
            "authenticationRestrictions": [{ "clientSource": ["127.0.0.1"] }],
        };
        let user = UserDocument::read(document.view()).unwrap();
        assert_eq!(user.to_doc(), document);
        assert_eq!(user.mechanisms(), ["SCRAM-SHA-256"]);
        assert!(user.credentials_for(Mechanism::ScramSha1).is_none());
        let external = doc! { "_id": "$external.u", "user": "u", "db": "$external", "credentials": { "external": true }, "roles": [] };
        assert_eq!(UserDocument::read(external.view()).unwrap().mechanisms(), ["external"]);
        let twice = doc! { "user": "u", "db": "d", "roles": [], "roles": [{ "role": "root", "db": "admin" }] };
        for bad in [twice, doc! { "user": "u" }, doc! { "user": "", "db": "d" }, doc! { "user": "u", "db": 1 }] {
            assert!(UserDocument::read(bad.view()).is_err());
        }
    }
}
