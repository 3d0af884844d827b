//! What is made of descriptors.

use super::*;
use crate::{KeySet, SharedCollator};
use pando_base::{Error, Result};
use pando_catalog::{Collection, IndexDescriptor, MultikeyComponents};
use pando_doc::{DocRef, doc};
use pando_operation::Operation;

struct NoHooks;

impl IndexHooks for NoHooks {
    fn filter(
        &self,
        _descriptor: &IndexDescriptor,
        _expression: DocRef<'_>,
        _collator: Option<&SharedCollator>,
    ) -> Result<Arc<dyn DocumentFilter>> {
        Err(Error::bad_value("no filters here"))
    }

    fn collator(&self, _collation: DocRef<'_>) -> Result<SharedCollator> {
        Err(Error::bad_value("no collations here"))
    }

    fn set_multikey(
        &self,
        _operation: &mut Operation,
        _collection: &Collection,
        _index: &Index,
        _paths: &[MultikeyComponents],
    ) -> Result<()> {
        Ok(())
    }
}

fn descriptor(field: &str) -> Arc<IndexDescriptor> {
    let specification = doc! { "v": 2_i32, "key": { "x.y": 1_i32 }, "name": field };
    Arc::new(IndexDescriptor::parse(specification.view()).unwrap())
}

#[test]
fn descriptors_that_are_gone_are_swept_out() {
    let cache = AccessCache::default();
    let kept: Vec<_> = (0..10).map(|number| descriptor(&format!("kept{number}"))).collect();
    let make = |descriptor: &Arc<IndexDescriptor>| {
        let access = Arc::new(IndexAccess::new(descriptor, &NoHooks).unwrap());
        cache.insert(descriptor, &access);
        access
    };
    let first: Vec<_> = kept.iter().map(make).collect();
    (0..1000).for_each(|number| drop(make(&descriptor(&format!("gone{number}")))));
    assert!(cache.len() <= 65, "{} entries", cache.len());
    for (descriptor, access) in kept.iter().zip(&first) {
        assert!(Arc::ptr_eq(&cache.get(descriptor).unwrap(), access));
    }
    assert!(cache.get(&descriptor("new")).is_none());
}

#[test]
fn u7_only_fields_of_the_key_matter_to_an_update() {
    let access = IndexAccess::new(&descriptor("n"), &NoHooks).unwrap();
    let old = doc! { "_id": 1_i32, "x": { "y": 1_i32, "z": 1_i32 }, "o": 1_i32 };
    let differs = |new: pando_doc::Doc| access.may_differ(old.view(), new.view());
    assert!(!differs(doc! { "x": { "y": 1_i32, "z": 1_i32 }, "o": 2_i32 }));
    assert!(differs(doc! { "x": { "y": 1.0, "z": 1_i32 } }));
    assert!(differs(doc! { "o": 1_i32 }));
    assert!(!access.may_differ(doc! { "a": 1_i32 }.view(), doc! { "b": 1_i32 }.view()));
}

#[test]
fn u7_what_cannot_be_made_is_an_error_at_once() {
    let with = |more: pando_doc::Doc| {
        let mut specification = pando_doc::DocBuilder::new();
        specification.append_all(doc! { "v": 2_i32, "key": { "a": 1_i32 }, "name": "a_1" }.view());
        specification.append_all(more.view());
        let descriptor = IndexDescriptor::parse(specification.finish().view()).unwrap();
        IndexAccess::new(&descriptor, &NoHooks).map(|access| access.keys(DocRef::EMPTY, &mut KeySet::new()))
    };
    assert!(with(doc! {}).is_ok());
    assert!(with(doc! { "partialFilterExpression": { "a": 1_i32 } }).is_err());
    assert!(with(doc! { "collation": { "locale": "fr" } }).is_err());
}
