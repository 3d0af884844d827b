//! Parameters of parts that are not built yet: clusters, and replication between members; and of parts that MongoDB has and this server does not need.
//!
//! Scripts set them when they start a node, and so does MongoDB's own test runner. They have their types and bounds and are
//! shown, but change nothing until their part is there; their descriptions say so.

use pando_base::{AnyParameter, ErrorCode, Parameter, Result, Settable, ensure};

static RESHARDING_MINIMUM_MS: Parameter<i32> = Parameter::new(
    "reshardingMinimumOperationDurationMillis",
    300_000,
    "How long resharding takes at least, in milliseconds. Without effect: there is no resharding yet.",
)
.at_least(0);

static RESHARDING_DELAY_MS: Parameter<i32> = Parameter::new(
    "reshardingDelayBeforeRemainingOperationTimeQueryMillis",
    30_000,
    "How long resharding waits before it estimates what is left, in milliseconds. Without effect: there is no resharding \
     yet.",
)
.at_least(0);

static COORDINATOR_RETURNS_EARLY: Parameter<bool> = Parameter::new(
    "coordinateCommitReturnImmediatelyAfterPersistingDecision",
    false,
    "The coordinator of a transaction over shards answers as soon as its decision is durable. Without effect: there are no \
     shards yet.",
);

static ORPHAN_CLEANUP_DELAY_SECONDS: Parameter<i32> = Parameter::new(
    "orphanCleanupDelaySecs",
    900,
    "How long documents of a range that has moved away are kept, in seconds. Without effect: there are no shards yet.",
);

static RECEIVE_CHUNK_WAIT_MS: Parameter<i32> = Parameter::new(
    "receiveChunkWaitForRangeDeleterTimeoutMS",
    10_000,
    "How long a range that arrives waits for older deletions in it, in milliseconds. Without effect: there are no shards \
     yet.",
)
.at_least(0);

static MIGRATION_LOCK_WAIT_MS: Parameter<i32> = Parameter::new(
    "migrationLockAcquisitionMaxWaitMS",
    500,
    "How long a migration waits for a collection's lock, in milliseconds. Without effect: there are no shards yet.",
);

static STEADY_STATE_CONSTRAINTS: Parameter<bool> = Parameter::new(
    "oplogApplicationEnforcesSteadyStateConstraints",
    false,
    "A member stops if an entry of the oplog does not fit its data. Without effect: members do not apply each other's \
     entries yet.",
)
.settable(Settable::AtStartup);

static WRITE_PERIODIC_NOOPS: Parameter<bool> = Parameter::new(
    "writePeriodicNoops",
    true,
    "A primary that has nothing to write writes a mark now and then. Without effect: a set has one member.",
);

static INITIAL_SYNC_ATTEMPTS: Parameter<i32> = Parameter::new(
    "numInitialSyncAttempts",
    10,
    "How often the first copy of the data from another member is tried. Without effect: a set has one member.",
);

static INITIAL_SYNC_CONNECT_ATTEMPTS: Parameter<i32> = Parameter::new(
    "numInitialSyncConnectAttempts",
    10,
    "How often another member is called for the first copy of the data. Without effect: a set has one member.",
);

static DEFAULT_WRITE_CONCERN_BY_INITIATE: Parameter<bool> = Parameter::new(
    "enableDefaultWriteConcernUpdatesForInitiate",
    false,
    "replSetInitiate may change the default write concern. Without effect: it never does.",
);

static RECONFIG_ROLLBACK_CHECK: Parameter<bool> = Parameter::new(
    "enableReconfigRollbackCommittedWritesCheck",
    true,
    "replSetReconfig looks whether arbiters could lose what was committed. Without effect: a set has one member.",
)
.for_tests();

static ALLOW_MULTIPLE_ARBITERS: Parameter<bool> = Parameter::new(
    "allowMultipleArbiters",
    false,
    "A set may have several arbiters. Without effect: a set has one member.",
)
.settable(Settable::AtStartup);

static ROLE_GRAPH_INVALIDATION_IS_FATAL: Parameter<bool> = Parameter::new(
    "roleGraphInvalidationIsFatal",
    false,
    "A graph of roles that becomes invalid ends the server. Without effect: roles are resolved when they are used.",
)
.settable(Settable::AtStartup)
.for_tests();

static COMMIT_QUORUM: Parameter<bool> = Parameter::new(
    "enableIndexBuildCommitQuorum",
    true,
    "Index builds wait for the members that vote. Without effect: a set has one member.",
)
.settable(Settable::AtStartup);

static EXCLUSION_FAST_PATH_DISABLED: Parameter<bool> = Parameter::new(
    "internalQueryDisableExclusionProjectionFastPath",
    false,
    "Projections that exclude fields go the general way. Without effect: there is only one way.",
)
.settable(Settable::AtStartup)
.for_tests();

static FACET_BUFFER_BYTES: Parameter<i32> = Parameter::new(
    "internalQueryFacetBufferSizeBytes",
    100 * 1024 * 1024,
    "How much a $facet takes from its input at a time, in bytes. Without effect: it takes a document at a time.",
)
.at_least(1);

static FACET_OUTPUT_BYTES: Parameter<i64> = Parameter::new(
    "internalQueryFacetMaxOutputDocSizeBytes",
    100 * 1024 * 1024,
    "How large the document of a $facet may become inside a pipeline, in bytes. Without effect: 100 megabytes.",
)
.at_least(1);

static LOOKUP_DOCUMENT_BYTES: Parameter<i64> = Parameter::new(
    "internalLookupStageIntermediateDocumentMaxSizeBytes",
    100 * 1024 * 1024,
    "How large the document of a $lookup may become inside a pipeline, in bytes. Without effect: documents are bounded \
     where they leave the pipeline.",
)
.at_least(16 * 1024 * 1024);

static PROHIBIT_BLOCKING_MERGE: Parameter<bool> = Parameter::new(
    "internalQueryProhibitBlockingMergeOnMongoS",
    false,
    "Sorts and groups of sharded pipelines do not run on the router. Without effect: there are no shards yet.",
);

static QUERY_FRAMEWORK: Parameter<str> = Parameter::new(
    "internalQueryFrameworkControl",
    "forceClassicEngine",
    "Which of MongoDB's two engines runs queries. Without effect: there is one engine.",
)
.validator(check_framework);

fn check_framework(name: &str) -> Result<()> {
    let known = ["forceClassicEngine", "trySbeRestricted", "trySbeEngine"];
    ensure!(known.contains(&name), ErrorCode::BadValue, "Invalid value for internalQueryFrameworkControl: {name}");
    Ok(())
}

static SKIP_OPLOG_SAMPLING: Parameter<bool> = Parameter::new(
    "skipOplogSampling",
    false,
    "A start does not sample the oplog for the places where it can be cut. Without effect: the log knows them.",
)
.settable(Settable::AtStartup);

static RECOVER_AS_STANDALONE: Parameter<bool> = Parameter::new(
    "recoverFromOplogAsStandalone",
    false,
    "A member that is started by itself first applies what only its oplog has. Without effect: it always does.",
)
.settable(Settable::AtStartup);

static VALIDATE_FEATURES_AS_PRIMARY: Parameter<bool> = Parameter::new(
    "internalValidateFeaturesAsPrimary",
    true,
    "Options of new versions are refused as a primary refuses them. Without effect: there is one version.",
)
.aliases(&["internalValidateFeaturesAsMaster"])
.settable(Settable::AtStartup);

/// All of them.
pub static ACCEPTED_PARAMETERS: &[&dyn AnyParameter] = &[
    &ALLOW_MULTIPLE_ARBITERS,
    &RESHARDING_MINIMUM_MS,
    &COMMIT_QUORUM,
    &COORDINATOR_RETURNS_EARLY,
    &DEFAULT_WRITE_CONCERN_BY_INITIATE,
    &EXCLUSION_FAST_PATH_DISABLED,
    &INITIAL_SYNC_ATTEMPTS,
    &INITIAL_SYNC_CONNECT_ATTEMPTS,
    &MIGRATION_LOCK_WAIT_MS,
    &ORPHAN_CLEANUP_DELAY_SECONDS,
    &RECEIVE_CHUNK_WAIT_MS,
    &RECONFIG_ROLLBACK_CHECK,
    &RESHARDING_DELAY_MS,
    &ROLE_GRAPH_INVALIDATION_IS_FATAL,
    &STEADY_STATE_CONSTRAINTS,
    &WRITE_PERIODIC_NOOPS,
    &FACET_BUFFER_BYTES,
    &FACET_OUTPUT_BYTES,
    &LOOKUP_DOCUMENT_BYTES,
    &PROHIBIT_BLOCKING_MERGE,
    &QUERY_FRAMEWORK,
    &RECOVER_AS_STANDALONE,
    &SKIP_OPLOG_SAMPLING,
    &VALIDATE_FEATURES_AS_PRIMARY,
];
