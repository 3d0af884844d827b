//! What the log tells of attempts to log in, and of members that may come from some places only.

use super::*;

/// The lines of this id, newest last.
async fn lines(client: &mut Client, id: i32) -> Vec<String> {
    let told = client.ok("admin", doc! { "getLog": "global" }).await;
    let told = told.get("log").unwrap().as_array().unwrap();
    let mark = format!("\"id\":{id},");
    told.values().map(|line| line.as_str().unwrap().to_owned()).filter(|line| line.contains(&mark)).collect()
}

/// Waits until there are so many lines of an id: the end of a connection is noticed a little later.
async fn lines_once(client: &mut Client, id: i32, count: usize) -> Vec<String> {
    for _ in 0..1000 {
        let found = lines(client, id).await;
        if found.len() >= count {
            return found;
        }
        tokio::task::yield_now().await;
    }
    lines(client, id).await
}

fn speculation() -> Doc {
    let mut beginning = DocBuilder::new();
    beginning.append_all(Login::new("root", "secret").begin().1.view());
    beginning.append("db", "admin");
    doc! { "hello": 1, "speculativeAuthenticate": (beginning.finish()) }
}

#[test]
fn u10_the_log_tells_of_each_attempt_to_log_in() {
    run(async {
        let (fixture, mut root) = with_root().await;
        let good = lines(&mut root, 5286306).await;
        assert_eq!(good.len(), 1);
        for part in ["\"result\":0", "\"step\":1,\"step_total\":2", "\"step\":2", "\"doc\":{", "\"extraInfo\":{}"] {
            assert!(good[0].contains(part), "{part}: {}", good[0]);
        }
        let mut client = fixture.connect().await;
        Login::new("root", "wrong").run(&mut client).await;
        // A beginning that nothing comes of is no failure as long as another may follow; one that is begun anew is.
        client.ok("admin", speculation()).await;
        client.ok("admin", speculation()).await;
        client.log_in("root", "secret").await;
        let bad = lines(&mut root, 5286307).await;
        let results: Vec<bool> = bad.iter().map(|line| line.contains("\"result\":18")).collect();
        assert_eq!(results, [true, false], "{bad:?}");
        assert!(bad[1].contains("\"result\":337") && bad[1].contains("Overridden by new"), "{}", bad[1]);
        let mut leaving = fixture.connect().await;
        leaving.ok("admin", speculation()).await;
        drop(leaving);
        let bad = lines_once(&mut root, 5286307, 3).await;
        assert!(bad[2].contains("client has likely disconnected"), "{bad:?}");
        let status = root.ok("admin", doc! { "serverStatus": 1 }).await;
        let security = status.get("security").unwrap().as_document().unwrap();
        let counted = security.get("authentication").unwrap().as_document().unwrap();
        assert!(counted.get("totalAuthenticationTimeMicros").unwrap().as_number().is_some());
        assert_eq!(counted.get("saslSupportedMechsReceived"), Some(Value::Int64(0)));
        root.ok("admin", doc! { "setParameter": 1, "enableDetailedConnectionHealthMetricLogLines": false }).await;
        fixture.connect_as_root().await;
        assert_eq!(lines(&mut root, 5286306).await.len(), 2);
    });
}

#[test]
fn u10_hello_that_asks_for_one_and_logs_in_another_is_noted() {
    run(async {
        let (fixture, mut root) = with_root().await;
        let mut client = fixture.connect().await;
        client.ok("admin", doc! { "hello": 1, "saslSupportedMechs": "admin.root" }).await;
        client.log_in("root", "secret").await;
        assert!(lines(&mut root, 5286202).await.is_empty());
        let mut client = fixture.connect().await;
        client.ok("admin", doc! { "hello": 1, "saslSupportedMechs": "d.other" }).await;
        client.log_in("root", "secret").await;
        let noted = lines(&mut root, 5286202).await;
        assert!(noted[0].contains("Attempt to switch database target"), "{noted:?}");
        for (wrong, code) in [(doc! {}, 2), (doc! { "ping": 1 }, 51769)] {
            assert_eq!(client.code("admin", doc! { "hello": 1, "speculativeAuthenticate": wrong }).await, code);
        }
    });
}

#[test]
fn u10_the_places_that_members_come_from_are_a_list() {
    run(async {
        let (_fixture, mut root) = with_root().await;
        let set = |value: Value<'_>| {
            let mut command = DocBuilder::new();
            command.append("setParameter", 1);
            command.append("clusterIpSourceAllowlist", value);
            command.finish()
        };
        let asked = doc! { "getParameter": 1, "clusterIpSourceAllowlist": 1 };
        assert_eq!(root.ok("admin", asked.clone()).await.get("clusterIpSourceAllowlist"), Some(Value::Null));
        let list = doc! { "l": ["127.0.0.0/8", "::1"] };
        root.ok("admin", set(list.get("l").unwrap())).await;
        let shown = root.ok("admin", asked).await;
        assert_eq!(shown.get("clusterIpSourceAllowlist"), list.get("l"));
        let wrong = doc! { "a": [""], "b": ["x"], "c": ["1.1.1.1", { "s": 1 }], "d": "1.1.1.1", "e": 1, "f": {} };
        for element in wrong.elements() {
            assert_eq!(root.code("admin", set(element.value)).await, 2, "{}", element.value);
        }
        root.ok("admin", set(Value::Null)).await;
    });
}

#[test]
fn u10_queries_see_the_roles_of_their_user() {
    run(async {
        let (fixture, mut root) = with_root().await;
        root.make_user("one", roles(&[("readWrite", "d")])).await;
        root.ok("d", doc! { "insert": "c", "documents": [{ "_id": 1 }] }).await;
        let mut one = fixture.connect_as("one").await;
        let find = doc! { "find": "c", "projection": { "_id": 0, "r": "$$USER_ROLES.role" } };
        let found = one.ok("d", find.clone()).await;
        assert!(found.to_string().contains("readWrite"), "{found}");
        root.ok("admin", doc! { "setParameter": 1, "enableAccessToUserRoles": false }).await;
        assert_eq!(one.code("d", find).await, 51144);
        let view = doc! { "create": "v", "viewOn": "c", "pipeline": [{ "$set": { "r": "$$USER_ROLES" } }] };
        root.ok("d", view).await;
        assert_eq!(root.code("d", doc! { "find": "v" }).await, 51144);
    });
}
