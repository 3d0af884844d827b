//! `_mergeAuthzCollections`: what mongorestore brings users and roles in with.
//!
//! It writes them to collections of its own first; from there they are taken over here, under the lock of the commands
//! that change users and roles. With `drop`, those that it did not bring go, but only after the others have come: there is
//! no moment without users. Without it, what is there already stays as it is, which is logged; the others still come.

use super::writing::{CHANGE, Change, of_database_or_all};
use crate::{Access, CommandRow, Invocation, access, run_boxed};
use pando_base::{Component, DatabaseName, ErrorCode, Log, Namespace, Result, Severity, ensure, log};
use pando_doc::doc;
use pando_env::Place;
use std::collections::BTreeSet;

pub(super) const ROW: CommandRow = CommandRow {
    name: "_mergeAuthzCollections",
    help: "Internal command used by mongorestore for updating user/role data",
    run: |invocation, _| run_boxed(run(invocation)),
    is_admin_only: true,
    privileges: Access::Checked(access::may_merge_users_and_roles),
    place: Place::Lanes,
    ..CHANGE
};

crate::arguments! {
    /// What _mergeAuthzCollections takes.
    struct Arguments<'a> of "_mergeAuthzCollections" {
        /// The namespace with the users.
        users: &'a str = "tempUsersCollection" or "",
        /// The namespace with the roles.
        roles: &'a str = "tempRolesCollection" or "",
        /// Only those of this database; of all, if it is empty.
        database: &'a str = "db",
        /// Those that are not brought go.
        drop: bool = "drop" or false,
    }
}

async fn run(invocation: &Invocation) -> Result<()> {
    let arguments = Arguments::parse(&invocation.request)?;
    ensure!(
        !arguments.users.is_empty() || !arguments.roles.is_empty(),
        ErrorCode::BadValue,
        "Must provide at least one of \"tempUsersCollection\" and \"tempRolescollection\""
    );
    let database = match arguments.database {
        "" => None,
        name => Some(DatabaseName::new(name)?),
    };
    let database = database.as_ref();
    let log = invocation.node.log.with_context(invocation.connection.client.description());
    let mut change = Change::begin(invocation).await?;
    if !arguments.users.is_empty() {
        merge_users(&mut change, &log, &Namespace::parse(arguments.users)?, database, arguments.drop).await?;
    }
    if !arguments.roles.is_empty() {
        merge_roles(&mut change, &log, &Namespace::parse(arguments.roles)?, database, arguments.drop).await?;
    }
    Ok(())
}

async fn merge_users(
    change: &mut Change<'_>,
    log: &Log,
    source: &Namespace,
    database: Option<&DatabaseName>,
    drop: bool,
) -> Result<()> {
    let filter = of_database_or_all(database);
    let mut known: BTreeSet<_> = change.users(filter.clone()).await?.into_iter().map(|user| user.name).collect();
    for user in change.users_of(source, filter).await? {
        let is_known = known.remove(&user.name);
        if is_known && !drop {
            warn_of_duplicate(
                log,
                20511,
                "Could not insert user during _mergeAuthzCollections command",
                &user.name.id(),
            );
        } else {
            change.save_user(&user).await?;
        }
    }
    if drop {
        for name in known {
            change.delete_users(doc! { "_id": (name.id()) }).await?;
        }
    }
    Ok(())
}

async fn merge_roles(
    change: &mut Change<'_>,
    log: &Log,
    source: &Namespace,
    database: Option<&DatabaseName>,
    drop: bool,
) -> Result<()> {
    let filter = of_database_or_all(database);
    let mut known: BTreeSet<_> = change.roles(filter.clone()).await?.into_iter().map(|role| role.name).collect();
    for role in change.roles_of(source, filter).await? {
        let is_known = known.remove(&role.name);
        if is_known && !drop {
            warn_of_duplicate(
                log,
                20513,
                "Could not insert role during _mergeAuthzCollections command",
                &role.name.id(),
            );
        } else {
            change.save_role(&role).await?;
        }
    }
    if drop {
        for name in known {
            change.delete_roles(doc! { "_id": (name.id()) }).await?;
        }
    }
    Ok(())
}

fn warn_of_duplicate(log: &Log, id: i32, message: &'static str, name: &str) {
    log!(log, Severity::Warning, Component::AccessControl, id, message, "name" = name, "error" = "it exists already");
}
