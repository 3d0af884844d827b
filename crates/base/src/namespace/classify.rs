//! What a namespace's spelling says about it.

use super::{DatabaseName, Namespace};

const BUCKETS_PREFIX: &str = "system.buckets.";
const DROP_PENDING_PREFIX: &str = "system.drop.";
const ENCRYPTED_STATE_SUFFIXES: [&str; 4] = [".esc", ".ecc", ".ecoc", ".ecoc.compact"];

/// Namespaces whose oplog entries a secondary applies each in a batch of its own.
const OWN_BATCH: [&str; 7] = [
    "config.localReshardingOperations.donor",
    "config.system.forceOplogBatchBoundary",
    "config.tenantMigrationDonors",
    "config.shardMergeRecipients",
    "config.tenantMigrationRecipients",
    "config.shardSplitDonors",
    "config.shards",
];

impl Namespace {
    /// True if there is a collection's part.
    pub fn has_collection(&self) -> bool {
        !self.collection().is_empty()
    }

    /// True in the database "admin".
    pub fn is_admin(&self) -> bool {
        self.database() == DatabaseName::ADMIN
    }

    /// True in the database "config".
    pub fn is_config(&self) -> bool {
        self.database() == DatabaseName::CONFIG
    }

    /// True in the database "local".
    pub fn is_local(&self) -> bool {
        self.database() == DatabaseName::LOCAL
    }

    /// True in one of the server's own databases.
    pub fn is_internal(&self) -> bool {
        self.is_admin() || self.is_config() || self.is_local()
    }

    /// True for "db.system.…".
    pub fn is_system(&self) -> bool {
        self.collection().starts_with("system.")
    }

    /// True for what a client made: not "system.…", not "local.replset.…".
    pub fn is_normal(&self) -> bool {
        let is_of_replication = self.is_local() && self.collection().starts_with("replset.");
        !self.is_system() && !is_of_replication
    }

    /// True for "local.oplog.…".
    pub fn is_oplog(&self) -> bool {
        self.is_local() && self.collection().starts_with("oplog.")
    }

    /// True for "config.system.change_collection", a tenant's oplog.
    pub fn is_change_collection(&self) -> bool {
        self.is_config() && self.collection() == "system.change_collection"
    }

    /// True for the oplog and its like.
    pub fn is_oplog_or_change_collection(&self) -> bool {
        self.is_oplog() || self.is_change_collection()
    }

    /// True for "db.system.views".
    pub fn is_system_views(&self) -> bool {
        self.collection() == "system.views"
    }

    /// True for "db.system.profile".
    pub fn is_system_profile(&self) -> bool {
        self.collection() == "system.profile"
    }

    /// True for "db.system.js".
    pub fn is_system_javascript(&self) -> bool {
        self.collection() == "system.js"
    }

    /// True for "db.system.users".
    pub fn is_system_users(&self) -> bool {
        self.collection() == "system.users"
    }

    /// True for the users and roles in "admin".
    pub fn is_privilege_collection(&self) -> bool {
        self.is_admin() && matches!(self.collection(), "system.users" | "system.roles")
    }

    /// True for "admin.system.version".
    pub fn is_server_configuration(&self) -> bool {
        self.as_str() == "admin.system.version"
    }

    /// True for "config.transactions".
    pub fn is_session_transactions(&self) -> bool {
        self.as_str() == "config.transactions"
    }

    /// True for "config.image_collection".
    pub fn is_config_images(&self) -> bool {
        self.as_str() == "config.image_collection"
    }

    /// True for "config.system.preimages".
    pub fn is_change_stream_pre_images(&self) -> bool {
        self.as_str() == "config.system.preimages"
    }

    /// True for "config.cache.chunks.…".
    pub fn is_cached_chunks(&self) -> bool {
        self.is_config() && self.collection().starts_with("cache.chunks.")
    }

    /// True for "db.system.resharding.…".
    pub fn is_temporary_resharding(&self) -> bool {
        self.collection().starts_with("system.resharding.")
    }

    /// True for "db.system.statistics.…".
    pub fn is_system_statistics(&self) -> bool {
        self.collection().starts_with("system.statistics.")
    }

    /// True for the state collections of queryable encryption.
    pub fn is_encrypted_state(&self) -> bool {
        let collection = self.collection();
        collection.starts_with("enxcol_.") && ENCRYPTED_STATE_SUFFIXES.iter().any(|suffix| collection.ends_with(suffix))
    }

    /// True for "local.orphan.…", where recovery puts what it cannot name.
    pub fn is_orphan(&self) -> bool {
        self.is_local() && self.collection().starts_with("orphan.")
    }

    /// True for "db.$cmd".
    pub fn is_command(&self) -> bool {
        self.collection() == "$cmd"
    }

    /// True for "db.$cmd.aggregate": an aggregation that starts from no collection.
    pub fn is_collectionless_aggregate(&self) -> bool {
        self.collection() == "$cmd.aggregate"
    }

    /// True for "db.$cmd.listCollections".
    pub fn is_list_collections_cursor(&self) -> bool {
        self.collection() == "$cmd.listCollections"
    }

    /// True if a cursor of this namespace belongs to no collection.
    pub fn is_collectionless_cursor(&self) -> bool {
        self.collection().starts_with("$cmd.")
    }

    /// True for "db.system.buckets.…", where a time-series collection keeps its data.
    pub fn is_timeseries_buckets(&self) -> bool {
        self.collection().starts_with(BUCKETS_PREFIX)
    }

    /// The buckets of a time-series collection of this name.
    pub fn timeseries_buckets(&self) -> Namespace {
        Namespace::made(&self.database_name(), BUCKETS_PREFIX, self.collection())
    }

    /// The time-series collection whose buckets these are.
    pub fn timeseries_view(&self) -> Option<Namespace> {
        self.sibling(self.collection().strip_prefix(BUCKETS_PREFIX)?).ok()
    }

    /// True for "db.system.drop.…": dropped, but not yet on a majority.
    pub fn is_drop_pending(&self) -> bool {
        self.collection().starts_with(DROP_PENDING_PREFIX)
    }

    /// True if what happens here has timestamps and, as a rule, oplog entries: all but "local" and the profiler.
    pub fn is_replicated(&self) -> bool {
        !self.is_local() && !self.is_system_profile()
    }

    /// True if its documents follow from the oplog, so that inserts and updates have no entries of their own.
    pub fn is_implicitly_replicated(&self) -> bool {
        self.is_change_stream_pre_images() || self.is_config_images() || self.is_change_collection()
    }

    /// True if a secondary must apply each operation on it in a batch of its own.
    pub fn is_applied_in_own_batch(&self) -> bool {
        self.is_system_views()
            || self.is_server_configuration()
            || self.is_privilege_collection()
            || OWN_BATCH.contains(&self.as_str())
    }

    /// True if it can never be sharded.
    pub fn is_always_unsharded(&self) -> bool {
        if self.is_admin() || self.is_local() {
            return true;
        }
        if self.is_config() {
            return self.as_str() != "config.system.sessions";
        }
        self.is_system() && !self.is_temporary_resharding() && !self.is_timeseries_buckets()
    }
}
