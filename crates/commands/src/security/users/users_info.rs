//! `usersInfo`: users by name, of a database, or of all.

use super::super::state::users;
use super::super::storage::read_roles;
use crate::arguments::SafeBool;
use crate::stored::find;
use crate::{Access, Admission, Class, CommandRow, Data, Invocation, SecondaryOk, access, run_boxed};
use pando_base::{Error, ErrorCode, Result, ensure};
use pando_doc::{Doc, DocBuilder, DocRef, Value, doc};
use pando_expr::{MatchExpression, ParseContext};
use pando_operation::Operation;
use pando_security::roles::{append_roles, resolve};
use pando_security::{UserDocument, UserName};

pub(in crate::security) const ROW: CommandRow = CommandRow {
    name: "usersInfo",
    help: "Returns information about users.",
    run: |invocation, reply| run_boxed(run(invocation, reply)),
    class: Class::Read,
    secondary_ok: SecondaryOk::OptIn,
    admission: Admission::Read,
    privileges: Access::Checked(access::may_show_users),
    ..CommandRow::DEFAULT
};

crate::arguments! {
    /// What usersInfo takes.
    struct Arguments<'a> of "usersInfo" {
        /// With all that the users may do.
        show_privileges: SafeBool = "showPrivileges" or SafeBool(false),
        /// With what is stored of their passwords.
        show_credentials: SafeBool = "showCredentials" or SafeBool(false),
        /// With the places they may come from.
        show_restrictions: SafeBool = "showAuthenticationRestrictions" or SafeBool(false),
        /// With what administrators noted.
        show_custom_data: SafeBool = "showCustomData" or SafeBool(true),
        /// Only those that match.
        filter: Option<DocRef<'a>> = "filter",
    }
}

/// Whom the command asks about.
enum Asked {
    OfDatabase,
    OfAllDatabases,
    Exactly(Vec<UserName>),
}

async fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let arguments = Arguments::parse(&invocation.request)?;
    let asked = asked(invocation)?;
    let has_details = arguments.show_privileges.0 || arguments.show_restrictions.0;
    ensure!(
        !has_details || (arguments.filter.is_none() && matches!(asked, Asked::Exactly(_))),
        ErrorCode::IllegalOperation,
        "Privilege or restriction details require exact-match usersInfo queries"
    );
    let context = ParseContext::new(invocation.node.now_ms());
    let filter = arguments.filter.map(|filter| MatchExpression::parse(filter, &context)).transpose()?;
    let data = invocation.data()?;
    let mut operation = invocation.operation()?;
    let mut found = Vec::new();
    for document in find(data, &mut operation, users(), query(invocation, &asked)).await? {
        found.push(UserDocument::read(document.view())?);
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    let mut rows: Vec<Doc> = Vec::with_capacity(found.len());
    for user in found {
        let row = describe(data, &mut operation, &user, &arguments).await?;
        if filter.as_ref().map_or(Ok(true), |filter| filter.try_matches(row.view()))? {
            rows.push(row);
        }
    }
    reply.array("users", |array| rows.iter().for_each(|row| array.push(row)));
    Ok(())
}

fn asked(invocation: &Invocation) -> Result<Asked> {
    let (target, database) = (invocation.target(), invocation.database.as_str());
    Ok(match target {
        Value::String(_) => Asked::Exactly(vec![UserName::read(target, database)?]),
        Value::Document(document) if document.contains("forAllDBs") => Asked::OfAllDatabases,
        Value::Document(_) => Asked::Exactly(vec![UserName::read(target, database)?]),
        Value::Array(names) => {
            ensure!(!names.is_empty(), ErrorCode::BadValue, "$or/$and/$nor entries need to be full objects");
            Asked::Exactly(names.values().map(|name| UserName::read(name, database)).collect::<Result<_>>()?)
        }
        value if value.is_number() && value.to_double() == Some(1.0) => Asked::OfDatabase,
        _ => {
            let reason = "User and role names must be either strings or objects, or 1 for all of a database";
            return Err(Error::bad_value(reason));
        }
    })
}

fn query(invocation: &Invocation, asked: &Asked) -> Doc {
    match asked {
        Asked::OfDatabase => doc! { "db": (invocation.database.as_str()) },
        Asked::OfAllDatabases => Doc::new(),
        Asked::Exactly(names) => {
            let mut query = DocBuilder::new();
            query.document("_id", |of| of.array("$in", |ids| names.iter().for_each(|name| ids.push(name.id()))));
            query.finish()
        }
    }
}

async fn describe(data: &Data, operation: &mut Operation, user: &UserDocument, show: &Arguments<'_>) -> Result<Doc> {
    let mut row = DocBuilder::new();
    row.append("_id", user.name.id());
    if let Some(id) = &user.id {
        row.append("userId", Value::Binary { subtype: 4, bytes: id.as_bytes() });
    }
    user.name.append_to(&mut row);
    if show.show_credentials.0 {
        row.append("credentials", user.credentials_document());
    }
    if show.show_custom_data.0 {
        row.append_some("customData", user.custom_data.as_ref());
    }
    row.array("roles", |array| append_roles(array, &user.roles));
    if show.show_privileges.0 || show.show_restrictions.0 {
        let known = read_roles(data, operation, &user.roles).await?;
        let resolved = resolve(&user.roles, &known);
        row.array("inheritedRoles", |array| append_roles(array, &resolved.roles));
        row.array("inheritedPrivileges", |array| resolved.privileges.append_to(array));
        row.array("inheritedAuthenticationRestrictions", |array| {
            resolved.restrictions.iter().for_each(|restrictions| array.push(restrictions.document()));
        });
        if show.show_restrictions.0 {
            row.append("authenticationRestrictions", user.restrictions.document());
        }
    }
    row.array("mechanisms", |array| user.mechanisms().into_iter().for_each(|name| array.push(name)));
    Ok(row.finish())
}
