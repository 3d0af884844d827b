//! One line of the log.

use super::component::{Component, Severity};
use super::value::LogValue;
use std::sync::Arc;

/// A line, before it is written in one way or another.
#[derive(Clone, Debug)]
pub struct LogLine {
    /// When: milliseconds since 1970.
    pub time_ms: u64,
    /// How grave.
    pub severity: Severity,
    /// About what.
    pub component: Component,
    /// The number of this message, for ever.
    pub id: i32,
    /// Who speaks: "conn7", "TTLMonitor".
    pub context: Arc<str>,
    /// The message, without values.
    pub message: &'static str,
    /// The values.
    pub attributes: Vec<(&'static str, LogValue)>,
    /// True if the line is one of those that a shell shows when it connects.
    pub is_startup_warning: bool,
}
