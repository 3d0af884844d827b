//! A node's data on its engine: catalog, write paths, queries, sessions, replication, put together in this order
//! ([`assemble`]); then start-up recovery ([`start`]). Afterwards the node can serve.
//!
//! There are two write paths. That of commands tells the observers, of which the oplog's writer is one in a set. The other
//! tells nobody: replication itself writes with it (recovery, sessions, what is local).

use crate::compatibility;
use crate::options::{ReplicationMode, ServerOptions};
use crate::schema_log::SchemaLog;
use crate::user_observer::UserObserver;
use pando_base::{Component, Error, ErrorCode, Log, Namespace, OperationRegistry, ParameterSet, Result, Severity, log};
use pando_catalog::{Catalog, Observers};
use pando_collection::{InsertWatcher, WritePath};
use pando_commands::Data;
use pando_commands::catalog::DropsPending;
use pando_commands::crud::InsertNews;
use pando_commands::settings::{ClusterSettings, SettingsObserver};
use pando_commands::watch::{ProfileFilter, ProfileSettings, Profiler, Top};
use pando_doc::{DocRef, Value};
use pando_env::Env;
use pando_index::{Indexing, Interceptors};
use pando_index_build::{BuildParts, IndexBuilds, Member, Members, Membership, ResumeInfo};
use pando_locks::{LockManager, TicketParameters, Tickets};
use pando_operation::{Services, tell_engine};
use pando_oplog::ObserverRegistry;
use pando_query::cursor::CursorManager;
use pando_query::executor::CatalogCollections;
use pando_query::{ClusterTimeSource, MatchValidator, PlanCache, QueryEngine, QueryIndexHooks};
use pando_repl::apply::Applier;
use pando_repl::config::HostAndPort;
use pando_repl::topology::Mode;
use pando_repl::{LocalStore, ReplGate, ReplicationNode, ReplicationParts};
use pando_security::UserCache;
use pando_session::{History, SessionCache, SessionCatalog, SessionTable, StoredSessions};
use pando_sorter::SpillDirectory;
use pando_storage::{Engine, ReadTimestamps};
use std::collections::BTreeMap;
use std::sync::Arc;

/// In the data directory: what sorts and groups keep on disk while they run.
const SPILL_DIRECTORY: &str = "_tmp";

/// What is there before the data.
pub(crate) struct Foundations<'a> {
    pub(crate) env: &'a Env,
    pub(crate) engine: &'a Arc<dyn Engine>,
    pub(crate) parameters: &'a Arc<ParameterSet>,
    pub(crate) operations: &'a OperationRegistry,
    pub(crate) users: &'a Arc<UserCache>,
    pub(crate) log: &'a Log,
}

/// Puts the data together, as the engine has it.
pub(crate) fn assemble(on: &Foundations<'_>, options: &ServerOptions, hostname: &str) -> Result<Arc<Data>> {
    let mode = mode(&options.replication);
    let is_replicated = mode.is_replicated();
    let replication = ReplicationNode::new(on.env, on.engine, mode);
    replication.follow_parameters(on.parameters);
    replication.log_to(on.log);
    let services = services(on, &replication)?;
    let (catalog, report) = Catalog::open(on.env, on.engine)?;
    for (namespace, index) in &report.missing_indexes {
        let name = index.as_str();
        log!(
            on.log,
            Severity::Warning,
            Component::Storage,
            22297,
            "Index is missing its table",
            "namespace" = namespace,
            "index" = name
        );
    }
    let cluster_time = is_replicated.then(|| cluster_time_source(&replication));
    let nobody: Arc<Observers> = Arc::new(ObserverRegistry::new());
    let interceptors = Arc::new(Interceptors::default());
    let quiet = Arc::new(write_path(on, cluster_time.as_ref(), &catalog, &nobody, &interceptors));
    let sessions = SessionCatalog::new();
    let session_table: Arc<dyn SessionTable> = Arc::new(StoredSessions::new(Arc::clone(&catalog), Arc::clone(&quiet)));
    let writer = replication.oplog_writer(sessions.clone(), Arc::clone(&session_table));
    let mut registry = ObserverRegistry::new();
    if is_replicated {
        registry.add(Arc::clone(&writer) as Arc<Observers>);
    }
    registry.add(Arc::new(UserObserver::new(on.users)));
    registry.add(Arc::new(SchemaLog::new(on.log)));
    let settings = Arc::new(ClusterSettings::new(on.parameters));
    registry.add(Arc::new(SettingsObserver::new(&settings, on.env)));
    let top = Arc::new(Top::default());
    registry.add(Arc::clone(&top) as Arc<Observers>);
    let plan_cache = PlanCache::new();
    registry.add(Arc::new(plan_cache.clone()));
    let observers: Arc<Observers> = Arc::new(registry);
    let history = History::new(Arc::clone(on.engine));
    let collections = Arc::new(CatalogCollections(Arc::clone(&catalog)));
    let inserts = Arc::new(InsertNews::default());
    let watcher = Arc::clone(&inserts) as Arc<dyn InsertWatcher>;
    let told =
        Arc::new(write_path(on, cluster_time.as_ref(), &catalog, &observers, &interceptors).with_watcher(watcher));
    let found = ResumeInfo::read_all(on.engine)?;
    let spill_directory = spill_directory(on, options, &found)?;
    let mut query = QueryEngine::new(on.env, collections, Arc::clone(&told), Arc::clone(on.parameters))
        .remembering_in(plan_cache)
        .logging_to(on.log.clone())
        .with_scripting(options.is_scripting);
    if let Some(source) = &cluster_time {
        query = query.telling_cluster_time(Arc::clone(source));
    }
    if let Some(directory) = &spill_directory {
        query = query.spilling_to(Arc::clone(directory));
    }
    let replication_parts = ReplicationParts {
        services: services.clone(),
        catalog: Arc::clone(&catalog),
        node: Arc::clone(&replication),
        local: LocalStore::new(Arc::clone(&catalog), Arc::clone(&quiet)),
        applier: Applier::new(Arc::clone(&catalog), quiet, Arc::clone(&session_table), history.clone()),
        writer,
        own_host: own_host(options, hostname),
        other_names: vec![hostname.to_owned()],
    };
    let members = SetMembers { node: Arc::clone(&replication) };
    let build_parts = BuildParts {
        services: services.clone(),
        catalog: Arc::clone(&catalog),
        write_path: told,
        observers: Arc::clone(&observers),
        interceptors,
        members: Arc::new(members),
        spill_directory,
        data_directory: options.data_directory.clone(),
    };
    Ok(Arc::new(Data {
        drops_pending: DropsPending::default(),
        index_builds: IndexBuilds::new(build_parts, found),
        services,
        catalog,
        observers,
        query,
        cursors: CursorManager::new(on.env),
        inserts,
        backups: Arc::default(),
        top,
        checks: pando_commands::db_check::DbChecks::default(),
        profiler: Profiler::new(profile_settings(on, options)?),
        settings,
        session_cache: SessionCache::new(),
        sessions,
        session_table,
        history,
        replication,
        replication_parts,
    }))
}

/// Who is in the set, for votes on index builds.
struct SetMembers {
    node: Arc<ReplicationNode>,
}

impl Members for SetMembers {
    fn membership(&self) -> Membership {
        let Some(config) = self.node.with_topology(|topology| topology.config().cloned()) else {
            return Membership::default();
        };
        let member = |member: &pando_repl::config::Member| Member {
            host: member.host.to_string(),
            is_voter: member.votes && !member.is_newly_added,
            builds_indexes: !member.is_arbiter && member.builds_indexes,
            tags: texts(member.tags.view()),
        };
        let modes = config.settings.modes.elements().filter_map(|mode| {
            let constraints = mode.value.as_document()?.elements();
            let count = |value: Value<'_>| u64::try_from(value.to_i64_or_zero()).unwrap_or(0);
            let counts = constraints.map(|constraint| (constraint.name.to_string(), count(constraint.value)));
            Some((mode.name.to_string(), counts.collect()))
        });
        Membership { members: config.members.iter().map(member).collect(), modes: modes.collect() }
    }

    fn own_host(&self) -> String {
        // As the set knows it: votes are counted by that name.
        self.node.with_topology(|topology| topology.own_host().map(ToString::to_string)).unwrap_or_default()
    }

    fn may_write(&self) -> bool {
        self.node.check_can_write(Namespace::index_builds()).is_ok()
    }
}

/// The fields of a document whose values are texts.
fn texts(document: DocRef<'_>) -> BTreeMap<String, String> {
    let text = |value: Value<'_>| value.as_str().map(str::to_owned);
    document.elements().filter_map(|field| Some((field.name.to_string(), text(field.value)?))).collect()
}

/// Where large sorts and groups go on; what earlier ones have left there is removed, but for what index builds go on with. None
/// for a node that must not write.
fn spill_directory(
    on: &Foundations<'_>,
    options: &ServerOptions,
    builds: &[(String, Option<ResumeInfo>)],
) -> Result<Option<Arc<SpillDirectory>>> {
    let Some(data) = options.data_directory.as_ref().filter(|_| !options.is_read_only) else { return Ok(None) };
    let directory = SpillDirectory::new(Arc::clone(on.env.disk()), data.join(SPILL_DIRECTORY));
    let kept: Vec<&str> =
        builds.iter().filter_map(|(_, info)| info.as_ref()).flat_map(ResumeInfo::file_names).collect();
    directory.remove_leftovers(&kept).map_err(|error| {
        let reason = format!("cannot clear {}: {error}", directory.path().display());
        Error::new(ErrorCode::FileStreamFailed, reason)
    })?;
    Ok(Some(Arc::new(directory)))
}

/// Says how much of the oplog was applied.
pub(crate) fn tell_recovered(log: &Log, applied: u64) {
    let message = "Completed oplog application for recovery";
    log!(log, Severity::Info, Component::Replication, 21536, message, "numOpsApplied" = applied);
}

/// Recovers the data, and has the node take its part in its set.
pub(crate) fn start(env: &Env, data: &Data, log: &Log) -> Result<u64> {
    let mut outcome = None;
    // It reads and writes files.
    env.tasks().blocking(&mut || outcome = Some(data.replication_parts.start()));
    let applied = outcome.transpose()?.map_or(0, |recovered| recovered.applied);
    if applied > 0 {
        tell_recovered(log, applied);
    }
    let mut outcome = Ok(());
    if compatibility::is_wanted(data) {
        let mut operation = data.services.internal_operation("FeatureCompatibilityVersion");
        env.tasks().blocking(&mut || outcome = compatibility::write(data, &mut operation));
    }
    outcome.map(|()| applied)
}

/// Goes on with index builds. Those that the last shutdown has put down are resumed, if the data is as it was then; others begin
/// anew. A node that may not write does so when it may ([`take_up_builds_when_primary`]).
pub(crate) async fn take_up_builds(data: &Data, recovered: u64) -> Result<()> {
    let is_primary = data.replication.is_replicated() && data.replication.is_writable_primary();
    let infos = data.index_builds.take_resume_infos(is_primary && recovered == 0)?;
    if is_primary { data.index_builds.take_up(infos).await } else { Ok(()) }
}

/// Goes on with index builds once the node is primary, if it was not at start. Each time it becomes primary the log says when that was
/// looked at; builds that were under way when it stepped down go on by themselves.
pub(crate) async fn take_up_builds_when_primary(env: Env, data: std::sync::Weak<Data>, log: Log) {
    const INTERVAL: std::time::Duration = std::time::Duration::from_secs(1);
    let mut looked_at = None;
    loop {
        let Some(served) = data.upgrade() else { return };
        let term = served.replication.with_topology(|topology| topology.term());
        if served.replication.is_writable_primary() && looked_at != Some(term) {
            if looked_at.is_none()
                && let Err(error) = served.index_builds.take_up(Vec::new()).await
            {
                let message = "Could not go on with unfinished index builds";
                log!(log, Severity::Error, Component::Index, 20661, message, "error" = &error);
            }
            looked_at = Some(term);
            let message = "Finished performing asynchronous step-up checks on index builds";
            log!(log, Severity::Info, Component::Storage, 7508300, message);
        }
        drop(served);
        env.clock().sleep(INTERVAL).await;
    }
}

/// How databases are profiled that nobody has said anything about.
fn profile_settings(on: &Foundations<'_>, options: &ServerOptions) -> Result<ProfileSettings> {
    let now_ms = i64::try_from(on.env.clock().wall_ms()).unwrap_or(i64::MAX);
    let filter = options.profile_filter.as_ref().map(|filter| ProfileFilter::parse(filter.view(), now_ms)).transpose();
    let filter = filter.map_err(|error| error.context("Failed to parse option operationProfiling.filter"))?;
    Ok(ProfileSettings { level: options.profile_level, filter: filter.map(Arc::new) })
}

fn mode(replication: &ReplicationMode) -> Mode {
    match replication {
        ReplicationMode::StandAlone => Mode::StandAlone,
        ReplicationMode::OneMember(name) => Mode::SelfInitiated { set_name: name.clone() },
        ReplicationMode::ReplicaSet(name) => Mode::Member { set_name: name.clone() },
    }
}

fn services(on: &Foundations<'_>, replication: &Arc<ReplicationNode>) -> Result<Services> {
    let tickets = Tickets::new(on.env, &TicketParameters::of(on.parameters)?)?;
    tickets.follow(on.parameters);
    tell_engine(on.parameters, on.engine);
    Ok(Services {
        env: on.env.clone(),
        engine: Arc::clone(on.engine),
        replication: Arc::clone(replication) as Arc<dyn ReadTimestamps>,
        locks: LockManager::with_tickets(on.env, tickets),
        parameters: Arc::clone(on.parameters),
        operations: on.operations.clone(),
        log: on.log.clone(),
        retry_counters: Arc::default(),
    })
}

/// The time of the cluster, for expressions.
fn cluster_time_source(replication: &Arc<ReplicationNode>) -> ClusterTimeSource {
    let replication = Arc::clone(replication);
    Arc::new(move || replication.clock().now())
}

fn write_path(
    on: &Foundations<'_>,
    cluster_time: Option<&ClusterTimeSource>,
    catalog: &Arc<Catalog>,
    observers: &Arc<Observers>,
    interceptors: &Arc<Interceptors>,
) -> WritePath {
    let hooks = Arc::new(QueryIndexHooks::new(catalog, observers).intercepted_by(interceptors).within(on.parameters));
    let mut validator = MatchValidator::new(Arc::clone(on.parameters), on.log.clone());
    if let Some(source) = cluster_time {
        validator = validator.telling_cluster_time(Arc::clone(source));
    }
    WritePath::new(Arc::clone(observers), Arc::new(Indexing::new(hooks)), Arc::new(validator))
}

/// Where others reach this node: the first address it listens on, or the machine's name if that is everywhere.
fn own_host(options: &ServerOptions, hostname: &str) -> HostAndPort {
    let first = options.net.addresses.first().map(|address| HostAndPort::parse(address));
    match first {
        Some(Ok(host)) if host.host == "0.0.0.0" || host.host == "::" => HostAndPort::new(hostname, host.port),
        Some(Ok(host)) => host,
        _ => HostAndPort::new("127.0.0.1", pando_repl::config::DEFAULT_PORT),
    }
}
