//! The namespaces the server itself uses, made once.

use super::{DatabaseName, Namespace};
use std::sync::LazyLock;

macro_rules! known {
    ($($(#[$doc:meta])* $function:ident = $database:literal . $collection:literal;)*) => {
        impl Namespace {
            $(
                $(#[$doc])*
                pub fn $function() -> &'static Namespace {
                    static NAME: LazyLock<Namespace> = LazyLock::new(|| fixed($database, $collection));
                    &NAME
                }
            )*
        }

        /// All of them, for tests.
        #[cfg(test)]
        pub(super) fn all() -> Vec<&'static Namespace> {
            vec![$(Namespace::$function()),*]
        }
    };
}

known! {
    /// "local.oplog.rs".
    oplog = "local"."oplog.rs";
    /// "local.system.replset": the set's configuration.
    system_replset = "local"."system.replset";
    /// "local.replset.election": the node's last vote.
    last_vote = "local"."replset.election";
    /// "local.replset.minvalid".
    min_valid = "local"."replset.minvalid";
    /// "local.replset.oplogTruncateAfterPoint".
    oplog_truncate_after_point = "local"."replset.oplogTruncateAfterPoint";
    /// "local.replset.initialSyncId".
    initial_sync_id = "local"."replset.initialSyncId";
    /// "local.system.rollback.id": how often this node has undone what it had.
    rollback_id = "local"."system.rollback.id";
    /// "local.startup_log".
    startup_log = "local"."startup_log";
    /// "local.system.healthlog".
    health_log = "local"."system.healthlog";
    /// "admin.system.version": feature compatibility version and shard identity.
    server_configuration = "admin"."system.version";
    /// "admin.system.users".
    users = "admin"."system.users";
    /// "admin.system.roles".
    roles = "admin"."system.roles";
    /// "admin.system.keys": the keys that sign cluster times.
    keys = "admin"."system.keys";
    /// "admin.$cmd".
    admin_command = "admin"."$cmd";
    /// "config.system.sessions": logical sessions.
    sessions = "config"."system.sessions";
    /// "config.transactions": the last statement of each session.
    session_transactions = "config"."transactions";
    /// "config.transaction_coordinators".
    transaction_coordinators = "config"."transaction_coordinators";
    /// "config.image_collection": what retried findAndModify returns.
    config_images = "config"."image_collection";
    /// "config.system.indexBuilds": votes on index builds.
    index_builds = "config"."system.indexBuilds";
    /// "config.system.preimages": documents before their change, for change streams.
    pre_images = "config"."system.preimages";
    /// "config.external_validation_keys".
    external_keys = "config"."external_validation_keys";
    /// "config.clusterParameters".
    cluster_parameters = "config"."clusterParameters";
    /// "config.settings".
    config_settings = "config"."settings";
    /// "config.vectorClock".
    vector_clock = "config"."vectorClock";
}

fn fixed(database: &'static str, collection: &'static str) -> Namespace {
    let database = DatabaseName { tenant: None, text: database.into(), length: database.len() as u8 };
    Namespace::made(&database, collection, "")
}

impl Namespace {
    /// "db.$cmd".
    pub fn command(database: &DatabaseName) -> Namespace {
        Namespace::made(database, "$cmd", "")
    }

    /// "db.$cmd.aggregate".
    pub fn collectionless_aggregate(database: &DatabaseName) -> Namespace {
        Namespace::made(database, "$cmd.aggregate", "")
    }

    /// "db.$cmd.listCollections".
    pub fn list_collections_cursor(database: &DatabaseName) -> Namespace {
        Namespace::made(database, "$cmd.listCollections", "")
    }

    /// "db.system.views".
    pub fn system_views(database: &DatabaseName) -> Namespace {
        Namespace::made(database, "system.views", "")
    }

    /// "db.system.profile".
    pub fn system_profile(database: &DatabaseName) -> Namespace {
        Namespace::made(database, "system.profile", "")
    }
}
