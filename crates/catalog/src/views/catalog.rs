//! The views of one database.

use super::{VIEW_DEPTH_MAX, VIEW_PIPELINE_BYTES_MAX, ViewDefinition, graph, referenced_collections};
use imbl::OrdMap;
use pando_base::{DatabaseName, Error, ErrorCode, Namespace, Result, bail, ensure};
use pando_doc::{Array, ArrayBuilder, Doc, DocRef};
use std::sync::Arc;

/// One version of a database's views.
#[derive(Clone, Debug, Default)]
pub struct ViewCatalog {
    views: OrdMap<Namespace, Arc<ViewDefinition>>,
    /// Why the definitions cannot be used, if one of them cannot be read: views are then refused, not ignored.
    damage: Option<Error>,
}

/// What a view comes down to.
#[derive(Clone, Debug, PartialEq)]
pub struct ResolvedView {
    /// The collection below all views.
    pub namespace: Namespace,
    /// All pipelines, that of the lowest view first.
    pub pipeline: Array,
    /// How strings are compared; none for bytes.
    pub collation: Option<Doc>,
    /// The collection holds the buckets of a time series.
    pub is_timeseries: bool,
    /// Every name on the way, the view first.
    pub chain: Vec<Namespace>,
}

impl ViewCatalog {
    /// Reads the documents of `system.views`. One that is none does not hide the others: they are listed, but looking up
    /// fails until it is mended.
    pub fn read<'a>(database: &DatabaseName, documents: impl IntoIterator<Item = DocRef<'a>>) -> ViewCatalog {
        let mut catalog = ViewCatalog::default();
        for document in documents {
            catalog.take_in(database, document);
        }
        catalog
    }

    pub(crate) fn take_in(&mut self, database: &DatabaseName, document: DocRef<'_>) {
        match ViewDefinition::parse(database, document) {
            Ok(view) => {
                self.views.insert(view.namespace.clone(), Arc::new(view));
            }
            Err(error) => self.damage = Some(error),
        }
    }

    /// The view of this name. Fails if the database's definitions are damaged.
    pub fn get(&self, namespace: &Namespace) -> Result<Option<&Arc<ViewDefinition>>> {
        match (&self.damage, self.views.get(namespace)) {
            (Some(damage), _) => Err(damage.clone()),
            (None, found) => Ok(found),
        }
    }

    /// Fails if one of the definitions cannot be read.
    pub fn require_readable(&self) -> Result<()> {
        self.damage.clone().map_or(Ok(()), Err)
    }

    /// Every view that can be read, by name.
    pub fn iter(&self) -> impl Iterator<Item = &ViewDefinition> {
        self.views.values().map(|view| &**view)
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.views.is_empty() && self.damage.is_none()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.views.len()
    }

    /// The same with this view, new or changed, if the views allow it.
    pub fn with(&self, view: ViewDefinition) -> Result<ViewCatalog> {
        graph::validate(self, &view)?;
        let mut changed = self.clone();
        changed.views.insert(view.namespace.clone(), Arc::new(view));
        Ok(changed)
    }

    /// The same without this view.
    pub fn without(&self, namespace: &Namespace) -> ViewCatalog {
        let mut changed = self.clone();
        changed.views.remove(namespace);
        changed
    }

    /// Fails if a pipeline in this database refers to a view that is as deep as views may be.
    pub fn check_pipeline<'a>(
        &self,
        namespace: &Namespace,
        pipeline: impl IntoIterator<Item = DocRef<'a>>,
    ) -> Result<()> {
        let stages = Array::from_iter(pipeline);
        let referenced = referenced_collections(stages.view());
        let names: Vec<Namespace> = referenced.iter().filter_map(|name| namespace.sibling(name).ok()).collect();
        if names.is_empty() { Ok(()) } else { graph::check_referenced(self, &names) }
    }

    /// Follows a view down to its collection; none if the name is not a view's.
    pub fn resolve(&self, namespace: &Namespace) -> Result<Option<ResolvedView>> {
        let Some(first) = self.get(namespace)? else { return Ok(None) };
        let (mut chain, mut lowest) = (vec![first], first);
        // Statistics are about what the view stands on, so what lies below that is not looked at.
        while !lowest.begins_with_statistics()
            && let Some(below) = self.get(&lowest.view_on)?
        {
            ensure!(
                chain.len() < VIEW_DEPTH_MAX,
                ErrorCode::ViewDepthLimitExceeded,
                "View depth too deep or view cycle detected; maximum depth is {VIEW_DEPTH_MAX}"
            );
            chain.push(below);
            lowest = below;
        }
        resolved(&chain).map(Some)
    }
}

fn resolved(chain: &[&Arc<ViewDefinition>]) -> Result<ResolvedView> {
    let bytes: usize = chain.iter().map(|view| view.pipeline_bytes()).sum();
    ensure!(
        bytes <= VIEW_PIPELINE_BYTES_MAX,
        ErrorCode::ViewPipelineMaxSizeExceeded,
        "View pipeline exceeds maximum size; maximum size is {VIEW_PIPELINE_BYTES_MAX}"
    );
    let mut pipeline = ArrayBuilder::new();
    chain.iter().rev().flat_map(|view| view.pipeline.values()).for_each(|stage| pipeline.push(stage));
    let (Some(first), Some(last)) = (chain.first(), chain.last()) else {
        bail!(ErrorCode::InternalError, "a chain of views is empty");
    };
    Ok(ResolvedView {
        namespace: last.view_on.clone(),
        pipeline: pipeline.finish(),
        collation: first.collation.clone(),
        is_timeseries: last.is_timeseries(),
        chain: chain.iter().map(|view| view.namespace.clone()).chain([last.view_on.clone()]).collect(),
    })
}
