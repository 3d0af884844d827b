//! One document of the durable catalog.

use crate::index::{MultikeyPaths, append_paths, parse_paths};
use crate::{CollectionOptions, IndexDescriptor};
use pando_base::{Context, Error, Namespace, Result, TenantId, Uuid};
use pando_doc::{Doc, DocBuilder, DocRef, ObjectId, Value};

/// What the catalog keeps about a collection.
#[derive(Clone, Debug, PartialEq)]
pub struct CatalogEntry {
    /// Its name.
    pub namespace: Namespace,
    /// Its options, with the id.
    pub options: CollectionOptions,
    /// Its indexes, in the order of their creation.
    pub indexes: Vec<IndexEntry>,
    /// Its table.
    pub ident: String,
    /// A time-series collection's buckets may mix schemas.
    pub timeseries_mixed_schema: Option<bool>,
}

/// What the catalog keeps about an index.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexEntry {
    /// What it is.
    pub specification: Doc,
    /// Built.
    pub ready: bool,
    /// Some document had several keys.
    pub multikey: bool,
    /// Through which components; none where that is not tracked.
    pub multikey_paths: MultikeyPaths,
    /// A secondary built it in the background.
    pub background_secondary: bool,
    /// The build that is under way.
    pub build_uuid: Option<Uuid>,
    /// Its table.
    pub ident: String,
}

impl IndexEntry {
    /// Its name.
    pub fn name(&self) -> &str {
        self.specification.get("name").and_then(|name| name.as_str()).unwrap_or_default()
    }

    /// What it is, read.
    pub fn descriptor(&self) -> Result<IndexDescriptor> {
        IndexDescriptor::parse(self.specification.view())
    }

    fn append_to(&self, builder: &mut DocBuilder) {
        builder.append("spec", &self.specification);
        builder.append("ready", self.ready);
        builder.append("multikey", self.multikey);
        if !self.multikey_paths.is_empty()
            && let Some(key) = self.specification.get("key").and_then(|key| key.as_document())
        {
            builder.document("multikeyPaths", |paths| append_paths(paths, key, &self.multikey_paths));
        }
        builder.append("head", 0_i64);
        builder.append("backgroundSecondary", self.background_secondary);
        if let Some(uuid) = &self.build_uuid {
            builder.append("buildUUID", Value::Binary { subtype: 4, bytes: uuid.as_bytes() });
        }
    }

    fn parse(document: DocRef<'_>, idents: DocRef<'_>) -> Result<IndexEntry> {
        let specification = required_document(document, "spec")?.to_doc();
        let is_true = |field: &str| document.get(field).is_some_and(|value| value.is_true());
        let paths = document.get("multikeyPaths").and_then(|paths| paths.as_document());
        let mut entry = IndexEntry {
            specification,
            ready: is_true("ready"),
            multikey: is_true("multikey"),
            multikey_paths: paths.map_or_else(|| Ok(MultikeyPaths::new()), parse_paths)?,
            background_secondary: is_true("backgroundSecondary"),
            build_uuid: document.get("buildUUID").map(crate::options::parse_uuid).transpose()?,
            ident: String::new(),
        };
        let ident = idents.get(entry.name()).and_then(|ident| ident.as_str());
        let missing = || Error::failed_to_parse(format!("index '{}' has no ident", entry.name()));
        entry.ident = ident.ok_or_else(missing)?.to_owned();
        Ok(entry)
    }
}

impl CatalogEntry {
    /// The index of this name.
    pub fn index(&self, name: &str) -> Option<&IndexEntry> {
        self.indexes.iter().find(|index| index.name() == name)
    }

    /// The same, to change it.
    pub fn index_mut(&mut self, name: &str) -> Option<&mut IndexEntry> {
        self.indexes.iter_mut().find(|index| index.name() == name)
    }

    /// The collection's id.
    pub fn uuid(&self) -> Option<Uuid> {
        self.options.uuid
    }

    /// Every table that belongs to it.
    pub fn idents(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.ident.as_str()).chain(self.indexes.iter().map(|index| index.ident.as_str()))
    }

    /// The document.
    pub fn to_doc(&self) -> Doc {
        let mut builder = DocBuilder::new();
        builder.document("md", |md| {
            md.append("ns", self.namespace.as_str());
            md.append("options", self.options.to_doc());
            md.array("indexes", |indexes| {
                self.indexes.iter().for_each(|index| indexes.document(|document| index.append_to(document)));
            });
            md.append_some("timeseriesBucketsMayHaveMixedSchemaData", self.timeseries_mixed_schema);
        });
        builder.document("idxIdent", |idents| {
            self.indexes.iter().for_each(|index| idents.append(index.name(), index.ident.as_str()));
        });
        builder.append("ns", self.namespace.as_str());
        if let Some(tenant) = self.namespace.tenant() {
            builder.append("tenant", ObjectId::from_bytes(tenant.0));
        }
        builder.append("ident", self.ident.as_str());
        builder.finish()
    }

    /// Reads a document.
    pub fn parse(document: DocRef<'_>) -> Result<CatalogEntry> {
        let md = required_document(document, "md")?;
        let text = |field: &str| {
            let missing = || Error::failed_to_parse(format!("a catalog entry has no '{field}'"));
            document.get(field).and_then(|value| value.as_str()).ok_or_else(missing)
        };
        let tenant = document.get("tenant").and_then(|tenant| tenant.as_object_id()).map(|id| TenantId(*id.bytes()));
        let namespace = Namespace::parse_with_tenant(tenant, text("ns")?)?;
        let idents = document.get("idxIdent").and_then(|idents| idents.as_document());
        let indexes = md.get("indexes").and_then(|indexes| indexes.as_array());
        let parse_index = |value: Value<'_>| {
            let index = value.as_document().ok_or_else(|| Error::failed_to_parse("an index is not a document"))?;
            IndexEntry::parse(index, idents.unwrap_or(Doc::new().view()))
        };
        let parse = || -> Result<CatalogEntry> {
            Ok(CatalogEntry {
                namespace: namespace.clone(),
                options: CollectionOptions::parse_stored(required_document(md, "options")?)?,
                indexes: indexes
                    .into_iter()
                    .flat_map(|array| array.values())
                    .map(parse_index)
                    .collect::<Result<_>>()?,
                ident: text("ident")?.to_owned(),
                timeseries_mixed_schema: md
                    .get("timeseriesBucketsMayHaveMixedSchemaData")
                    .and_then(|value| value.as_bool()),
            })
        };
        parse().with_context(|| format!("the catalog entry of {namespace}"))
    }
}

fn required_document<'a>(document: DocRef<'a>, field: &str) -> Result<DocRef<'a>> {
    let missing = || Error::failed_to_parse(format!("a catalog entry has no document '{field}'"));
    document.get(field).and_then(|value| value.as_document()).ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MultikeyComponents;
    use pando_doc::{doc, doc_from_json};

    pub(crate) fn entry() -> CatalogEntry {
        let index = |name: &str, key: Doc, ident: &str| IndexEntry {
            specification: doc! { "v": 2, "key": key, "name": name },
            ready: true,
            multikey: false,
            multikey_paths: [MultikeyComponents::NONE].into_iter().collect(),
            background_secondary: false,
            build_uuid: None,
            ident: ident.to_owned(),
        };
        let mut last_name = index("lastName_1", doc! { "lastName": 1 }, "index-2--7");
        last_name.ready = false;
        last_name.build_uuid = Some(Uuid::from_random([9; 16]));
        CatalogEntry {
            namespace: Namespace::of("test", "employees").unwrap(),
            options: CollectionOptions { uuid: Some(Uuid::from_random([5; 16])), ..CollectionOptions::default() },
            indexes: vec![index("_id_", doc! { "_id": 1 }, "index-1--7"), last_name],
            ident: "collection-0--7".to_owned(),
            timeseries_mixed_schema: None,
        }
    }

    #[test]
    fn x1_an_entry_has_mongodbs_form_and_reads_back() {
        let entry = entry();
        let document = entry.to_doc();
        let expected = doc_from_json(
            r#"{"md": {"ns": "test.employees",
                "options": {"uuid": {"$binary": {"base64": "BQUFBQUFRQWFBQUFBQUFBQ==", "subType": "04"}}},
                "indexes": [
                  {"spec": {"v": 2, "key": {"_id": 1}, "name": "_id_"}, "ready": true, "multikey": false,
                   "multikeyPaths": {"_id": {"$binary": {"base64": "AA==", "subType": "00"}}},
                   "head": {"$numberLong": "0"}, "backgroundSecondary": false},
                  {"spec": {"v": 2, "key": {"lastName": 1}, "name": "lastName_1"}, "ready": false, "multikey": false,
                   "multikeyPaths": {"lastName": {"$binary": {"base64": "AA==", "subType": "00"}}},
                   "head": {"$numberLong": "0"}, "backgroundSecondary": false,
                   "buildUUID": {"$binary": {"base64": "CQkJCQkJSQmJCQkJCQkJCQ==", "subType": "04"}}}]},
               "idxIdent": {"_id_": "index-1--7", "lastName_1": "index-2--7"},
               "ns": "test.employees", "ident": "collection-0--7"}"#,
        )
        .unwrap();
        assert_eq!(document, expected);
        assert_eq!(CatalogEntry::parse(document.view()).unwrap(), entry);
        assert_eq!(entry.idents().collect::<Vec<_>>(), ["collection-0--7", "index-1--7", "index-2--7"]);
    }

    #[test]
    fn x1_what_is_no_entry_is_an_error() {
        let whole = entry().to_doc();
        for missing in ["md", "ns", "ident", "idxIdent"] {
            let mut builder = DocBuilder::new();
            whole
                .elements()
                .filter(|element| element.name != missing)
                .for_each(|element| builder.append_element(element));
            assert!(CatalogEntry::parse(builder.finish().view()).is_err(), "{missing}");
        }
        let odd = doc! { "md": { "options": {}, "indexes": [1] }, "ns": "a.b", "ident": "x" };
        assert!(CatalogEntry::parse(odd.view()).is_err());
    }

    #[test]
    fn x1_tenants_are_kept() {
        let mut entry = entry();
        entry.namespace = Namespace::parse_with_tenant(Some(TenantId([7; 12])), "test.employees").unwrap();
        assert_eq!(CatalogEntry::parse(entry.to_doc().view()).unwrap(), entry);
    }
}
