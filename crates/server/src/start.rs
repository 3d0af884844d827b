//! From options to a node that listens, and back.

use crate::background::{Background, keep_giving_memory_back};
use crate::before_login;
use crate::control::ProcessControl;
use crate::data::{self, Foundations};
use crate::diagnostic_data;
use crate::dispatch::{Dispatcher, Local};
use crate::engine_events::EngineLog;
use crate::lists;
use crate::logging::LogTarget;
use crate::metrics_page::MetricsPage;
use crate::options::{ReplicationMode, SecurityOptions, ServerOptions};
use crate::replication::NodeInSet;
use crate::sections;
use crate::slices::{ServerSlices, SharedSlices};
use crate::startup_log;
use pando_base::operation::Slices;
use pando_base::{
    AnyFailPoint, Component, Error, ErrorCode, FailPoint, FailPointSet, Log, LogLine, LogSink, LogValue, MetricTree,
    OperationRegistry, ParameterSet, ParameterValue, Progress, Result, Severity, Timestamp, log,
};
use pando_commands::administration::{apply_verbosity, feature_flag};
use pando_commands::replication::{await_ends, interrupt_writers};
use pando_commands::transaction_api::TransactionApi;
use pando_commands::{
    BSON_DEPTH_MAX, CommandTable, Control, Counters, Data, LOG_COMPONENT_VERBOSITY, LOG_LEVEL, MAX_LOG_SIZE_KB, Node,
    NodeOptions, NotInitiated, OneMember, QUERY_FRAMEWORK, QUERY_FRAMEWORK_ONLY, QUIET, ReplicationView,
    SIGNALED_SHUTDOWN_MS, StandAlone, StatusSection, VERSION, foreign_parameter,
    security::{SCRAM_ITERATION_COUNT, SCRAM_SHA_256_ITERATION_COUNT, Security},
    status,
};
use pando_doc::ObjectId;
use pando_env::{Env, Machine, Place, Signal, Signals};
use pando_net::{ConnectionCounters, Net, NetOptions, NetworkCounters, Tls};
use pando_repl::ReplGate;
use pando_storage::{Engine, Listener};
use parking_lot::Mutex;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// A running node.
pub struct Server {
    env: Env,
    net: Net<Dispatcher>,
    node: Arc<Node>,
    control: Arc<ProcessControl>,
    engine: Option<Arc<dyn Engine>>,
    background: Mutex<Option<Background>>,
}

/// Lines go to the target, which the control can rotate as well.
struct Sink(Arc<dyn LogTarget>);

impl LogSink for Sink {
    fn write(&self, line: &LogLine, json: &str) {
        self.0.write(line, json);
    }

    fn show_progress(&self, id: u64, progress: Option<Progress<'_>>) {
        self.0.show_progress(id, progress);
    }
}

impl Server {
    /// A log that goes to this target, with the environment's clock.
    pub fn log(env: &Env, target: Arc<dyn LogTarget>) -> Log {
        let env = env.clone();
        Log::new(Arc::new(move || env.clock().wall_ms()), Box::new(Sink(target)))
    }

    /// Who writes the engine's events into this log; the options that the engine is opened with name it.
    pub fn engine_listener(log: &Log) -> Listener {
        Listener::new(Arc::new(EngineLog(log.clone())))
    }

    /// Puts a node together and begins to listen. The engine is opened by the caller, who names the concrete one.
    pub async fn start(
        env: &Env,
        machine: Arc<dyn Machine>,
        engine: Option<Arc<dyn Engine>>,
        options: ServerOptions,
        log: Log,
        control: Arc<ProcessControl>,
    ) -> Result<Server> {
        let connections = Arc::new(ConnectionCounters::default());
        let network = Arc::new(NetworkCounters::default());
        let extra: Vec<Box<dyn StatusSection>> = vec![
            Box::new(sections::Connections(Arc::clone(&connections))),
            Box::new(sections::Network(Arc::clone(&network))),
        ];
        let grounds = Grounds::new(env, &*machine, &options, &log, engine.as_ref())?;
        let recovered = grounds.start_data(env, &*machine, &options, &log)?;
        if let Some(data) = &grounds.data {
            if !options.is_read_only {
                data.replication_parts.rebuild_prepared().await?;
                data::take_up_builds(data, recovered).await?;
            }
            pando_commands::catalog::check_at_startup(data, options.is_read_only, &log).await?;
            data.settings.load(data, i64::try_from(env.clock().wall_ms()).unwrap_or(i64::MAX)).await?;
        }
        let around = Around { machine, control: &control, extra, network: &network };
        let node = Arc::new(node(env, &options, &log, around, grounds)?);
        node.transaction_api.set_local(Box::new(Local::new(&node)));
        if let Some(data) = node.data.as_ref().filter(|_| !options.is_read_only && node.security.is_enabled) {
            pando_commands::security::refresh_time_keys(&node, data).await?;
        }
        log_start(&node, &options, &log);
        warn_if_open(&node, &options, &log);
        warn_of_ignored(&node, &options, &log);
        let served = node.data.as_ref().filter(|_| options.runs_tasks);
        let background = served.map(|data| Background::start(env, data, &log)).transpose()?;
        if let Some(background) = &background {
            let directory = options.data_directory.as_ref().map(|data| data.join(diagnostic_data::DIRECTORY));
            let directory = directory.filter(|_| !options.is_read_only);
            background.spawn_at(
                env,
                Place::Lanes,
                diagnostic_data::collect(env.clone(), Arc::downgrade(&node), directory),
            )?;
            background.spawn_at(env, Place::Lanes, keep_giving_memory_back(env, &node.machine))?;
        }
        if let (Some(background), Some(data)) = (&background, served.filter(|_| !options.is_read_only)) {
            let replicated = data.replication.is_replicated();
            let (data, counters) = (Arc::downgrade(data), Arc::clone(&node.counters));
            let removing = pando_commands::pre_images::keep_removing(env.clone(), data.clone(), log.clone());
            background.spawn_at(env, Place::Lanes, removing)?;
            if replicated {
                background.spawn(env, pando_commands::security::keep_time_keys(Arc::downgrade(&node)))?;
            }
            let expiring = pando_commands::ttl::keep_expiring(env.clone(), data, counters, log.clone());
            background.spawn_at(env, Place::Lanes, expiring)?;
        }
        let page = MetricsPage::new(env, &node, !options.runs_tasks);
        for address in &options.metrics_addresses {
            let serving = Arc::clone(&page).serve(page.listen(address).await?);
            match &background {
                Some(background) => background.spawn(env, serving)?,
                None => env.tasks().spawn(Box::pin(serving)).map_err(|error| Error::internal(error.to_string()))?,
            }
        }
        let tls = options.net.tls.clone().map(|tls| Tls::load(env, tls).map(Arc::new)).transpose()?;
        if let Some(subject) = tls.as_ref().and_then(|tls| tls.member_subject()) {
            node.security.set_member_subject(&subject);
        }
        control.set_tls(tls.clone());
        let dispatcher = Dispatcher::new(Arc::clone(&node), lists::stages());
        let memory_bytes = node.machine.facts().memory_limit_bytes;
        let connections_max =
            before_login::connections_max(options.net.connections_max, &node.parameters, memory_bytes, &log);
        let net_options = NetOptions { connections_max, ..options.net.clone() };
        let net = Net::listen(env, &net_options, dispatcher, tls.clone(), log.clone(), connections, network).await?;
        for address in net.addresses() {
            log!(log, Severity::Info, Component::Network, 23015, "Listening on", "address" = address.to_string());
        }
        for path in net.paths() {
            let path = path.display().to_string();
            log!(log, Severity::Info, Component::Network, 23015, "Listening on", "address" = path);
        }
        let port = net.addresses().first().map_or(0, SocketAddr::port);
        log!(
            log,
            Severity::Info,
            Component::Network,
            23016,
            "Waiting for connections",
            "port" = port,
            "ssl" = if tls.is_some() { "on" } else { "off" }
        );
        Ok(Server { env: env.clone(), net, node, control, engine, background: Mutex::new(background) })
    }

    /// Brings the data of a member of a set to where it can be opened stand-alone: everything that only the oplog has is
    /// applied and put into a checkpoint. The engine is open as that of a member, and is to be shut down next.
    pub fn leave_replication(
        env: &Env,
        machine: &dyn Machine,
        engine: &Arc<dyn Engine>,
        options: &ServerOptions,
        log: &Log,
    ) -> Result<()> {
        let as_member = ServerOptions { replication: ReplicationMode::ReplicaSet(String::new()), ..options.clone() };
        let grounds = Grounds::new(env, machine, &as_member, log, Some(engine))?;
        let Some(data) = &grounds.data else { return Ok(()) };
        let mut outcome = None;
        env.tasks().blocking(&mut || outcome = Some(data.replication_parts.leave_replication()));
        data::tell_recovered(log, outcome.transpose()?.map_or(0, |recovered| recovered.applied));
        Ok(())
    }

    /// The node.
    pub fn node(&self) -> &Arc<Node> {
        &self.node
    }

    /// The addresses that are listened on.
    pub fn addresses(&self) -> &[SocketAddr] {
        self.net.addresses()
    }

    /// Serves until a signal or a command ends it, then shuts down in good order.
    pub async fn run(&self, signals: &mut dyn Signals) -> Result<()> {
        loop {
            let signal = tokio::select! {
                biased;
                () = self.control.stopped() => break,
                signal = signals.next() => signal,
            };
            let log = self.node.log.with_context("SignalHandler");
            log!(log, Severity::Info, Component::Control, 23377, "Received signal", "signal" = signal.number());
            match signal {
                Signal::User1 => self.rotate_logs(&log),
                Signal::Terminate | Signal::Interrupt | Signal::HangUp => {
                    let patience_ms = self.node.parameters.get(&SIGNALED_SHUTDOWN_MS);
                    self.control.set_patience(Duration::from_millis(u64::try_from(patience_ms).unwrap_or(0)));
                    break;
                }
            }
        }
        self.shut_down().await
    }

    fn rotate_logs(&self, log: &Log) {
        if let Err(error) = self.control.rotate_logs(None) {
            log!(log, Severity::Error, Component::Control, 4719800, "Log rotation failed", "error" = &error);
        }
    }

    /// Ends: operations are told, connections drain, the engine closes.
    pub async fn shut_down(&self) -> Result<()> {
        let log = &self.node.log;
        if let Some(data) = self.node.data.as_ref().filter(|data| data.replication.is_replicated()) {
            let told = interrupt_writers(&self.node, data, None);
            await_ends(&self.node, data, &told).await;
        }
        HANG_BEFORE_SHUTDOWN.pause_while_on().await;
        log!(log, Severity::Info, Component::Control, 4784901, "Shutting down the listeners");
        if self.node.data.as_ref().is_some_and(|data| data.backups.unlock_for_shutdown()) {
            let message = "Interrupting fsync because the server is shutting down";
            log!(log, Severity::Warning, Component::Command, 20469, message);
        }
        self.node.operations.shut_down(None);
        self.net.shut_down(self.control.patience()).await;
        if let Some(data) = &self.node.data {
            data.sessions.abort_all(ErrorCode::InterruptedAtShutdown);
            data.sessions.release_all();
        }
        let background = self.background.lock().take();
        if let Some(background) = background {
            background.stop().await;
        }
        if let Some(data) = &self.node.data {
            data.index_builds.shut_down().await;
        }
        let outcome = self.close_engine();
        match &outcome {
            Ok(()) => log!(log, Severity::Info, Component::Control, 20565, "Now exiting"),
            Err(error) => log!(log, Severity::Error, Component::Storage, 20566, "Unclean shutdown", "error" = error),
        }
        log!(log, Severity::Info, Component::Control, 23138, "Shutting down", "exitCode" = i32::from(outcome.is_err()));
        outcome
    }

    fn close_engine(&self) -> Result<()> {
        let Some(engine) = &self.engine else { return Ok(()) };
        let mut outcome = Ok(());
        self.env.tasks().blocking(&mut || outcome = engine.shut_down().map_err(Error::from));
        outcome
    }
}

/// What a node is part of: the process, its machine and its network.
struct Around<'a> {
    machine: Arc<dyn Machine>,
    control: &'a Arc<ProcessControl>,
    extra: Vec<Box<dyn StatusSection>>,
    network: &'a NetworkCounters,
}

fn node(env: &Env, options: &ServerOptions, log: &Log, around: Around<'_>, grounds: Grounds) -> Result<Node> {
    let Around { machine, control, extra, network } = around;
    let test_commands_enabled = options.test_commands_enabled();
    let table = CommandTable::new(&lists::commands(), test_commands_enabled)?;
    let mut metrics = MetricTree::new();
    status::register_commands(&table, &mut metrics)?;
    let mut sections = status::sections();
    sections.extend(extra);
    sections.sort_by_key(|section| section.name());
    let Grounds { settings: Settings { parameters, fail_points }, operations, slices, data, security } = grounds;
    slices.counters.add_metrics(&mut metrics)?;
    if let Some(data) = &data {
        data.services.add_metrics(&mut metrics)?;
        data.query.spill_counters().add_metrics(&mut metrics)?;
        data.query.held_memory().add_metrics(&mut metrics)?;
        data.query.counters.add_metrics(&mut metrics)?;
        data.query.plan_cache.add_metrics(&mut metrics)?;
        data.cursors.add_metrics(&mut metrics)?;
    }
    let counters = Counters::default();
    counters.add_metrics(&mut metrics)?;
    network.add_metrics(&mut metrics)?;
    let host = known_as(&machine.facts().hostname, &options.net.addresses);
    Ok(Node {
        env: env.clone(),
        machine,
        log: log.clone(),
        replication: replication(env, &options.replication, data.as_deref(), &parameters),
        parameters,
        fail_points,
        operations,
        counters: Arc::new(counters),
        metrics,
        table,
        sections,
        data,
        security,
        control: Arc::clone(control) as Arc<dyn Control>,
        transaction_api: TransactionApi::default(),
        diagnostic_sample: Mutex::default(),
        options: NodeOptions {
            arguments: options.arguments.clone(),
            parsed: options.parsed.clone(),
            process_name: options.process_name.clone(),
            host,
            started_wall_ms: env.clock().wall_ms(),
            started_ns: env.clock().monotonic_ns(),
            test_commands_enabled,
            compressors: options.net.compressors.clone(),
            is_read_only: options.is_read_only,
            data_directory: options.data_directory.clone(),
        },
    })
}

fn replication(
    env: &Env,
    mode: &ReplicationMode,
    data: Option<&Data>,
    parameters: &ParameterSet,
) -> Arc<dyn ReplicationView> {
    if let Some(data) = data {
        return Arc::new(NodeInSet::new(&data.replication, parameters));
    }
    let process_id = new_process_id(env);
    let seconds = u32::try_from(env.clock().wall_ms() / 1000).unwrap_or(u32::MAX);
    match mode {
        ReplicationMode::StandAlone => Arc::new(StandAlone::new(process_id)),
        ReplicationMode::OneMember(name) => Arc::new(OneMember::new(process_id, name, Timestamp::new(seconds, 1))),
        ReplicationMode::ReplicaSet(_) => Arc::new(NotInitiated::new(process_id)),
    }
}

/// Unlike any other process: its time and chance.
fn new_process_id(env: &Env) -> ObjectId {
    let mut bytes = [0; 12];
    env.random().fill(&mut bytes);
    let seconds = (env.clock().wall_ms() / 1000) as u32;
    for (place, byte) in bytes.iter_mut().zip(seconds.to_be_bytes()) {
        *place = byte;
    }
    ObjectId::from_bytes(bytes)
}

/// "machine:port", without the port if it is the usual one.
fn known_as(hostname: &str, addresses: &[String]) -> String {
    let port = addresses.first().and_then(|address| address.rsplit_once(':')).map_or("27017", |(_, port)| port);
    if port == "27017" { hostname.to_owned() } else { format!("{hostname}:{port}") }
}

/// Holds the server before it ends, while it still serves.
static HANG_BEFORE_SHUTDOWN: FailPoint = FailPoint::new("hangBeforeShutdown");

/// The fail points of this crate.
pub(crate) const FAIL_POINTS: &[&dyn AnyFailPoint] = &[&HANG_BEFORE_SHUTDOWN];

/// What a node stands on: its settings, its operations, its data.
pub(crate) struct Grounds {
    settings: Settings,
    operations: OperationRegistry,
    slices: Arc<SharedSlices>,
    pub(crate) data: Option<Arc<Data>>,
    security: Arc<Security>,
}

impl Grounds {
    /// Recovers the data and lets the node take its part in its set; notes that it has started.
    fn start_data(&self, env: &Env, machine: &dyn Machine, options: &ServerOptions, log: &Log) -> Result<u64> {
        let Some(data) = &self.data else { return Ok(0) };
        let recovered = data::start(env, data, log)?;
        if !options.is_read_only {
            startup_log::add(env, data, machine.facts(), options)?;
        }
        Ok(recovered)
    }

    /// Opens the data, if there is an engine.
    pub(crate) fn new(
        env: &Env,
        machine: &dyn Machine,
        options: &ServerOptions,
        log: &Log,
        engine: Option<&Arc<dyn Engine>>,
    ) -> Result<Grounds> {
        let settings = Settings::new(env, options, log)?;
        let monotonic = env.clone();
        let slices = Arc::new(SharedSlices::default());
        let seen_to: Box<dyn Slices> = Box::new(ServerSlices::new(env, &slices));
        let clock = Arc::new(move || monotonic.clock().monotonic_ns());
        let operations = OperationRegistry::with_slices(clock, Some(seen_to));
        let SecurityOptions { is_enabled, key_file } = &options.security;
        let security = Arc::new(Security::new(*is_enabled, key_file.as_ref(), env.random()));
        let users = &security.cache;
        let open = |engine| {
            let parameters = &settings.parameters;
            let foundations = Foundations { env, engine, parameters, operations: &operations, users, log };
            data::assemble(&foundations, options, &machine.facts().hostname)
        };
        let data = engine.map(open).transpose()?;
        if let Some(tickets) = data.as_ref().and_then(|data| data.services.locks.tickets()) {
            // There is one node for each set of slices.
            _ = slices.tickets.set(Arc::clone(tickets));
        }
        Ok(Grounds { settings, operations, slices, data, security })
    }
}

/// Parameters and fail points as the node was started with.
struct Settings {
    parameters: Arc<ParameterSet>,
    fail_points: Arc<FailPointSet>,
}

impl Settings {
    fn new(env: &Env, options: &ServerOptions, log: &Log) -> Result<Settings> {
        let parameters = ParameterSet::new(lists::PARAMETERS, options.test_commands_enabled())?;
        let fail_points = FailPointSet::new(lists::FAIL_POINTS)?;
        let applied = log.clone();
        parameters.subscribe(&LOG_LEVEL, move |value| {
            if let ParameterValue::Int(level) = value {
                applied.set_verbosity(Component::Default, u8::try_from(*level).ok());
            }
        });
        let applied = log.clone();
        parameters.subscribe(&LOG_COMPONENT_VERBOSITY, move |value| {
            if let ParameterValue::Document(bytes) = value {
                apply_verbosity(&applied, bytes);
            }
        });
        let applied = log.clone();
        parameters.subscribe(&MAX_LOG_SIZE_KB, move |value| {
            if let ParameterValue::Int(kilobytes) = value {
                applied.set_attribute_bytes_max(usize::try_from(*kilobytes).unwrap_or(0).saturating_mul(1024));
            }
        });
        let applied = log.clone();
        parameters.subscribe(&QUIET, move |value| {
            if let ParameterValue::Bool(is_quiet) = value {
                applied.set_quiet(*is_quiet);
            }
        });
        let settings = Settings { parameters: Arc::new(parameters), fail_points: Arc::new(fail_points) };
        for (name, value) in &options.parameters {
            settings.set(env, name, value)?;
            if name == BSON_DEPTH_MAX.name() {
                let depth = settings.parameters.get(&BSON_DEPTH_MAX);
                pando_doc::set_depth_max(usize::try_from(depth).unwrap_or(pando_doc::DEPTH_MAX));
            }
        }
        settings.follow_iterations(options)?;
        Ok(settings)
    }

    /// Passwords are hashed as often for the newer mechanism as for the older at least, unless somebody says how often.
    fn follow_iterations(&self, options: &ServerOptions) -> Result<()> {
        let is_given = options.parameters.iter().any(|(name, _)| name == SCRAM_SHA_256_ITERATION_COUNT.name());
        let count = self.parameters.get(&SCRAM_ITERATION_COUNT);
        if is_given || count <= self.parameters.get(&SCRAM_SHA_256_ITERATION_COUNT) {
            return Ok(());
        }
        self.parameters.set(&SCRAM_SHA_256_ITERATION_COUNT, count)
    }

    /// Fail points are set like parameters: `--setParameter failpoint.NAME={mode: ...}`.
    fn set(&self, env: &Env, name: &str, value: &str) -> Result<()> {
        let Some(point) = name.strip_prefix("failpoint.") else {
            return match feature_flag(name) {
                Some(is_on) => check_flag(name, is_on, value),
                None if foreign_parameter(name).is_some() => Ok(()),
                None => self.parameters.set_from_text(name, value),
            };
        };
        let setting = pando_doc::doc_from_json(value)?;
        let mode = match setting.get("mode").and_then(|mode| mode.as_str().map(str::to_owned)) {
            Some(name) => pando_base::FailPointMode::named(&name)?,
            None => pando_base::FailPointMode::AlwaysOn,
        };
        let data = setting.get("data").and_then(|data| data.as_document()).map(|data| data.to_doc().into_bytes());
        self.fail_points.set(point, mode, data.unwrap_or_default(), env.random().next_u64()).map(|_| ())
    }
}

/// Flags stay as they are.
fn check_flag(name: &str, is_on: bool, value: &str) -> Result<()> {
    let same: &[&str] = if is_on { &["true", "1"] } else { &["false", "0"] };
    pando_base::ensure!(
        same.contains(&value),
        ErrorCode::BadValue,
        "Bad value for parameter \"{name}\": this server has it {} always",
        if is_on { "on" } else { "off" }
    );
    Ok(())
}

/// Whoever listens to others without authentication is told so.
fn warn_if_open(node: &Node, options: &ServerOptions, log: &Log) {
    let is_loopback = |address: &String| {
        let host = address.rsplit_once(':').map_or(address.as_str(), |(host, _)| host);
        host == "localhost" || host.trim_matches(['[', ']']).parse().is_ok_and(|host: IpAddr| host.is_loopback())
    };
    if !node.security.is_enabled && !options.net.addresses.iter().all(is_loopback) {
        let message = "Access control is not enabled for the database. Read and write access to data and configuration is \
                       unrestricted";
        log.startup_warning(Component::Control, 22120, message, Vec::new());
    }
}

/// Whoever asked for something that is not so is told.
fn warn_of_ignored(node: &Node, options: &ServerOptions, log: &Log) {
    let told = |what: &'static str, name: &str, instead: &'static str| {
        vec![(what, LogValue::from(name)), ("because", LogValue::from(instead))]
    };
    for (option, instead) in &options.ignored {
        let message = "An option that was given has no effect";
        log.startup_warning(Component::Control, 9_700_130, message, told("option", option, instead));
    }
    for (name, _) in &options.parameters {
        if let Some(instead) = foreign_parameter(name) {
            let message = "A parameter that was given has no effect";
            log.startup_warning(Component::Control, 9_700_131, message, told("parameter", name, instead));
        }
    }
    let framework = node.parameters.get(&QUERY_FRAMEWORK);
    if *framework != *QUERY_FRAMEWORK_ONLY {
        let message = "Only one engine runs queries, whatever internalQueryFrameworkControl asks for";
        let attributes = vec![("given", LogValue::from(&*framework)), ("used", LogValue::from(QUERY_FRAMEWORK_ONLY))];
        log.startup_warning(Component::Query, 9_473_500, message, attributes);
    }
}

fn log_start(node: &Node, options: &ServerOptions, log: &Log) {
    let facts = node.machine.facts();
    log!(
        log,
        Severity::Info,
        Component::Control,
        4615611,
        "MongoDB starting",
        "pid" = facts.process_id,
        "architecture" = "64-bit",
        "host" = &node.options.host
    );
    log!(log, Severity::Info, Component::Control, 23403, "Build Info", "version" = VERSION);
    log!(
        log,
        Severity::Info,
        Component::Control,
        51765,
        "Operating System",
        "name" = &facts.system_name,
        "version" = &facts.system_version
    );
    let words = options.arguments.iter().map(|word| LogValue::from(word.as_str())).collect::<Vec<_>>();
    log!(log, Severity::Info, Component::Control, 21951, "Options set by command line", "options" = words);
}
