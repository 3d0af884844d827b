//! Parameters of mongod that mean nothing here: of clusters, of copies between members, of the inside of another server.
//!
//! Scripts set them when they start a node or later, and so does MongoDB's own test runner. That is not refused, but the log says
//! that the parameter has no effect, and why. Nobody is shown a value of them.

const NO_SHARDS: &str = "there are no shards yet";
const ONE_MEMBER: &str = "a set has one member";

/// Their names, with what is so instead.
pub const FOREIGN_PARAMETERS: &[(&str, &str)] = &[
    ("allowMultipleArbiters", ONE_MEMBER),
    ("coordinateCommitReturnImmediatelyAfterPersistingDecision", NO_SHARDS),
    ("enableDefaultWriteConcernUpdatesForInitiate", "replSetInitiate never changes the default write concern"),
    ("enableReconfigRollbackCommittedWritesCheck", ONE_MEMBER),
    ("internalDocumentSourceCursorBatchSizeBytes", "a pipeline takes documents from its query one by one"),
    ("internalQueryDisableExclusionProjectionFastPath", "there is one way of projecting"),
    ("internalQueryProhibitBlockingMergeOnMongoS", NO_SHARDS),
    ("internalQuerySlotBasedExecutionHashAggMemoryCheckPerAdvanceAtLeast", HASH_MEMORY),
    ("internalQuerySlotBasedExecutionHashAggMemoryCheckPerAdvanceAtMost", HASH_MEMORY),
    ("internalQuerySlotBasedExecutionHashAggMemoryUseSampleRate", HASH_MEMORY),
    ("migrationLockAcquisitionMaxWaitMS", NO_SHARDS),
    ("numInitialSyncAttempts", ONE_MEMBER),
    ("numInitialSyncConnectAttempts", ONE_MEMBER),
    ("oplogApplicationEnforcesSteadyStateConstraints", "members do not apply each other's entries yet"),
    ("orphanCleanupDelaySecs", NO_SHARDS),
    ("receiveChunkWaitForRangeDeleterTimeoutMS", NO_SHARDS),
    ("recoverFromOplogAsStandalone", "a member that is started by itself always applies what only its oplog has"),
    ("reshardingDelayBeforeRemainingOperationTimeQueryMillis", NO_SHARDS),
    ("reshardingMinimumOperationDurationMillis", NO_SHARDS),
    ("roleGraphInvalidationIsFatal", "roles are resolved when they are used"),
    ("skipOplogSampling", "the log knows where it can be cut; nothing is sampled"),
    ("ttlMonitorMaxMetadataRecoveryThreads", NO_SHARDS),
    ("writePeriodicNoops", ONE_MEMBER),
];

const HASH_MEMORY: &str = "the memory of groups is counted for each document, not estimated now and then";

/// What is so instead of what the parameter of this name would do.
pub fn foreign_parameter(name: &str) -> Option<&'static str> {
    FOREIGN_PARAMETERS.iter().find(|(known, _)| *known == name).map(|(_, instead)| *instead)
}
