//! Running a node: the log, the engine, the server, the signals, and the end.

use super::lock_file::{self, LockFile};
use super::meaning::{LogPlan, Plan};
use super::{background, backtrace, repair, welcome};
use crate::error::{PandoError, Result};
use crate::store;
use pando_base::Log;
use pando_commands::{BACKTRACE_LOG_FILE, TESTING_DIAGNOSTICS};
use pando_engine::{EngineOptions, Mode};
use pando_env::real::{RealMachine, RealSignals, Runtimes};
use pando_env::{Env, Machine};
use pando_security::KeyFile;
use pando_server::{FileSink, LogTarget, ProcessControl, Server, StreamSink, SyslogSink};
use pando_storage::{Engine, StorageError};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

/// Connections that the process can have at most: a fifth of its files is for everything else.
const FILES_FOR_CONNECTIONS: f64 = 0.8;

/// Runs until somebody ends it.
pub fn run(env: &Env, plan: Plan) -> Result<ExitCode> {
    let runtimes = Runtimes::start(env.tasks().parallelism()).map_err(PandoError::Output)?;
    let env = env.with_tasks(runtimes.tasks());
    let outcome = runtimes.block_on(serve(&env, plan));
    runtimes.end();
    outcome
}

async fn serve(env: &Env, mut plan: Plan) -> Result<ExitCode> {
    let target = log_target(env, &plan)?;
    let log = Server::log(env, Arc::clone(&target));
    // Layers that no handle reaches write there as well.
    let _ = log.clone().install();
    plan.engine.listener = Server::engine_listener(&log);
    let control = Arc::new(ProcessControl::new(target));
    let machine = Arc::new(RealMachine::new());
    let files_max = (machine.facts().open_files_max as f64 * FILES_FOR_CONNECTIONS) as u64;
    plan.server.net.connections_max = plan.server.net.connections_max.min(files_max.max(5));
    plan.engine.memory_bytes =
        plan.memory_bytes.unwrap_or_else(|| usual_memory_bytes(machine.facts().memory_limit_bytes));
    if let Some(path) = &plan.key_file {
        plan.server.security.key_file = Some(read_key(env, path)?);
    }
    if plan.repairs {
        return repaired(env, &*machine, &plan, &log).await;
    }
    repair::refuse_incomplete(env, &plan.data_directory)?;
    let mut signals = RealSignals::new().map_err(PandoError::Output)?;
    let engine = match open(env, &*machine, &plan, &log) {
        Ok(engine) => engine,
        Err(error) => {
            lock_file::tell_failure(&plan.data_directory, &error, &log);
            return Err(error);
        }
    };
    let is_changed = !plan.server.is_read_only;
    let lock_file = is_changed.then(|| LockFile::write(env, &plan.data_directory, &log)).transpose()?;
    let welcome = plan.is_friendly.then(|| welcome::text(&plan));
    let starting = Server::start(env, machine, Some(Arc::clone(&engine)), plan.server.clone(), log, control);
    let server = match starting.await {
        Ok(server) => server,
        Err(error) => {
            engine.shut_down()?;
            if let Some(lock_file) = lock_file {
                lock_file.clear();
            }
            return Err(PandoError::Server(error));
        }
    };
    backtrace::watch();
    backtrace::keep_in(env, &server.node().parameters.get(&BACKTRACE_LOG_FILE));
    if let Some(path) = &plan.process_id_file {
        lock_file::write_process_id(env, path)?;
    }
    welcome.iter().for_each(|text| println!("{text}"));
    background::tell_ready();
    let outcome = server.run(&mut signals).await;
    if let Some(path) = &plan.process_id_file {
        // It is of no use any more; a process of another name may have taken it away.
        let _ = env.disk().remove(path);
    }
    outcome.map_err(PandoError::Server)?;
    if let Some(lock_file) = lock_file {
        lock_file.clear();
    }
    if backtrace::has_failed() && server.node().parameters.get(&TESTING_DIAGNOSTICS) {
        return Ok(ExitCode::from(DEFECT));
    }
    Ok(ExitCode::SUCCESS)
}

/// Repairs, and says what was done.
async fn repaired(env: &Env, machine: &dyn Machine, plan: &Plan, log: &Log) -> Result<ExitCode> {
    let changes = repair::run(env, machine, plan, log).await?;
    changes.iter().for_each(|change| println!("{change}"));
    let directory = plan.data_directory.display();
    match changes.is_empty() {
        true => println!("Nothing in {directory} was damaged."),
        false => println!("{directory} is repaired; a node can start there."),
    }
    Ok(ExitCode::SUCCESS)
}

/// What a node ends with that looks for defects and has met one; mongod's number for an abrupt end.
const DEFECT: u8 = 14;

/// What others than a file's owner may do with it.
const OPEN_TO_OTHERS: u32 = 0o077;

/// The key of the deployment. Whoever knows it may do everything, so nobody else may be able to read it.
fn read_key(env: &Env, path: &Path) -> Result<KeyFile> {
    let failed = |error| PandoError::Directory(path.to_owned(), error);
    let permissions = env.disk().permissions(path).map_err(failed)?;
    if permissions & OPEN_TO_OTHERS != 0 {
        return Err(PandoError::Argument(format!("permissions on {} are too open", path.display())));
    }
    let bytes = env.disk().read_all(path).map_err(failed)?;
    let wrong = |reason: &str| PandoError::Argument(format!("{}: {reason}", path.display()));
    let text = std::str::from_utf8(&bytes).map_err(|_| wrong("the key file is not text"))?;
    KeyFile::read(text).map_err(|error| wrong(error.reason()))
}

/// Opens the store. One that was a member's and is to stand alone has first to take over what only its oplog has.
fn open(env: &Env, machine: &dyn Machine, plan: &Plan, log: &Log) -> Result<Arc<dyn Engine>> {
    match store::open(env, &plan.data_directory, plan.engine.clone()) {
        Err(PandoError::Storage(StorageError::OplogNotApplied(_))) => {}
        outcome => return outcome,
    }
    let as_member = EngineOptions { mode: Mode::ReplicaSet, ..plan.engine.clone() };
    let engine = store::open(env, &plan.data_directory, as_member)?;
    let left = Server::leave_replication(env, machine, &engine, &plan.server, log).map_err(PandoError::Server);
    engine.shut_down()?;
    left?;
    drop(engine);
    store::open(env, &plan.data_directory, plan.engine.clone())
}

fn log_target(env: &Env, plan: &Plan) -> Result<Arc<dyn LogTarget>> {
    Ok(match &plan.log {
        // A person who just starts it wants to see three lines, and what goes wrong.
        LogPlan::Output if plan.is_friendly => Arc::new(StreamSink::standard_output().quiet()),
        LogPlan::Output => Arc::new(StreamSink::standard_output()),
        LogPlan::System { facility } => {
            let port = plan.server.net.addresses.first().and_then(|address| address.rsplit_once(':'));
            let program = format!("{}.{}", plan.server.process_name, port.map_or("27017", |(_, port)| port));
            Arc::new(SyslogSink::new(env, *facility, &program, std::process::id()))
        }
        LogPlan::File { path, append, renames } => {
            let file = FileSink::open(env, path, *append, *renames);
            Arc::new(file.map_err(|error| PandoError::Directory(path.clone(), error))?)
        }
    })
}

/// As much as mongod takes: half of what is there beyond a gigabyte, and a quarter of a gigabyte at least.
fn usual_memory_bytes(limit_bytes: u64) -> u64 {
    (limit_bytes.saturating_sub(1 << 30) / 2).max(1 << 28)
}
