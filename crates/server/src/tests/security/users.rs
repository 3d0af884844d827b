//! The commands for users and roles.

use super::*;

fn users(reply: &Doc) -> Vec<Doc> {
    reply.get("users").unwrap().as_array().unwrap().values().map(|user| user.as_document().unwrap().to_doc()).collect()
}

fn shown_roles(reply: &Doc) -> Vec<Doc> {
    reply.get("roles").unwrap().as_array().unwrap().values().map(|role| role.as_document().unwrap().to_doc()).collect()
}

fn count(document: &Doc, field: &str) -> usize {
    document.get(field).unwrap().as_array().unwrap().len()
}

#[test]
fn u10_users_are_made_shown_changed_and_dropped() {
    run(async {
        let (fixture, mut root) = with_root().await;
        let create = doc! { "createUser": "u", "pwd": "p", "customData": { "x": 1 }, "roles": ["read"] };
        root.ok("d", create.clone()).await;
        assert_eq!(root.code("d", create).await, 51003);
        let shown = users(&root.ok("d", doc! { "usersInfo": "u" }).await);
        assert_eq!((text(&shown[0], "_id"), text(&shown[0], "db")), ("d.u".to_owned(), "d".to_owned()));
        assert!(shown[0].get("credentials").is_none() && shown[0].get("userId").is_some());
        assert_eq!((count(&shown[0], "mechanisms"), count(&shown[0], "roles")), (2, 1));
        let stored = root.ok("admin", doc! { "find": "system.users", "filter": { "_id": "d.u" } }).await;
        let credentials = batch(&stored)[0].get("credentials").unwrap().as_document().unwrap().to_doc();
        for (mechanism, salt_length) in [("SCRAM-SHA-1", 24), ("SCRAM-SHA-256", 40)] {
            let part = credentials.get(mechanism).unwrap().as_document().unwrap().to_doc();
            assert_eq!((number(&part, "iterationCount"), text(&part, "salt").len()), (5000.0, salt_length));
        }
        for (forms, expected) in [
            (doc! { "usersInfo": 1 }, 1),
            (doc! { "usersInfo": { "forAllDBs": true } }, 2),
            (doc! { "usersInfo": [{ "user": "root", "db": "admin" }, "u", "nobody"] }, 2),
            (doc! { "usersInfo": { "user": "u", "db": "d" }, "showCredentials": true }, 1),
            (doc! { "usersInfo": 1, "filter": { "customData.x": 2 } }, 0),
        ] {
            assert_eq!(users(&root.ok("d", forms).await).len(), expected);
        }
        let detailed = users(&root.ok("d", doc! { "usersInfo": "u", "showPrivileges": true }).await);
        assert_eq!((count(&detailed[0], "inheritedRoles"), count(&detailed[0], "inheritedPrivileges")), (1, 2));
        assert_eq!(root.code("d", doc! { "usersInfo": 1, "showPrivileges": true }).await, 20);

        root.ok("d", doc! { "updateUser": "u", "pwd": "q", "mechanisms": ["SCRAM-SHA-256"] }).await;
        let login = Login { database: "d", ..Login::new("u", "q") };
        assert_eq!(number(&login.run(&mut fixture.connect().await).await, "ok"), 1.0);
        assert_eq!(root.code("d", doc! { "updateUser": "u", "mechanisms": ["SCRAM-SHA-1"] }).await, 2);
        assert_eq!(root.code("d", doc! { "updateUser": "u" }).await, 2);
        assert_eq!(root.code("d", doc! { "updateUser": "nobody", "pwd": "x" }).await, 11);
        root.ok("d", doc! { "revokeRolesFromUser": "u", "roles": ["read"] }).await;
        root.ok("d", doc! { "grantRolesToUser": "u", "roles": ["dbAdmin", "dbAdmin"] }).await;
        assert_eq!(root.code("d", doc! { "grantRolesToUser": "u", "roles": ["nonsense"] }).await, 31);
        assert_eq!(root.code("d", doc! { "grantRolesToUser": "u", "roles": [] }).await, 2);
        let shown = users(&root.ok("d", doc! { "usersInfo": "u" }).await);
        assert_eq!((count(&shown[0], "mechanisms"), count(&shown[0], "roles")), (1, 1));
        root.ok("d", doc! { "createUser": "v", "pwd": "p", "roles": [] }).await;
        root.ok("d", doc! { "dropUser": "v" }).await;
        assert_eq!(root.code("d", doc! { "dropUser": "v" }).await, 11);
        assert_eq!(number(&root.ok("d", doc! { "dropAllUsersFromDatabase": 1 }).await, "n"), 1.0);
    });
}

#[test]
fn u10_commands_that_revoke_are_named_in_their_own_errors() {
    run(async {
        let (_fixture, mut root) = with_root().await;
        for (command, argument) in [
            ("grantRolesToUser", "roles"),
            ("revokeRolesFromUser", "roles"),
            ("grantRolesToRole", "roles"),
            ("revokeRolesFromRole", "roles"),
            ("grantPrivilegesToRole", "privileges"),
            ("revokePrivilegesFromRole", "privileges"),
        ] {
            let mut body = pando_doc::DocBuilder::new();
            body.append(command, "x");
            body.append("nonsense", 1);
            body.array(argument, |_| {});
            body.append("$db", "d");
            let reason = format!("BSON field '{command}.nonsense' is an unknown field.");
            root.expect_error(body.finish(), 40415, &reason).await;
            let mut body = pando_doc::DocBuilder::new();
            body.append(command, "x");
            body.array(argument, |_| {});
            body.append("$db", "d");
            let reason = format!("{command} command requires a non-empty \"{argument}\" array");
            root.expect_error(body.finish(), 2, &reason).await;
        }
    });
}

#[test]
fn u10_users_that_make_no_sense_are_refused() {
    run(async {
        let (_fixture, mut root) = with_root().await;
        for (database, create, code) in [
            ("local", doc! { "createUser": "u", "pwd": "p", "roles": [] }, 2),
            ("d", doc! { "createUser": "", "pwd": "p", "roles": [] }, 2),
            ("d", doc! { "createUser": "u", "roles": [] }, 2),
            ("d", doc! { "createUser": "u", "pwd": "", "roles": [] }, 2),
            ("d", doc! { "createUser": "u", "pwd": "p" }, 40414),
            ("d", doc! { "createUser": "u", "pwd": "p", "roles": [], "nonsense": 1 }, 40415),
            ("d", doc! { "createUser": "u", "pwd": "p", "roles": ["root"] }, 31),
            ("d", doc! { "createUser": "u", "pwd": "p", "roles": [], "mechanisms": [] }, 2),
            ("d", doc! { "createUser": "u", "pwd": "p", "roles": [], "mechanisms": ["PLAIN"] }, 2),
            (
                "d",
                doc! { "createUser": "u", "pwd": "p", "roles": [], "digestPassword": false, "mechanisms": ["SCRAM-SHA-256"] },
                2,
            ),
            ("$external", doc! { "createUser": "u", "pwd": "p", "roles": [] }, 2),
        ] {
            let reply = root.on(database, create).await;
            assert_eq!(number(&reply, "code") as i32, code, "{reply}");
        }
        root.ok("$external", doc! { "createUser": "CN=x", "roles": [] }).await;
    });
}

#[test]
fn u10_roles_are_made_shown_changed_and_dropped() {
    run(async {
        let (fixture, mut root) = with_root().await;
        let find = |name: &str| {
            let resource = doc! { "db": "d", "collection": name };
            doc! { "resource": (resource), "actions": ["find"] }
        };
        root.ok("d", doc! { "createRole": "a", "privileges": [(find("x"))], "roles": [] }).await;
        root.ok("d", doc! { "createRole": "b", "privileges": [(find("y"))], "roles": ["a"] }).await;
        assert_eq!(root.code("d", doc! { "createRole": "a", "privileges": [], "roles": [] }).await, 51002);
        assert_eq!(root.code("d", doc! { "createRole": "read", "privileges": [], "roles": [] }).await, 2);
        assert_eq!(root.code("d", doc! { "grantRolesToRole": "a", "roles": ["b"] }).await, 49);
        let cluster = doc! { "resource": { "cluster": true }, "actions": ["shutdown"] };
        assert_eq!(root.code("d", doc! { "grantPrivilegesToRole": "a", "privileges": [(cluster.clone())] }).await, 49);
        assert_eq!(root.code("d", doc! { "grantPrivilegesToRole": "read", "privileges": [(find("x"))] }).await, 2);
        root.make_user("u", roles(&[("b", "d")])).await;
        let mut user = fixture.connect_as("u").await;
        for name in ["x", "y"] {
            user.ok("d", doc! { "find": name }).await;
        }
        assert_eq!(user.code("d", doc! { "find": "z" }).await, 13);
        root.ok("d", doc! { "grantPrivilegesToRole": "a", "privileges": [(find("z"))] }).await;
        user.ok("d", doc! { "find": "z" }).await;
        root.ok("d", doc! { "revokePrivilegesFromRole": "a", "privileges": [(find("z"))] }).await;
        assert_eq!(user.code("d", doc! { "find": "z" }).await, 13);

        let shown = shown_roles(&root.ok("d", doc! { "rolesInfo": "b", "showPrivileges": true }).await);
        assert_eq!((count(&shown[0], "privileges"), count(&shown[0], "inheritedPrivileges")), (1, 2));
        assert_eq!(shown[0].get("isBuiltin"), Some(Value::Bool(false)));
        assert_eq!(shown_roles(&root.ok("d", doc! { "rolesInfo": 1 }).await).len(), 2);
        assert_eq!(shown_roles(&root.ok("d", doc! { "rolesInfo": 1, "showBuiltinRoles": true }).await).len(), 8);
        let fragment = root.ok("d", doc! { "rolesInfo": ["b"], "showPrivileges": "asUserFragment" }).await;
        let fragment = fragment.get("userFragment").unwrap().as_document().unwrap().to_doc();
        assert_eq!((count(&fragment, "inheritedRoles"), count(&fragment, "inheritedPrivileges")), (2, 2));
        // Everybody sees the roles they have.
        user.ok("d", doc! { "rolesInfo": "b" }).await;
        assert_eq!(user.code("d", doc! { "rolesInfo": "read" }).await, 13);

        root.ok("d", doc! { "updateRole": "b", "roles": [] }).await;
        assert_eq!(user.code("d", doc! { "find": "x" }).await, 13);
        root.ok("d", doc! { "grantRolesToRole": "b", "roles": ["a"] }).await;
        user.ok("d", doc! { "find": "x" }).await;
        root.ok("d", doc! { "revokeRolesFromRole": "b", "roles": ["a"] }).await;
        root.ok("d", doc! { "dropRole": "b" }).await;
        assert_eq!(user.code("d", doc! { "find": "y" }).await, 13);
        let shown = users(&root.ok("admin", doc! { "usersInfo": "u" }).await);
        assert_eq!(count(&shown[0], "roles"), 0);
        assert_eq!(root.code("d", doc! { "dropRole": "b" }).await, 31);
        assert_eq!(number(&root.ok("d", doc! { "dropAllRolesFromDatabase": 1 }).await, "n"), 1.0);
    });
}

#[test]
fn u10_a_user_may_be_allowed_to_change_their_own_password() {
    run(async {
        let (fixture, mut root) = with_root().await;
        let own = doc! { "resource": { "db": "admin", "collection": "" }, "actions": ["changeOwnPassword", "changeOwnCustomData"] };
        root.ok("admin", doc! { "createRole": "own", "privileges": [own], "roles": [] }).await;
        root.make_user("u", roles(&[("own", "admin")])).await;
        root.make_user("v", roles(&[])).await;
        let mut user = fixture.connect_as("u").await;
        user.ok("admin", doc! { "updateUser": "u", "pwd": "new", "customData": { "x": 1 } }).await;
        assert_eq!(user.code("admin", doc! { "updateUser": "v", "pwd": "new" }).await, 13);
        assert_eq!(user.code("admin", doc! { "updateUser": "u", "roles": ["root"] }).await, 13);
        user.ok("admin", doc! { "usersInfo": "u" }).await;
        assert_eq!(user.code("admin", doc! { "usersInfo": "v" }).await, 13);
        assert_eq!(user.code("admin", doc! { "usersInfo": 1 }).await, 13);
        let answer = Login::new("u", "new").run(&mut fixture.connect().await).await;
        assert_eq!(number(&answer, "ok"), 1.0);
    });
}

#[test]
fn u11_restored_users_and_roles_are_merged_or_replace_those_that_are_there() {
    run(async {
        let (fixture, mut root) = with_root().await;
        root.ok("d", doc! { "createRole": "r", "privileges": [], "roles": ["read"] }).await;
        root.ok("d", doc! { "createUser": "u", "pwd": "p", "roles": ["r"] }).await;
        let dumped = batch(&root.ok("admin", doc! { "find": "system.users" }).await);
        let dumped_roles = batch(&root.ok("admin", doc! { "find": "system.roles" }).await);
        assert_eq!((dumped.len(), dumped_roles.len()), (2, 1));
        let mut restored = DocBuilder::new();
        restored.append("insert", "tempusers");
        restored.array("documents", |array| dumped.iter().for_each(|user| array.push(user)));
        root.ok("admin", restored.finish()).await;
        root.ok("admin", doc! { "insert": "temproles", "documents": [(dumped_roles[0].clone())] }).await;

        // What is there already stays, what is not there comes.
        root.ok("d", doc! { "updateUser": "u", "roles": [] }).await;
        root.ok("d", doc! { "dropRole": "r" }).await;
        root.ok("d", doc! { "createUser": "later", "pwd": "p", "roles": [] }).await;
        let merge = |drop: bool, database: &str| {
            doc! { "_mergeAuthzCollections": 1, "tempUsersCollection": "admin.tempusers",
            "tempRolesCollection": "admin.temproles", "drop": drop, "db": database }
        };
        root.ok("admin", merge(false, "elsewhere")).await;
        assert_eq!(shown_roles(&root.ok("d", doc! { "rolesInfo": 1 }).await).len(), 0);
        root.ok("admin", merge(false, "")).await;
        let shown = users(&root.ok("d", doc! { "usersInfo": 1 }).await);
        assert_eq!(shown.iter().map(|user| count(user, "roles")).collect::<Vec<_>>(), [0, 0]);
        assert_eq!(shown_roles(&root.ok("d", doc! { "rolesInfo": 1 }).await).len(), 1);

        // With `drop`, only what was brought is there.
        root.ok("admin", merge(true, "")).await;
        let shown = users(&root.ok("d", doc! { "usersInfo": 1 }).await);
        assert_eq!((shown.len(), count(&shown[0], "roles")), (1, 1));
        let login = Login { database: "d", ..Login::new("u", "p") };
        assert_eq!(number(&login.run(&mut fixture.connect().await).await, "ok"), 1.0);
        assert_eq!(batch(&root.ok("admin", doc! { "find": "system.users" }).await), dumped);
        assert_eq!(batch(&root.ok("admin", doc! { "find": "system.roles" }).await), dumped_roles);

        assert_eq!(root.code("admin", doc! { "_mergeAuthzCollections": 1, "db": "" }).await, 2);
        root.make_user("reader", roles(&[("readAnyDatabase", "admin")])).await;
        let mut reader = fixture.connect_as("reader").await;
        assert_eq!(reader.code("admin", merge(false, "")).await, 13);
        let schema = root.ok("admin", doc! { "getParameter": 1, "authSchemaVersion": 1 }).await;
        assert_eq!(schema.get("authSchemaVersion"), Some(Value::Int32(5)));
    });
}

#[test]
fn u10_roles_are_kept_once_and_resources_need_names_that_can_be() {
    run(async {
        let (_fixture, mut root) = with_root().await;
        root.ok("d", doc! { "createRole": "one", "privileges": [], "roles": [] }).await;
        let twice = doc! { "createRole": "two", "privileges": [], "roles": ["read", "read", "one", "one"] };
        root.ok("d", twice).await;
        let shown = shown_roles(&root.ok("d", doc! { "rolesInfo": "two" }).await);
        assert_eq!(count(&shown[0], "roles"), 2);
        root.ok("d", doc! { "updateRole": "two", "roles": ["one", "one"] }).await;
        let shown = shown_roles(&root.ok("d", doc! { "rolesInfo": "two" }).await);
        assert_eq!(count(&shown[0], "roles"), 1);
        for collection in ["$$$$", "$cmd", ".c"] {
            let privilege = doc! { "resource": { "db": "d", "collection": collection }, "actions": ["find"] };
            let refused = doc! { "createRole": "three", "privileges": [privilege], "roles": [] };
            assert_eq!(root.code("d", refused).await, 2, "{collection}");
        }
    });
}
