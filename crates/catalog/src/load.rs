//! Reading the catalog from disk: at start, and again after a rollback to stable.
//!
//! First every entry becomes a collection. Then both sides are brought in line: a collection whose table is missing is an
//! error, an index whose table is missing is left out and told of (its build had not come far before a crash), a table
//! that no entry has is given to the reaper. Unfinished index builds are told of; what to do about them is for those who
//! build indexes.
//!
//! Nothing is known of the time before: names of earlier times are searched for in the durable catalog.

use crate::catalog::Catalog;
use crate::ident::{IdentNames, IdentTables, is_of_catalog};
use crate::memory::CatalogVersions;
use crate::{CatalogEntry, Collection, CollectionCatalog, DurableCatalog, Reaper, ViewCatalog};
use pando_base::{Context, DatabaseName, ErrorCode, Namespace, RecordId, Result, Timestamp, Uuid, ensure};
use pando_doc::DocRef;
use pando_env::Env;
use pando_storage::{Direction, Engine, NoReplication, RecoveryUnit};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;

/// An index build that had not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnfinishedBuild {
    /// Where.
    pub namespace: Namespace,
    /// The collection.
    pub collection: Uuid,
    /// The index.
    pub index_name: String,
    /// The build; none for one that was not replicated, which is to be discarded.
    pub build_uuid: Option<Uuid>,
}

/// What was found when the catalog was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadReport {
    /// Builds that had not ended.
    pub unfinished_builds: Vec<UnfinishedBuild>,
    /// Indexes that were left out because their tables are missing.
    pub missing_indexes: Vec<(Namespace, String)>,
    /// Tables that no entry has; they are going to be dropped.
    pub unknown_idents: Vec<String>,
}

impl Catalog {
    /// Opens the catalog of a store.
    pub fn open(env: &Env, engine: &Arc<dyn Engine>) -> Result<(Arc<Catalog>, LoadReport)> {
        let catalog = Arc::new(Catalog {
            env: env.clone(),
            engine: Arc::clone(engine),
            durable: DurableCatalog::open(engine)?,
            versions: CatalogVersions::new(CollectionCatalog::default()),
            tables: IdentTables::new(Arc::clone(engine)),
            names: IdentNames::new(env.random(), &engine.idents()),
            reaper: Reaper::new(Arc::clone(engine)),
            thinned: Mutex::default(),
        });
        let report = catalog.reload(engine.timestamps().recovery)?;
        Ok((catalog, report))
    }

    /// Reads everything again, after a rollback to stable: nothing is known from before `floor` then, the stable timestamp.
    /// No operation may be under way.
    pub fn reload(&self, floor: Timestamp) -> Result<LoadReport> {
        let mut unit = RecoveryUnit::new(Arc::clone(&self.engine), Arc::new(NoReplication));
        self.durable.check_features(&mut unit)?;
        let (mut report, mut known) = (LoadReport::default(), BTreeSet::new());
        let mut fresh = CollectionCatalog::starting_at(floor);
        let idents: BTreeSet<String> = self.engine.idents().into_iter().collect();
        for (id, mut entry) in self.durable.entries(&mut unit)? {
            known.extend(entry.idents().map(str::to_owned));
            leave_out_missing(&idents, &mut entry, &mut report)?;
            let from = if entry.namespace.is_replicated() { floor } else { Timestamp::NONE };
            self.load_entry(&mut fresh, id, &entry, from).with_context(|| format!("loading {}", entry.namespace))?;
        }
        self.load_views(&mut unit, &mut fresh)?;
        self.reaper.clear();
        for ident in idents.iter().filter(|ident| is_of_catalog(ident) && !known.contains(*ident)) {
            self.add_unknown(ident, floor);
            report.unknown_idents.push(ident.clone());
        }
        self.versions.write(move |catalog| {
            fresh.set_version(catalog.version());
            *catalog = fresh;
        });
        Ok(report)
    }

    fn load_entry(
        &self,
        fresh: &mut CollectionCatalog,
        id: RecordId,
        entry: &CatalogEntry,
        from: Timestamp,
    ) -> Result<()> {
        ensure!(
            fresh.collection(&entry.namespace).is_none(),
            ErrorCode::DataCorruptionDetected,
            "the catalog has {} twice",
            entry.namespace
        );
        let collection = self.instantiate(id.clone(), entry, from, None)?;
        fresh.put(Arc::new(collection));
        fresh.record_name(&entry.namespace, Some(id), from);
        Ok(())
    }

    /// Its entry may be seen by reads between oldest and the floor.
    fn add_unknown(&self, ident: &str, floor: Timestamp) {
        if floor.is_some() {
            self.reaper.add(ident.to_owned(), Some(floor));
        } else {
            self.reaper.add_now(ident.to_owned());
        }
    }

    fn load_views(&self, unit: &mut RecoveryUnit, fresh: &mut CollectionCatalog) -> Result<()> {
        let databases: Vec<DatabaseName> = fresh.databases().cloned().collect();
        for database in databases {
            let Some(system_views) = fresh.collection(&Namespace::system_views(&database)).cloned() else { continue };
            let views = read_views(unit, &system_views)?;
            fresh.set_views(&database, Arc::new(views));
        }
        Ok(())
    }
}

/// What a database's `system.views` says in a snapshot.
pub(crate) fn read_views(unit: &mut RecoveryUnit, system_views: &Collection) -> Result<ViewCatalog> {
    let database = system_views.namespace.database_name();
    let mut views = ViewCatalog::default();
    let mut cursor = system_views.records.cursor(Direction::Forward);
    while let Some(record) = cursor.next(unit)? {
        views.take_in(&database, DocRef::parse(record.value)?);
    }
    Ok(views)
}

/// Fails if the collection's table is missing; takes indexes out whose tables are.
fn leave_out_missing(idents: &BTreeSet<String>, entry: &mut CatalogEntry, report: &mut LoadReport) -> Result<()> {
    ensure!(
        idents.contains(&entry.ident),
        ErrorCode::DataCorruptionDetected,
        "Expected collection does not exist: {} is to be in the table '{}'. The data files may be incomplete",
        entry.namespace,
        entry.ident
    );
    let (namespace, uuid) = (entry.namespace.clone(), entry.uuid().unwrap_or_default());
    entry.indexes.retain(|index| {
        let there = idents.contains(&index.ident);
        if !there {
            report.missing_indexes.push((namespace.clone(), index.name().to_owned()));
        }
        if !index.ready {
            report.unfinished_builds.push(UnfinishedBuild {
                namespace: namespace.clone(),
                collection: uuid,
                index_name: index.name().to_owned(),
                build_uuid: index.build_uuid,
            });
        }
        there
    });
    Ok(())
}
