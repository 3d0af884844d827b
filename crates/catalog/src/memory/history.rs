//! Where names led in the past: for each name the collections that had it, by time.
//!
//! It only finds the record of the durable catalog to look at; what the collection was like, and whether it was there at
//! all, is read from that record in the reader's snapshot. So an entry too many does no harm.
//!
//! Nothing is known from before the floor, which is where the catalog was read from disk: then the durable catalog is
//! searched. What oldest has passed is pruned, found by the time at which it was superseded, so that pruning costs what
//! there is to prune.

use imbl::{OrdMap, OrdSet};
use pando_base::{Namespace, RecordId, Timestamp, Uuid};
use std::sync::Arc;

/// From some time on a name led to this collection, or to none.
#[derive(Clone, Debug, PartialEq, Eq)]
struct NameVersion {
    from: Timestamp,
    catalog_id: Option<RecordId>,
}

/// What is known about a name at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PastName {
    /// It led there.
    Collection(RecordId),
    /// It led nowhere.
    Nothing,
    /// It was before anything is known.
    Unknown,
}

/// The past of all names.
#[derive(Clone, Default)]
pub(super) struct History {
    floor: Timestamp,
    by_name: OrdMap<Namespace, Arc<[NameVersion]>>,
    /// Ids of dropped collections, with the time of the drop.
    dropped: OrdMap<Uuid, (RecordId, Timestamp)>,
    /// When something was superseded.
    superseded: OrdSet<(Timestamp, Superseded)>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Superseded {
    Name(Namespace),
    Id(Uuid),
}

impl History {
    pub(super) fn starting_at(floor: Timestamp) -> History {
        History { floor, ..History::default() }
    }

    /// From now on the name leads there. Without a timestamp that holds for all times. False if it led there before.
    pub(super) fn record(&mut self, namespace: &Namespace, catalog_id: Option<RecordId>, at: Timestamp) -> bool {
        let known = self.by_name.get(namespace);
        let last = known.and_then(|versions| versions.last());
        if last.map_or(catalog_id.is_none(), |last| last.catalog_id == catalog_id) {
            return false;
        }
        let earlier = known.into_iter().flat_map(|versions| versions.iter()).filter(|version| version.from < at);
        let versions: Arc<[NameVersion]> =
            earlier.cloned().chain([NameVersion { from: at, catalog_id: catalog_id.clone() }]).collect();
        if catalog_id.is_none() && at.is_none() {
            self.by_name.remove(namespace);
            return true;
        }
        if versions.len() > 1 || catalog_id.is_none() {
            self.superseded.insert((at, Superseded::Name(namespace.clone())));
        }
        self.by_name.insert(namespace.clone(), versions);
        true
    }

    /// True if anything is remembered of the name.
    pub(super) fn knows(&self, namespace: &Namespace) -> bool {
        self.by_name.contains_key(namespace)
    }

    /// True if something can be forgotten.
    pub(super) fn can_prune(&self, oldest: Timestamp) -> bool {
        self.superseded.get_min().is_some_and(|(at, _)| *at <= oldest)
    }

    /// A collection was dropped.
    pub(super) fn record_drop(&mut self, uuid: Uuid, catalog_id: RecordId, at: Timestamp) {
        if at.is_some() {
            self.dropped.insert(uuid, (catalog_id, at));
            self.superseded.insert((at, Superseded::Id(uuid)));
        }
    }

    /// Where a name led.
    pub(super) fn name(&self, namespace: &Namespace, at: Timestamp) -> PastName {
        let versions = self.by_name.get(namespace);
        let found = versions.and_then(|versions| versions.iter().rev().find(|version| version.from <= at));
        match found {
            Some(NameVersion { catalog_id: Some(id), .. }) => PastName::Collection(id.clone()),
            Some(_) => PastName::Nothing,
            None if at < self.floor => PastName::Unknown,
            None => PastName::Nothing,
        }
    }

    /// The record of a dropped collection.
    pub(super) fn id(&self, uuid: &Uuid, at: Timestamp) -> PastName {
        match self.dropped.get(uuid) {
            Some((id, _)) => PastName::Collection(id.clone()),
            None if at < self.floor => PastName::Unknown,
            None => PastName::Nothing,
        }
    }

    /// Forgets what nobody can read any more.
    pub(super) fn prune(&mut self, oldest: Timestamp) {
        while let Some((at, what)) = self.superseded.get_min().cloned().filter(|(at, _)| *at <= oldest) {
            self.superseded.remove(&(at, what.clone()));
            match what {
                Superseded::Name(namespace) => self.prune_name(&namespace, oldest),
                Superseded::Id(uuid) => {
                    self.dropped.remove(&uuid);
                }
            }
        }
    }

    fn prune_name(&mut self, namespace: &Namespace, oldest: Timestamp) {
        let Some(versions) = self.by_name.get(namespace) else { return };
        let base = versions.iter().rposition(|version| version.from <= oldest).unwrap_or(0);
        let kept = versions.get(base..).unwrap_or_default();
        match kept {
            [] => {}
            [NameVersion { catalog_id: None, .. }] => {
                self.by_name.remove(namespace);
            }
            kept => {
                let kept = kept.into();
                self.by_name.insert(namespace.clone(), kept);
            }
        }
    }

    /// How much is remembered, for tests and reports.
    pub(super) fn len(&self) -> usize {
        self.by_name.values().map(|versions| versions.len()).sum::<usize>() + self.dropped.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp(seconds)
    }

    fn id(number: i64) -> RecordId {
        RecordId::Long(number)
    }

    #[test]
    fn x2_a_name_leads_where_it_led_then() {
        let name = Namespace::of("test", "a").unwrap();
        let mut history = History::starting_at(at(10));
        history.record(&name, Some(id(1)), at(20));
        history.record(&name, None, at(30));
        history.record(&name, Some(id(2)), at(40));
        assert!(!history.record(&name, Some(id(2)), at(50)), "another version of the same collection");
        assert_eq!(history.len(), 3);
        let expected = [
            (5, PastName::Unknown),
            (15, PastName::Nothing),
            (20, PastName::Collection(id(1))),
            (29, PastName::Collection(id(1))),
            (30, PastName::Nothing),
            (99, PastName::Collection(id(2))),
        ];
        for (time, expected) in expected {
            assert_eq!(history.name(&name, at(time)), expected, "{time}");
        }
    }

    #[test]
    fn x2_what_oldest_has_passed_is_forgotten() {
        let (name, uuid) = (Namespace::of("test", "a").unwrap(), Uuid::from_random([1; 16]));
        let mut history = History::starting_at(at(1));
        history.record(&name, Some(id(1)), at(20));
        history.record(&name, None, at(30));
        history.record_drop(uuid, id(1), at(30));
        history.prune(at(29));
        assert_eq!(history.name(&name, at(29)), PastName::Collection(id(1)));
        assert_eq!(history.id(&uuid, at(29)), PastName::Collection(id(1)));
        history.prune(at(30));
        assert_eq!(history.len(), 0);
        assert_eq!(history.name(&name, at(30)), PastName::Nothing);
        history.record(&name, Some(id(2)), at(40));
        history.record(&name, Some(id(3)), at(50));
        history.prune(at(60));
        assert_eq!(history.len(), 1);
        assert_eq!(history.name(&name, at(60)), PastName::Collection(id(3)));
        assert!(history.superseded.is_empty());
    }

    #[test]
    fn x2_what_has_no_timestamp_holds_for_all_times() {
        let name = Namespace::of("local", "a").unwrap();
        let mut history = History::starting_at(at(10));
        history.record(&name, Some(id(1)), Timestamp::NONE);
        assert_eq!(history.name(&name, at(5)), PastName::Collection(id(1)));
        history.record(&name, None, Timestamp::NONE);
        assert_eq!(history.len(), 0);
    }
}
