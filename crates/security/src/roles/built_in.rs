//! The roles that every deployment has, as tables: what each allows on its database, and which others are part of it.
//!
//! A role with `is_of_admin` exists in the database "admin" only and reaches all databases; the others exist in every
//! database and reach that one. None exists in `$external`, where nothing is stored.

use crate::action::{Action, ActionSet};
use crate::names::{EXTERNAL_DATABASE, RoleName};
use crate::privilege::Privileges;
use crate::resource::Resource;
use Action::*;
use On::*;

/// Where a grant of a role holds.
#[derive(Clone, Copy)]
enum On {
    /// On the role's own database.
    Own,
    /// On this collection of the role's own database.
    OwnCollection(&'static str),
    /// On this database.
    Base(&'static str),
    /// On this collection.
    One(&'static str, &'static str),
    /// On the collections of this name in all databases.
    Everywhere(&'static str),
    /// On every normal resource.
    Normal,
    /// On everything.
    All,
    /// On the deployment.
    Cluster,
    /// On the buckets of all time-series.
    Buckets,
}

/// A role.
struct BuiltIn {
    name: &'static str,
    is_of_admin: bool,
    /// The roles that are part of it, each of its own database or of the one named.
    includes: &'static [(&'static str, Option<&'static str>)],
    grants: &'static [(On, &'static [&'static [Action]])],
}

const READ: &[Action] = &[
    ChangeStream,
    CollStats,
    DbHash,
    DbStats,
    Find,
    KillCursors,
    ListCollections,
    ListIndexes,
    ListSearchIndexes,
    PlanCacheRead,
];

/// What readWrite has beyond read.
const WRITE: &[Action] = &[
    CompactStructuredEncryptionData,
    ConvertToCapped,
    CreateCollection,
    CreateIndex,
    CreateSearchIndexes,
    DropCollection,
    DropIndex,
    DropSearchIndex,
    Insert,
    Remove,
    RenameCollectionSameDB,
    Update,
    UpdateSearchIndex,
];

const USER_ADMIN: &[Action] = &[
    ChangeCustomData,
    ChangePassword,
    CreateRole,
    CreateUser,
    DropRole,
    DropUser,
    GrantRole,
    RevokeRole,
    SetAuthenticationRestriction,
    ViewRole,
    ViewUser,
];

const DB_ADMIN: &[Action] = &[
    Analyze,
    BypassDocumentValidation,
    CollMod,
    CollStats,
    Compact,
    ConfigureQueryAnalyzer,
    ConvertToCapped,
    CreateCollection,
    CreateIndex,
    CreateSearchIndexes,
    DbStats,
    DropCollection,
    DropDatabase,
    DropIndex,
    DropSearchIndex,
    EnableProfiler,
    ListCollections,
    ListIndexes,
    ListSearchIndexes,
    PlanCacheIndexFilter,
    PlanCacheRead,
    PlanCacheWrite,
    ReIndex,
    RenameCollectionSameDB,
    StorageDetails,
    UpdateSearchIndex,
    Validate,
];

/// What database administrators may with the profiler's collection, beyond reading it.
const PROFILE: &[Action] = &[ConvertToCapped, CreateCollection, DropCollection];

const INDEXES: &[Action] = &[CreateIndex, CreateSearchIndexes, DropIndex, DropSearchIndex];

const MONITOR_CLUSTER: &[Action] = &[
    AllCollectionStats,
    ConnPoolStats,
    GetCmdLineOpts,
    GetDefaultRWConcern,
    GetLog,
    GetParameter,
    GetShardMap,
    HostInfo,
    Inprog,
    ListDatabases,
    ListSampledQueries,
    ListSessions,
    ListShards,
    Netstat,
    OperationMetrics,
    QueryStatsRead,
    QueryStatsReadTransformed,
    ReplSetGetConfig,
    ReplSetGetStatus,
    ServerStatus,
    ShardedDataDistribution,
    ShardingState,
    Top,
    UseUUID,
];

const MONITOR: &[Action] = &[CollStats, DbStats, GetDatabaseVersion, GetShardVersion, IndexStats];

const HOST: &[Action] = &[
    ApplicationMessage,
    AuditConfigure,
    ConnPoolSync,
    DropConnections,
    FlushRouterConfig,
    Fsync,
    InvalidateUserCache,
    KillAnyCursor,
    KillAnySession,
    Killop,
    LogRotate,
    OidReset,
    OidcListKeys,
    OidcRefreshKeys,
    ReplSetResizeOplog,
    Resync,
    RotateCertificates,
    SetParameter,
    Shutdown,
    Touch,
    TrafficRecord,
    Unlock,
];

const MANAGE_CLUSTER: &[Action] = &[
    AddShard,
    AppendOplogNote,
    ApplicationMessage,
    CheckMetadataConsistency,
    CleanupOrphaned,
    FlushRouterConfig,
    GetChangeStreamState,
    GetClusterParameter,
    GetDefaultRWConcern,
    ListSessions,
    ListShards,
    RemoveShard,
    ReplSetConfigure,
    ReplSetGetConfig,
    ReplSetGetStatus,
    ReplSetStateChange,
    Resync,
    RunTenantMigration,
    SetChangeStreamState,
    SetClusterParameter,
    SetDefaultRWConcern,
    SetFeatureCompatibilityVersion,
    TransitionFromDedicatedConfigServer,
    TransitionToDedicatedConfigServer,
];

const MANAGE: &[Action] = &[
    AnalyzeShardKey,
    ClearJumboFlag,
    ConfigureQueryAnalyzer,
    EnableSharding,
    MoveChunk,
    RefineCollectionShardKey,
    ReshardCollection,
    SplitChunk,
    SplitVector,
];

const CHANGE: &[Action] = &[Insert, Remove, Update];

const RESTORE: &[Action] = &[
    BypassDocumentValidation,
    CollMod,
    ConvertToCapped,
    CreateCollection,
    CreateIndex,
    CreateSearchIndexes,
    DropCollection,
    Insert,
    UpdateSearchIndex,
];

const ROLES: &[BuiltIn] = &[
    BuiltIn {
        name: "read",
        is_of_admin: false,
        includes: &[],
        grants: &[(Own, &[READ]), (OwnCollection("system.js"), &[READ])],
    },
    BuiltIn {
        name: "readWrite",
        is_of_admin: false,
        includes: &[],
        grants: &[(Own, &[READ, WRITE]), (OwnCollection("system.js"), &[READ, WRITE])],
    },
    BuiltIn { name: "userAdmin", is_of_admin: false, includes: &[], grants: &[(Own, &[USER_ADMIN])] },
    BuiltIn {
        name: "dbAdmin",
        is_of_admin: false,
        includes: &[],
        grants: &[(Own, &[DB_ADMIN]), (OwnCollection("system.profile"), &[READ, PROFILE])],
    },
    BuiltIn {
        name: "dbOwner",
        is_of_admin: false,
        includes: &[("readWrite", None), ("dbAdmin", None), ("userAdmin", None)],
        grants: &[],
    },
    BuiltIn {
        name: "enableSharding",
        is_of_admin: false,
        includes: &[],
        grants: &[(Normal, &[&[AnalyzeShardKey, EnableSharding, RefineCollectionShardKey, ReshardCollection]])],
    },
    BuiltIn {
        name: "readAnyDatabase",
        is_of_admin: true,
        includes: &[],
        grants: &[
            (Normal, &[READ]),
            (Cluster, &[&[ListDatabases]]),
            (Everywhere("system.js"), &[READ]),
            (Buckets, &[READ]),
        ],
    },
    BuiltIn {
        name: "readWriteAnyDatabase",
        is_of_admin: true,
        includes: &[("readAnyDatabase", None)],
        grants: &[(Normal, &[READ, WRITE]), (Everywhere("system.js"), &[READ, WRITE]), (Buckets, &[READ, WRITE])],
    },
    BuiltIn {
        name: "userAdminAnyDatabase",
        is_of_admin: true,
        includes: &[],
        grants: &[
            (Normal, &[USER_ADMIN, &[ListCachedAndActiveUsers]]),
            (Base("local"), &[USER_ADMIN]),
            (Base("config"), &[USER_ADMIN]),
            (Cluster, &[&[AuthSchemaUpgrade, InvalidateUserCache, ListDatabases, ViewUser]]),
            (One("admin", "system.users"), &[READ, INDEXES]),
            (One("admin", "system.roles"), &[READ, INDEXES]),
            (Everywhere("system.users"), &[READ]),
            (One("admin", "system.version"), &[READ]),
            (One("admin", "system.backup_users"), &[READ]),
        ],
    },
    BuiltIn {
        name: "dbAdminAnyDatabase",
        is_of_admin: true,
        includes: &[],
        grants: &[
            (Cluster, &[&[ApplyOps, ListDatabases]]),
            (Normal, &[DB_ADMIN]),
            (Everywhere("system.profile"), &[READ, PROFILE]),
            (Buckets, &[DB_ADMIN]),
        ],
    },
    BuiltIn {
        name: "clusterMonitor",
        is_of_admin: true,
        includes: &[("read", Some("config")), ("read", Some("local"))],
        grants: &[
            (Cluster, &[MONITOR_CLUSTER]),
            (Normal, &[MONITOR]),
            (Base("config"), &[MONITOR]),
            (One("config", "system.sessions"), &[MONITOR]),
            (Base("local"), &[MONITOR]),
            (One("local", "system.replset"), &[&[Find]]),
            (One("local", "replset.election"), &[&[Find]]),
            (One("local", "replset.minvalid"), &[&[Find]]),
            (Everywhere("system.profile"), &[&[Find]]),
        ],
    },
    BuiltIn {
        name: "hostManager",
        is_of_admin: true,
        includes: &[],
        grants: &[(Cluster, &[HOST]), (Normal, &[&[KillCursors]])],
    },
    BuiltIn {
        name: "clusterManager",
        is_of_admin: true,
        includes: &[("read", Some("config"))],
        grants: &[
            (Cluster, &[MANAGE_CLUSTER]),
            (Normal, &[MANAGE]),
            (Buckets, &[MANAGE]),
            (Base("config"), &[MANAGE, CHANGE]),
            (Base("local"), &[MANAGE, CHANGE]),
            (One("local", "system.replset"), &[READ]),
            (All, &[&[DbCheck]]),
            (One("local", "system.healthlog"), &[READ]),
            (One("local", "replset.election"), &[CHANGE]),
            (One("local", "replset.minvalid"), &[CHANGE]),
        ],
    },
    BuiltIn {
        name: "clusterAdmin",
        is_of_admin: true,
        includes: &[("clusterMonitor", None), ("hostManager", None), ("clusterManager", None)],
        grants: &[(Normal, &[&[DropDatabase]]), (All, &[&[ExportCollection, ImportCollection]])],
    },
    BuiltIn {
        name: "__queryableBackup",
        is_of_admin: true,
        includes: &[],
        grants: &[
            (All, &[&[CollStats, ListCollections, ListIndexes, ListSearchIndexes]]),
            (Normal, &[&[Find]]),
            (Buckets, &[&[Find]]),
            (Cluster, &[&[GetParameter, ListDatabases, UseUUID]]),
            (Base("config"), &[&[Find]]),
            (Base("local"), &[&[Find]]),
            (One("local", "replset.election"), &[&[Find]]),
            (One("local", "replset.minvalid"), &[&[Find]]),
            (Everywhere("system.js"), &[&[Find]]),
            (Everywhere("system.users"), &[&[Find]]),
            (Everywhere("system.profile"), &[&[Find]]),
            (One("admin", "system.backup_users"), &[&[Find]]),
            (One("admin", "system.roles"), &[&[Find]]),
            (One("admin", "system.version"), &[&[Find]]),
            (One("config", "settings"), &[&[Find]]),
        ],
    },
    BuiltIn {
        name: "backup",
        is_of_admin: true,
        includes: &[("__queryableBackup", None)],
        grants: &[
            (Cluster, &[&[AppendOplogNote, ServerStatus, SetUserWriteBlockMode]]),
            (One("config", "settings"), &[&[Insert, Update]]),
        ],
    },
    BuiltIn {
        name: "restore",
        is_of_admin: true,
        includes: &[],
        grants: &[
            (Cluster, &[&[ApplyOps, BypassWriteBlockingMode, ForceUUID, GetParameter, SetUserWriteBlockMode, UseUUID]]),
            (Base("local"), &[RESTORE]),
            (Base("config"), &[RESTORE]),
            (Buckets, &[RESTORE]),
            (One("local", "system.replset"), &[RESTORE]),
            (One("local", "replset.election"), &[RESTORE]),
            (One("local", "replset.minvalid"), &[RESTORE]),
            (All, &[&[ListCollections]]),
            (Normal, &[RESTORE, USER_ADMIN]),
            (Everywhere("system.js"), &[RESTORE]),
            (One("admin", "tempusers"), &[&[Find]]),
            (One("admin", "temproles"), &[&[Find]]),
            (One("admin", "system.backup_users"), &[RESTORE]),
            (One("admin", "system.version"), &[RESTORE, &[Find]]),
            (Everywhere("system.users"), &[RESTORE, &[Find, Remove, Update]]),
            (One("admin", "system.roles"), &[&[CreateIndex]]),
            (Everywhere("system.views"), &[&[DropCollection]]),
        ],
    },
    BuiltIn {
        name: "root",
        is_of_admin: true,
        includes: &[
            ("clusterAdmin", None),
            ("userAdminAnyDatabase", None),
            ("dbAdminAnyDatabase", None),
            ("readWriteAnyDatabase", None),
            ("backup", None),
            ("restore", None),
            ("directShardOperations", None),
        ],
        grants: &[
            (All, &[&[Validate]]),
            (Cluster, &[&[UseTenant]]),
            (One("config", "system.preimages"), &[&[Find, Remove]]),
            (One("config", "system.change_collection"), &[&[Find], CHANGE]),
        ],
    },
    BuiltIn {
        name: "directShardOperations",
        is_of_admin: true,
        includes: &[],
        grants: &[(Cluster, &[&[IssueDirectShardOperations]])],
    },
    BuiltIn { name: "__system", is_of_admin: true, includes: &[], grants: &[(All, &[Action::ALL])] },
];

fn find(role: &RoleName) -> Option<&'static BuiltIn> {
    let found = ROLES.iter().find(|built_in| built_in.name == role.role)?;
    let is_there = role.database != EXTERNAL_DATABASE && (!found.is_of_admin || role.database == "admin");
    is_there.then_some(found)
}

/// Is there a built-in role of this name in its database?
pub fn is_built_in(role: &RoleName) -> bool {
    find(role).is_some()
}

/// The built-in roles of a database.
pub fn built_in_roles_of(database: &str) -> Vec<RoleName> {
    let names = ROLES.iter().map(|built_in| RoleName::new(built_in.name, database));
    let mut roles: Vec<RoleName> = names.filter(is_built_in).collect();
    roles.sort();
    roles
}

/// Everything that a built-in role allows; none if there is no such role.
pub fn built_in_privileges(role: &RoleName) -> Option<Privileges> {
    let found = find(role)?;
    let mut privileges = Privileges::new();
    grant(found, &role.database, &mut privileges);
    Some(privileges)
}

fn grant(role: &BuiltIn, database: &str, privileges: &mut Privileges) {
    for (name, of) in role.includes {
        if let Some(included) = find(&RoleName::new(*name, of.unwrap_or(database))) {
            grant(included, of.unwrap_or(database), privileges);
        }
    }
    for (on, lists) in role.grants {
        let resource = match *on {
            Own => Resource::Database(database.to_owned()),
            OwnCollection(name) => Resource::Exact(database.to_owned(), name.to_owned()),
            Base(database) => Resource::Database(database.to_owned()),
            One(database, name) => Resource::Exact(database.to_owned(), name.to_owned()),
            Everywhere(name) => Resource::Collection(name.to_owned()),
            Normal => Resource::AnyNormal,
            All => Resource::Any,
            Cluster => Resource::Cluster,
            Buckets => Resource::AnyBuckets,
        };
        for actions in *lists {
            privileges.grant(&resource, ActionSet::of(actions));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::Target;

    fn allows(role: &str, database: &str, target: Target<'_>, action: Action) -> bool {
        built_in_privileges(&RoleName::new(role, database)).unwrap().allow(target, action)
    }

    #[test]
    fn u10_built_in_roles_allow_what_they_should() {
        let (mine, other) = (Target::Collection("a", "c"), Target::Collection("b", "c"));
        assert!(allows("read", "a", mine, Find) && !allows("read", "a", mine, Insert));
        assert!(!allows("read", "a", other, Find));
        assert!(!allows("read", "a", Target::Collection("a", "system.users"), Find));
        assert!(allows("read", "a", Target::Collection("a", "system.js"), Find));
        assert!(allows("readWrite", "a", mine, Insert) && !allows("readWrite", "a", mine, CollMod));
        assert!(allows("dbOwner", "a", mine, CollMod) && allows("dbOwner", "a", Target::Database("a"), CreateUser));
        assert!(allows("readAnyDatabase", "admin", other, Find));
        assert!(!allows("readAnyDatabase", "admin", Target::Collection("local", "oplog.rs"), Find));
        assert!(allows("clusterMonitor", "admin", Target::Collection("local", "oplog.rs"), Find));
        assert!(allows("root", "admin", Target::Cluster, Shutdown) && allows("root", "admin", other, Remove));
        assert!(!allows("root", "admin", Target::Cluster, Internal));
        assert!(allows("__system", "admin", Target::Cluster, Internal));
    }

    #[test]
    fn u10_roles_of_admin_are_in_admin_only() {
        assert!(is_built_in(&RoleName::new("read", "x")) && !is_built_in(&RoleName::new("root", "x")));
        assert!(!is_built_in(&RoleName::new("read", EXTERNAL_DATABASE)));
        assert_eq!(built_in_roles_of("x").len(), 6);
        assert_eq!(built_in_roles_of("admin").len(), ROLES.len());
    }
}
