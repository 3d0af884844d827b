//! All fail points a server knows.

use super::mode::FailPointMode;
use super::point::AnyFailPoint;
use crate::{Error, ErrorCode, Result, ensure};
use bytes::Bytes;
use std::collections::BTreeMap;

/// The fail points by name.
pub struct FailPointSet(BTreeMap<&'static str, &'static dyn AnyFailPoint>);

impl FailPointSet {
    /// Puts the lists together. Two points of one name are a defect.
    pub fn new(lists: &[&[&'static dyn AnyFailPoint]]) -> Result<FailPointSet> {
        let mut points = BTreeMap::new();
        for point in lists.iter().flat_map(|list| list.iter()) {
            let before = points.insert(point.name(), *point);
            ensure!(before.is_none(), ErrorCode::location(51006), "Fail point already registered: {}", point.name());
        }
        Ok(FailPointSet(points))
    }

    /// The point of this name.
    pub fn find(&self, name: &str) -> Result<&'static dyn AnyFailPoint> {
        let not_found = || Error::new(ErrorCode::FailPointSetFailed, format!("{name} not found"));
        self.0.get(name).copied().ok_or_else(not_found)
    }

    /// Sets a point; see [`FailPoint::set`](super::FailPoint::set).
    pub fn set(&self, name: &str, mode: FailPointMode, data: Bytes, seed: u64) -> Result<u64> {
        self.find(name)?.set(mode, data, seed)
    }

    /// Turns all off.
    pub fn turn_all_off(&self) {
        self.0.values().for_each(|point| point.turn_off());
    }

    /// The points, by name.
    pub fn list(&self) -> impl Iterator<Item = &'static dyn AnyFailPoint> + '_ {
        self.0.values().copied()
    }
}
