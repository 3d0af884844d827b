//! Which databases are profiled.
//!
//! A database has a level (0: not, 1: slow operations, 2: all) and perhaps a filter, which takes the place of the threshold
//! and the sample rate. Both go with the database. One without settings of its own has those that the node was started with.
//!
//! Mostly nothing is profiled anywhere; that is one load.

use super::filter::ProfileFilter;
use pando_base::DatabaseName;
use parking_lot::RwLock;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

/// How a database is profiled.
#[derive(Clone, Debug, Default)]
pub struct ProfileSettings {
    /// 0, 1 or 2.
    pub level: i32,
    /// Which operations are logged, and profiled at level 1.
    pub filter: Option<Arc<ProfileFilter>>,
}

impl ProfileSettings {
    fn is_plain(&self) -> bool {
        self.level == 0 && self.filter.is_none()
    }
}

/// The settings of a node's databases, and what was written because of them.
#[derive(Debug, Default)]
pub struct Profiler {
    settings: RwLock<AllSettings>,
    /// Some database has settings that ask for something.
    is_any: AtomicBool,
    /// Documents written.
    pub writes: AtomicI64,
    /// Writes in progress.
    pub active_writers: AtomicI64,
}

#[derive(Debug, Default)]
struct AllSettings {
    usual: ProfileSettings,
    of_databases: HashMap<DatabaseName, ProfileSettings>,
}

impl Profiler {
    /// A profiler of a node that was started with these settings.
    pub fn new(usual: ProfileSettings) -> Profiler {
        let is_any = AtomicBool::new(!usual.is_plain());
        Profiler {
            settings: RwLock::new(AllSettings { usual, of_databases: HashMap::new() }),
            is_any,
            ..Profiler::default()
        }
    }

    /// The settings of a database; none if nothing is asked for anywhere.
    #[inline]
    pub fn settings_if_any(&self, database: &DatabaseName) -> Option<ProfileSettings> {
        if !self.is_any.load(Ordering::Relaxed) {
            return None;
        }
        Some(self.settings(database)).filter(|settings| !settings.is_plain())
    }

    /// The settings of a database.
    pub fn settings(&self, database: &DatabaseName) -> ProfileSettings {
        let all = self.settings.read();
        all.of_databases.get(database).unwrap_or(&all.usual).clone()
    }

    /// Changes the settings of a database.
    pub fn set(&self, database: &DatabaseName, settings: ProfileSettings) {
        let mut all = self.settings.write();
        all.of_databases.insert(database.clone(), settings);
        self.note(&all);
    }

    /// Changes the filter of every database, and of those that have no settings of their own.
    pub fn set_filter_everywhere(&self, filter: Option<Arc<ProfileFilter>>) -> Option<Arc<ProfileFilter>> {
        let mut all = self.settings.write();
        all.of_databases.values_mut().for_each(|settings| settings.filter = filter.clone());
        let before = std::mem::replace(&mut all.usual.filter, filter);
        self.note(&all);
        before
    }

    /// The database is gone.
    pub fn forget(&self, database: &DatabaseName) {
        let mut all = self.settings.write();
        all.of_databases.remove(database);
        self.note(&all);
    }

    fn note(&self, all: &AllSettings) {
        let is_any = !all.usual.is_plain() || all.of_databases.values().any(|settings| !settings.is_plain());
        self.is_any.store(is_any, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u15_settings_go_with_their_database() {
        let (one, other) = (DatabaseName::new("one").unwrap(), DatabaseName::new("other").unwrap());
        let profiler = Profiler::new(ProfileSettings::default());
        assert!(profiler.settings_if_any(&one).is_none());
        profiler.set(&one, ProfileSettings { level: 2, filter: None });
        assert_eq!(profiler.settings_if_any(&one).map(|settings| settings.level), Some(2));
        assert!(profiler.settings_if_any(&other).is_none());
        profiler.forget(&one);
        assert_eq!(profiler.settings(&one).level, 0);
        let usual = Profiler::new(ProfileSettings { level: 1, filter: None });
        assert_eq!(usual.settings_if_any(&other).map(|settings| settings.level), Some(1));
    }
}
