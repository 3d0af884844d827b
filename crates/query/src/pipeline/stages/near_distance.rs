//! `$_internalComputeGeoNearDistance`: measurements that lie between the distances of a search, each with how far it is.
//!
//! What a `$geoNear` on a time series becomes, with a sort behind it where the buckets do not come nearest first.

use super::transform::transformed;
use crate::pipeline::dependencies::without_places;
use crate::pipeline::{DocumentSource, Modified, Needs, SharedStage, StageSpec, with_field};
use crate::planner::NearOutput;
use crate::stage::Nearest;
use pando_base::Result;
use pando_doc::{Doc, DocBuilder, FieldPath, OwnedValue, Value, doc};
use pando_expr::metadata::{Meta, with_metadata};
use pando_geo::NearQuery;
use std::sync::Arc;

#[derive(Debug)]
struct NearDistanceSpec {
    path: FieldPath,
    near: Arc<NearQuery>,
    output: Arc<NearOutput>,
}

/// The distances of what is at a path.
pub(in crate::pipeline) fn of(path: FieldPath, near: NearQuery, output: NearOutput) -> SharedStage {
    Arc::new(NearDistanceSpec { path, near: Arc::new(near), output: Arc::new(output) })
}

fn with_distance(document: &Doc, path: &FieldPath, near: &NearQuery, output: &NearOutput) -> Option<Doc> {
    let nearest = Nearest::of(document.view(), path, near);
    let nearest = nearest.filter(|nearest| nearest.is_between(near, near.measured_range()))?;
    let shown = near.shown_distance(nearest.distance);
    let mut found = with_field(document.view(), &output.distance, Some(Value::Double(shown * output.multiplier)));
    if let Some(path) = &output.location {
        found = with_field(found.view(), path, Some(nearest.place.view()));
    }
    let known = [(Meta::GeoNearDistance, OwnedValue::Double(shown)), (Meta::GeoNearPoint, nearest.place.clone())];
    Some(with_metadata(found.view(), &known))
}

impl StageSpec for NearDistanceSpec {
    fn name(&self) -> &'static str {
        "$_internalComputeGeoNearDistance"
    }

    fn start(&self, source: Box<dyn DocumentSource>) -> Result<Box<dyn DocumentSource>> {
        let (path, near, output) = (self.path.clone(), Arc::clone(&self.near), Arc::clone(&self.output));
        Ok(transformed(source, move |document| Ok(with_distance(&document, &path, &near, &output))))
    }

    fn to_doc(&self) -> Doc {
        let mut out = DocBuilder::new();
        out.append("near", self.near.source());
        out.append("key", self.path.text());
        out.append("distanceField", self.output.distance.text());
        out.append("distanceMultiplier", self.output.multiplier);
        doc! { "$_internalComputeGeoNearDistance": out.finish() }
    }

    fn modified(&self) -> Modified {
        let location = self.output.location.iter().cloned();
        Modified::Paths(std::iter::once(self.output.distance.clone()).chain(location).collect())
    }

    fn needs(&self) -> Needs {
        Needs::These(vec![without_places(&self.path)])
    }
}
