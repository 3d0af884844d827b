//! Check-out, kills, and the history of retryable writes over the oracle engine.

use crate::fields::uuid_value;
use crate::*;
use pando_base::{Client, ErrorCode, OperationContext, OperationRegistry, Timestamp, Uuid};
use pando_doc::{Doc, DocRef, doc};
use pando_engine_model::{Mode, ModelDisk, ModelEngine};
use pando_oplog::{OpTime, Operation, OplogEntry, SessionInfo as EntrySession, StatementIds};
use pando_storage::{BeginOptions, Engine};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

fn session(byte: u8) -> LogicalSessionId {
    LogicalSessionId::new(Uuid::from_random([byte; 16]), NO_USER)
}

fn contexts() -> (OperationRegistry, Arc<Client>) {
    (OperationRegistry::new(Arc::new(|| 0)), Arc::new(Client::internal("test")))
}

fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

fn now<T>(future: impl Future<Output = T>) -> T {
    match poll(pin!(future)) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("must not wait"),
    }
}

#[test]
fn s16_operations_of_a_session_come_one_after_the_other_in_order() {
    let (registry, client) = contexts();
    let catalog = SessionCatalog::new();
    let operations: Vec<OperationContext> = (0..3).map(|_| registry.start(&client)).collect();
    let first = now(catalog.check_out(&operations[0], session(1), 5)).unwrap();
    let mut second = pin!(catalog.check_out(&operations[1], session(1), 6));
    // The third wants a child, which shares the permit.
    let child = LogicalSessionId { txn_uuid: Some(Uuid::from_random([9; 16])), ..session(1) };
    let mut third = pin!(catalog.check_out(&operations[2], child, 7));
    assert!(poll(second.as_mut()).is_pending() && poll(third.as_mut()).is_pending());
    // Another session is not in the way.
    drop(now(catalog.check_out(&registry.start(&client), session(2), 5)).unwrap());
    drop(first);
    assert!(poll(third.as_mut()).is_pending(), "first come, first served");
    let Poll::Ready(Ok(second)) = poll(second.as_mut()) else { panic!("it is free") };
    assert_eq!(second.active().session, session(1));
    drop(second);
    let Poll::Ready(Ok(third)) = poll(third.as_mut()) else { panic!("it is free") };
    assert_eq!(third.active().session, child);
    let held: Vec<SessionInfo> = catalog.list().into_iter().filter(|info| info.operation_id.is_some()).collect();
    assert_eq!((held.len(), held[0].session, held[0].last_checkout_ms), (1, session(1), 7));
}

#[test]
fn s16_waiting_for_a_session_ends_with_the_operation() {
    let (registry, client) = contexts();
    let catalog = SessionCatalog::new();
    let (one, two) = (registry.start(&client), registry.start(&client));
    let held = now(catalog.check_out(&one, session(1), 0)).unwrap();
    let mut waiting = pin!(catalog.check_out(&two, session(1), 0));
    assert!(poll(waiting.as_mut()).is_pending());
    two.kill(ErrorCode::Interrupted);
    assert!(matches!(poll(waiting.as_mut()), Poll::Ready(Err(error)) if error.code() == ErrorCode::Interrupted));
    drop(held);
    drop(now(catalog.check_out(&registry.start(&client), session(1), 0)).unwrap());
}

#[test]
fn s16_a_kill_interrupts_and_goes_first() {
    let (registry, client) = contexts();
    let catalog = SessionCatalog::new();
    let (holder, waiter, killer) = (registry.start(&client), registry.start(&client), registry.start(&client));
    let held = now(catalog.check_out(&holder, session(1), 0)).unwrap();
    let mut waiting = pin!(catalog.check_out(&waiter, session(1), 0));
    assert!(poll(waiting.as_mut()).is_pending());
    let token = catalog.kill(session(1), ErrorCode::Interrupted).unwrap();
    assert_eq!(holder.check().unwrap_err().code(), ErrorCode::Interrupted);
    assert!(waiter.check().is_ok(), "only the holder is interrupted");
    drop(held);
    assert!(poll(waiting.as_mut()).is_pending(), "the killer comes first");
    now(token.check_out(&killer)).unwrap();
    drop(token);
    assert!(matches!(poll(waiting.as_mut()), Poll::Ready(Ok(_))));
    assert!(catalog.kill(session(7), ErrorCode::Interrupted).is_none());
}

#[test]
fn s16_idle_sessions_can_be_reaped_and_come_back() {
    let (registry, client) = contexts();
    let catalog = SessionCatalog::new();
    let operation = registry.start(&client);
    let held = now(catalog.check_out(&operation, session(1), 10)).unwrap();
    assert_eq!(catalog.reap(100, |_| true), 0, "in use");
    drop(held);
    assert_eq!(catalog.reap(10, |_| true), 0, "used since");
    assert_eq!(catalog.reap(11, |_| false), 0, "somebody knows it still");
    assert_eq!(catalog.reap(11, |_| true), 1);
    drop(now(catalog.check_out(&operation, session(1), 12)).unwrap());
    assert_eq!(catalog.list().len(), 1);
}

/// An oplog with a chain of retryable inserts: statement 0 at time 1, and so on.
struct Chain {
    engine: Arc<dyn Engine>,
    last: OpTime,
    count: i32,
}

impl Chain {
    fn new() -> Chain {
        let engine = ModelEngine::open(&ModelDisk::new(), Mode::ReplicaSet).unwrap();
        Chain { engine, last: OpTime::NULL, count: 0 }
    }

    fn append(&mut self, statements: StatementIds, object2: DocRef<'_>) -> OpTime {
        self.count += 1;
        let op_time = OpTime::new(Timestamp::new(1, self.count as u32), 1);
        let (id, key) = (session(1).to_doc(), doc! { "_id": self.count });
        let mut operation = Operation::insert("test.c".into(), Uuid::from_bytes([1; 16]), key.view(), object2);
        operation.statement_ids = statements;
        let mut entry = OplogEntry::new(operation, op_time, 0);
        entry.session = EntrySession { session_id: Some(id.view()), txn_number: Some(1), txn_retry_counter: None };
        entry.previous_op_time = Some(self.last);
        let mut transaction = self.engine.begin(BeginOptions::default()).unwrap();
        transaction.append_oplog(op_time.timestamp, entry.to_doc().bytes()).unwrap();
        transaction.commit().unwrap();
        self.last = op_time;
        op_time
    }

    fn record(&self) -> SessionRecord {
        SessionRecord { session: session(1), txn_number: 1, last_write: self.last, last_write_ms: 0, state: None }
    }

    fn participant(&self) -> Participant {
        let mut participant = Participant::new(session(1));
        participant.refresh(Some(self.record()), &History::new(self.engine.clone())).unwrap();
        participant
    }
}

#[test]
fn s17_statements_are_found_again_through_the_chain() {
    let mut chain = Chain::new();
    let key = doc! { "_id": 0 };
    let times = [
        chain.append(StatementIds::One(0), key.view()),
        chain.append(StatementIds::Many(vec![1, 2]), key.view()),
        chain.append(StatementIds::One(3), key.view()),
    ];
    let mut participant = chain.participant();
    participant.begin_or_continue(1).unwrap();
    let expected = [(0, Some(times[0])), (1, Some(times[1])), (2, Some(times[1])), (3, Some(times[2])), (4, None)];
    for (statement, op_time) in expected {
        assert_eq!(participant.check_statement_executed(statement), Ok(op_time));
    }
    assert_eq!(participant.last_write(), times[2]);
    // What commits later joins the chain.
    let later = OpTime::new(Timestamp::new(2, 0), 1);
    participant.statements_committed(1, &[(4, later)]);
    assert_eq!(participant.check_statement_executed(4), Ok(Some(later)));
    assert_eq!(participant.last_write(), later);
}

#[test]
fn s17_a_newer_number_ends_the_older_ones() {
    let mut chain = Chain::new();
    chain.append(StatementIds::One(0), doc! {}.view());
    let mut participant = chain.participant();
    let error = participant.begin_or_continue(0).unwrap_err();
    assert_eq!(error.code(), ErrorCode::TransactionTooOld);
    assert!(error.reason().contains("because a newer retryable write with txnNumber 1 has already started"));
    participant.begin_or_continue(2).unwrap();
    assert_eq!(participant.check_statement_executed(0), Ok(None));
    assert_eq!(participant.last_write(), OpTime::NULL, "a chain of its own");
    // What the old number still had in flight does not belong to the new one.
    participant.statements_committed(1, &[(0, OpTime::new(Timestamp::new(2, 0), 1))]);
    assert_eq!(participant.check_statement_executed(0), Ok(None));
    assert_eq!(participant.begin_or_continue(1).unwrap_err().code(), ErrorCode::TransactionTooOld);
}

#[test]
fn s17_lost_history_is_told() {
    let mut chain = Chain::new();
    chain.append(StatementIds::One(0), doc! {}.view());
    let kept = chain.append(StatementIds::One(1), doc! {}.view());
    chain.engine.oplog().unwrap().truncate_after(Timestamp::new(1, 0), false).unwrap();
    // The newer entry alone is there again, as after the old end was cut away.
    chain.last = OpTime::new(Timestamp::new(1, 1), 1);
    chain.count = 1;
    let again = chain.append(StatementIds::One(1), doc! {}.view());
    assert_eq!(again, kept);
    let mut participant = chain.participant();
    participant.begin_or_continue(1).unwrap();
    assert_eq!(participant.check_statement_executed(1), Ok(Some(kept)));
    let error = participant.check_statement_executed(0).unwrap_err();
    assert_eq!(error.code(), ErrorCode::IncompleteTransactionHistory);
    // A dead end says the same.
    let mut chain = Chain::new();
    chain.append(StatementIds::One(0), doc! { "$incompleteOplogHistory": 1 }.view());
    let participant = chain.participant();
    assert_eq!(participant.check_statement_executed(9).unwrap_err().code(), ErrorCode::IncompleteTransactionHistory);
}

#[test]
fn s17_a_number_of_a_transaction_is_no_retryable_write() {
    let chain = Chain::new();
    let record = SessionRecord { state: Some(DurableState::Committed), ..chain.record() };
    let mut participant = Participant::new(session(1));
    participant.refresh(Some(record), &History::new(chain.engine.clone())).unwrap();
    assert_eq!(participant.begin_or_continue(1).unwrap_err().code(), ErrorCode::IncompleteTransactionHistory);
    assert!(participant.begin_or_continue(0).unwrap_err().reason().contains("newer transaction"));
    participant.begin_or_continue(2).unwrap();
}

#[test]
fn s17_answers_are_made_from_entries() {
    let uuid = Uuid::from_bytes([1; 16]);
    let (document, key) = (doc! { "_id": 7, "a": 1 }, doc! { "_id": 7 });
    let entry = |operation| OplogEntry::new(operation, OpTime::new(Timestamp::new(1, 1), 1), 0);
    let insert = entry(Operation::insert("t.c".into(), uuid, document.view(), key.view()));
    let update = entry(Operation::update("t.c".into(), uuid, document.view(), key.view()));
    let delete = entry(Operation::delete("t.c".into(), uuid, key.view()));
    assert_eq!(retried_insert(&insert).n, 1);
    let upsert = retried_update(&insert).unwrap();
    assert_eq!((upsert.n, upsert.n_modified, upsert.upserted), (1, 0, Some(7.into())));
    let updated = retried_update(&update).unwrap();
    assert_eq!((updated.n, updated.n_modified, updated.upserted), (1, 1, None));
    assert_eq!(retried_delete(&delete).unwrap().n, 1);
    assert!(retried_delete(&insert).is_err());
    let shape = FindAndModifyShape { remove: false, returns_new: true, upsert: true };
    let found = retried_find_and_modify(shape, &insert).unwrap();
    assert_eq!(found.value, RetriedValue::Inserted(document.clone()));
    assert_eq!((found.n, found.updated_existing, found.upserted), (1, Some(false), Some(7.into())));
    let remove = FindAndModifyShape { remove: true, ..shape };
    assert!(retried_find_and_modify(remove, &update).is_err(), "another request than before");
    assert!(retried_find_and_modify(shape, &delete).is_err());
    let mut with_image = entry(Operation::delete("t.c".into(), uuid, key.view()));
    with_image.operation.needs_retry_image = Some(pando_oplog::RetryImage::Pre);
    assert_eq!(retried_find_and_modify(remove, &with_image).unwrap().value, RetriedValue::Image);
    let without = retried_find_and_modify(FindAndModifyShape { upsert: false, ..shape }, &insert);
    assert!(without.is_err());
}

#[test]
fn s17_images_round_trip() {
    let image = Image {
        session: session(1),
        txn_number: 4,
        timestamp: Timestamp::new(3, 4),
        kind: ImageKind::Pre,
        image: doc! { "_id": 1, "u": uuid_value(&Uuid::from_bytes([2; 16])) },
        is_invalidated: false,
    };
    let document: Doc = image.to_doc();
    assert_eq!(Image::parse(document.view()), Ok(image));
}
