//! Names, rules and classes of namespaces.

use super::known;
use super::*;
use crate::{ErrorCode, Result};
use std::collections::HashSet;

fn namespace(text: &str) -> Namespace {
    Namespace::parse(text).unwrap()
}

fn code<T: std::fmt::Debug>(result: Result<T>) -> ErrorCode {
    result.unwrap_err().code()
}

#[test]
fn a_name_splits_at_the_first_dot() {
    let name = namespace("shop.orders.2024");
    assert_eq!((name.database(), name.collection(), name.as_str()), ("shop", "orders.2024", "shop.orders.2024"));
    assert_eq!(name, Namespace::of("shop", "orders.2024").unwrap());
    assert_eq!(name, Namespace::new(&name.database_name(), "orders.2024").unwrap());
    assert_eq!(name.sibling("x").unwrap(), namespace("shop.x"));
    let bare = namespace("shop");
    assert_eq!((bare.database(), bare.collection()), ("shop", ""));
    assert_eq!(namespace("shop."), bare);
    assert_eq!(Namespace::from(name.database_name()), bare);
    assert!(!bare.is_valid() && name.is_valid() && !namespace("").is_valid());
}

#[test]
fn a_database_name_from_a_namespace_equals_a_plain_one() {
    let plain = DatabaseName::new("shop").unwrap();
    let cut = namespace("shop.orders").database_name();
    assert_eq!(plain, cut);
    assert_eq!(HashSet::from([plain, cut.clone()]).len(), 1);
    assert!(cut < DatabaseName::new("shop2").unwrap());
}

#[test]
fn what_cannot_be_a_name_is_refused() {
    let long = "d".repeat(DATABASE_LENGTH_MAX + 1);
    for text in ["a..b", "a\0.b", "a.b\0", &long, &format!("{long}.c")] {
        assert_eq!(code(Namespace::parse(text)), ErrorCode::InvalidNamespace, "{text:?}");
    }
    assert_eq!(code(Namespace::of("a.b", "c")), ErrorCode::InvalidNamespace);
    for name in ["a.b", "a\0", &long] {
        assert_eq!(code(DatabaseName::new(name)), ErrorCode::InvalidNamespace, "{name:?}");
    }
    assert!(DatabaseName::new(&long[1..]).unwrap().is_valid());
}

#[test]
fn databases_have_forbidden_characters() {
    for name in ["", "a b", "a/b", "a\\b", "a\"b"] {
        let database = DatabaseName::new(name).unwrap();
        let error = database.validate().unwrap_err();
        assert_eq!(
            (error.code(), error.reason()),
            (ErrorCode::InvalidNamespace, &*format!("Invalid database name: '{name}'"))
        );
    }
    let external = DatabaseName::new(DatabaseName::EXTERNAL).unwrap();
    assert!(external.validate().is_ok() && !external.is_valid_for_create());
    assert!(DatabaseName::new("größe-1_*").unwrap().is_valid_for_create());
}

#[test]
fn databases_must_not_differ_in_case_alone() {
    let [upper, lower, other] = ["Shop", "shop", "shop2"].map(|name| DatabaseName::new(name).unwrap());
    let error = upper.check_case(&lower).unwrap_err();
    assert_eq!(error.code(), ErrorCode::DatabaseDifferCase);
    assert_eq!(error.reason(), "db already exists with different case already have: [shop] trying to create [Shop]");
    assert!(upper.check_case(&upper).is_ok() && upper.check_case(&other).is_ok());
    let tenant = DatabaseName::with_tenant(Some(TenantId([1; 12])), "shop").unwrap();
    assert!(upper.check_case(&tenant).is_ok());
}

#[test]
fn tenants_sort_after_and_show() {
    let tenant = Some(TenantId([0xab; 12]));
    let name = Namespace::parse_with_tenant(tenant, "a.b").unwrap();
    assert!(name > namespace("z.z") && name != namespace("a.b"));
    assert_eq!(name.to_string(), format!("{}_a.b", "ab".repeat(12)));
    assert_eq!(name.as_str(), "a.b");
    assert_eq!(name.database_name().tenant(), tenant);
    assert_eq!(name.timeseries_buckets().tenant(), tenant);
}

#[test]
fn clients_may_create_ordinary_names() {
    let longest = format!("shop.{}", "c".repeat(NAMESPACE_LENGTH_MAX - 5));
    for text in ["shop.orders", "shop.a.b-c d", "admin.x", "local.x", &longest, "shop.system", "shop.systemx"] {
        assert_eq!(namespace(text).validate_for_create(), Ok(()), "{text}");
        assert_eq!(namespace(text).validate_for_write(true), Ok(()), "{text}");
    }
}

#[test]
fn clients_may_create_some_system_names() {
    for text in [
        "shop.system.users",
        "shop.system.js",
        "shop.system.views",
        "shop.system.profile",
        "shop.system.buckets.x",
        "shop.system.resharding.x",
        "shop.system.statistics.x",
        "admin.system.roles",
        "admin.system.version",
        "config.system.sessions",
        "config.system.preimages",
        "config.cache.chunks.config.system.sessions",
        "local.system.replset",
        "config.a.system.resharding.b",
    ] {
        assert_eq!(namespace(text).validate_for_create().err(), None, "{text}");
    }
}

#[test]
fn clients_may_not_create_the_rest() {
    let too_long = format!("shop.{}", "c".repeat(NAMESPACE_LENGTH_MAX - 4));
    for text in [
        "shop",
        "a b.c",
        "$external.c",
        "shop.$cmd",
        "shop.a$b",
        "shop.system.foo",
        "shop.system.roles",
        "shop.system.buckets.",
        "shop.system.buckets..x",
        "shop.system.sessions",
        "config.system.foo",
        &too_long,
    ] {
        assert_eq!(code(namespace(text).validate_for_create()), ErrorCode::InvalidNamespace, "{text}");
    }
    assert_eq!(code(namespace("shop.a.system.b").validate_for_create()), ErrorCode::BadValue);
}

#[test]
fn some_names_are_written_by_the_server_only() {
    for text in ["shop.system.profile", "shop.system.views", "local.oplog.rs"] {
        assert_eq!(code(namespace(text).validate_for_write(true)), ErrorCode::InvalidNamespace, "{text}");
    }
    assert!(namespace("local.oplog.rs").validate_for_write(false).is_ok());
}

#[test]
fn classes() {
    assert!(namespace("local.oplog.rs").is_oplog() && !namespace("shop.oplog.rs").is_oplog());
    assert!(!namespace("local.x").is_replicated() && !namespace("shop.system.profile").is_replicated());
    assert!(namespace("shop.x").is_replicated() && namespace("shop.system.drop.1i2t3.x").is_replicated());
    assert!(namespace("shop.system.drop.1i2t3.x").is_drop_pending());
    assert!(namespace("shop.$cmd.aggregate").is_collectionless_aggregate());
    assert!(namespace("shop.$cmd.listCollections").is_collectionless_cursor());
    assert!(!namespace("shop.$cmd").is_collectionless_cursor() && namespace("shop.$cmd").is_command());
    assert!(namespace("config.image_collection").is_implicitly_replicated());
    assert!(namespace("shop.enxcol_.x.esc").is_encrypted_state() && !namespace("shop.enxcol_.x").is_encrypted_state());
    assert!(
        namespace("config.shards").is_applied_in_own_batch() && namespace("a.system.views").is_applied_in_own_batch()
    );
    assert!(namespace("config.x").is_always_unsharded() && !namespace("config.system.sessions").is_always_unsharded());
    assert!(!namespace("local.replset.x").is_normal() && namespace("shop.replset.x").is_normal());
    assert!(["admin.a", "config.a", "local.a"].iter().all(|text| namespace(text).is_internal()));
}

#[test]
fn buckets_and_their_view() {
    let view = namespace("shop.weather");
    let buckets = view.timeseries_buckets();
    assert_eq!(buckets, namespace("shop.system.buckets.weather"));
    assert!(buckets.is_timeseries_buckets());
    assert_eq!(buckets.timeseries_view(), Some(view.clone()));
    assert_eq!(view.timeseries_view(), None);
}

#[test]
fn what_we_make_ourselves_parses_to_the_same() {
    for name in known::all() {
        assert_eq!(&namespace(name.as_str()), name);
        assert!(name.is_internal());
    }
    let database = DatabaseName::new("shop").unwrap();
    assert!(Namespace::collectionless_aggregate(&database).is_collectionless_aggregate());
    assert!(Namespace::list_collections_cursor(&database).is_list_collections_cursor());
    assert!(Namespace::command(&database).is_command());
    assert!(Namespace::system_views(&database).is_system_views());
    assert!(Namespace::system_profile(&database).is_system_profile());
}
