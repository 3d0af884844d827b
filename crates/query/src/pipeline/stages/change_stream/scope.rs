//! Which operations of the oplog a stream is about.
//!
//! A stream watches a collection, a database, or all databases of users. Of system collections it shows what was asked for and
//! makes sense to users; of commands those that change what it watches.

use bstr::{BStr, ByteSlice};
use pando_base::Namespace;
use pando_doc::{DocRef, Value};
use pando_oplog::{OpKind, Operation};

/// What is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Watched {
    /// A collection.
    Collection(Namespace),
    /// The collections of a database.
    Database(String),
    /// All databases of users.
    Cluster,
}

/// What is watched, and how much of it.
#[derive(Clone, Debug)]
pub(super) struct Scope {
    pub(super) watched: Watched,
    shows_system: bool,
    shows_migrations: bool,
    shows_expanded: bool,
}

/// Commands with a collection's name in the field of their name.
const COMMANDS: [&[u8]; 6] = [b"drop", b"create", b"createIndexes", b"commitIndexBuild", b"dropIndexes", b"collMod"];
/// The same, of which only those hear who want to know about the system.
const SYSTEM_COMMANDS: [&[u8]; 2] = [b"startIndexBuild", b"abortIndexBuild"];
/// What the system's collections begin with.
const SYSTEM: &[u8] = b"system.";

impl Scope {
    /// Of a stream that follows this.
    pub(super) fn new(watched: Watched, shows_system: bool, shows_migrations: bool, shows_expanded: bool) -> Scope {
        Scope { watched, shows_system, shows_migrations, shows_expanded }
    }

    pub(super) fn is_collection(&self) -> bool {
        matches!(self.watched, Watched::Collection(_))
    }

    /// True if an event of this type ends the stream.
    pub(super) fn is_ended_by(&self, operation_type: &str) -> bool {
        match self.watched {
            Watched::Collection(_) => matches!(operation_type, "drop" | "rename" | "dropDatabase"),
            Watched::Database(_) => operation_type == "dropDatabase",
            Watched::Cluster => false,
        }
    }

    /// True if the operation makes an event. Groups of operations are looked at one by one.
    pub(super) fn covers(&self, operation: &Operation<'_>) -> bool {
        if operation.from_migrate == Some(true) && !self.shows_migrations && !self.shows_migrated(operation) {
            return false;
        }
        match operation.kind {
            OpKind::Insert | OpKind::Update | OpKind::Delete => {
                self.covers_collection(operation.ns) || self.covers_view_of(operation.ns)
            }
            OpKind::Command => self.covers_command(operation.ns, operation.object),
            OpKind::Noop | OpKind::InsertGlobalIndexKey | OpKind::DeleteGlobalIndexKey => false,
        }
    }

    /// A quick look at an entry, which need not be read if this is false.
    pub(super) fn may_cover(&self, kind: &BStr, ns: &BStr) -> bool {
        match kind.as_bytes() {
            b"i" | b"u" | b"d" => self.covers_collection(ns) || self.covers_view_of(ns),
            b"c" => true,
            _ => false,
        }
    }

    /// Who wants to know about the system hears of collections and indexes that a migration makes.
    fn shows_migrated(&self, operation: &Operation<'_>) -> bool {
        let is_making = |name: &str| operation.object.contains(name);
        self.shows_system && operation.kind == OpKind::Command && (is_making("create") || is_making("createIndexes"))
    }

    fn covers_collection(&self, ns: &BStr) -> bool {
        match &self.watched {
            Watched::Collection(watched) => ns == watched.as_str(),
            Watched::Database(_) | Watched::Cluster => {
                parts(ns).is_some_and(|(database, name)| self.covers_database(database) && self.is_shown(name))
            }
        }
    }

    /// Views are defined by documents.
    fn covers_view_of(&self, ns: &BStr) -> bool {
        let is_in_scope = |(database, name): (&BStr, &BStr)| name == "system.views" && self.covers_database(database);
        self.shows_expanded && !self.is_collection() && parts(ns).is_some_and(is_in_scope)
    }

    fn covers_database(&self, database: &BStr) -> bool {
        match &self.watched {
            Watched::Collection(watched) => database == watched.database(),
            Watched::Database(watched) => database == watched.as_str(),
            Watched::Cluster => !matches!(database.as_bytes(), b"admin" | b"config" | b"local"),
        }
    }

    /// True for a collection's name, without its database.
    fn covers_name(&self, name: &BStr) -> bool {
        match &self.watched {
            Watched::Collection(watched) => name == watched.collection(),
            Watched::Database(_) | Watched::Cluster => self.is_shown(name),
        }
    }

    fn is_shown(&self, name: &BStr) -> bool {
        if name.starts_with(b"$") {
            return false;
        }
        let Some(rest) = name.strip_prefix(SYSTEM) else { return true };
        let is_known =
            matches!(rest, b"js" | b"views") || rest.starts_with(b"resharding.") || rest.starts_with(b"buckets.");
        self.shows_system && is_known
    }

    fn covers_command(&self, ns: &BStr, command: DocRef<'_>) -> bool {
        let is_near = parts(ns).is_some_and(|(database, name)| name == "$cmd" && self.covers_database(database));
        let Some(first) = command.first().filter(|_| is_near) else { return false };
        let (name, value) = (first.name.as_bytes(), first.value);
        let text = match value {
            Value::String(text) => Some(text),
            _ => None,
        };
        let is_of_collection = COMMANDS.contains(&name) || (self.shows_system && SYSTEM_COMMANDS.contains(&name));
        match name {
            _ if is_of_collection => text.is_some_and(|name| self.covers_name(name)),
            b"renameCollection" => {
                let to = command.get("to").and_then(|to| to.as_bytes());
                [text, to].into_iter().flatten().any(|ns| self.covers_collection(ns))
            }
            b"dropDatabase" => !self.is_collection(),
            _ => false,
        }
    }
}

/// The database and the collection of a namespace.
fn parts(ns: &BStr) -> Option<(&BStr, &BStr)> {
    let dot = ns.find_byte(b'.')?;
    Some((ns.get(..dot)?.as_bstr(), ns.get(dot + 1..)?.as_bstr()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_base::Uuid;
    use pando_doc::{Doc, doc};

    fn scope(namespace: &str) -> Scope {
        let namespace = Namespace::parse(namespace).unwrap();
        let watched = match namespace.is_collectionless_aggregate() {
            true if namespace.is_admin() => Watched::Cluster,
            true => Watched::Database(namespace.database().to_owned()),
            false => Watched::Collection(namespace),
        };
        Scope::new(watched, false, false, false)
    }

    fn covers(scope: &Scope, ns: &str, command: &Doc) -> bool {
        scope.covers(&Operation::command(ns.into(), None, command.view()))
    }

    fn changes(scope: &Scope, ns: &str) -> bool {
        let key = doc! { "_id": 1 };
        scope.covers(&Operation::delete(ns.into(), Uuid::from_bytes([1; 16]), key.view()))
    }

    #[test]
    fn u13_documents_of_what_is_watched() {
        let collection = scope("a.b");
        assert!(changes(&collection, "a.b") && !changes(&collection, "a.bb") && !changes(&collection, "a.b.c"));
        let database = scope("a.$cmd.aggregate");
        assert!(changes(&database, "a.b") && changes(&database, "a.b.c") && changes(&database, "a.systems"));
        assert!(
            !changes(&database, "ab.c") && !changes(&database, "a.system.views") && !changes(&database, "a.system.js")
        );
        let cluster = scope("admin.$cmd.aggregate");
        assert!(changes(&cluster, "a.b") && !changes(&cluster, "admin.b") && !changes(&cluster, "config.b"));
        let system = Scope { shows_system: true, ..scope("a.$cmd.aggregate") };
        assert!(changes(&system, "a.system.js") && changes(&system, "a.system.buckets.x"));
        assert!(!changes(&system, "a.system.users"));
        let expanded = Scope { shows_expanded: true, ..scope("a.$cmd.aggregate") };
        assert!(changes(&expanded, "a.system.views") && !changes(&expanded, "a.system.js"));
    }

    #[test]
    fn u13_commands_on_what_is_watched() {
        let (collection, database, cluster) = (scope("a.b"), scope("a.$cmd.aggregate"), scope("admin.$cmd.aggregate"));
        let drop = doc! { "drop": "b" };
        assert!(covers(&collection, "a.$cmd", &drop) && !covers(&collection, "x.$cmd", &drop));
        assert!(!covers(&scope("a.c"), "a.$cmd", &drop) && covers(&database, "a.$cmd", &drop));
        let rename = doc! { "renameCollection": "a.x", "to": "a.b" };
        assert!(covers(&collection, "a.$cmd", &rename) && !covers(&scope("a.c"), "a.$cmd", &rename));
        let drop_database = doc! { "dropDatabase": 1 };
        assert!(!covers(&collection, "a.$cmd", &drop_database) && covers(&database, "a.$cmd", &drop_database));
        assert!(covers(&cluster, "a.$cmd", &drop_database) && !covers(&cluster, "config.$cmd", &drop_database));
        assert!(!covers(&database, "a.$cmd", &doc! { "abortIndexBuild": "b" }));
        assert!(!covers(&database, "a.$cmd", &doc! { "emptycapped": "b" }));
    }
}
