//! Retryable writes through check-out, write, restart.

use super::support::Node;
use pando_base::{ErrorCode, Result, Uuid};
use pando_collection::UpdateArguments;
use pando_doc::{Doc, Value, doc};
use pando_env::simulated::Simulation;
use pando_oplog::{OpTime, OplogEntry, RetryImage, StatementIds, update_object};
use pando_session::{History, LogicalSessionId, NO_USER, writing_session};

fn session() -> LogicalSessionId {
    LogicalSessionId::new(Uuid::from_random([4; 16]), NO_USER)
}

/// Runs a retryable write as a command does.
fn in_session<T>(
    node: &Node,
    txn_number: i64,
    body: impl FnOnce(&mut pando_operation::Operation) -> Result<T>,
) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut operation = node.operation();
    let checked_out = runtime.block_on(node.sessions.check_out(&operation.context, session(), 0))?;
    let history = History::new(node.engine.clone());
    checked_out.begin_or_continue(&mut operation, &*node.table, &history, txn_number)?;
    body(&mut operation)
}

fn executed(operation: &pando_operation::Operation, statement: i32) -> Result<Option<OpTime>> {
    writing_session(operation).unwrap().participant().check_statement_executed(statement)
}

fn insert(node: &Node, txn_number: i64, first_statement: i32, documents: &[Doc]) -> Result<()> {
    in_session(node, txn_number, |operation| node.insert_as(operation, "test.c", documents, Some(first_statement)))
}

#[test]
fn s17_statements_are_chained_and_known_after_a_restart() {
    let simulation = Simulation::new(1);
    let (node, _) = Node::start(&simulation.env()).unwrap();
    insert(&node, 7, 0, &[doc! { "_id": 1 }, doc! { "_id": 2 }]).unwrap();
    insert(&node, 7, 2, &[doc! { "_id": 3 }]).unwrap();
    let entries = node.entries();
    let chain: Vec<OplogEntry<'_>> =
        entries[entries.len() - 3..].iter().map(|entry| OplogEntry::parse(entry.view()).unwrap()).collect();
    assert_eq!(chain[0].previous_op_time, Some(OpTime::NULL));
    assert_eq!(chain[1].previous_op_time, Some(chain[0].op_time));
    assert_eq!(chain[2].previous_op_time, Some(chain[1].op_time));
    for (statement, entry) in chain.iter().enumerate() {
        assert_eq!(entry.operation.statement_ids, StatementIds::One(statement as i32));
        assert_eq!(entry.session.txn_number, Some(7));
    }
    let times: Vec<OpTime> = chain.iter().map(|entry| entry.op_time).collect();
    let check = |node: &Node| {
        in_session(node, 7, |operation| {
            for (statement, op_time) in times.iter().enumerate() {
                assert_eq!(executed(operation, statement as i32), Ok(Some(*op_time)));
            }
            assert_eq!(executed(operation, 3), Ok(None));
            Ok(())
        })
        .unwrap();
    };
    check(&node);
    node.node.flush_blocking().unwrap();
    drop(node);
    // The record is rebuilt from the oplog: nothing of it was in a checkpoint.
    let (node, outcome) = Node::start(&simulation.crash()).unwrap();
    assert!(outcome.applied > 0);
    check(&node);
    let mut operation = node.operation();
    let record = node.table.load(&mut operation, &session()).unwrap().unwrap();
    assert_eq!((record.txn_number, record.last_write), (7, times[2]));
    let error = in_session(&node, 6, |_| Ok(())).unwrap_err();
    assert_eq!(error.code(), ErrorCode::TransactionTooOld);
    node.check_indexes();
}

#[test]
fn s17_a_write_that_fails_is_not_remembered() {
    let simulation = Simulation::new(1);
    let (node, _) = Node::start(&simulation.env()).unwrap();
    insert(&node, 1, 0, &[doc! { "_id": 1 }]).unwrap();
    assert!(insert(&node, 2, 0, &[doc! { "_id": 2 }, doc! { "_id": 1 }]).is_err());
    in_session(&node, 2, |operation| {
        assert_eq!(executed(operation, 0), Ok(None));
        Ok(())
    })
    .unwrap();
    let record = node.table.load(&mut node.operation(), &session()).unwrap().unwrap();
    assert_eq!(record.txn_number, 1, "what is not written is not in the table");
}

#[test]
fn s17_find_and_modify_keeps_its_image_also_through_recovery() {
    let simulation = Simulation::new(1);
    let (node, _) = Node::start(&simulation.env()).unwrap();
    node.insert("test.c", &[doc! { "_id": 1, "a": 1, "filler": "long enough to make a diff worth it" }]).unwrap();
    let new = doc! { "_id": 1, "a": 2, "filler": "long enough to make a diff worth it" };
    in_session(&node, 3, |operation| {
        let collection = node.find("test.c").unwrap();
        let (record_id, old) = node.write_path.find_by_id(operation, &collection, Value::Int32(1))?.unwrap();
        let change = update_object(old.view(), new.view()).unwrap();
        let mut arguments = UpdateArguments::new(record_id, old.view(), new.view(), change.view());
        arguments.statement_ids = StatementIds::One(0);
        arguments.retry_image = Some(RetryImage::Pre);
        node.write_path.update_document(operation, &collection, &arguments).map(|_| ())
    })
    .unwrap();
    let image = node.table.load_image(&mut node.operation(), &session()).unwrap().unwrap();
    assert_eq!((image.txn_number, image.image.get("a")), (3, Some(Value::Int32(1))));
    let entries = node.entries();
    let last = OplogEntry::parse(entries.last().unwrap().view()).unwrap();
    assert_eq!(last.operation.needs_retry_image, Some(RetryImage::Pre));
    assert_eq!(image.timestamp, last.op_time.timestamp);
    node.node.flush_blocking().unwrap();
    drop(node);
    let (node, _) = Node::start(&simulation.crash()).unwrap();
    let recovered = node.table.load_image(&mut node.operation(), &session()).unwrap();
    assert_eq!(recovered, Some(image));
}

#[test]
fn s17_changing_the_table_by_hand_is_noticed() {
    let simulation = Simulation::new(1);
    let (node, _) = Node::start(&simulation.env()).unwrap();
    insert(&node, 7, 0, &[doc! { "_id": 1 }]).unwrap();
    node.delete("config.transactions", Value::Document(session().to_doc().view())).unwrap();
    // The session starts anew: an old number is as good as any.
    in_session(&node, 1, |operation| {
        assert_eq!(executed(operation, 0), Ok(None));
        Ok(())
    })
    .unwrap();
}
