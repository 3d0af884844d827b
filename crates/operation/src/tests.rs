//! Units of work and retries of whole operations.

use crate::{Operation, PARAMETERS, Services, storage_error, write_conflict_retry, write_conflict_retry_blocking};
use pando_base::{Client, Error, ErrorCode, MetricTree, MetricValue, Namespace, ParameterSet, Result};
use pando_engine_model::{Mode, ModelDisk, ModelEngine};
use pando_env::simulated::Simulation;
use pando_locks::{Acquisition, LockRequest, Mode as LockMode, ResourceId, Wait};
use pando_storage::{RecordIdKind, RecordStore, StorageError, TableOptions};
use std::sync::{Arc, Mutex};
use std::time::Duration;

struct World {
    _simulation: Simulation,
    services: Services,
    records: Arc<RecordStore>,
}

fn world() -> World {
    let simulation = Simulation::new(1);
    let engine = ModelEngine::open(&ModelDisk::new(), Mode::StandAlone).unwrap();
    let services = Services::plain(&simulation.env(), engine.clone());
    let table = services.engine.create_table("table", &TableOptions::default()).unwrap();
    let records = Arc::new(RecordStore::new(engine, table, RecordIdKind::Long));
    World { _simulation: simulation, services, records }
}

fn namespace() -> Namespace {
    Namespace::of("test", "a").unwrap()
}

fn conflict<T>() -> Result<T> {
    Err(StorageError::WriteConflict.into())
}

impl World {
    fn insert(&self, operation: &mut Operation) -> Result<()> {
        self.records.insert(&mut operation.recovery_unit, b"x")?;
        Ok(())
    }

    fn count(&self) -> i64 {
        self.records.num_records().unwrap()
    }

    fn metric(&self, name: &str) -> MetricValue {
        let mut tree = MetricTree::new();
        self.services.add_metrics(&mut tree).unwrap();
        let found = tree.iter().find(|(path, _)| *path == format!("metrics.operation.{name}")).map(|(_, value)| value);
        found.unwrap()
    }
}

#[test]
fn x4_a_unit_commits_or_rolls_back_as_a_whole() {
    let world = world();
    let mut operation = world.services.internal_operation("test");
    operation.in_unit_of_work(|operation| world.insert(operation)).unwrap();
    assert_eq!(world.count(), 1);
    let failed = operation.in_unit_of_work(|operation| {
        world.insert(operation)?;
        operation.in_unit_of_work(|operation| world.insert(operation))?;
        Err::<(), _>(Error::bad_value("no"))
    });
    assert!(failed.is_err() && !operation.recovery_unit.in_unit_of_work());
    assert_eq!(world.count(), 1);
    operation
        .in_unit_of_work(|operation| {
            operation.in_unit_of_work(|operation| world.insert(operation))?;
            world.insert(operation)
        })
        .unwrap();
    assert_eq!(world.count(), 3);
}

#[test]
fn x4_an_inner_unit_that_fails_dooms_the_outer() {
    let world = world();
    let mut operation = world.services.internal_operation("test");
    let mut outer = operation.unit_of_work();
    world.insert(&mut outer).unwrap();
    drop(outer.unit_of_work());
    assert!(world.insert(&mut outer).is_err());
    assert!(outer.unit_of_work().commit().is_err());
    assert!(outer.commit().is_err());
    assert_eq!(world.count(), 0);
    operation.in_unit_of_work(|operation| world.insert(operation)).unwrap();
    assert_eq!(world.count(), 1);
}

#[tokio::test]
async fn x4_locks_are_kept_to_the_end_of_the_unit() {
    let world = world();
    let mut operation = world.services.internal_operation("test");
    let resource = ResourceId::database(None, b"test");
    let published: Arc<Mutex<Option<bool>>> = Arc::default();
    let mut unit = operation.unit_of_work();
    unit.locker.lock_global(LockMode::IX, &Wait::FOREVER).await.unwrap();
    unit.locker.lock(LockRequest::new(resource, LockMode::X), &Wait::FOREVER).await.unwrap();
    unit.locker.unlock(resource);
    assert!(unit.locker.is_locked_for(resource, LockMode::X));
    let (locks, seen) = (world.services.locks.clone(), published.clone());
    let look = move |_| {
        let other = locks.locker();
        let global = LockRequest::new(ResourceId::GLOBAL, LockMode::IX);
        assert!(matches!(other.lock_begin(global, &Wait::FOREVER), Ok(Acquisition::Granted)));
        let request = LockRequest::new(resource, LockMode::X);
        let is_waiting = matches!(other.lock_begin(request, &Wait::FOREVER), Ok(Acquisition::Waiting(_)));
        *seen.lock().unwrap() = Some(is_waiting);
        other.unlock(ResourceId::GLOBAL);
    };
    unit.recovery_unit.on_commit(look).unwrap();
    world.insert(&mut unit).unwrap();
    unit.commit().unwrap();
    assert_eq!(*published.lock().unwrap(), Some(true));
    assert!(!operation.locker.is_locked_for(resource, LockMode::X));
    operation.locker.unlock(ResourceId::GLOBAL);
}

#[tokio::test]
async fn x5_conflicts_are_tried_again_and_counted() {
    let world = world();
    let mut operation = world.services.internal_operation("test");
    let mut attempts = 0;
    let done = write_conflict_retry_blocking(&mut operation, "test", &namespace(), |operation| {
        attempts += 1;
        operation.in_unit_of_work(|operation| {
            world.insert(operation)?;
            if attempts < 8 { conflict() } else { Ok(attempts) }
        })
    });
    assert_eq!((done, world.count()), (Ok(8), 1));
    assert_eq!(world.metric("writeConflicts"), MetricValue::Long(7));
    assert_eq!(operation.context.statistics().write_conflicts.get(), 7);
    let other =
        write_conflict_retry(&mut operation, "test", &namespace(), |_| Err::<(), _>(Error::bad_value("x"))).await;
    assert_eq!(other.unwrap_err().code(), ErrorCode::BadValue);
}

#[test]
fn x5_want_of_memory_escapes_after_the_retries_that_the_parameter_allows() {
    let mut world = world();
    let parameters = ParameterSet::new(&[PARAMETERS], false).unwrap();
    parameters.set_from_text("temporarilyUnavailableMaxRetries", "3").unwrap();
    parameters.set_from_text("temporarilyUnavailableBackoffBaseMs", "50").unwrap();
    world.services.parameters = Arc::new(parameters);
    let client = Arc::new(Client::of_connection(1, "client"));
    let mut operation = world.services.operation(&client);
    let start_ns = world.services.env.clock().monotonic_ns();
    let mut attempts = 0;
    let failed = write_conflict_retry_blocking(&mut operation, "test", &namespace(), |_| {
        attempts += 1;
        Err::<(), _>(StorageError::TemporarilyUnavailable("full".into()).into())
    });
    assert_eq!((failed.unwrap_err().code(), attempts), (ErrorCode::TemporarilyUnavailable, 4));
    let waited_ns = world.services.env.clock().monotonic_ns() - start_ns;
    assert_eq!(Duration::from_nanos(waited_ns), Duration::from_millis(50 + 100 + 150));
    assert_eq!(world.metric("temporarilyUnavailableErrors"), MetricValue::Long(4));
    assert_eq!(world.metric("temporarilyUnavailableErrorsEscaped"), MetricValue::Long(1));
}

#[test]
fn x5_transactions_and_inner_loops_do_not_retry() {
    let world = world();
    let mut operation = world.services.internal_operation("test");
    let mut attempts = 0;
    let failed = operation.in_unit_of_work(|operation| {
        write_conflict_retry_blocking(operation, "test", &namespace(), |_| {
            attempts += 1;
            conflict::<()>()
        })
    });
    assert_eq!((failed.unwrap_err().code(), attempts), (ErrorCode::WriteConflict, 1));
    assert_eq!(world.metric("writeConflicts"), MetricValue::Long(0));
    operation.retry_policy.multi_document = true;
    let unavailable = || Err::<(), _>(StorageError::TemporarilyUnavailable("full".into()).into());
    let failed = write_conflict_retry_blocking(&mut operation, "test", &namespace(), |_| unavailable());
    assert_eq!(failed.unwrap_err().code(), ErrorCode::WriteConflict);
    assert_eq!(world.metric("temporarilyUnavailableErrorsConvertedToWriteConflict"), MetricValue::Long(1));
    let too_large = || Err::<(), _>(StorageError::TransactionTooLargeForCache("big".into()).into());
    let failed = write_conflict_retry_blocking(&mut operation, "test", &namespace(), |_| too_large());
    assert_eq!(failed.unwrap_err().code(), ErrorCode::TransactionTooLargeForCache);
    assert_eq!(world.metric("transactionTooLargeForCacheErrors"), MetricValue::Long(1));
}

#[tokio::test]
async fn x5_a_killed_operation_is_not_tried_again() {
    let world = world();
    let mut operation = world.services.internal_operation("test");
    let context = operation.context.clone();
    let mut attempts = 0;
    let failed = write_conflict_retry(&mut operation, "test", &namespace(), |_| {
        attempts += 1;
        context.kill(ErrorCode::Interrupted);
        conflict::<()>()
    })
    .await;
    assert_eq!(failed.unwrap_err().code(), ErrorCode::Interrupted);
    assert_eq!(attempts, 1);
}

#[test]
fn x5_the_two_conflicts_are_told_apart() {
    let told = |error: StorageError| storage_error(&Error::from(error));
    assert_eq!(told(StorageError::WriteConflict), Some(StorageError::WriteConflict));
    assert_eq!(told(StorageError::PrepareConflict), Some(StorageError::PrepareConflict));
    assert_eq!(told(StorageError::DuplicateKey), None);
    let wrapped = Error::from(StorageError::PrepareConflict).context("inserting");
    assert_eq!(storage_error(&wrapped), Some(StorageError::PrepareConflict));
}
