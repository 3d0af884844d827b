//! Entries of indexes: added, made ready, dropped. Building one is for those who read documents.

use super::{Observers, require_unit};
use crate::catalog::Catalog;
use crate::{Collection, Index, IndexEntry, SpecFit, compare_with_existing, complete_index_spec, validate_index_spec};
use crate::{is_id_key_pattern, validate_id_index_spec};
use pando_base::{Error, ErrorCode, Result, Uuid, bail, ensure};
use pando_doc::{Doc, DocRef, JsonFormat, compare_docs, doc_to_json};
use pando_operation::Operation;
use pando_oplog::observer::{CreateIndex, DropIndex};
use std::cmp::Ordering;
use std::sync::Arc;

/// What became of a specification that a client gave.
#[derive(Clone, Debug)]
pub enum PreparedIndex {
    /// It is new: this is to be stored.
    New(Doc),
    /// There is such an index, ready.
    Exists(String),
    /// Such an index is being built.
    BeingBuilt(String),
}

impl Catalog {
    /// Checks a client's specification, completes it and compares it with the collection's indexes.
    pub fn prepare_index(&self, collection: &Collection, specification: DocRef<'_>) -> Result<PreparedIndex> {
        ensure!(!collection.namespace.is_oplog(), ErrorCode::CannotCreateIndex, "cannot have an index on the oplog");
        let validated = validate_index_spec(specification)?;
        let key = validated.get("key").and_then(|key| key.as_document());
        if key.is_some_and(is_id_key_pattern) && !validated.view().contains("clustered") {
            validate_id_index_spec(validated.view())?;
            check_id_collation(collection, validated.view())?;
        }
        let completed = complete_index_spec(validated.view(), &collection.options)?;
        self.prepare_stored_index(collection, completed)
    }

    /// The same of a specification in the form that is stored, as another collection has it.
    pub fn prepare_stored_index(&self, collection: &Collection, completed: Doc) -> Result<PreparedIndex> {
        Ok(match compare_with_existing(collection, completed.view())? {
            SpecFit::New => PreparedIndex::New(completed),
            SpecFit::Exists(name) => PreparedIndex::Exists(name),
            SpecFit::BeingBuilt(name) => PreparedIndex::BeingBuilt(name),
        })
    }

    /// Adds an index that is going to be built. Writes keep it up from the commit on; observers are the builder's business.
    pub fn start_index(
        self: &Arc<Self>,
        operation: &mut Operation,
        collection: &Arc<Collection>,
        specification: &Doc,
        build_uuid: Option<Uuid>,
    ) -> Result<Arc<Collection>> {
        self.add_index(operation, collection, specification, build_uuid, false)
    }

    /// Adds an index to an empty collection, ready at once.
    pub fn create_index_on_empty(
        self: &Arc<Self>,
        operation: &mut Operation,
        observers: &Observers,
        collection: &Arc<Collection>,
        specification: &Doc,
    ) -> Result<Arc<Collection>> {
        let next = self.add_index(operation, collection, specification, None, true)?;
        let specification = specification.view();
        let created = CreateIndex { collection: next.observed(), specification, from_migrate: false };
        observers.on_create_index(operation, &created)?;
        Ok(next)
    }

    fn add_index(
        self: &Arc<Self>,
        operation: &mut Operation,
        collection: &Arc<Collection>,
        specification: &Doc,
        build_uuid: Option<Uuid>,
        ready: bool,
    ) -> Result<Arc<Collection>> {
        require_unit(operation)?;
        match compare_with_existing(collection, specification.view())? {
            SpecFit::New => {}
            SpecFit::Exists(name) | SpecFit::BeingBuilt(name) => {
                bail!(ErrorCode::IndexAlreadyExists, "Identical index already exists: {name}")
            }
        }
        let kind = collection.records.kind();
        let index = self.make_index(operation, &collection.namespace, kind, specification, build_uuid)?;
        self.modify(operation, collection, |entry| {
            entry.indexes.push(IndexEntry { ready, ..index });
            Ok(())
        })
    }

    /// An index is built: reads may use it. Observers are the builder's business.
    pub fn set_index_ready(
        self: &Arc<Self>,
        operation: &mut Operation,
        collection: &Arc<Collection>,
        name: &str,
    ) -> Result<Arc<Collection>> {
        self.modify(operation, collection, |entry| {
            let index = entry.index_mut(name).ok_or_else(|| index_not_found(name))?;
            index.ready = true;
            index.build_uuid = None;
            Ok(())
        })
    }

    /// Gives an index whose build begins anew a fresh table: the old one may hold anything. Observers are the builder's
    /// business.
    pub fn restart_index(
        self: &Arc<Self>,
        operation: &mut Operation,
        collection: &Arc<Collection>,
        name: &str,
    ) -> Result<Arc<Collection>> {
        require_unit(operation)?;
        let index = collection.index(name).ok_or_else(|| index_not_found(name))?;
        ensure!(!index.ready, ErrorCode::IllegalOperation, "the index '{name}' is built already");
        let (old, kind) = (index.ident().to_owned(), collection.records.kind());
        let specification = &index.descriptor.specification;
        let fresh = self.make_index(operation, &collection.namespace, kind, specification, index.build_uuid)?;
        let next = self.modify(operation, collection, |entry| {
            *entry.index_mut(name).ok_or_else(|| index_not_found(name))? = fresh;
            Ok(())
        })?;
        self.dropped_ident(operation, &old)?;
        Ok(next)
    }

    /// Takes an index out whose build is given up, and its table with it. Observers are the builder's business.
    pub fn remove_index(
        self: &Arc<Self>,
        operation: &mut Operation,
        collection: &Arc<Collection>,
        name: &str,
    ) -> Result<Arc<Collection>> {
        let ident = collection.index(name).ok_or_else(|| index_not_found(name))?.ident().to_owned();
        let next = self.modify(operation, collection, |entry| {
            entry.indexes.retain(|index| index.name() != name);
            Ok(())
        })?;
        self.dropped_ident(operation, &ident)?;
        Ok(next)
    }

    /// Drops an index.
    pub fn drop_index(
        self: &Arc<Self>,
        operation: &mut Operation,
        observers: &Observers,
        collection: &Arc<Collection>,
        name: &str,
    ) -> Result<Arc<Collection>> {
        require_unit(operation)?;
        let index = collection.index(name).ok_or_else(|| index_not_found(name))?;
        ensure!(!index.descriptor.is_id_index(), ErrorCode::InvalidOptions, "cannot drop _id index");
        ensure!(index.ready, ErrorCode::IndexNotFound, "can't drop unfinished index with name: {name}");
        let specification = index.descriptor.specification.view();
        let dropped = DropIndex { collection: collection.observed(), index_name: name, specification };
        observers.on_drop_index(operation, &dropped)?;
        self.remove_index(operation, collection, name)
    }
}

impl Collection {
    /// The one index with this key pattern; fails if there is none or several.
    pub fn index_by_key(&self, key: DocRef<'_>) -> Result<&Arc<Index>> {
        let has_key = |index: &&Arc<Index>| compare_docs(index.descriptor.key_pattern.view(), key) == Ordering::Equal;
        let mut found = self.indexes.iter().filter(has_key);
        let shown = || doc_to_json(key, JsonFormat::Relaxed);
        let first = found.next();
        let first = first
            .ok_or_else(|| Error::new(ErrorCode::IndexNotFound, format!("can't find index with key: {}", shown())))?;
        ensure!(
            found.next().is_none(),
            ErrorCode::AmbiguousIndexKeyPattern,
            "several indexes found for key: {}, identify by name instead.",
            shown()
        );
        Ok(first)
    }
}

fn index_not_found(name: &str) -> Error {
    Error::new(ErrorCode::IndexNotFound, format!("index not found with name [{name}]"))
}

/// The index on `_id` compares strings as the collection does.
fn check_id_collation(collection: &Collection, specification: DocRef<'_>) -> Result<()> {
    let given = specification.get("collation").and_then(|collation| collation.as_document());
    let own = collection.options.collation.as_ref();
    let locale = |collation: DocRef<'_>| collation.get("locale").and_then(|name| name.as_str().map(str::to_owned));
    let is_same = match given.map(locale) {
        None => true,
        Some(locale_given) => {
            let locale_given = locale_given.filter(|name| name != "simple");
            locale_given == own.and_then(|own| locale(own.view()))
        }
    };
    ensure!(
        is_same,
        ErrorCode::BadValue,
        "The _id index must have the same collation as the collection. Index spec: {specification}"
    );
    Ok(())
}
