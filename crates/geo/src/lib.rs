//! Places, without collections: shapes on the plane and on the sphere, how they lie to each other, and what covers them in an index.
//!
//! - [`Geometry`]: a shape that a document holds or a query asks about; `parse` reads it.
//! - [`GeoPredicate`]: the condition of a `$geoWithin` or `$geoIntersects`.
//! - [`NearQuery`]: the point and distances of a `$near`.
//! - [`plane`]: legacy points and shapes, where coordinates are numbers without meaning, and the cells of `2d` indexes.
//! - [`sphere`]: GeoJSON, where coordinates are degrees on a ball, and the cells of `2dsphere` indexes.
//!
//! Invariants: a covering holds every point of the shape, with its border; cells of a covering do not overlap. What a predicate says does not
//! depend on coverings. Longitude and latitude of a shape on the sphere are within bounds, and its rings are valid, or it could not be read.
//!
//! This crate must not know indexes, plans or commands.

mod geometry;
mod near;
mod parse;
pub mod plane;
mod predicate;
pub mod sphere;

#[cfg(test)]
mod tests;

pub use geometry::{Geometry, Place, Shapes};
pub use near::NearQuery;
pub use parse::{is_legacy_point, parse_query_point, parse_stored};
pub use predicate::{GeoPredicate, Relation};

/// The radius of the earth that distances in metres are reckoned with.
pub const EARTH_RADIUS_METRES: f64 = 6_378_100.0;
