//! `$geoWithin`, `$geoIntersects` and `$near`.
//!
//! A `$near` has its distances beside it, as operators of the same document; so it is read as a whole.

use super::Parser;
use crate::matcher::Predicate;
use pando_base::{Error, Result};
use pando_doc::{DocRef, Value};
use pando_geo::{GeoPredicate, NearQuery};
use std::sync::Arc;

pub(super) fn predicate(operators: DocRef<'_>) -> Result<Predicate> {
    GeoPredicate::parse(operators).map(|geo| Predicate::Geo(Arc::new(geo)))
}

impl Parser<'_> {
    /// The search by distance that these operators are, if they begin like one.
    pub(super) fn near(&self, operators: DocRef<'_>) -> Result<Option<Predicate>> {
        let Some(first) = operators.first() else { return Ok(None) };
        let is_near = matches!(&**first.name, b"$near" | b"$nearSphere" | b"$geoNear");
        if !is_near || !matches!(first.value, Value::Document(_) | Value::Array(_)) {
            return Ok(None);
        }
        if !self.context.features.geo_near {
            let reason = "$geoNear, $near, and $nearSphere are not allowed in this context, as these operators require sorting geospatial data. If you do not need sort, consider using $geoWithin instead. Check out https://dochub.mongodb.org/core/near-sort-operation and https://dochub.mongodb.org/core/nearSphere-sort-operation";
            return Err(Error::location(5626500, reason));
        }
        NearQuery::parse(operators).map(|near| Some(Predicate::Near(Arc::new(near))))
    }
}
