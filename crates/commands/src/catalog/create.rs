//! `create`: a collection or a view. One that is there already with the same options is as good as created.

use super::change::{change, ensure_system_views, lock_exclusively, lock_to_create};
use super::collection_options::{check_for_client, options_of};
use super::create_fail_points;
use super::same_options::check_same;
use super::system_views::ViewDocuments;
use super::view_pipeline::check_view_pipeline;
use crate::arguments::{SafeBool, SafeLong, at_least};
use crate::timeseries::{check_same_timeseries, check_timeseries_options, create_timeseries};
use crate::{Access, Class, CommandRow, Data, Invocation, NamespaceOf, SecondaryOk, arguments, run_boxed};
use pando_base::{ErrorCode, Namespace, Result, Uuid, ensure};
use pando_catalog::{ClusteredIndex, CollectionOptions, ViewDefinition};
use pando_doc::{Array, DocBuilder, DocRef, Value};

/// What a client is told who still says whether there is to be an index on `_id`.
const AUTO_INDEX_ID_NOTE: &str = "The autoIndexId option is deprecated and will be removed in a future release";

pub(super) const ROW: CommandRow = CommandRow {
    name: "create",
    help: "explicitly creates a collection or view",
    run: |invocation, reply| run_boxed(run(invocation, reply)),
    class: Class::Catalog,
    secondary_ok: SecondaryOk::Never,
    is_allowed_in_transaction: true,
    needs_local_transaction: true,
    is_in_api_version_1: true,
    takes_write_concern: true,
    namespace: NamespaceOf::FirstField,
    privileges: Access::Checked(crate::access::may_create),
    ..CommandRow::DEFAULT
};

arguments! {
    /// The fields and their types; what they mean is read from the document by the catalog.
    struct CreateArguments<'a> of "create" {
        capped: Option<SafeBool> = "capped",
        auto_index_id: Option<SafeBool> = "autoIndexId",
        id_index: Option<DocRef<'a>> = "idIndex",
        size: Option<SafeLong> = "size",
        max: Option<SafeLong> = "max",
        storage_engine: Option<DocRef<'a>> = "storageEngine",
        validator: Option<DocRef<'a>> = "validator",
        validation_level: Option<&'a str> = "validationLevel",
        validation_action: Option<&'a str> = "validationAction",
        index_option_defaults: Option<DocRef<'a>> = "indexOptionDefaults",
        view_on: Option<&'a str> = "viewOn",
        pipeline: Option<Vec<DocRef<'a>>> = "pipeline",
        collation: Option<DocRef<'a>> = "collation",
        pre_and_post_images: Option<DocRef<'a>> = "changeStreamPreAndPostImages",
        timeseries: Option<DocRef<'a>> = "timeseries",
        clustered_index: Option<Value<'a>> = "clusteredIndex",
        expire_after_seconds: Option<SafeLong> = "expireAfterSeconds",
        encrypted_fields: Option<DocRef<'a>> = "encryptedFields",
        temp: Option<SafeBool> = "temp",
        flags: Option<SafeLong> = "flags",
    }
}

async fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let data = invocation.data()?;
    let arguments = CreateArguments::parse(&invocation.request)?;
    if let Some(size) = arguments.size {
        at_least("create.size", size.0, 1)?;
    }
    if let Some(null) = arguments.clustered_index.filter(|clustered| clustered.is_nullish()) {
        // Of a field with several types null is none.
        ClusteredIndex::parse(null)?;
    }
    let namespace = invocation.collection()?;
    namespace.validate_for_create()?;
    let mut options = options_of(invocation.body())?;
    if options.capped {
        options.capped_size_bytes =
            crate::settings::capped_size(&invocation.node.parameters, options.capped_size_bytes);
    }
    if options.timeseries.is_some() {
        check_timeseries_options(invocation.body(), &namespace)?;
    }
    check_for_client(invocation, &namespace, &options)?;
    if arguments.auto_index_id.is_some() {
        reply.append("note", AUTO_INDEX_ID_NOTE);
    }
    ensure!(
        invocation.transaction().is_none() || !namespace.is_system() || namespace.is_timeseries_buckets(),
        ErrorCode::OperationNotSupportedInTransaction,
        "Cannot create system collection {namespace} within a transaction."
    );
    match create(invocation, data, &namespace, options.clone()).await {
        Err(error) if error.code() == ErrorCode::NamespaceExists && invocation.transaction().is_none() => {
            match options.timeseries {
                Some(_) => check_same_timeseries(data, &namespace, &options, error),
                None => check_same(data, &namespace, &options, error),
            }
        }
        outcome => outcome,
    }
}

/// Creates a collection as an operation of the oplog says, under the id that it has there, if it has one.
pub(crate) async fn create_from_oplog(
    invocation: &Invocation,
    namespace: &Namespace,
    object: DocRef<'_>,
    uuid: Option<Uuid>,
) -> Result<()> {
    namespace.validate_for_create()?;
    let options = CollectionOptions { uuid, ..options_of(object)? };
    create(invocation, invocation.data()?, namespace, options).await
}

async fn create(invocation: &Invocation, data: &Data, namespace: &Namespace, options: CollectionOptions) -> Result<()> {
    if options.timeseries.is_some() && options.uuid.is_none() {
        return create_timeseries(invocation, data, namespace, &options).await;
    }
    if options.is_view() {
        return create_view(invocation, data, namespace, options).await;
    }
    let is_internal = namespace.is_admin() || namespace.is_local() || namespace.is_config();
    ensure!(
        !is_internal || !options.pre_and_post_images,
        ErrorCode::InvalidOptions,
        "changeStreamPreAndPostImages collection option is not supported on the {} database",
        namespace.database()
    );
    let mut operation = invocation.operation()?;
    lock_to_create(data, &mut operation, namespace).await?;
    create_fail_points::pass(data, &mut operation, namespace).await?;
    change(&mut operation, "create", namespace, |operation| {
        data.catalog.create_collection(operation, &*data.observers, namespace, options.clone()).map(|_| ())
    })
    .await
}

async fn create_view(
    invocation: &Invocation,
    data: &Data,
    namespace: &Namespace,
    options: CollectionOptions,
) -> Result<()> {
    ensure!(
        invocation.transaction().is_none(),
        ErrorCode::OperationNotSupportedInTransaction,
        "Cannot create a view in a multi-document transaction."
    );
    let view = ViewDefinition {
        namespace: namespace.clone(),
        view_on: namespace.sibling(options.view_on.as_deref().unwrap_or_default())?,
        pipeline: options.pipeline.unwrap_or_else(|| Array::from_iter(std::iter::empty::<i32>())),
        collation: options.collation,
    };
    let system_views = Namespace::system_views(&namespace.database_name());
    let mut operation = invocation.operation()?;
    check_view_pipeline(invocation, data, &operation, &view)?;
    lock_exclusively(data, &mut operation, &[namespace, &system_views]).await?;
    data.catalog.check_database_case(&namespace.database_name())?;
    ensure_system_views(data, &mut operation, &system_views).await?;
    let writer = ViewDocuments(data.write_path());
    change(&mut operation, "create", namespace, |operation| {
        data.catalog.create_view(operation, &*data.observers, &writer, view.clone())
    })
    .await
}
