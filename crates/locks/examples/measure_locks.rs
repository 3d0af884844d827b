//! Times the locks and tickets of an operation, alone and on several threads, for profiling:
//! `cargo run --release -p pando-locks --example measure_locks [WORDS OF A NAME]`.

#![allow(clippy::unwrap_used)]

use pando_env::Env;
use pando_locks::{
    CollectionLock, DatabaseLock, GlobalLock, GlobalLockOptions, LockManager, Locker, Mode, Priority, ResourceId,
    TicketParameters, Tickets, Wait,
};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

const ROUNDS: u64 = 1_000_000;

/// Nothing here waits, so one poll is enough.
fn ready<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("something waits"),
    }
}

fn read(locker: &Locker) {
    let options = GlobalLockOptions { skip_batch_barrier: true, skip_replication_state: true, ..Default::default() };
    drop(ready(GlobalLock::acquire_with(locker, Mode::IS, options, &Wait::FOREVER)).unwrap());
}

fn write(locker: &Locker, database: ResourceId, collection: ResourceId) {
    let _database = ready(DatabaseLock::acquire(locker, None, database, Mode::IX, &Wait::FOREVER)).unwrap();
    let _unit_of_work = locker.unit_of_work();
    let lock = CollectionLock::acquire(locker, database, collection, Mode::IX, &Wait::FOREVER);
    drop(ready(lock).unwrap());
}

fn measure(env: &Env, name: &str, thread_count: usize, body: impl Fn() + Send + Sync + 'static) {
    if !name.contains(&std::env::args().nth(1).unwrap_or_default()) {
        return;
    }
    let body = Arc::new(body);
    let started_ns = env.clock().monotonic_ns();
    let threads: Vec<_> = (0..thread_count)
        .map(|_| {
            let body = body.clone();
            env.tasks().spawn_thread("measure", Box::new(move || body())).unwrap()
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let elapsed_ns = (env.clock().monotonic_ns() - started_ns) as f64;
    println!("{name:<34} {thread_count} threads {:>7.1} ns each", elapsed_ns / ROUNDS as f64);
}

fn main() {
    let env = Env::real();
    let parameters = TicketParameters { algorithm: pando_locks::Algorithm::Fixed, ..TicketParameters::default() };
    let tickets = Tickets::new(&env, &parameters).unwrap();
    let manager = LockManager::with_tickets(&env, tickets.clone());
    let untamed = LockManager::new(&env);
    let (database, collection) = (ResourceId::database(None, b"test"), ResourceId::collection(None, b"test.people"));
    for thread_count in 1..=env.tasks().parallelism().min(2) {
        let manager_of_reads = manager.clone();
        measure(&env, "read: global IS and a ticket", thread_count, move || {
            let locker = manager_of_reads.locker();
            (0..ROUNDS).for_each(|_| read(&locker));
        });
        let manager_of_writes = manager.clone();
        measure(&env, "write: all locks and a ticket", thread_count, move || {
            let locker = manager_of_writes.locker();
            (0..ROUNDS).for_each(|_| write(&locker, database, collection));
        });
        let manager_without = untamed.clone();
        measure(&env, "write: all locks, no ticket", thread_count, move || {
            let locker = manager_without.locker();
            (0..ROUNDS).for_each(|_| write(&locker, database, collection));
        });
        let tickets = tickets.clone();
        measure(&env, "a ticket", thread_count, move || {
            (0..ROUNDS).for_each(|_| {
                drop(ready(tickets.acquire(Mode::IX, Priority::Normal, &Wait::FOREVER)).unwrap());
            });
        });
        let manager = manager.clone();
        measure(&env, "a new locker", thread_count, move || (0..ROUNDS).for_each(|_| drop(manager.locker())));
    }
}
