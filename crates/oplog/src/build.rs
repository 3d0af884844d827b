//! Writing the field `o` (and for some `o2`) of command entries, in MongoDB's field order.

use crate::fields::uuid_value;
use crate::operation::Operation;
use pando_base::{Error, Namespace, Timestamp, Uuid};
use pando_doc::{Doc, DocBuilder, DocRef, RawElement, doc};

/// `{create, <options>, idIndex}`. The options must not have a `uuid`; it is the entry's.
pub fn create_object(collection: &str, options: DocRef<'_>, id_index: Option<DocRef<'_>>) -> Doc {
    debug_assert!(!options.contains("uuid"), "the id of a collection is in the entry, not in the options");
    let mut builder = named("create", collection);
    builder.append_all(options);
    builder.append_some("idIndex", id_index);
    builder.finish()
}

/// `{drop}`.
pub fn drop_object(collection: &str) -> Doc {
    named("drop", collection).finish()
}

/// `{dropDatabase: 1}`.
pub fn drop_database_object() -> Doc {
    doc! { "dropDatabase": 1 }
}

/// `{numRecords}`: the `o2` of a drop, and of a rename that drops its target.
pub fn record_count_object2(record_count: u64) -> Doc {
    doc! { "numRecords": i64::try_from(record_count).unwrap_or(-1) }
}

/// `{renameCollection, to, stayTemp, dropTarget}`.
pub fn rename_object(from: &Namespace, to: &Namespace, stay_temp: bool, drop_target: Option<Uuid>) -> Doc {
    let mut builder = named("renameCollection", from.as_str());
    builder.append("to", to.as_str());
    builder.append("stayTemp", stay_temp);
    builder.append_some("dropTarget", drop_target.as_ref().map(uuid_value));
    builder.finish()
}

/// What a collMod changed of an index, and what was there before.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IndexCollMod<'a> {
    /// The index, by whatever the command named it.
    pub index_name: &'a str,
    /// The new time to live.
    pub expire_after_seconds: Option<i64>,
    /// The time to live before.
    pub old_expire_after_seconds: Option<i64>,
    /// Is it hidden now?
    pub hidden: Option<bool>,
    /// Was it hidden before?
    pub old_hidden: Option<bool>,
    /// Did it become unique?
    pub unique: Option<bool>,
    /// Does it refuse new duplicates now?
    pub prepare_unique: Option<bool>,
    /// Did it before?
    pub old_prepare_unique: Option<bool>,
    /// Did it stop being unique?
    pub force_non_unique: Option<bool>,
}

/// `{collMod, …}`: the command, with an index always named by its name.
pub fn coll_mod_object(command: DocRef<'_>, index: Option<&IndexCollMod<'_>>) -> Doc {
    let mut builder = DocBuilder::with_capacity(command.size_bytes() + 64);
    for element in command.raw_elements() {
        match index {
            Some(index) if element.name == "index" => index.append_to(element, &mut builder),
            _ => builder.append_raw(element),
        }
    }
    builder.finish()
}

impl IndexCollMod<'_> {
    fn append_to(&self, element: RawElement<'_>, builder: &mut DocBuilder) {
        let open = builder.begin_document(element.name);
        builder.append("name", self.index_name);
        builder.append_some("expireAfterSeconds", self.expire_after_seconds);
        builder.append_some("hidden", self.hidden);
        builder.append_some("unique", self.unique);
        builder.append_some("prepareUnique", self.prepare_unique);
        builder.append_some("forceNonUnique", self.force_non_unique);
        builder.end(open);
    }
}

/// `{collectionOptions_old, indexOptions_old}`: the `o2` of a collMod.
pub fn coll_mod_object2(collection: Uuid, old_options: DocRef<'_>, index: Option<&IndexCollMod<'_>>) -> Doc {
    let mut builder = DocBuilder::new();
    builder.document("collectionOptions_old", |options| {
        options.append("uuid", uuid_value(&collection));
        options.append_all(old_options);
    });
    if let Some(index) = index {
        let open = builder.begin_document("indexOptions_old");
        builder.append_some("expireAfterSeconds", index.old_expire_after_seconds);
        builder.append_some("hidden", index.old_hidden);
        builder.append_some("prepareUnique", index.old_prepare_unique);
        builder.end(open);
    }
    builder.finish()
}

/// `{createIndexes, <specification>}`.
pub fn create_indexes_object(collection: &str, specification: DocRef<'_>) -> Doc {
    let mut builder = named("createIndexes", collection);
    builder.append_all(specification);
    builder.finish()
}

/// `{dropIndexes, index}`; its `o2` is the specification.
pub fn drop_indexes_object(collection: &str, index_name: &str) -> Doc {
    let mut builder = named("dropIndexes", collection);
    builder.append("index", index_name);
    builder.finish()
}

/// `{startIndexBuild, indexBuildUUID, indexes}`.
pub fn start_index_build_object(collection: &str, build: Uuid, indexes: &[DocRef<'_>]) -> Doc {
    index_build("startIndexBuild", collection, build, indexes).finish()
}

/// `{commitIndexBuild, indexBuildUUID, indexes}`.
pub fn commit_index_build_object(collection: &str, build: Uuid, indexes: &[DocRef<'_>]) -> Doc {
    index_build("commitIndexBuild", collection, build, indexes).finish()
}

/// `{abortIndexBuild, indexBuildUUID, indexes, cause}`.
pub fn abort_index_build_object(collection: &str, build: Uuid, indexes: &[DocRef<'_>], cause: &Error) -> Doc {
    let mut builder = index_build("abortIndexBuild", collection, build, indexes);
    let open = builder.begin_document("cause");
    builder.append("ok", false);
    builder.append("code", cause.code().number());
    builder.append("codeName", cause.code().name().as_ref());
    builder.append("errmsg", cause.reason());
    builder.end(open);
    builder.finish()
}

fn index_build(name: &str, collection: &str, build: Uuid, indexes: &[DocRef<'_>]) -> DocBuilder {
    let mut builder = named(name, collection);
    builder.append("indexBuildUUID", uuid_value(&build));
    builder.array("indexes", |array| indexes.iter().for_each(|index| array.push(*index)));
    builder
}

/// `{emptycapped}`.
pub fn empty_capped_object(collection: &str) -> Doc {
    named("emptycapped", collection).finish()
}

/// Which part of a transaction an `applyOps` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApplyOpsPart {
    /// All of it, or a group of writes outside of transactions.
    Whole,
    /// More follows.
    Partial,
    /// The last of several; the count is that of all operations.
    Last(i64),
    /// All of it, prepared.
    Prepare,
    /// The last of several, prepared; the count is that of all operations.
    PrepareLast(i64),
}

/// `{applyOps, prepare, partialTxn, count}`.
pub fn apply_ops_object<'a, 'b: 'a>(
    operations: impl IntoIterator<Item = &'a Operation<'b>>,
    part: ApplyOpsPart,
) -> Doc {
    let mut builder = DocBuilder::new();
    let array = builder.begin_array("applyOps");
    for (index, operation) in operations.into_iter().enumerate() {
        let open = builder.begin_document_indexed(index as u32);
        operation.append_to(&mut builder);
        builder.end(open);
    }
    builder.end(array);
    part.append_to(&mut builder);
    builder.finish()
}

/// The same of operations that were written as documents before, by [`Operation::append_to`].
pub fn apply_ops_object_of_documents(operations: &[Doc], part: ApplyOpsPart) -> Doc {
    /// Around all, and around each beside the digits of its place: so there is room for all of it and mostly none is left over.
    const AROUND_BYTES: usize = 20;
    const AROUND_EACH_BYTES: usize = 2;
    let digits = |place: usize| place.checked_ilog10().unwrap_or(0) as usize + 1;
    let sizes = operations.iter().enumerate();
    let operation_bytes: usize =
        sizes.map(|(place, operation)| operation.size_bytes() + digits(place) + AROUND_EACH_BYTES).sum();
    let mut builder = DocBuilder::with_capacity(AROUND_BYTES + operation_bytes);
    let array = builder.begin_array("applyOps");
    for (index, operation) in operations.iter().enumerate() {
        builder.append_indexed(index as u32, operation);
    }
    builder.end(array);
    part.append_to(&mut builder);
    builder.finish()
}

impl ApplyOpsPart {
    fn append_to(self, builder: &mut DocBuilder) {
        match self {
            ApplyOpsPart::Whole => {}
            ApplyOpsPart::Partial => builder.append("partialTxn", true),
            ApplyOpsPart::Last(count) => builder.append("count", count),
            ApplyOpsPart::Prepare => builder.append("prepare", true),
            ApplyOpsPart::PrepareLast(count) => {
                builder.append("prepare", true);
                builder.append("count", count);
            }
        }
    }
}

/// `{commitTransaction: 1, commitTimestamp}`.
pub fn commit_transaction_object(commit_timestamp: Timestamp) -> Doc {
    doc! { "commitTransaction": 1, "commitTimestamp": commit_timestamp }
}

/// `{abortTransaction: 1}`.
pub fn abort_transaction_object() -> Doc {
    doc! { "abortTransaction": 1 }
}

/// `{msg}`: a noop that says something, such as `initiating set` or `new primary`.
pub fn message_object(message: &str) -> Doc {
    doc! { "msg": message }
}

fn named(command: &str, name: &str) -> DocBuilder {
    let mut builder = DocBuilder::new();
    builder.append(command, name);
    builder
}
