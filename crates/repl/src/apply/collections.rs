//! Collections that were created, dropped, renamed, emptied.
//!
//! Where the data may be newer than the entry, a name can already be another collection's. That one gives way under a name
//! for the meantime; the entry that gave it the name follows and gives it back.

use super::{Applier, Step};
use bstr::BStr;
use pando_base::{Error, ErrorCode, Namespace, Result, Uuid};
use pando_catalog::{ClusteredIndex, Collection, CollectionOptions, RenameOptions};
use pando_doc::{Doc, DocBuilder, DocRef, doc};
use pando_operation::Operation;
use std::sync::Arc;

impl Applier {
    pub(super) fn create(&self, operation: &mut Operation, step: &Step<'_, '_>, object: DocRef<'_>) -> Result<()> {
        let namespace = named(step, object)?;
        let mut options = CollectionOptions::parse_command(create_options(object).view())?;
        options.clustered_index.as_ref().map_or(Ok(()), ClusteredIndex::check_key)?;
        options.uuid = step.what.uuid;
        options.id_index = object.get("idIndex").and_then(|index| index.as_document()).map(DocRef::to_doc);
        if options.id_index.is_none() && object.get("collation").is_none() {
            options.id_index = Some(doc! { "v": 1, "key": { "_id": 1 }, "name": "_id_" });
        }
        operation.in_unit_of_work(|operation| {
            let existing = match step.what.uuid {
                Some(uuid) => self.catalog.collection_for_write_by_uuid(operation, &uuid)?,
                None => None,
            };
            match existing {
                Some(existing) => self.rename_to(operation, &existing, &namespace),
                None => {
                    self.make_room(operation, &namespace)?;
                    self.catalog.create_collection(operation, &self.nobody, &namespace, options).map(|_| ())
                }
            }
        })
    }

    /// Sees to it that nobody has the name.
    fn make_room(&self, operation: &mut Operation, namespace: &Namespace) -> Result<()> {
        let Some(occupant) = self.catalog.collection_for_write(operation, namespace)? else { return Ok(()) };
        let mut random = [0; 5];
        operation.env.random().fill(&mut random);
        let random: String = random.iter().map(|byte| char::from(b'a' + byte % 26)).collect();
        let meantime = namespace.sibling(&format!("tmp{random}.create"))?;
        self.rename_to(operation, &occupant, &meantime)
    }

    fn rename_to(&self, operation: &mut Operation, collection: &Collection, to: &Namespace) -> Result<()> {
        if collection.namespace == *to {
            return Ok(());
        }
        self.make_room(operation, to)?;
        let options = RenameOptions { drop_target: false, stay_temp: true };
        self.catalog.rename_collection(operation, &self.nobody, &collection.namespace, to, options).map(|_| ())
    }

    pub(super) fn drop_collection(&self, operation: &mut Operation, step: &Step<'_, '_>) -> Result<()> {
        operation.in_unit_of_work(|operation| {
            let Some(collection) = self.collection(operation, step)? else { return Ok(()) };
            self.drop_found(operation, collection)
        })
    }

    /// Builds that were under way go with their collection.
    fn drop_found(&self, operation: &mut Operation, mut collection: Arc<Collection>) -> Result<()> {
        let unfinished: Vec<String> =
            collection.indexes.iter().filter(|index| !index.ready).map(|index| index.name().to_owned()).collect();
        for name in unfinished {
            collection = self.catalog.remove_index(operation, &collection, &name)?;
        }
        self.catalog.drop_collection(operation, &self.nobody, &collection.namespace).map(|_| ())
    }

    pub(super) fn drop_database(&self, operation: &mut Operation, step: &Step<'_, '_>) -> Result<()> {
        let database = self.namespace(step)?.database_name();
        if !self.catalog.latest().has_database(&database) {
            return Ok(());
        }
        operation.in_unit_of_work(|operation| self.catalog.drop_database(operation, &self.nobody, &database))
    }

    pub(super) fn rename(
        &self,
        operation: &mut Operation,
        step: &Step<'_, '_>,
        _from: &BStr,
        to: &BStr,
        stay_temp: bool,
        drop_target: Option<Uuid>,
    ) -> Result<()> {
        let to = Namespace::parse_with_tenant(tenant(step), utf8(to)?)?;
        operation.in_unit_of_work(|operation| {
            if let Some(target) = drop_target {
                let target = self.catalog.collection_for_write_by_uuid(operation, &target)?;
                if let Some(target) = target {
                    self.drop_found(operation, target)?;
                }
            }
            let Some(collection) = self.collection(operation, step)? else { return Ok(()) };
            if collection.namespace == to {
                return Ok(());
            }
            self.make_room(operation, &to)?;
            let options = RenameOptions { drop_target: false, stay_temp };
            self.catalog.rename_collection(operation, &self.nobody, &collection.namespace, &to, options).map(|_| ())
        })
    }

    pub(super) fn empty_capped(&self, operation: &mut Operation, step: &Step<'_, '_>) -> Result<()> {
        operation.in_unit_of_work(|operation| match self.collection(operation, step)? {
            Some(collection) => self.write_path.truncate(operation, &collection),
            None => Ok(()),
        })
    }
}

/// The collection that a command's first field names.
pub(super) fn named(step: &Step<'_, '_>, object: DocRef<'_>) -> Result<Namespace> {
    let name = object.first().and_then(|element| element.value.as_str());
    let name = name.ok_or_else(|| Error::new(ErrorCode::InvalidNamespace, "a command without a collection's name"))?;
    step.what.namespace()?.sibling(name)
}

/// The fields of `create` that are options.
fn create_options(object: DocRef<'_>) -> Doc {
    let mut builder = DocBuilder::with_capacity(object.size_bytes());
    for element in object.raw_elements().skip(1).filter(|element| element.name != "idIndex") {
        builder.append_raw(element);
    }
    builder.finish()
}

fn tenant(step: &Step<'_, '_>) -> Option<pando_base::TenantId> {
    step.what.tenant.map(|tenant| pando_base::TenantId(*tenant.bytes()))
}

fn utf8(name: &BStr) -> Result<&str> {
    std::str::from_utf8(name).map_err(|_| Error::new(ErrorCode::InvalidNamespace, format!("Invalid namespace {name}")))
}
