//! Kills, deadlines, scopes, children and the registry.

use super::*;
use crate::{ErrorCode, Result};
use bytes::Bytes;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// A clock that tests turn.
struct Fixture {
    time_ns: Arc<AtomicU64>,
    registry: OperationRegistry,
    client: Arc<Client>,
}

impl Fixture {
    fn new() -> Fixture {
        let time_ns = Arc::new(AtomicU64::new(1_000));
        let clock = Arc::clone(&time_ns);
        let registry = OperationRegistry::new(Arc::new(move || clock.load(Ordering::Relaxed)));
        Fixture { time_ns, registry, client: Arc::new(Client::of_connection(7, "10.0.0.1:5000")) }
    }

    fn start(&self) -> OperationContext {
        self.registry.start(&self.client)
    }

    fn advance(&self, duration_ns: u64) {
        self.time_ns.fetch_add(duration_ns, Ordering::Relaxed);
    }
}

fn code(result: Result<()>) -> Option<ErrorCode> {
    result.err().map(|error| error.code())
}

#[derive(Default)]
struct CountingWaker(AtomicUsize);

impl Wake for CountingWaker {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn poll<F: Future>(future: Pin<&mut F>, waker: &Arc<CountingWaker>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(&Waker::from(Arc::clone(waker))))
}

#[test]
fn the_first_kill_wins() {
    let fixture = Fixture::new();
    let context = fixture.start();
    assert_eq!(context.check(), Ok(()));
    assert!(context.kill(ErrorCode::Interrupted));
    assert!(!context.kill(ErrorCode::ClientDisconnect));
    let error = context.check().unwrap_err();
    assert_eq!((error.code(), error.reason()), (ErrorCode::Interrupted, "operation was interrupted"));
    assert_eq!(context.killed_with(), Some(ErrorCode::Interrupted));
}

#[test]
fn a_passed_deadline_kills() {
    let fixture = Fixture::new();
    let context = fixture.start();
    context.set_deadline_after(500);
    context.set_deadline_after(900);
    assert_eq!((context.deadline_ns(), context.remaining_ns()), (Some(1_500), Some(500)));
    fixture.advance(499);
    assert_eq!(context.check(), Ok(()));
    fixture.advance(1);
    let error = context.check().unwrap_err();
    assert_eq!((error.code(), error.reason()), (ErrorCode::MaxTimeMSExpired, "operation exceeded time limit"));
    assert_eq!(context.killed_with(), Some(ErrorCode::MaxTimeMSExpired));
    assert_eq!(context.elapsed_ns(), 500);
}

#[test]
fn a_scoped_deadline_fails_but_does_not_kill() {
    let fixture = Fixture::new();
    let context = fixture.start();
    context.set_deadline(5_000);
    let outer = context.limit_deadline(2_000, ErrorCode::ExceededTimeLimit);
    let inner = context.limit_deadline(3_000, ErrorCode::NetworkInterfaceExceededTimeLimit);
    fixture.advance(1_000);
    assert_eq!(code(context.check()), Some(ErrorCode::ExceededTimeLimit));
    assert_eq!(context.killed_with(), None);
    drop(inner);
    assert_eq!(code(context.check()), Some(ErrorCode::ExceededTimeLimit));
    drop(outer);
    assert_eq!(context.check(), Ok(()));
    assert_eq!((context.deadline_ns(), context.timeout_code()), (Some(5_000), ErrorCode::MaxTimeMSExpired));
}

#[test]
fn a_scope_ignores_all_but_shutdown() {
    let fixture = Fixture::new();
    let context = fixture.start();
    context.set_deadline(1_001);
    let outer = context.ignore_interrupts();
    let inner = context.ignore_interrupts();
    context.kill(ErrorCode::Interrupted);
    fixture.advance(10);
    assert_eq!(context.check(), Ok(()));
    drop(inner);
    assert_eq!(context.check(), Ok(()));
    fixture.registry.shut_down(None);
    assert_eq!(code(context.check()), Some(ErrorCode::InterruptedAtShutdown));
    drop(outer);
    assert_eq!(context.killed_with(), Some(ErrorCode::Interrupted));
}

#[test]
fn leaving_the_scope_is_being_stopped() {
    let context = Fixture::new().start();
    let scope = context.ignore_interrupts();
    context.kill(ErrorCode::Interrupted);
    let waker = Arc::default();
    let mut killed = pin!(context.killed());
    assert!(poll(killed.as_mut(), &waker).is_pending());
    drop(scope);
    assert_eq!(code(context.check()), Some(ErrorCode::Interrupted));
    assert_eq!(waker.0.load(Ordering::Relaxed), 1);
    assert!(poll(killed, &waker).is_ready());
}

#[test]
fn children_stop_with_their_parent() {
    let fixture = Fixture::new();
    let parent = fixture.start();
    parent.set_deadline(9_000);
    let child = parent.child();
    let grandchild = child.child();
    assert_eq!((child.id(), grandchild.deadline_ns()), (parent.id(), Some(9_000)));
    assert_eq!(fixture.registry.count(), 1);
    child.kill(ErrorCode::CursorKilled);
    assert_eq!((parent.check(), code(grandchild.check())), (Ok(()), Some(ErrorCode::CursorKilled)));
    let other = parent.child();
    parent.kill(ErrorCode::Interrupted);
    assert_eq!(code(other.check()), Some(ErrorCode::Interrupted));
    assert_eq!(code(parent.child().check()), Some(ErrorCode::Interrupted));
    fixture.registry.shut_down(None);
    for operation in [&child, &grandchild, &other, &parent.child()] {
        assert_eq!(code(operation.check()), Some(ErrorCode::InterruptedAtShutdown));
    }
}

#[test]
fn who_waits_is_woken() {
    let context = Fixture::new().start();
    let waker = Arc::default();
    let mut waiting = pin!(context.interruptible(std::future::pending::<()>()));
    assert!(poll(waiting.as_mut(), &waker).is_pending());
    assert_eq!(waker.0.load(Ordering::Relaxed), 0);
    context.kill(ErrorCode::ClientDisconnect);
    assert_eq!(waker.0.load(Ordering::Relaxed), 1);
    let Poll::Ready(Err(error)) = poll(waiting, &waker) else { panic!("still waiting") };
    assert_eq!(error.code(), ErrorCode::ClientDisconnect);
}

#[test]
fn what_is_done_is_returned() {
    let context = Fixture::new().start();
    assert_eq!(poll(pin!(context.interruptible(std::future::ready(5))), &Arc::default()), Poll::Ready(Ok(5)));
    context.kill(ErrorCode::Interrupted);
    assert!(matches!(poll(pin!(context.interruptible(std::future::ready(5))), &Arc::default()), Poll::Ready(Err(_))));
}

#[test]
fn the_registry_knows_the_living() {
    let fixture = Fixture::new();
    let (one, two) = (fixture.start(), fixture.start());
    assert_eq!((one.id(), two.id()), (1, 2));
    let copy = one.clone();
    drop(one);
    assert_eq!(fixture.registry.list().iter().map(OperationContext::id).collect::<Vec<_>>(), [1, 2]);
    drop(copy);
    assert!(fixture.registry.find(1).is_none() && fixture.registry.count() == 1);
    assert!(!fixture.registry.kill(1, ErrorCode::Interrupted));
    assert!(fixture.registry.kill(2, ErrorCode::Interrupted));
    assert_eq!(code(two.check()), Some(ErrorCode::Interrupted));
}

#[test]
fn some_are_picked_and_killed() {
    let fixture = Fixture::new();
    let ours = fixture.start();
    let internal = fixture.registry.start(&Arc::new(Client::internal("TTLMonitor")));
    let of_connection = |context: &OperationContext| context.client().connection_id() == 7;
    assert_eq!(fixture.registry.kill_where(ErrorCode::ClientDisconnect, of_connection), 1);
    assert_eq!(fixture.registry.kill_where(ErrorCode::ClientDisconnect, of_connection), 0);
    assert_eq!((code(ours.check()), internal.check()), (Some(ErrorCode::ClientDisconnect), Ok(())));
}

#[test]
fn shutdown_stops_those_who_come_late() {
    let fixture = Fixture::new();
    let (command, other) = (fixture.start(), fixture.start());
    fixture.registry.shut_down(Some(command.id()));
    assert_eq!(command.check(), Ok(()));
    for context in [&other, &fixture.start()] {
        let error = context.check().unwrap_err();
        assert_eq!((error.code(), error.reason()), (ErrorCode::InterruptedAtShutdown, "interrupted at shutdown"));
    }
}

#[test]
fn clients_keep_their_first_metadata() {
    let client = Client::of_connection(3, "::1:9");
    assert_eq!((client.description(), client.application(), client.is_internal()), ("conn3", "", false));
    assert!(client.set_metadata("shell", Bytes::from_static(b"first")));
    assert!(!client.set_metadata("other", Bytes::from_static(b"second")));
    assert_eq!((client.application(), client.metadata().map(|bytes| &bytes[..])), ("shell", Some(&b"first"[..])));
}

#[test]
fn operations_tell_what_they_do() {
    let context = OperationContext::detached();
    context.describe(|description| {
        description.kind = OperationKind::GetMore;
        description.plan_summary = "COLLSCAN".into();
    });
    assert_eq!(context.description().kind.name(), "getmore");
    context.statistics().documents_examined.add(5);
    context.statistics().write_conflicts.increment();
    let parent = OperationStatistics::default();
    parent.yields.increment();
    parent.add_all(context.statistics());
    assert_eq!(parent.counted().collect::<Vec<_>>(), [("docsExamined", 5), ("numYields", 1), ("writeConflicts", 1)]);
}
