//! `collMod`.

use super::*;

#[test]
fn u9_options_of_a_collection_are_changed() {
    run(async {
        let mut node = node().await;
        node.ok(doc! { "create": "c" }).await;
        let changed = node.ok(doc! { "collMod": "c", "validator": { "a": 1 } }).await;
        assert_eq!(changed.elements().next().unwrap().name, "ok", "{changed}");
        let expected = doc! { "validator": { "a": 1 }, "validationLevel": "strict", "validationAction": "error" };
        assert_eq!(node.options_of("c").await, expected);
        node.ok(doc! { "collMod": "c", "validationLevel": "off", "changeStreamPreAndPostImages": { "enabled": true } })
            .await;
        let options = node.options_of("c").await;
        assert_eq!(
            (text(&options, "validationLevel"), text(&options, "validationAction")),
            ("off".into(), "error".into())
        );
        assert_eq!(part(&options, "changeStreamPreAndPostImages"), doc! { "enabled": true });

        node.ok(doc! { "create": "log", "capped": true, "size": 10_000 }).await;
        node.ok(doc! { "collMod": "log", "cappedSize": 20_000, "cappedMax": 5 }).await;
        assert_eq!(node.options_of("log").await, doc! { "capped": true, "size": 20_000, "max": 5 });
        node.insert_into("log", &numbered(8)).await;
        assert_eq!(node.documents_of("log", doc! {}).await.len(), 5);

        for (body, code, reason) in [
            (doc! { "collMod": "x" }, 26, "ns does not exist"),
            (doc! { "collMod": "c", "cappedSize": 10 }, 72, "Collection must be capped."),
            (doc! { "collMod": "c", "colour": 1 }, 40415, "BSON field 'collMod.colour' is an unknown field."),
            (doc! { "collMod": "c", "viewOn": "x" }, 72, "option only supported on a view: viewOn"),
            (
                doc! { "collMod": "c", "validationAction": "x" },
                2,
                "Enumeration value 'x' for field 'collMod.validationAction' is not a valid value.",
            ),
        ] {
            node.error(body, code, reason).await;
        }
    });
}

#[test]
fn u7_indexes_are_hidden_and_their_expiry_changed() {
    run(async {
        let mut node = node().await;
        let indexes = doc! {
            "createIndexes": "c",
            "indexes": [{ "key": { "t": 1 }, "name": "t_1", "expireAfterSeconds": 60 }, { "key": { "a": 1 }, "name": "a_1" }],
        };
        node.ok(indexes).await;
        let hide = doc! { "collMod": "c", "index": { "name": "a_1", "hidden": true } };
        let hidden = node.ok(hide.clone()).await;
        assert_eq!(
            (hidden.get("hidden_old"), hidden.get("hidden_new")),
            (Some(Value::Bool(false)), Some(Value::Bool(true)))
        );
        assert!(node.ok(hide).await.get("hidden_old").is_none());
        let shorter =
            node.ok(doc! { "collMod": "c", "index": { "keyPattern": { "t": 1 }, "expireAfterSeconds": 5 } }).await;
        assert_eq!(shorter.get("expireAfterSeconds_old"), Some(Value::Int64(60)));
        assert_eq!(shorter.get("expireAfterSeconds_new"), Some(Value::Int64(5)));
        let listed = node.indexes("c").await;
        assert_eq!(listed[1], doc! { "v": 2, "key": { "t": 1 }, "name": "t_1", "expireAfterSeconds": 5 });
        assert_eq!(listed[2], doc! { "v": 2, "key": { "a": 1 }, "name": "a_1", "hidden": true });
        for (index, code) in [
            (doc! { "name": "no", "hidden": true }, 27),
            (doc! { "keyPattern": { "z": 1 }, "hidden": true }, 27),
            (doc! { "hidden": true }, 72),
            (doc! { "name": "a_1", "keyPattern": { "a": 1 }, "hidden": true }, 72),
            (doc! { "name": "a_1" }, 72),
            (doc! { "name": "_id_", "hidden": true }, 2),
            (doc! { "name": "_id_", "expireAfterSeconds": 1 }, 72),
            (doc! { "name": "a_1", "expireAfterSeconds": -1 }, 72),
            (doc! { "name": "a_1", "unique": true }, 72),
            (doc! { "name": "a_1", "colour": 1 }, 40415),
        ] {
            assert_eq!(node.code(doc! { "collMod": "c", "index": (&index) }).await, code, "{index}");
        }
    });
}
