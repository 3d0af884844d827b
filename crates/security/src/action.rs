//! What can be allowed: MongoDB's actions by name, and sets of them.
//!
//! An action is a number below [`Action::COUNT`], so that a set is a few words of bits. `anyAction` is no action of its
//! own: it stands for all of them.

use std::fmt;

/// Defines the actions, each with the name that clients know.
macro_rules! actions {
    ($($variant:ident = $name:literal,)*) => {
        /// Something that a privilege can allow.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(missing_docs, reason = "the names are MongoDB's and say it")]
        pub enum Action {
            $($variant,)*
        }

        impl Action {
            /// All of them, in the order of their names.
            pub const ALL: &'static [Action] = &[$(Action::$variant,)*];

            /// The name.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Action::$variant => $name,)*
                }
            }
        }
    };
}

actions! {
    AddShard = "addShard",
    AdvanceClusterTime = "advanceClusterTime",
    AllCollectionStats = "allCollectionStats",
    Analyze = "analyze",
    AnalyzeShardKey = "analyzeShardKey",
    AppendOplogNote = "appendOplogNote",
    ApplicationMessage = "applicationMessage",
    ApplyOps = "applyOps",
    AuditConfigure = "auditConfigure",
    AuditLogRotate = "auditLogRotate",
    AuthCheck = "authCheck",
    AuthSchemaUpgrade = "authSchemaUpgrade",
    Authenticate = "authenticate",
    BypassDocumentValidation = "bypassDocumentValidation",
    BypassWriteBlockingMode = "bypassWriteBlockingMode",
    ChangeCustomData = "changeCustomData",
    ChangeOwnCustomData = "changeOwnCustomData",
    ChangeOwnPassword = "changeOwnPassword",
    ChangePassword = "changePassword",
    ChangeStream = "changeStream",
    CheckFreeMonitoringStatus = "checkFreeMonitoringStatus",
    CheckMetadataConsistency = "checkMetadataConsistency",
    CleanupOrphaned = "cleanupOrphaned",
    ClearJumboFlag = "clearJumboFlag",
    CloseAllDatabases = "closeAllDatabases",
    CollMod = "collMod",
    CollStats = "collStats",
    Compact = "compact",
    CompactStructuredEncryptionData = "compactStructuredEncryptionData",
    ConfigureQueryAnalyzer = "configureQueryAnalyzer",
    ConnPoolStats = "connPoolStats",
    ConnPoolSync = "connPoolSync",
    ConvertToCapped = "convertToCapped",
    CpuProfiler = "cpuProfiler",
    CreateCollection = "createCollection",
    CreateDatabase = "createDatabase",
    CreateIndex = "createIndex",
    CreateRole = "createRole",
    CreateSearchIndexes = "createSearchIndexes",
    CreateUser = "createUser",
    DbCheck = "dbCheck",
    DbHash = "dbHash",
    DbStats = "dbStats",
    DropAllRolesFromDatabase = "dropAllRolesFromDatabase",
    DropAllUsersFromDatabase = "dropAllUsersFromDatabase",
    DropCollection = "dropCollection",
    DropConnections = "dropConnections",
    DropDatabase = "dropDatabase",
    DropIndex = "dropIndex",
    DropRole = "dropRole",
    DropSearchIndex = "dropSearchIndex",
    DropUser = "dropUser",
    Emptycapped = "emptycapped",
    EnableProfiler = "enableProfiler",
    EnableSharding = "enableSharding",
    ExportCollection = "exportCollection",
    Find = "find",
    FlushRouterConfig = "flushRouterConfig",
    ForceUUID = "forceUUID",
    Fsync = "fsync",
    FsyncUnlock = "fsyncUnlock",
    GetChangeStreamState = "getChangeStreamState",
    GetClusterParameter = "getClusterParameter",
    GetCmdLineOpts = "getCmdLineOpts",
    GetDatabaseVersion = "getDatabaseVersion",
    GetDefaultRWConcern = "getDefaultRWConcern",
    GetLog = "getLog",
    GetParameter = "getParameter",
    GetShardMap = "getShardMap",
    GetShardVersion = "getShardVersion",
    GrantPrivilegesToRole = "grantPrivilegesToRole",
    GrantRole = "grantRole",
    GrantRolesToRole = "grantRolesToRole",
    GrantRolesToUser = "grantRolesToUser",
    HostInfo = "hostInfo",
    Impersonate = "impersonate",
    ImportCollection = "importCollection",
    IndexStats = "indexStats",
    Inprog = "inprog",
    Insert = "insert",
    Internal = "internal",
    InvalidateUserCache = "invalidateUserCache",
    IssueDirectShardOperations = "issueDirectShardOperations",
    KillAnyCursor = "killAnyCursor",
    KillAnySession = "killAnySession",
    KillCursors = "killCursors",
    Killop = "killop",
    ListCachedAndActiveUsers = "listCachedAndActiveUsers",
    ListCollections = "listCollections",
    ListCursors = "listCursors",
    ListDatabases = "listDatabases",
    ListIndexes = "listIndexes",
    ListSampledQueries = "listSampledQueries",
    ListSearchIndexes = "listSearchIndexes",
    ListSessions = "listSessions",
    ListShards = "listShards",
    LogRotate = "logRotate",
    MoveChunk = "moveChunk",
    Netstat = "netstat",
    OidReset = "oidReset",
    OidcListKeys = "oidcListKeys",
    OidcRefreshKeys = "oidcRefreshKeys",
    OperationMetrics = "operationMetrics",
    PlanCacheIndexFilter = "planCacheIndexFilter",
    PlanCacheRead = "planCacheRead",
    PlanCacheWrite = "planCacheWrite",
    QueryStatsRead = "queryStatsRead",
    QueryStatsReadTransformed = "queryStatsReadTransformed",
    ReIndex = "reIndex",
    RefineCollectionShardKey = "refineCollectionShardKey",
    Remove = "remove",
    RemoveShard = "removeShard",
    RenameCollection = "renameCollection",
    RenameCollectionSameDB = "renameCollectionSameDB",
    RepairDatabase = "repairDatabase",
    ReplSetConfigure = "replSetConfigure",
    ReplSetGetConfig = "replSetGetConfig",
    ReplSetGetStatus = "replSetGetStatus",
    ReplSetHeartbeat = "replSetHeartbeat",
    ReplSetReconfig = "replSetReconfig",
    ReplSetResizeOplog = "replSetResizeOplog",
    ReplSetStateChange = "replSetStateChange",
    ReshardCollection = "reshardCollection",
    Resync = "resync",
    RevokePrivilegesFromRole = "revokePrivilegesFromRole",
    RevokeRole = "revokeRole",
    RevokeRolesFromRole = "revokeRolesFromRole",
    RevokeRolesFromUser = "revokeRolesFromUser",
    RotateCertificates = "rotateCertificates",
    RunAsLessPrivilegedUser = "runAsLessPrivilegedUser",
    RunTenantMigration = "runTenantMigration",
    ServerStatus = "serverStatus",
    SetAuthenticationRestriction = "setAuthenticationRestriction",
    SetChangeStreamState = "setChangeStreamState",
    SetClusterParameter = "setClusterParameter",
    SetDefaultRWConcern = "setDefaultRWConcern",
    SetFeatureCompatibilityVersion = "setFeatureCompatibilityVersion",
    SetFreeMonitoring = "setFreeMonitoring",
    SetParameter = "setParameter",
    SetUserWriteBlockMode = "setUserWriteBlockMode",
    ShardCollection = "shardCollection",
    ShardedDataDistribution = "shardedDataDistribution",
    ShardingState = "shardingState",
    Shutdown = "shutdown",
    SplitChunk = "splitChunk",
    SplitVector = "splitVector",
    StorageDetails = "storageDetails",
    Test = "test",
    Top = "top",
    Touch = "touch",
    TrafficRecord = "trafficRecord",
    TransitionFromDedicatedConfigServer = "transitionFromDedicatedConfigServer",
    TransitionToDedicatedConfigServer = "transitionToDedicatedConfigServer",
    Unlock = "unlock",
    Update = "update",
    UpdateRole = "updateRole",
    UpdateSearchIndex = "updateSearchIndex",
    UpdateUser = "updateUser",
    UseTenant = "useTenant",
    UseUUID = "useUUID",
    Validate = "validate",
    ViewRole = "viewRole",
    ViewUser = "viewUser",
}

/// What stands for all actions.
pub const ANY_ACTION: &str = "anyAction";

const WORDS: usize = 3;

impl Action {
    /// How many there are.
    pub const COUNT: usize = Action::ALL.len();

    /// The action of this name.
    pub fn named(name: &str) -> Option<Action> {
        Action::ALL.iter().copied().find(|action| action.name() == name)
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of actions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ActionSet([u64; WORDS]);

impl ActionSet {
    /// None.
    pub const EMPTY: ActionSet = ActionSet([0; WORDS]);

    /// Every action.
    pub const ALL: ActionSet = ActionSet::of(Action::ALL);

    /// These.
    pub const fn of(actions: &[Action]) -> ActionSet {
        let mut words = [0; WORDS];
        let mut place = 0;
        while place < actions.len() {
            let number = actions[place] as usize;
            words[number / 64] |= 1 << (number % 64);
            place += 1;
        }
        ActionSet(words)
    }

    /// Both together.
    #[must_use]
    pub const fn with(self, other: ActionSet) -> ActionSet {
        let (ActionSet([a, b, c]), ActionSet([d, e, f])) = (self, other);
        ActionSet([a | d, b | e, c | f])
    }

    /// What the other has not.
    #[must_use]
    pub const fn without(self, other: ActionSet) -> ActionSet {
        let (ActionSet([a, b, c]), ActionSet([d, e, f])) = (self, other);
        ActionSet([a & !d, b & !e, c & !f])
    }

    /// Is there none?
    pub const fn is_empty(self) -> bool {
        let ActionSet([a, b, c]) = self;
        a | b | c == 0
    }

    /// Is the action in it?
    pub const fn contains(self, action: Action) -> bool {
        self.contains_all(ActionSet::of(&[action]))
    }

    /// Are all of the others in it?
    pub const fn contains_all(self, other: ActionSet) -> bool {
        other.without(self).is_empty()
    }

    /// The actions, in order.
    pub fn iter(self) -> impl Iterator<Item = Action> {
        Action::ALL.iter().copied().filter(move |action| self.contains(*action))
    }

    /// As privileges are written: the names in order, or the one that stands for all.
    pub fn names(self) -> Vec<&'static str> {
        if self == ActionSet::ALL {
            return vec![ANY_ACTION];
        }
        self.iter().map(Action::name).collect()
    }
}

impl From<Action> for ActionSet {
    fn from(action: Action) -> ActionSet {
        ActionSet::of(&[action])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u10_actions_have_their_names_and_fit_a_set() {
        assert!(Action::COUNT <= WORDS * 64 && Action::ALL.is_sorted_by_key(|action| action.name()));
        for action in Action::ALL {
            assert_eq!(Action::named(action.name()), Some(*action));
        }
        assert_eq!(Action::named("anyAction"), None);
    }

    #[test]
    fn u10_sets_of_actions_are_sets() {
        let both = ActionSet::of(&[Action::Find, Action::ViewUser]);
        assert!(both.contains(Action::ViewUser) && !both.contains(Action::Insert));
        assert_eq!(both.without(Action::Find.into()), ActionSet::from(Action::ViewUser));
        assert_eq!(both.names(), ["find", "viewUser"]);
        assert_eq!(ActionSet::ALL.names(), [ANY_ACTION]);
        assert_eq!(ActionSet::ALL.iter().count(), Action::COUNT);
    }
}
