//! The fields of the last measurement: most measurements of a source have the same, in the same order.
//!
//! What has to be known of a field by its name (its column, its extremes) is looked up once. A measurement whose names are those of the
//! shape is added without another look at them.

use super::Bucket;
use crate::TimeseriesOptions;
use pando_doc::{DocRef, ValueType};

/// A field of the last measurement.
#[derive(Clone, Debug)]
pub(super) struct ShapeField {
    name: Vec<u8>,
    /// Its places; none of the meta field.
    pub(super) places: Option<Places>,
}

/// Where a field is in the bucket.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places {
    pub(super) column: usize,
    pub(super) least: usize,
    pub(super) greatest: usize,
}

/// The fields in their order; none while they are not known, or where two have one name.
pub(super) type Shape = Vec<ShapeField>;

/// Measurements with more fields are looked at one by one.
const FIELDS_MAX: usize = 64;

impl Bucket {
    #[cfg(test)]
    pub(crate) fn forget_shape(&mut self) {
        self.shape.clear();
    }

    /// True if the measurement has the fields of the last one, all of them scalars.
    pub(super) fn has_shape(&self, measurement: DocRef<'_>) -> bool {
        let mut fields = self.shape.iter();
        let is_alike = measurement.raw_elements().all(|element| {
            let is_nested = matches!(element.value_type, ValueType::Document | ValueType::Array);
            !is_nested && fields.next().is_some_and(|field| **element.name == *field.name)
        });
        is_alike && fields.next().is_none() && !self.shape.is_empty()
    }

    /// Remembers the fields of a measurement that was added.
    pub(super) fn learn_shape(&mut self, measurement: DocRef<'_>, options: &TimeseriesOptions) {
        self.shape.clear();
        for element in measurement.raw_elements() {
            let name: &[u8] = element.name;
            let is_meta = options.meta_field.as_deref().is_some_and(|meta| element.name == meta);
            let places = || {
                let (least, greatest) = (self.least.find(name)?, self.greatest.find(name)?);
                Some(Places { column: self.place(name, usize::MAX)?, least, greatest })
            };
            let places = if is_meta { None } else { places() };
            let is_known = is_meta || places.is_some();
            if !is_known || self.shape.len() >= FIELDS_MAX || self.shape.iter().any(|field| field.name == name) {
                self.shape.clear();
                return;
            }
            self.shape.push(ShapeField { name: name.to_vec(), places });
        }
    }
}
