//! `createUser`.

use super::password::{Password, credentials};
use super::target;
use crate::arguments::SafeBool;
use crate::security::parameters::ENFORCE_USER_CLUSTER_SEPARATION;
use crate::security::writing::{CHANGE, Change, restrictions};
use crate::{Access, CommandRow, Invocation, access, run_boxed};
use pando_base::{ErrorCode, Result, Uuid, ensure};
use pando_doc::{DocRef, Value};
use pando_security::{EXTERNAL_DATABASE, RoleName, UserDocument};

pub(in crate::security) const ROW: CommandRow = CommandRow {
    name: "createUser",
    help: "Adds a user to the system",
    run: |invocation, _| run_boxed(run(invocation)),
    privileges: Access::Checked(access::may_create_user),
    secret_fields: &["pwd"],
    ..CHANGE
};

crate::arguments! {
    /// What createUser takes.
    struct Arguments<'a> of "createUser" {
        /// The password.
        password: Option<&'a str> = "pwd",
        /// What the administrator notes.
        custom_data: Option<DocRef<'a>> = "customData",
        /// What the user may do.
        roles: Value<'a> = "roles",
        /// The password is plain, and not a digest.
        digest: SafeBool = "digestPassword" or SafeBool(true),
        /// From where the user may come.
        restrictions: Option<Value<'a>> = "authenticationRestrictions",
        /// How the user may log in.
        mechanisms: Option<Vec<&'a str>> = "mechanisms",
    }
}

async fn run(invocation: &Invocation) -> Result<()> {
    let arguments = Arguments::parse(&invocation.request)?;
    let database = invocation.database.as_str();
    ensure!(database != "local", ErrorCode::BadValue, "Cannot create users in the local database");
    let name = target(invocation)?;
    let is_external = database == EXTERNAL_DATABASE;
    ensure!(
        arguments.password.is_some() || is_external,
        ErrorCode::BadValue,
        "Must provide a 'pwd' field for all user documents, except those with '$external' as the user's source db"
    );
    ensure!(
        arguments.password.is_none() || !is_external,
        ErrorCode::BadValue,
        "Cannot set the password for users defined on the '$external' database"
    );
    let node = &invocation.node;
    let is_reserved =
        is_external && node.security.is_member(&name.user) && node.parameters.get(&ENFORCE_USER_CLUSTER_SEPARATION);
    ensure!(
        !is_reserved,
        ErrorCode::BadValue,
        "Cannot create an x.509 user with a subjectname that would be recognized as an internal cluster member"
    );
    let password = arguments.password.map(|password| Password {
        password,
        is_plain: arguments.digest.0,
        mechanisms: arguments.mechanisms.as_deref(),
    });
    let credentials = password.map(|password| credentials(invocation, &name, &password)).transpose()?;
    let mut id = [0; 16];
    invocation.node.env.random().fill(&mut id);
    let user = UserDocument {
        id: Some(Uuid::from_random(id)),
        credentials: credentials.unwrap_or_default(),
        is_external,
        roles: RoleName::read_all(arguments.roles, database)?,
        custom_data: arguments.custom_data.map(DocRef::to_doc),
        restrictions: restrictions(arguments.restrictions)?,
        name,
    };
    let mut change = Change::begin(invocation).await?;
    change.known_roles(&user.roles).await?;
    let is_new = change.user(&user.name).await?.is_none();
    ensure!(is_new, ErrorCode::location(51003), "User \"{}\" already exists", user.name);
    change.save_user(&user).await
}
