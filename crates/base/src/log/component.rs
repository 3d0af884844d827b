//! How grave a line is, and which part of the server it is about.

use std::fmt;

/// How grave a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The server ends.
    Fatal,
    /// Something failed.
    Error,
    /// Somebody should look.
    Warning,
    /// Something happened.
    Info,
    /// Details, from 1 to 5 ever more of them.
    Debug(u8),
}

impl Severity {
    /// The short name in a line: "F", "E", "W", "I", "D1" to "D5".
    pub const fn name(self) -> &'static str {
        match self {
            Severity::Fatal => "F",
            Severity::Error => "E",
            Severity::Warning => "W",
            Severity::Info => "I",
            Severity::Debug(0 | 1) => "D1",
            Severity::Debug(2) => "D2",
            Severity::Debug(3) => "D3",
            Severity::Debug(4) => "D4",
            Severity::Debug(_) => "D5",
        }
    }

    /// The verbosity from which the line is written: zero for all but debug lines.
    pub const fn verbosity(self) -> u8 {
        match self {
            Severity::Debug(0) => 1,
            Severity::Debug(level) => level,
            _ => 0,
        }
    }
}

macro_rules! components {
    ($($(#[$doc:meta])* $variant:ident $setting:literal $name:literal of $parent:ident;)*) => {
        /// A part of the server. Parts form a tree: a part without a verbosity of its own has its parent's.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Component { $($(#[$doc])* $variant,)* }

        impl Component {
            /// All components, parents before their children.
            pub const ALL: &'static [Component] = &[$(Component::$variant),*];

            /// The name in a line, at most eight characters.
            pub const fn name(self) -> &'static str {
                match self { $(Component::$variant => $name,)* }
            }

            /// The name in settings, without the parent's: "election" of "replication.election".
            pub const fn setting(self) -> &'static str {
                match self { $(Component::$variant => $setting,)* }
            }

            /// The part it is of; the root is of itself.
            pub const fn parent(self) -> Component {
                match self { $(Component::$variant => Component::$parent,)* }
            }
        }
    };
}

components! {
    /// Everything, and what is of no part.
    Default "default" "-" of Default;
    /// Authentication and authorization.
    AccessControl "accessControl" "ACCESS" of Default;
    /// Broken assertions.
    Assert "assert" "ASSERT" of Default;
    /// Commands.
    Command "command" "COMMAND" of Default;
    /// Start, stop, settings.
    Control "control" "CONTROL" of Default;
    /// Task executors.
    Executor "executor" "EXECUTOR" of Default;
    /// Geometry.
    Geo "geo" "GEO" of Default;
    /// Global indexes.
    GlobalIndex "globalIndex" "GBL_IDX" of Default;
    /// Indexes.
    Index "index" "INDEX" of Default;
    /// Connections.
    Network "network" "NETWORK" of Default;
    /// The server watching its own health.
    ProcessHealth "processHealth" "HEALTH" of Default;
    /// Queries and plans.
    Query "query" "QUERY" of Default;
    /// Statistics of query shapes.
    QueryStats "queryStats" "QRYSTATS" of Default;
    /// Replication.
    Replication "replication" "REPL" of Default;
    /// Elections.
    ReplicationElection "election" "ELECTION" of Replication;
    /// Heartbeats.
    ReplicationHeartbeats "heartbeats" "REPL_HB" of Replication;
    /// Initial sync.
    ReplicationInitialSync "initialSync" "INITSYNC" of Replication;
    /// Rollback.
    ReplicationRollback "rollback" "ROLLBACK" of Replication;
    /// Sharding.
    Sharding "sharding" "SHARDING" of Default;
    /// Deletion of moved ranges.
    ShardingRangeDeleter "rangeDeleter" "RDELETER" of Sharding;
    /// Refreshes of the routing table.
    ShardingCatalogRefresh "shardingCatalogRefresh" "SH_REFR" of Sharding;
    /// Chunk migrations.
    ShardingMigration "migration" "MIGRATE" of Sharding;
    /// Resharding.
    Resharding "reshard" "RESHARD" of Sharding;
    /// How fast chunk migrations are.
    ShardMigrationPerformance "migrationPerf" "MIG_PERF" of Sharding;
    /// Storage.
    Storage "storage" "STORAGE" of Default;
    /// Recovery at start.
    StorageRecovery "recovery" "RECOVERY" of Storage;
    /// The journal.
    Journal "journal" "JOURNAL" of Storage;
    /// The engine, under the name that settings know.
    WiredTiger "wt" "WT" of Storage;
    /// The engine's backups.
    WiredTigerBackup "wtBackup" "WTBACKUP" of WiredTiger;
    /// The engine's checkpoints.
    WiredTigerCheckpoint "wtCheckpoint" "WTCHKPT" of WiredTiger;
    /// The engine's compaction.
    WiredTigerCompact "wtCompact" "WTCMPCT" of WiredTiger;
    /// The engine's cache.
    WiredTigerEviction "wtEviction" "WTEVICT" of WiredTiger;
    /// The engine's old versions.
    WiredTigerHistoryStore "wtHS" "WTHS" of WiredTiger;
    /// The engine's recovery.
    WiredTigerRecovery "wtRecovery" "WTRECOV" of WiredTiger;
    /// The engine's rollback to stable.
    WiredTigerRollbackToStable "wtRTS" "WTRTS" of WiredTiger;
    /// The engine's salvage.
    WiredTigerSalvage "wtSalvage" "WTSLVG" of WiredTiger;
    /// The engine's tiers.
    WiredTigerTiered "wtTiered" "WTTIER" of WiredTiger;
    /// The engine's timestamps.
    WiredTigerTimestamp "wtTimestamp" "WTTS" of WiredTiger;
    /// The engine's transactions.
    WiredTigerTransaction "wtTransaction" "WTTXN" of WiredTiger;
    /// The engine's verification.
    WiredTigerVerify "wtVerify" "WTVRFY" of WiredTiger;
    /// The engine's log.
    WiredTigerWriteLog "wtWriteLog" "WTWRTLOG" of WiredTiger;
    /// Writes.
    Write "write" "WRITE" of Default;
    /// The diagnostic archive.
    Ftdc "ftdc" "FTDC" of Default;
    /// Outgoing connections.
    Asio "asio" "ASIO" of Network;
    /// The message bridge of tests.
    Bridge "bridge" "BRIDGE" of Network;
    /// Tracking of metadata.
    Tracking "tracking" "TRACKING" of Default;
    /// Transactions.
    Transaction "transaction" "TXN" of Default;
    /// Tenants that move.
    TenantMigration "tenantMigration" "TENANT_M" of Default;
    /// Pools of outgoing connections.
    ConnectionPool "connectionPool" "CONNPOOL" of Network;
    /// Tests.
    Test "test" "TEST" of Default;
    /// What operations consume.
    ResourceConsumption "resourceConsumption" "RES_CONS" of Default;
}

impl Component {
    /// The place in [`Component::ALL`].
    pub(super) const fn index(self) -> usize {
        self as usize
    }

    /// The name in settings with the parents': "storage.wt.wtBackup".
    pub fn path(self) -> String {
        match self.parent() {
            Component::Default => self.setting().to_owned(),
            parent => format!("{}.{}", parent.path(), self.setting()),
        }
    }

    /// The component of such a name.
    pub fn from_path(path: &str) -> Option<Component> {
        Component::ALL.iter().copied().find(|component| component.path() == path)
    }
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
