//! `config.system.indexBuilds`: for each build that waits for a quorum, which members are ready.

use crate::builds::IndexBuilds;
use crate::quorum::CommitQuorum;
use crate::resume::uuid;
use pando_base::{Namespace, Result, Uuid};
use pando_catalog::{Collection, CollectionOptions};
use pando_collection::{DeleteArguments, InsertOptions, InsertStatement, UpdateArguments};
use pando_doc::{Doc, DocBuilder};
use pando_locks::Mode;
use pando_operation::{Operation, write_conflict_retry};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The entry of a build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BuildEntry {
    pub(crate) build_uuid: Uuid,
    pub(crate) collection_uuid: Uuid,
    pub(crate) quorum: CommitQuorum,
    pub(crate) index_names: Vec<String>,
    pub(crate) ready_members: BTreeSet<String>,
}

impl BuildEntry {
    fn to_doc(&self) -> Doc {
        let mut out = DocBuilder::new();
        out.append("_id", uuid(&self.build_uuid));
        out.append("collectionUUID", uuid(&self.collection_uuid));
        out.append("commitQuorum", self.quorum.value());
        out.array("indexNames", |names| self.index_names.iter().for_each(|name| names.push(name.as_str())));
        if !self.ready_members.is_empty() {
            out.array("commitReadyMembers", |hosts| {
                self.ready_members.iter().for_each(|host| hosts.push(host.as_str()));
            });
        }
        out.finish()
    }

    fn parse(build_uuid: Uuid, collection_uuid: Uuid, document: &Doc) -> Result<BuildEntry> {
        let texts = |name: &str| -> Vec<String> {
            let array = document.get(name).and_then(|names| names.as_array());
            let values = array.into_iter().flat_map(|array| array.values());
            values.filter_map(|value| value.as_str().map(str::to_owned)).collect()
        };
        let quorum = document.get("commitQuorum").map_or(Ok(CommitQuorum::default()), CommitQuorum::parse)?;
        Ok(BuildEntry {
            build_uuid,
            collection_uuid,
            quorum,
            index_names: texts("indexNames"),
            ready_members: texts("commitReadyMembers").into_iter().collect(),
        })
    }
}

impl IndexBuilds {
    /// Changes the entry of a build, or makes it if there is none; nothing if the change says so. Returns it as it is then.
    pub(crate) async fn change_entry(
        &self,
        build_uuid: Uuid,
        collection_uuid: Uuid,
        mut change: impl FnMut(Option<BuildEntry>) -> Option<BuildEntry>,
    ) -> Result<Option<BuildEntry>> {
        let mut operation = self.parts.services.internal_operation("IndexBuildEntries");
        let collection = self.entries_collection(&mut operation).await?;
        let namespace = &collection.namespace;
        let changed = write_conflict_retry(&mut operation, "index build entry", namespace, |operation| {
            operation.in_unit_of_work(|operation| {
                let found = self.parts.write_path.find_by_id(operation, &collection, uuid(&build_uuid))?;
                let known = found.as_ref().map(|(_, old)| BuildEntry::parse(build_uuid, collection_uuid, old));
                let next = change(known.transpose()?);
                if let Some(next) = &next {
                    self.write_entry(operation, &collection, found, &next.to_doc())?;
                }
                Ok(next)
            })
        })
        .await;
        operation.locker.unlock_everything();
        changed
    }

    fn write_entry(
        &self,
        operation: &mut Operation,
        collection: &Collection,
        found: Option<(pando_base::RecordId, Doc)>,
        next: &Doc,
    ) -> Result<()> {
        let write_path = &self.parts.write_path;
        match found {
            Some((_, old)) if old == *next => Ok(()),
            Some((record_id, old)) => {
                let arguments = UpdateArguments::new(record_id, old.view(), next.view(), next.view());
                write_path.update_document(operation, collection, &arguments).map(|_| ())
            }
            None => {
                let statements = [InsertStatement::new(next.view())];
                write_path.insert_documents(operation, collection, &statements, InsertOptions::default()).map(|_| ())
            }
        }
    }

    /// The entry of a build that is over goes.
    pub(crate) async fn remove_entry(&self, build_uuid: Uuid) -> Result<()> {
        let mut operation = self.parts.services.internal_operation("IndexBuildEntries");
        let collection = self.entries_collection(&mut operation).await?;
        let namespace = &collection.namespace;
        let removed = write_conflict_retry(&mut operation, "index build entry", namespace, |operation| {
            operation.in_unit_of_work(|operation| {
                let write_path = &self.parts.write_path;
                match write_path.find_by_id(operation, &collection, uuid(&build_uuid))? {
                    Some((record_id, document)) => {
                        let arguments = DeleteArguments::new(record_id, document.view());
                        write_path.delete_document(operation, &collection, &arguments).map(|_| ())
                    }
                    None => Ok(()),
                }
            })
        })
        .await;
        operation.locker.unlock_everything();
        removed
    }

    /// The collection, locked in IX; made if it is not there.
    async fn entries_collection(&self, operation: &mut Operation) -> Result<Arc<Collection>> {
        let namespace = Namespace::index_builds();
        let catalog = &self.parts.catalog;
        if catalog.latest().collection(namespace).is_none() {
            self.lock(operation, namespace, Mode::X).await?;
            write_conflict_retry(operation, "create", namespace, |operation| {
                operation.in_unit_of_work(|operation| {
                    if catalog.collection_for_write(operation, namespace)?.is_some() {
                        return Ok(());
                    }
                    let options = CollectionOptions::default();
                    let observers = &*self.parts.observers;
                    catalog.create_collection(operation, observers, namespace, options).map(|_| ())
                })
            })
            .await?;
            operation.locker.unlock_everything();
        }
        self.lock(operation, namespace, Mode::IX).await?;
        catalog.collection_for_ddl(operation, namespace)
    }
}
