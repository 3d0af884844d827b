//! The feature flags of MongoDB 7.0 as `getParameter` shows them: on, with the version that brought them, or off.
//!
//! Clients and tests ask whether a flag is on before they use what it stands for. They cannot be set here; saying at the start what is so anyway does no harm.

use pando_doc::{Doc, DocBuilder};

/// Names behind `featureFlag`, each with the version since which it is on.
const FLAGS: &[(&str, Option<&str>)] = &[
    ("AdditionalParticipants", None),
    ("AggOutTimeseries", Some("7.0")),
    ("ApproxPercentiles", Some("7.0")),
    ("AuditConfigClusterParameter", None),
    ("AutoMerger", Some("7.0")),
    ("BatchMultiDeletes", Some("6.1")),
    ("BitwiseAggOperators", Some("6.3")),
    ("BucketUnpackWithSort", Some("6.0")),
    ("BulkWriteCommand", None),
    ("CappedCollectionsRelaxedSize", Some("6.2")),
    ("ChangeStreamsFurtherEnrichedEvents", Some("6.1")),
    ("ChangeStreamsRewrite", Some("5.1")),
    ("CheckForDirectShardOperations", Some("7.0")),
    ("CheckMetadataConsistency", Some("7.0")),
    ("ClusterCardinalityParameter", Some("7.0")),
    ("CollModCoordinatorV3", Some("6.1")),
    ("CollModIndexUnique", Some("6.0")),
    ("ColumnstoreIndexes", None),
    ("CommonQueryFramework", None),
    ("CompoundWildcardIndexes", Some("7.0")),
    ("ConcurrencyInChunkMigration", Some("6.3")),
    ("ConfigSettingsSchema", Some("6.2")),
    ("ConnHealthMetrics", Some("6.3")),
    ("CreateCollectionCoordinatorV3", Some("6.2")),
    ("DeprioritizeLowPriorityOperations", None),
    ("DerivedMetadata", None),
    ("DocumentSourceListCatalog", Some("6.0")),
    ("DropCollectionHoldingCriticalSection", Some("7.0")),
    ("ExecutionControl", Some("7.0")),
    ("ExposeClientIpInAuditLogs", Some("7.0")),
    ("GlobalIndexes", None),
    ("GlobalIndexesShardingCatalog", None),
    ("HistoricalPlacementShardingCatalog", Some("7.0")),
    ("ImplicitDDLTimeseriesNssTranslation", Some("6.1")),
    ("IndexBuildGracefulErrorHandling", None),
    ("InternalWritesAreReplicatedTransactionally", None),
    ("MongodProxyProcolSupport", Some("7.0")),
    ("OIDC", Some("7.0")),
    ("OIDCInternalAuthorization", Some("7.0")),
    ("PointInTimeCatalogLookups", Some("7.0")),
    ("QueryStats", Some("7.0")),
    ("RangeDeleterService", Some("6.2")),
    ("RateLimitIngressConnectionEstablishment", Some("7.0")),
    ("RequireTenantID", None),
    ("ResilientMovePrimary", Some("7.0")),
    ("SbeFull", None),
    ("SearchBatchSizeLimit", Some("7.0")),
    ("SecurityToken", None),
    ("ServerlessChangeStreams", None),
    ("ShardKeyIndexOptionalHashedSharding", Some("6.0")),
    ("ShardedSearchCustomSort", Some("7.0")),
    ("ShardedTimeSeries", Some("5.1")),
    ("ShardedTimeSeriesUpdateDelete", Some("5.1")),
    ("StopUsingConfigVersion", Some("6.2")),
    ("Streams", None),
    ("TimeseriesDeletesSupport", Some("7.0")),
    ("TimeseriesScalabilityImprovements", Some("6.3")),
    ("TimeseriesUpdatesSupport", None),
    ("TrimExtraSearchMetaCursors", None),
    ("UseNewCompactStructuredEncryptionDataCoordinator", Some("6.1")),
    ("UseUnreplicatedTruncatesForDeletions", None),
    ("UserRoles", Some("7.0")),
    ("VectorSearchPublicPreview", Some("7.0")),
];

/// Whether the flag of this whole name is on; none if there is no such flag.
pub fn feature_flag(name: &str) -> Option<bool> {
    let short = name.strip_prefix("featureFlag")?;
    FLAGS.iter().find(|(flag, _)| *flag == short).map(|(_, version)| version.is_some())
}

/// All flags, by their whole names, as they are shown.
pub(super) fn all() -> impl Iterator<Item = (String, Doc)> {
    FLAGS.iter().map(|(name, version)| {
        let mut shown = DocBuilder::new();
        shown.append("value", version.is_some());
        shown.append_some("version", *version);
        (format!("featureFlag{name}"), shown.finish())
    })
}
