//! Privileges: actions on a resource, and everything that somebody may do.
//!
//! [`Privileges`] is asked on every request of a server with authentication, so it keeps what it has by kind of resource: a
//! question is a few look-ups by borrowed names and no allocation.

use crate::action::{ANY_ACTION, Action, ActionSet};
use crate::names::refuse_repeated;
use crate::resource::{Resource, Target, bucketed, is_normal_collection, is_normal_database};
use pando_base::{Error, Result};
use pando_doc::{ArrayBuilder, DocRef, Value};
use std::collections::BTreeMap;

/// Actions on a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Privilege {
    /// On what.
    pub resource: Resource,
    /// What.
    pub actions: ActionSet,
}

impl Privilege {
    /// Reads `{resource, actions}`.
    pub fn read(document: DocRef<'_>) -> Result<Privilege> {
        refuse_repeated(document, "privileges")?;
        let resource = match document.get("resource") {
            Some(Value::Document(resource)) => Resource::read(resource)?,
            _ => return Err(Error::bad_value("a privilege must have a document called 'resource'")),
        };
        let Some(Value::Array(names)) = document.get("actions") else {
            return Err(Error::bad_value("a privilege must have an array called 'actions'"));
        };
        let mut actions = ActionSet::EMPTY;
        let mut unknown: Vec<String> = Vec::new();
        for value in names.values() {
            let name = value.as_str().ok_or_else(|| Error::type_mismatch("the names of actions must be strings"))?;
            match Action::named(name) {
                Some(action) => actions = actions.with(action.into()),
                None if name == ANY_ACTION => actions = ActionSet::ALL,
                None => unknown.push(name.to_owned()),
            }
        }
        if !unknown.is_empty() {
            return Err(Error::bad_value(format!("Unrecognized action privilege strings: {}", unknown.join(", "))));
        }
        Ok(Privilege { resource, actions })
    }

    /// Reads an array of them.
    pub fn read_all(value: Value<'_>) -> Result<Vec<Privilege>> {
        let Some(array) = value.as_array() else {
            return Err(Error::type_mismatch("privileges must be an array"));
        };
        let read = |value: Value<'_>| match value {
            Value::Document(document) => Privilege::read(document),
            _ => Err(Error::type_mismatch("each privilege must be a document")),
        };
        array.values().map(read).collect()
    }
}

type ByName = BTreeMap<String, ActionSet>;

/// Everything that somebody may do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Privileges {
    cluster: ActionSet,
    any: ActionSet,
    any_normal: ActionSet,
    databases: ByName,
    collections: ByName,
    exact: BTreeMap<String, ByName>,
    any_buckets: ActionSet,
    buckets_of_databases: ByName,
    buckets_of_collections: ByName,
    exact_buckets: BTreeMap<String, ByName>,
}

impl Privileges {
    /// None.
    pub fn new() -> Privileges {
        Privileges::default()
    }

    /// Everything, as servers may among themselves.
    pub fn all() -> Privileges {
        Privileges { any: ActionSet::ALL, ..Privileges::default() }
    }

    /// Adds actions on a resource.
    pub fn grant(&mut self, resource: &Resource, actions: ActionSet) {
        if !actions.is_empty() {
            let place = self.place(resource);
            *place = place.with(actions);
        }
    }

    /// Adds what another has.
    pub fn grant_all(&mut self, other: &Privileges) {
        for Privilege { resource, actions } in other.list() {
            self.grant(&resource, actions);
        }
    }

    /// Takes actions on a resource away; those on other resources that mean the same stay.
    pub fn revoke(&mut self, resource: &Resource, actions: ActionSet) {
        let place = self.place(resource);
        *place = place.without(actions);
    }

    fn place(&mut self, resource: &Resource) -> &mut ActionSet {
        match resource {
            Resource::Cluster => &mut self.cluster,
            Resource::Any => &mut self.any,
            Resource::AnyNormal => &mut self.any_normal,
            Resource::Database(database) => self.databases.entry(database.clone()).or_default(),
            Resource::Collection(name) => self.collections.entry(name.clone()).or_default(),
            Resource::Exact(database, name) => {
                self.exact.entry(database.clone()).or_default().entry(name.clone()).or_default()
            }
            Resource::AnyBuckets => &mut self.any_buckets,
            Resource::BucketsOfDatabase(database) => self.buckets_of_databases.entry(database.clone()).or_default(),
            Resource::BucketsOfCollection(name) => self.buckets_of_collections.entry(name.clone()).or_default(),
            Resource::ExactBuckets(database, name) => {
                self.exact_buckets.entry(database.clone()).or_default().entry(name.clone()).or_default()
            }
        }
    }

    /// All actions that are allowed on a target.
    pub fn actions_on(&self, target: Target<'_>) -> ActionSet {
        fn of(map: &ByName, name: &str) -> ActionSet {
            map.get(name).copied().unwrap_or_default()
        }
        fn of_both(map: &BTreeMap<String, ByName>, database: &str, name: &str) -> ActionSet {
            map.get(database).map_or(ActionSet::EMPTY, |map| of(map, name))
        }
        let mut actions = self.any;
        match target {
            Target::Any => {}
            Target::Cluster => actions = actions.with(self.cluster),
            Target::AnyNormal => actions = actions.with(self.any_normal),
            Target::Database(database) => {
                if is_normal_database(database) {
                    actions = actions.with(self.any_normal);
                }
                actions = actions.with(of(&self.databases, database));
            }
            Target::Collection(database, name) => {
                if is_normal_collection(database, name) {
                    if is_normal_database(database) {
                        actions = actions.with(self.any_normal);
                    }
                    actions = actions.with(of(&self.databases, database));
                } else if let Some(series) = bucketed(name) {
                    actions = actions
                        .with(self.any_buckets)
                        .with(of(&self.buckets_of_databases, database))
                        .with(of(&self.buckets_of_collections, series))
                        .with(of_both(&self.exact_buckets, database, series));
                }
                actions = actions.with(of(&self.collections, name)).with(of_both(&self.exact, database, name));
            }
        }
        actions
    }

    /// Are all these actions allowed on the target?
    pub fn allow(&self, target: Target<'_>, actions: impl Into<ActionSet>) -> bool {
        self.actions_on(target).contains_all(actions.into())
    }

    /// Is anything at all allowed on the target?
    pub fn allow_anything_on(&self, target: Target<'_>) -> bool {
        !self.actions_on(target).is_empty()
    }

    /// Is anything at all allowed on anything in the database?
    pub fn allow_anything_in(&self, database: &str) -> bool {
        let has = |actions: &ActionSet| !actions.is_empty();
        has(&self.any)
            || has(&self.any_buckets)
            || (is_normal_database(database) && has(&self.any_normal))
            || self.databases.get(database).is_some_and(has)
            || self.buckets_of_databases.get(database).is_some_and(has)
            || self.collections.values().any(has)
            || self.buckets_of_collections.values().any(has)
            || self.exact.get(database).is_some_and(|map| map.values().any(has))
            || self.exact_buckets.get(database).is_some_and(|map| map.values().any(has))
    }

    /// All of them, by resource.
    pub fn list(&self) -> Vec<Privilege> {
        let mut list: Vec<Privilege> = Vec::new();
        let mut add = |resource: Resource, actions: ActionSet| {
            if !actions.is_empty() {
                list.push(Privilege { resource, actions });
            }
        };
        add(Resource::Cluster, self.cluster);
        add(Resource::Any, self.any);
        add(Resource::AnyNormal, self.any_normal);
        self.databases.iter().for_each(|(name, actions)| add(Resource::Database(name.clone()), *actions));
        self.collections.iter().for_each(|(name, actions)| add(Resource::Collection(name.clone()), *actions));
        for (database, map) in &self.exact {
            map.iter().for_each(|(name, actions)| add(Resource::Exact(database.clone(), name.clone()), *actions));
        }
        add(Resource::AnyBuckets, self.any_buckets);
        self.buckets_of_databases
            .iter()
            .for_each(|(name, actions)| add(Resource::BucketsOfDatabase(name.clone()), *actions));
        self.buckets_of_collections
            .iter()
            .for_each(|(name, actions)| add(Resource::BucketsOfCollection(name.clone()), *actions));
        for (database, map) in &self.exact_buckets {
            map.iter()
                .for_each(|(name, actions)| add(Resource::ExactBuckets(database.clone(), name.clone()), *actions));
        }
        list
    }

    /// Writes all of them as documents.
    pub fn append_to(&self, array: &mut ArrayBuilder) {
        for Privilege { resource, actions } in self.list() {
            array.document(|document| {
                document.document("resource", |document| resource.append_to(document));
                document.array("actions", |array| actions.names().into_iter().for_each(|name| array.push(name)));
            });
        }
    }
}

impl FromIterator<Privilege> for Privileges {
    fn from_iter<T: IntoIterator<Item = Privilege>>(privileges: T) -> Privileges {
        let mut all = Privileges::new();
        privileges.into_iter().for_each(|privilege| all.grant(&privilege.resource, privilege.actions));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::doc;

    fn on(resource: Resource) -> Privileges {
        [Privilege { resource, actions: Action::Find.into() }].into_iter().collect()
    }

    fn finds(privileges: &Privileges, namespace: &str) -> bool {
        let (database, name) = namespace.split_once('.').unwrap_or((namespace, ""));
        let target = if name.is_empty() { Target::Database(database) } else { Target::Collection(database, name) };
        privileges.allow(target, Action::Find)
    }

    #[test]
    fn u10_resources_reach_what_they_mean() {
        let table: &[(Resource, &[&str], &[&str])] = &[
            (
                Resource::AnyNormal,
                &["a.c", "a", "admin.c"],
                &["a.system.js", "local.c", "config.c", "local", "a.system.buckets.t", "local.replset.x"],
            ),
            (Resource::Any, &["a.c", "a.system.js", "local.replset.x", "a.system.buckets.t", "local"], &[]),
            (Resource::Database("a".into()), &["a", "a.c"], &["b.c", "a.system.users", "a.system.buckets.c"]),
            (Resource::Database("local".into()), &["local.c", "local"], &["local.replset.x", "local.system.x"]),
            (Resource::Collection("system.js".into()), &["a.system.js", "b.system.js"], &["a.c", "a"]),
            (Resource::Exact("a".into(), "c".into()), &["a.c"], &["a", "a.d", "b.c"]),
            (Resource::AnyBuckets, &["a.system.buckets.t"], &["a.t", "a.system.buckets."]),
            (Resource::BucketsOfDatabase("a".into()), &["a.system.buckets.t"], &["b.system.buckets.t", "a.t"]),
            (Resource::BucketsOfCollection("t".into()), &["b.system.buckets.t"], &["b.system.buckets.u"]),
            (Resource::ExactBuckets("a".into(), "t".into()), &["a.system.buckets.t"], &["b.system.buckets.t"]),
            (Resource::Cluster, &[], &["a", "a.c", "admin"]),
        ];
        for (resource, reached, others) in table {
            let privileges = on(resource.clone());
            assert!(reached.iter().all(|namespace| finds(&privileges, namespace)), "{resource:?}");
            assert!(!others.iter().any(|namespace| finds(&privileges, namespace)), "{resource:?}");
        }
    }

    #[test]
    fn u10_anything_in_a_database_is_found() {
        assert!(on(Resource::Exact("a".into(), "c".into())).allow_anything_in("a"));
        assert!(!on(Resource::Exact("a".into(), "c".into())).allow_anything_in("b"));
        assert!(!on(Resource::AnyNormal).allow_anything_in("local"));
        assert!(on(Resource::Collection("c".into())).allow_anything_in("local"));
        assert!(!on(Resource::Cluster).allow_anything_in("a"));
    }

    #[test]
    fn u10_privileges_are_read_joined_and_taken_away() {
        let given = doc! { "p": [
            { "resource": { "db": "a", "collection": "" }, "actions": ["find", "insert"] },
            { "resource": { "db": "a", "collection": "" }, "actions": ["update"] },
        ] };
        let mut all: Privileges = Privilege::read_all(given.get("p").unwrap()).unwrap().into_iter().collect();
        let resource = Resource::Database("a".into());
        all.revoke(&resource, Action::Insert.into());
        let actions = ActionSet::of(&[Action::Find, Action::Update]);
        assert_eq!(all.list(), [Privilege { resource: resource.clone(), actions }]);
        all.revoke(&resource, ActionSet::ALL);
        assert!(all.list().is_empty());
        for bad in [
            doc! { "resource": { "cluster": true } },
            doc! { "actions": [] },
            doc! { "resource": { "cluster": true }, "actions": [], "actions": [] },
            doc! { "resource": { "db": "a", "collection": "", "db": "b" }, "actions": [] },
            doc! { "resource": { "cluster": true }, "actions": ["fly"] },
            doc! { "resource": { "cluster": true }, "actions": [1] },
        ] {
            assert!(Privilege::read(bad.view()).is_err());
        }
    }
}
