//! Every command with every built-in role: what the table says is what the node does.
//!
//! The requests are sent with `help`, so that they pass all stages and then do nothing. What is expected comes from the
//! row, or, for commands whose rights depend on their arguments, from the table below; a command that is in neither fails.

use super::*;
use pando_commands::{Access, CommandRow};
use pando_security::roles::{built_in_privileges, built_in_roles_of};
use pando_security::{Action, ActionSet, Privileges, RoleName, Target};

type Needed = &'static [(Target<'static>, &'static [Action])];

const ON_C: Target<'static> = Target::Collection("d", "c");
const ON_D: Target<'static> = Target::Database("d");

/// The arguments that each command is sent with, and what they need; those not listed get none, and need what their row says.
fn cases(name: &str) -> Option<(Doc, Needed)> {
    use Action::*;
    Some(match name {
        "find" | "count" => (doc! { (name): "c" }, &[(ON_C, &[Find])]),
        "distinct" => (doc! { "distinct": "c", "key": "x" }, &[(ON_C, &[Find])]),
        "filemd5" => (doc! { "filemd5": 1, "root": "c" }, &[(Target::Collection("d", "c.chunks"), &[Find])]),
        "explain" => (doc! { "explain": { "find": "c" } }, &[(ON_C, &[Find])]),
        "aggregate" => {
            let stages = [doc! { "$lookup": { "from": "x", "pipeline": [], "as": "y" } }, doc! { "$out": "o" }];
            let pipeline =
                doc! { "aggregate": "c", "pipeline": [(stages[0].clone()), (stages[1].clone())], "cursor": {} };
            let needed: Needed = &[
                (ON_C, &[Find]),
                (Target::Collection("d", "x"), &[Find]),
                (Target::Collection("d", "o"), &[Insert, Remove]),
            ];
            (pipeline, needed)
        }
        "mapReduce" => (
            doc! { "mapReduce": "c", "map": "function() {}", "reduce": "function() {}", "out": { "merge": "o" } },
            &[(ON_C, &[Find]), (Target::Collection("d", "o"), &[Insert, Update])],
        ),
        "dbCheck" => (doc! { "dbCheck": "c" }, &[(Target::Any, &[DbCheck])]),
        "insert" => (doc! { "insert": "c", "documents": [{}] }, &[(ON_C, &[Insert])]),
        "update" => {
            (doc! { "update": "c", "updates": [{ "q": {}, "u": {}, "upsert": true }] }, &[(ON_C, &[Update, Insert])])
        }
        "findAndModify" => (doc! { "findAndModify": "c", "remove": true }, &[(ON_C, &[Find, Remove])]),
        "create" => {
            (doc! { "create": "c", "capped": true, "size": 4096 }, &[(ON_C, &[ConvertToCapped, CreateCollection])])
        }
        "collMod" => (doc! { "collMod": "c" }, &[(ON_C, &[CollMod])]),
        "listIndexes" => (doc! { "listIndexes": "c" }, &[(ON_C, &[ListIndexes])]),
        "listCollections" => (doc! { "listCollections": 1 }, &[(ON_D, &[ListCollections])]),
        "cloneCollectionAsCapped" => (
            doc! { "cloneCollectionAsCapped": "c", "toCollection": "t", "size": 4096 },
            &[(ON_C, &[Find]), (Target::Collection("d", "t"), &[Insert, CreateIndex, ConvertToCapped])],
        ),
        "renameCollection" => (
            doc! { "renameCollection": "d.c", "to": "e.c" },
            &[(ON_C, &[Find, DropCollection]), (Target::Collection("e", "c"), &[Insert, CreateIndex])],
        ),
        "currentOp" => (doc! { "currentOp": 1 }, &[(Target::Cluster, &[Inprog])]),
        "killOp" => (doc! { "killOp": 1, "op": 999_999 }, &[(Target::Cluster, &[Killop])]),
        "createUser" => (
            doc! { "createUser": "u", "pwd": "p", "roles": (roles(&[("read", "e")])) },
            &[(ON_D, &[CreateUser]), (Target::Database("e"), &[GrantRole])],
        ),
        "_mergeAuthzCollections" => (
            doc! { (name): 1, "tempUsersCollection": "admin.tempusers", "db": "", "drop": true },
            &[
                (Target::AnyNormal, &[CreateUser, CreateRole, GrantRole, RevokeRole, DropUser, DropRole]),
                (Target::Collection("admin", "tempusers"), &[Find]),
            ],
        ),
        "applyOps" => {
            let operation = doc! { "op": "u", "ns": "d.c", "o2": { "_id": 1 }, "o": { "_id": 1 } };
            (doc! { "applyOps": [operation] }, &[(Target::Cluster, &[ApplyOps]), (ON_C, &[Update, Insert])])
        }
        "updateUser" => (doc! { "updateUser": "u", "pwd": "p" }, &[(ON_D, &[ChangePassword])]),
        "grantRolesToUser" | "grantRolesToRole" => (doc! { (name): "u", "roles": ["read"] }, &[(ON_D, &[GrantRole])]),
        "revokeRolesFromUser" | "revokeRolesFromRole" => {
            (doc! { (name): "u", "roles": ["read"] }, &[(ON_D, &[RevokeRole])])
        }
        "profile" => (doc! { "profile": 1 }, &[(ON_D, &[EnableProfiler])]),
        "validateDBMetadata" => {
            let body = doc! { "validateDBMetadata": 1, "apiParameters": { "version": "1" } };
            (body, &[(Target::AnyNormal, &[Validate])])
        }
        "usersInfo" => (doc! { "usersInfo": 1 }, &[(ON_D, &[ViewUser])]),
        "rolesInfo" => (doc! { "rolesInfo": 1 }, &[(ON_D, &[ViewRole])]),
        "createRole" => {
            let privilege = doc! { "resource": { "db": "d", "collection": "" }, "actions": ["find"] };
            let create = doc! { "createRole": "r", "privileges": [privilege], "roles": [] };
            (create, &[(ON_D, &[CreateRole, GrantRole])])
        }
        "updateRole" => {
            (doc! { "updateRole": "r", "roles": ["read"] }, &[(Target::AnyNormal, &[RevokeRole]), (ON_D, &[GrantRole])])
        }
        "grantPrivilegesToRole" | "revokePrivilegesFromRole" => {
            let privilege = doc! { "resource": { "cluster": true }, "actions": ["shutdown"] };
            let body = doc! { (name): "r", "privileges": [privilege] };
            match name.starts_with("grant") {
                true => (body, &[(Target::Database("admin"), &[GrantRole])]),
                false => (body, &[(Target::Database("admin"), &[RevokeRole])]),
            }
        }
        _ => return None,
    })
}

/// The request for a command, and whether one with these privileges may run it.
fn case(row: &CommandRow, privileges: &Privileges) -> (Doc, bool) {
    let may = |target: Target<'_>, actions: &[Action]| privileges.allow(target, ActionSet::of(actions));
    if let Some((body, needed)) = cases(row.name) {
        return (body, needed.iter().all(|(target, actions)| may(*target, actions)));
    }
    let body = match row.name {
        "dataSize" => doc! { "dataSize": "d.c" },
        "splitVector" => doc! { "splitVector": "d.c" },
        name => doc! { (name): "c" },
    };
    let database = Target::Database(if row.is_admin_only { "admin" } else { "d" });
    let is_allowed = match row.privileges {
        Access::Nothing => true,
        Access::Cluster(actions) => may(Target::Cluster, actions),
        Access::Database(actions) => may(database, actions),
        Access::Collection(actions) => may(ON_C, actions),
        Access::Checked(_) => panic!("say in `cases` what {} needs", row.name),
        Access::Unsaid => panic!("{} does not say who may run it", row.name),
    };
    (body, is_allowed)
}

#[test]
fn u10_every_command_with_every_built_in_role() {
    run(async {
        let (fixture, mut root) = with_root().await;
        let mut of_roles = built_in_roles_of("admin");
        of_roles.retain(|role| !built_in_roles_of("d").iter().any(|other| other.role == role.role));
        of_roles.extend(built_in_roles_of("d"));
        assert_eq!(of_roles.len(), 20);
        let (mut asked, mut allowed) = (0, 0);
        for role in &of_roles {
            let name = format!("{}-{}", role.role, role.database);
            root.make_user(&name, roles(&[(&role.role, &role.database)])).await;
            let mut client = fixture.connect_as(&name).await;
            let privileges = built_in_privileges(role).unwrap();
            let rows: Vec<&CommandRow> = fixture.server.node().table.entries().iter().map(|entry| entry.row).collect();
            for row in rows {
                let (body, is_allowed) = case(row, &privileges);
                let mut request = DocBuilder::new();
                request.append_all(body.view());
                request.append("help", true);
                let database = if row.is_admin_only { "admin" } else { "d" };
                let reply = client.on(database, request.finish()).await;
                let is_refused = reply.get("code").and_then(|code| code.to_double()) == Some(13.0);
                assert_eq!(!is_refused, is_allowed, "{} as {role}: {reply}", row.name);
                asked += 1;
                allowed += usize::from(is_allowed);
            }
        }
        assert!(asked > 2000 && allowed > 500 && allowed < asked, "{allowed} of {asked}");
    });
}

#[test]
fn u10_before_logging_in_only_what_the_table_opens_is_let_pass() {
    run(async {
        let (fixture, _root) = with_root().await;
        let mut client = fixture.connect().await;
        let nothing = Privileges::new();
        for entry in fixture.server.node().table.entries() {
            let (body, _) = case(entry.row, &nothing);
            let mut request = DocBuilder::new();
            request.append_all(body.view());
            request.append("help", true);
            let database = if entry.row.is_admin_only { "admin" } else { "d" };
            let reply = client.on(database, request.finish()).await;
            let is_refused = reply.get("code").and_then(|code| code.to_double()) == Some(13.0);
            assert_eq!(!is_refused, entry.row.is_allowed_before_authentication, "{}: {reply}", entry.row.name);
        }
    });
}

#[test]
fn u10_the_roles_of_a_database_end_there() {
    run(async {
        let (fixture, mut root) = with_root().await;
        for role in built_in_roles_of("d").iter().filter(|role| role.role != "enableSharding") {
            let name = format!("only-{}", role.role);
            root.make_user(&name, roles(&[(&role.role, "d")])).await;
            let mut client = fixture.connect_as(&name).await;
            let elsewhere = RoleName::new(&role.role, "e");
            for entry in fixture.server.node().table.entries() {
                let row = entry.row;
                let (body, _) = case(row, &built_in_privileges(&elsewhere).unwrap());
                let needs_nothing = matches!(row.privileges, Access::Nothing);
                if row.is_admin_only || needs_nothing {
                    continue;
                }
                let mut request = DocBuilder::new();
                request.append_all(body.view());
                request.append("help", true);
                let reply = client.on("f", request.finish()).await;
                let names_its_namespace = matches!(row.name, "dataSize" | "splitVector");
                assert!(names_its_namespace || number(&reply, "code") == 13.0, "{} as {role}: {reply}", row.name);
            }
        }
    });
}
