//! `$geoNear`: documents of the collection, nearest first, with their distances.
//!
//! It stands first and is nothing but a query: a filter with a `$near`, whose plan puts the distances into the documents. Which field it searches is
//! found when the collection is known.

use crate::pipeline::{DocumentSource, Pushdown, SharedStage, StageSpec};
use crate::planner::NearOutput;
use pando_base::{Error, ErrorCode, Namespace, Result};
use pando_catalog::{Collection, IndexKind};
use pando_doc::{Array, Doc, DocBuilder, DocRef, FieldPath, OwnedValue, Value, doc};
use pando_expr::{Expression, Features, ParseContext};
use pando_geo::NearQuery;
use std::sync::Arc;

/// The field of buckets that gets their distances, where those of measurements are wanted: nobody looks at it.
const BUCKET_DISTANCE: &str = "bucketDistance";

/// What a greatest distance is multiplied by where nothing at that distance may be missed.
const ROUNDING: f64 = 1.000_001;
/// And what is added to it.
const SLACK: f64 = 1e-9;

/// A `$geoNear` as it was read.
#[derive(Clone, Debug)]
pub struct GeoNear {
    key: Option<FieldPath>,
    near: Expression,
    is_spherical: bool,
    min_distance: Option<f64>,
    max_distance: Option<f64>,
    query: Doc,
    distance_multiplier: Option<f64>,
    distance_field: FieldPath,
    include_locations: Option<FieldPath>,
    /// What its query may name.
    context: ParseContext,
}

pub(in crate::pipeline) fn parse(value: Value<'_>, context: &ParseContext) -> Result<SharedStage> {
    // An array counts as a document here, whose fields are named by numbers.
    let Some(options) = value.as_nested() else {
        let reason = format!("invalid parameter: expected an object ($geoNear), found {}", value.value_type());
        return Err(Error::location(10065, reason));
    };
    refuse_old_options(options)?;
    let near = options.get("near").ok_or_else(|| Error::location(5860400, "$geoNear requires a 'near' argument"))?;
    let near = Expression::parse(near, context)?.folded()?;
    let Some(Value::String(distance_field)) = options.get("distanceField") else {
        return Err(Error::location(16606, "$geoNear requires a 'distanceField' option as a String"));
    };
    let distance_field = FieldPath::parse(distance_field)?;
    let max_distance = number(options, "maxDistance")?;
    let min_distance = number(options, "minDistance")?;
    let distance_multiplier = number(options, "distanceMultiplier")?;
    let query = match options.get("query") {
        None => Doc::new(),
        Some(Value::Document(query)) => query.to_doc(),
        Some(_) => return Err(Error::type_mismatch("query must be an object")),
    };
    let include_locations = match options.get("includeLocs") {
        None => None,
        Some(Value::String(path)) => Some(FieldPath::parse(path)?),
        Some(_) => return Err(Error::location(16607, "$geoNear requires that 'includeLocs' option is a String")),
    };
    let key = match options.get("key") {
        None => None,
        Some(Value::String(key)) if key.is_empty() => {
            return Err(Error::bad_value("$geoNear parameter 'key' cannot be the empty string"));
        }
        Some(Value::String(key)) => Some(FieldPath::lenient(key)?),
        Some(other) => {
            let reason =
                format!("$geoNear parameter 'key' must be of type string but found type: {}", other.value_type());
            return Err(Error::type_mismatch(reason));
        }
    };
    let is_spherical = options.get("spherical").is_some_and(|value| value.is_true());
    Ok(Arc::new(GeoNear {
        key,
        near,
        is_spherical,
        min_distance,
        max_distance,
        query,
        distance_multiplier,
        distance_field,
        include_locations,
        context: context.clone(),
    }))
}

fn refuse_old_options(options: DocRef<'_>) -> Result<()> {
    const REFUSED: [(&str, i32, &str); 4] = [
        (
            "collation",
            40227,
            "$geoNear does not accept the 'collation' parameter. Instead, specify a collation for the entire aggregation command.",
        ),
        ("limit", 50858, "$geoNear no longer supports the 'limit' parameter. Use a $limit stage instead."),
        ("num", 50857, "$geoNear no longer supports the 'num' parameter. Use a $limit stage instead."),
        ("start", 50856, "$geoNear no longer supports the 'start' argument."),
    ];
    match REFUSED.iter().find(|(name, ..)| options.contains(name)) {
        Some((_, code, reason)) => Err(Error::location(*code, *reason)),
        None => Ok(()),
    }
}

fn number(options: DocRef<'_>, name: &str) -> Result<Option<f64>> {
    let Some(value) = options.get(name) else { return Ok(None) };
    let Some(number) = value.to_double() else {
        return Err(Error::type_mismatch(format!("{name} must be a number")));
    };
    if number >= 0.0 {
        return Ok(Some(number));
    }
    Err(Error::bad_value(format!("{name} must be nonnegative")))
}

impl GeoNear {
    /// The filter that finds its documents.
    pub(crate) fn filter(&self, namespace: &Namespace, collection: Option<&Collection>) -> Result<Doc> {
        let Some(collection) = collection else {
            let reason = format!("$geoNear requires a geo index to run, but {namespace} does not exist");
            return Err(Error::new(ErrorCode::NamespaceNotFound, reason));
        };
        let key = match &self.key {
            Some(key) => key.text().to_owned(),
            None => indexed_field(namespace, collection)?,
        };
        let mut filter = DocBuilder::new();
        filter.append_all(self.query.view());
        let near = self.constant_near()?;
        filter.document(&key, |operators| {
            operators.append(if self.is_spherical { "$nearSphere" } else { "$near" }, near.view());
            operators.append_some("$minDistance", self.min_distance);
            operators.append_some("$maxDistance", self.max_distance);
        });
        Ok(filter.finish())
    }

    /// The field of measurements that is searched, on a time series.
    pub(super) fn key_on_measurements(&self) -> Result<&FieldPath> {
        if !self.query.is_empty() {
            let reason = "Must not specify 'query' for $geoNear on a time-series collection; use $match instead";
            return Err(Error::location(1_938_439, reason));
        }
        let reason = "Must specify 'key' option for $geoNear on a time-series collection";
        self.key.as_ref().ok_or_else(|| Error::location(5_860_206, reason))
    }

    /// The same search among buckets, which keep no distances.
    pub(super) fn on_buckets(&self, key: FieldPath) -> Result<GeoNear> {
        let distance_field = FieldPath::lenient(BUCKET_DISTANCE)?;
        Ok(GeoNear { key: Some(key), distance_field, include_locations: None, ..self.clone() })
    }

    /// The surroundings of its query, which is one of a pipeline, where no JavaScript is run.
    pub(crate) fn context(&self) -> ParseContext {
        self.context.clone().with_features(Features { javascript: false, ..Features::ALL })
    }

    /// The point and the distances.
    pub(super) fn near_query(&self) -> Result<NearQuery> {
        let near = self.constant_near()?;
        let mut operators = DocBuilder::new();
        operators.append(if self.is_spherical { "$nearSphere" } else { "$near" }, near.view());
        operators.append_some("$minDistance", self.min_distance);
        operators.append_some("$maxDistance", self.max_distance);
        NearQuery::parse(operators.finish().view())
    }

    /// The condition that everything fulfils which is near enough.
    pub(super) fn region(&self, key: &FieldPath, near: &NearQuery) -> Doc {
        let (_, greatest) = near.measured_range();
        let center = near.center.plane;
        let (shape, radius) = match near.center.is_spherical {
            // A little more, for what rounding takes.
            true => {
                let radius = pando_geo::sphere::radians(greatest) * ROUNDING + SLACK;
                ("$centerSphere", radius.min(std::f64::consts::PI))
            }
            false => ("$center", greatest * ROUNDING + SLACK * (1.0 + center.x.abs() + center.y.abs())),
        };
        let radius = if radius.is_finite() { radius } else { f64::MAX };
        let circle =
            Array::from_iter([OwnedValue::Array(Array::from_iter([center.x, center.y])), OwnedValue::Double(radius)]);
        Doc::from_iter([(key.text(), doc! { "$geoWithin": { (shape): circle } })])
    }

    /// Where the distances go.
    pub(crate) fn output(&self) -> NearOutput {
        NearOutput {
            distance: self.distance_field.clone(),
            multiplier: self.distance_multiplier.unwrap_or(1.0),
            location: self.include_locations.clone(),
        }
    }

    fn constant_near(&self) -> Result<OwnedValue> {
        let Some(near) = self.near.as_constant() else {
            return Err(Error::location(5860402, "$geoNear requires a constant near argument"));
        };
        match near {
            Some(value @ (Value::Document(_) | Value::Array(_))) => Ok(value.to_owned()),
            _ => {
                let reason = "$geoNear requires near argument to be a GeoJSON object or a legacy point(array)";
                Err(Error::location(5860401, reason))
            }
        }
    }
}

/// The one field with an index of places.
fn indexed_field(namespace: &Namespace, collection: &Collection) -> Result<bstr::BString> {
    for (kind, name) in [(IndexKind::TwoD, "2d"), (IndexKind::TwoDSphere, "2dsphere")] {
        let mut indexes = collection.ready_indexes().filter(|index| index.descriptor.kind == kind);
        let Some(index) = indexes.next() else { continue };
        if indexes.next().is_some() {
            let reason =
                format!("There is more than one {name} index on {namespace}; unsure which to use for $geoNear");
            return Err(Error::new(ErrorCode::IndexNotFound, reason));
        }
        let pattern = &index.descriptor.key_pattern;
        let field = pattern.elements().find(|field| field.value.as_str() == Some(name));
        if let Some(field) = field {
            return Ok(field.name.to_owned());
        }
    }
    let reason = "$geoNear requires a 2d or 2dsphere index, but none were found";
    Err(Error::new(ErrorCode::IndexNotFound, reason))
}

impl StageSpec for GeoNear {
    fn name(&self) -> &'static str {
        "$geoNear"
    }

    fn start(&self, source: Box<dyn DocumentSource>) -> Result<Box<dyn DocumentSource>> {
        // The query that comes before has done it all.
        Ok(source)
    }

    fn to_doc(&self) -> Doc {
        let mut out = DocBuilder::new();
        out.document("$geoNear", |options| {
            options.append_some("key", self.key.as_ref().map(|key| key.text().to_owned()));
            options.append("near", self.near.to_value().view());
            options.append("distanceField", self.distance_field.text());
            options.append_some("maxDistance", self.max_distance);
            options.append_some("minDistance", self.min_distance);
            options.append("query", &self.query);
            options.append("spherical", self.is_spherical);
            options.append_some("distanceMultiplier", self.distance_multiplier);
            options.append_some("includeLocs", self.include_locations.as_ref().map(|path| path.text().to_owned()));
        });
        out.finish()
    }

    fn pushdown(&self) -> Pushdown<'_> {
        Pushdown::GeoNear(self)
    }

    fn must_be_first(&self) -> bool {
        true
    }
}
