//! Text search: the records that have one of the terms, and their documents.
//!
//! If somebody asks for scores, every key of every term is read before the first result: a score is the sum of all terms' scores. Else each
//! record comes out when its first key is met. Documents are looked at for what the index cannot tell: phrases, words that must not be
//! there, differences of case and diacritics. One that may have changed since its keys were read is looked at again in any case. Where
//! the index tells everything and only the count is asked for, documents are not got at all.

use super::{Examined, IndexKey, KeyLayout, Member, Metadata, Stage, Step, plan_killed};
use crate::planner::TextPlan;
use bstr::BStr;
use pando_base::{RecordId, Result};
use pando_catalog::Collection;
use pando_doc::{Doc, DocBuilder, FieldPath, Value, doc};
use pando_keystring::{KeyOrdering, StackBuilder, Version};
use pando_operation::Operation;
use pando_storage::{Direction, IndexCursor, SnapshotId};
use pando_text::term_key;
use std::collections::HashMap;
use std::sync::Arc;

/// Searches.
pub struct TextStage {
    plan: TextPlan,
    collection: Arc<Collection>,
    layout: Arc<KeyLayout>,
    cursor: IndexCursor,
    /// What the keys of each term begin with, last first.
    prefixes: Vec<Vec<u8>>,
    is_placed: bool,
    /// Records whose keys were met, with the sum of their scores.
    scores: HashMap<RecordId, f64>,
    /// The snapshot that all keys were read under; none if there were several.
    snapshot: Option<SnapshotId>,
    /// What was found, last first; none while keys are read.
    found: Option<Vec<(RecordId, f64)>>,
    /// A record that was met and is to come out now.
    met: Option<RecordId>,
    keys_examined: u64,
    documents_examined: u64,
}

impl TextStage {
    /// A search that has read nothing yet.
    pub fn new(plan: TextPlan, collection: &Arc<Collection>) -> Result<TextStage> {
        let descriptor = &plan.index.descriptor;
        let pattern = descriptor.key_pattern.view();
        let ordering = KeyOrdering::from_pattern(pattern)?;
        let version = Version::V1;
        let paths = pattern.elements().map(|field| FieldPath::lenient(field.name)).collect::<Result<_>>()?;
        let mut prefixes = Vec::new();
        for term in plan.query.index_terms() {
            let mut key = StackBuilder::new(version, ordering);
            plan.prefix.iter().try_for_each(|value| key.append(value.view()))?;
            key.append(Value::String(BStr::new(&term_key(term))))?;
            prefixes.push(key.bytes().to_vec());
        }
        prefixes.reverse();
        plan.index.usage.increment();
        Ok(TextStage {
            cursor: plan.index.data.cursor(Direction::Forward),
            layout: Arc::new(KeyLayout { paths, ordering, version }),
            collection: Arc::clone(collection),
            plan,
            prefixes,
            is_placed: false,
            scores: HashMap::new(),
            snapshot: None,
            found: None,
            met: None,
            keys_examined: 0,
            documents_examined: 0,
        })
    }

    /// Reads one key; false at the end of all terms.
    fn read_key(&mut self, operation: &mut Operation) -> Result<bool> {
        let Some(prefix) = self.prefixes.last() else { return Ok(false) };
        let unit = &mut operation.recovery_unit;
        let entry = match self.is_placed {
            true => self.cursor.next(unit)?,
            false => self.cursor.seek(unit, prefix)?,
        };
        self.is_placed = true;
        let Some(entry) = entry.filter(|entry| entry.key.starts_with(prefix)) else {
            self.prefixes.pop();
            self.is_placed = false;
            return Ok(true);
        };
        self.keys_examined += 1;
        let snapshot = operation.recovery_unit.snapshot_id();
        if !self.plan.wants_score {
            if !self.scores.contains_key(&entry.record_id) {
                self.scores.insert(entry.record_id.clone(), 0.0);
                self.met = Some(entry.record_id);
                self.snapshot = snapshot;
            }
            return Ok(true);
        }
        let score_place = self.plan.prefix.len() + 1;
        let values = IndexKey::new(&self.layout, entry.key, entry.type_bits).values()?;
        let score = values.get(score_place).and_then(|value| value.view().to_double()).unwrap_or(0.0);
        *self.scores.entry(entry.record_id).or_default() += score;
        // Keys read under several snapshots are of no one in particular.
        self.snapshot = match (self.keys_examined, self.snapshot) {
            (1, _) => snapshot,
            (_, known) if known == snapshot => known,
            _ => None,
        };
        Ok(true)
    }

    /// All keys were read: what was found comes out, the best first if that is wanted.
    fn turn_around(&mut self) {
        let scores = std::mem::take(&mut self.scores);
        let mut found: Vec<(RecordId, f64)> =
            if self.plan.wants_score { scores.into_iter().collect() } else { Vec::new() };
        match self.plan.is_by_score {
            true => found.sort_by(|one, two| two.1.total_cmp(&one.1).then_with(|| one.0.cmp(&two.0))),
            false => found.sort_by(|one, two| one.0.cmp(&two.0)),
        }
        found.reverse();
        self.found = Some(found);
    }

    /// The stages that MongoDB has below: a scan for each term, and what brings them together.
    fn below(&self) -> Doc {
        let scan = doc! {
            "stage": "IXSCAN",
            "keyPattern": &self.plan.index.descriptor.key_pattern,
            "indexName": self.plan.index.name(),
            "isMultiKey": self.plan.index.multikey.is_multikey(),
            "isUnique": false,
            "isSparse": false,
            "isPartial": self.plan.index.descriptor.partial_filter.is_some(),
            "indexVersion": (self.plan.index.descriptor.version),
            "direction": "backward",
            "indexBounds": {},
        };
        let count = self.plan.query.index_terms().count();
        let mut all = DocBuilder::new();
        all.append("stage", if self.plan.wants_score { "TEXT_OR" } else { "OR" });
        match count {
            1 => all.append("inputStage", &scan),
            _ => all.array("inputStages", |scans| (0..count).for_each(|_| scans.push(&scan))),
        }
        match (self.plan.wants_score, count) {
            (true, _) => all.finish(),
            (false, 1) => doc! { "stage": "FETCH", "inputStage": scan },
            (false, _) => doc! { "stage": "FETCH", "inputStage": (all.finish()) },
        }
    }

    /// The next of what was found.
    fn fetch_found(&mut self, operation: &mut Operation) -> Result<Step> {
        let Some((id, score)) = self.found.as_ref().and_then(|found| found.last()).cloned() else {
            return Ok(Step::Finished);
        };
        let step = self.fetch(operation, id, Some(score))?;
        if let Some(found) = &mut self.found {
            found.pop();
        }
        Ok(step)
    }

    fn fetch(&mut self, operation: &mut Operation, id: RecordId, text_score: Option<f64>) -> Result<Step> {
        let metadata = Metadata { text_score, ..Metadata::default() };
        let is_decided = self.plan.query.is_decided_by_index();
        let found_under = self.snapshot;
        if self.plan.is_count && is_decided && self.plan.filter.is_none() {
            let (record_id, snapshot) = (Some(id), found_under);
            return Ok(Step::Advanced(Member { record_id, document: None, snapshot, key: None, metadata }));
        }
        let bytes = self.collection.records.get(&mut operation.recovery_unit, &id)?;
        self.documents_examined += 1;
        let Some(bytes) = bytes else { return Ok(Step::NeedTime) };
        let document = Doc::trusted(bytes);
        let snapshot = operation.recovery_unit.snapshot_id();
        let is_certain = is_decided && snapshot.is_some() && found_under == snapshot;
        if !is_certain && !self.plan.query.matches(&self.plan.spec, document.view())? {
            return Ok(Step::NeedTime);
        }
        if let Some(filter) = &self.plan.filter
            && !filter.try_matches(document.view())?
        {
            return Ok(Step::NeedTime);
        }
        Ok(Step::Advanced(Member { record_id: Some(id), document: Some(document), snapshot, key: None, metadata }))
    }
}

impl Stage for TextStage {
    fn work(&mut self, operation: &mut Operation) -> Result<Step> {
        if self.found.is_some() {
            return self.fetch_found(operation);
        }
        if self.met.is_none() && !self.read_key(operation)? {
            self.turn_around();
        }
        // Before an error it is kept.
        let Some(id) = self.met.clone() else { return Ok(Step::NeedTime) };
        let step = self.fetch(operation, id, None)?;
        self.met = None;
        Ok(step)
    }

    fn name(&self) -> &'static str {
        "TEXT_MATCH"
    }

    fn save(&mut self) {
        self.cursor.save();
    }

    fn restore(&mut self, _operation: &mut Operation, collection: &Arc<Collection>) -> Result<()> {
        let index = &self.plan.index;
        if !collection.ready_indexes().any(|known| known.ident() == index.ident()) {
            return Err(plan_killed(format!("query plan killed :: index '{}' dropped", index.name())));
        }
        self.collection = Arc::clone(collection);
        Ok(())
    }

    fn describe(&self, out: &mut DocBuilder) {
        if let Some(filter) = &self.plan.filter {
            out.append("filter", filter.to_document());
        }
        out.document("indexPrefix", |prefix| {
            for (path, value) in self.layout.paths.iter().zip(&self.plan.prefix) {
                prefix.append(path.text(), value.view());
            }
        });
        out.append("indexName", self.plan.index.name());
        let query = &self.plan.query;
        out.document("parsedTextQuery", |parsed| {
            parsed.array("terms", |array| query.terms().for_each(|term| array.push(term)));
            parsed.array("negatedTerms", |array| query.negated_terms().for_each(|term| array.push(term)));
            parsed.array("phrases", |array| query.phrases().iter().for_each(|phrase| array.push(phrase.as_str())));
            parsed.array("negatedPhrases", |array| {
                query.negated_phrases().iter().for_each(|phrase| array.push(phrase.as_str()));
            });
        });
        out.append("textIndexVersion", 3_i32);
        out.append("inputStage", self.below());
    }

    fn describe_run(&self, out: &mut DocBuilder) {
        let int = |count: u64| i32::try_from(count).unwrap_or(i32::MAX);
        out.append("keysExamined", int(self.keys_examined));
        out.append("docsExamined", int(self.documents_examined));
    }

    fn examined(&self) -> Examined {
        Examined { keys: self.keys_examined, documents: self.documents_examined }
    }
}
