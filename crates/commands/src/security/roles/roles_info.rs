//! `rolesInfo`: roles by name, or of a database.

use super::super::state::roles;
use super::super::storage::read_roles;
use crate::arguments::SafeBool;
use crate::stored::find;
use crate::{Access, Admission, Class, CommandRow, Data, Invocation, SecondaryOk, access, run_boxed};
use pando_base::{Error, ErrorCode, Result, bail, ensure};
use pando_doc::{Doc, DocBuilder, Value, doc};
use pando_operation::Operation;
use pando_security::roles::{
    RoleDocument, append_roles, built_in_privileges, built_in_roles_of, check_found, is_built_in, resolve,
};
use pando_security::{Restrictions, RoleName};

pub(in crate::security) const ROW: CommandRow = CommandRow {
    name: "rolesInfo",
    help: "Returns information about roles.",
    run: |invocation, reply| run_boxed(run(invocation, reply)),
    class: Class::Read,
    secondary_ok: SecondaryOk::OptIn,
    admission: Admission::Read,
    privileges: Access::Checked(access::may_show_roles),
    ..CommandRow::DEFAULT
};

crate::arguments! {
    /// What rolesInfo takes.
    struct Arguments<'a> of "rolesInfo" {
        /// With what they allow, in one of two forms.
        show_privileges: Option<Value<'a>> = "showPrivileges",
        /// With the roles that every database has.
        show_built_in: SafeBool = "showBuiltinRoles" or SafeBool(false),
        /// With the places that their users may come from.
        show_restrictions: SafeBool = "showAuthenticationRestrictions" or SafeBool(false),
    }
}

/// How privileges are shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Not at all.
    Omitted,
    /// With each role.
    Separate,
    /// As those of a user who had all the roles.
    AsUserFragment,
}

impl Form {
    fn read(value: Option<Value<'_>>) -> Result<Form> {
        match value {
            None => Ok(Form::Omitted),
            Some(Value::String(_)) => match value.and_then(|value| value.as_str()) {
                Some("asUserFragment") => Ok(Form::AsUserFragment),
                other => bail!(
                    ErrorCode::BadValue,
                    "Failed to parse 'showPrivileges'. 'showPrivileges' should either be a boolean or the string \
                     'asUserFragment', given: '{}'",
                    other.unwrap_or_default()
                ),
            },
            Some(value) if value.is_true() => Ok(Form::Separate),
            Some(_) => Ok(Form::Omitted),
        }
    }
}

async fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let arguments = Arguments::parse(&invocation.request)?;
    let form = Form::read(arguments.show_privileges)?;
    let data = invocation.data()?;
    let mut operation = invocation.operation()?;
    let database = invocation.database.as_str();
    let names = match invocation.target() {
        target @ (Value::String(_) | Value::Document(_)) => vec![RoleName::read(target, database)?],
        Value::Array(names) => names.values().map(|name| RoleName::read(name, database)).collect::<Result<Vec<_>>>()?,
        value if value.is_number() && value.to_double() == Some(1.0) => {
            ensure!(
                form != Form::AsUserFragment,
                ErrorCode::IllegalOperation,
                "Cannot get user fragment for all roles in a database"
            );
            of_database(data, &mut operation, database, arguments.show_built_in.0).await?
        }
        _ => {
            let reason = "User and role names must be either strings or objects, or 1 for all of a database";
            return Err(Error::bad_value(reason));
        }
    };
    if form == Form::AsUserFragment {
        let fragment = user_fragment(data, &mut operation, &names, arguments.show_restrictions.0).await?;
        reply.append("userFragment", &fragment);
        return Ok(());
    }
    let known = read_roles(data, &mut operation, &names).await?;
    let mut rows = Vec::new();
    for name in &names {
        let document = match known.get(name) {
            Some(document) => document.clone(),
            None if is_built_in(name) => built_in(name),
            None => continue,
        };
        let inherited = resolve(&document.roles, &known);
        let mut row = DocBuilder::new();
        row.append("_id", name.id());
        name.append_to(&mut row);
        row.array("roles", |array| append_roles(array, &document.roles));
        if form == Form::Separate {
            row.array("privileges", |array| document.privileges.append_to(array));
        }
        if arguments.show_restrictions.0 {
            row.append("authenticationRestrictions", document.restrictions.document());
        }
        row.array("inheritedRoles", |array| append_roles(array, &inherited.roles));
        if form == Form::Separate {
            let mut all = document.privileges.clone();
            all.grant_all(&inherited.privileges);
            row.array("inheritedPrivileges", |array| all.append_to(array));
        }
        if arguments.show_restrictions.0 {
            row.array("inheritedAuthenticationRestrictions", |array| {
                let own = Some(&document.restrictions).filter(|own| !own.is_empty());
                own.into_iter().chain(&inherited.restrictions).for_each(|one| array.push(one.document()));
            });
        }
        row.append("isBuiltin", is_built_in(name));
        rows.push(row.finish());
    }
    reply.array("roles", |array| rows.iter().for_each(|row| array.push(row)));
    Ok(())
}

fn built_in(name: &RoleName) -> RoleDocument {
    RoleDocument {
        name: name.clone(),
        privileges: built_in_privileges(name).unwrap_or_default(),
        roles: Vec::new(),
        restrictions: Restrictions::default(),
    }
}

async fn of_database(
    data: &Data,
    operation: &mut Operation,
    database: &str,
    with_built_in: bool,
) -> Result<Vec<RoleName>> {
    let mut names = Vec::new();
    for document in find(data, operation, roles(), doc! { "db": database }).await? {
        names.push(RoleDocument::read(document.view())?.name);
    }
    names.sort();
    if with_built_in {
        names.extend(built_in_roles_of(database));
    }
    Ok(names)
}

async fn user_fragment(
    data: &Data,
    operation: &mut Operation,
    names: &[RoleName],
    with_restrictions: bool,
) -> Result<Doc> {
    let known = read_roles(data, operation, names).await?;
    let resolved = resolve(names, &known);
    check_found(&resolved)?;
    let mut fragment = DocBuilder::new();
    fragment.array("roles", |array| append_roles(array, names));
    fragment.array("inheritedRoles", |array| append_roles(array, &resolved.roles));
    fragment.array("inheritedPrivileges", |array| resolved.privileges.append_to(array));
    if with_restrictions {
        fragment.array("inheritedAuthenticationRestrictions", |array| {
            resolved.restrictions.iter().for_each(|one| array.push(one.document()));
        });
    }
    Ok(fragment.finish())
}
