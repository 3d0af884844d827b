//! What is told of a transaction while it goes on, in currentOp: since when, how much of that time its statements have run, who sent
//! the last of them, whose locks it has.

use pando_base::{Client, Timestamp};
use pando_doc::Doc;
use std::sync::Arc;

/// The account of one transaction.
#[derive(Clone)]
pub struct TransactionAccount {
    /// Its number.
    pub number: i64,
    /// Its read concern, as it was sent.
    pub read_concern: Doc,
    /// When it reads; none if it reads what was newest when it began.
    pub read_timestamp: Timestamp,
    /// When it began, in milliseconds since 1970.
    pub started_ms: i64,
    /// When it is aborted, in milliseconds since 1970.
    pub expires_ms: i64,
    /// The operation that it began with: its locks are that one's.
    pub operation_id: u32,
    /// Who sent the last statement.
    pub client: Arc<Client>,
    /// On the monotonic clock.
    pub started_ns: u64,
    active_ns: u64,
    active_since_ns: Option<u64>,
    prepared_since_ns: Option<u64>,
}

/// How long a transaction has lasted, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransactionTimes {
    /// Since it began.
    pub open_micros: u64,
    /// While its statements ran.
    pub active_micros: u64,
    /// Since it was prepared.
    pub prepared_micros: Option<u64>,
}

impl TransactionAccount {
    /// Of a transaction that begins now, with a statement of this client.
    pub fn begin(number: i64, operation_id: u32, client: Arc<Client>, now_ns: u64, now_ms: i64) -> TransactionAccount {
        TransactionAccount {
            number,
            read_concern: Doc::new(),
            read_timestamp: Timestamp::NONE,
            started_ms: now_ms,
            expires_ms: i64::MAX,
            operation_id,
            client,
            started_ns: now_ns,
            active_ns: 0,
            active_since_ns: Some(now_ns),
            prepared_since_ns: None,
        }
    }

    /// A statement begins.
    pub fn resume(&mut self, client: &Arc<Client>, now_ns: u64) {
        self.client = Arc::clone(client);
        self.active_since_ns.get_or_insert(now_ns);
    }

    /// A statement has ended.
    pub fn pause(&mut self, now_ns: u64) {
        if let Some(since_ns) = self.active_since_ns.take() {
            self.active_ns += now_ns.saturating_sub(since_ns);
        }
    }

    /// It is prepared.
    pub fn prepare(&mut self, now_ns: u64) {
        self.prepared_since_ns.get_or_insert(now_ns);
    }

    /// How long it has lasted until now.
    pub fn times(&self, now_ns: u64) -> TransactionTimes {
        let running_ns = self.active_since_ns.map_or(0, |since_ns| now_ns.saturating_sub(since_ns));
        TransactionTimes {
            open_micros: now_ns.saturating_sub(self.started_ns) / 1000,
            active_micros: (self.active_ns + running_ns) / 1000,
            prepared_micros: self.prepared_since_ns.map(|since_ns| now_ns.saturating_sub(since_ns) / 1000),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r9_the_time_of_a_transaction_is_that_of_its_statements_and_of_its_rests() {
        let client = Arc::new(Client::internal("test"));
        let mut account = TransactionAccount::begin(1, 7, Arc::clone(&client), 1_000, 5);
        account.pause(4_000);
        account.resume(&client, 10_000);
        account.prepare(11_000);
        let times = account.times(12_000);
        assert_eq!((times.open_micros, times.active_micros, times.prepared_micros), (11, 5, Some(1)));
    }
}
