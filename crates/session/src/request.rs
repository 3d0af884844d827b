//! What a request says about its session: `lsid`, `txnNumber` and the fields of transactions, and the rules between them.
//!
//! A `txnNumber` is never accepted and ignored: where it cannot be honoured the request fails.

use crate::fields::{Fields, boolean, document, int, long};
use crate::id::{LogicalSessionId, UserDigest};
use pando_base::{Error, ErrorCode, Result};
use pando_doc::DocRef;

/// What the rules need to know of the node and the client.
#[derive(Clone, Copy, Debug)]
pub struct RequestRules {
    /// Who is logged in.
    pub user: UserDigest,
    /// Is this a member of a replica set, or a router?
    pub is_replicated: bool,
    /// May the command carry a `txnNumber` at all?
    pub takes_txn_number: bool,
}

/// The session part of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionRequest {
    /// `lsid`.
    pub session: Option<LogicalSessionId>,
    /// `txnNumber`.
    pub txn_number: Option<i64>,
    /// `autocommit`: always false where it is given.
    pub autocommit: Option<bool>,
    /// `startTransaction`: always true where it is given.
    pub start_transaction: bool,
    /// `txnRetryCounter`.
    pub txn_retry_counter: Option<i32>,
}

impl SessionRequest {
    /// Reads the fields of a command and checks them.
    pub fn parse(command: DocRef<'_>, rules: RequestRules) -> Result<SessionRequest> {
        let fields = Fields::of("OperationSessionInfo", command);
        let session = fields.optional("lsid", document)?;
        let request = SessionRequest {
            session: session.map(|session| LogicalSessionId::from_client(session, rules.user)).transpose()?,
            txn_number: fields.optional("txnNumber", long)?,
            autocommit: fields.optional("autocommit", boolean)?,
            start_transaction: match fields.optional("startTransaction", boolean)? {
                Some(false) => return Err(invalid("Specifying startTransaction=false is not allowed.")),
                given => given.is_some(),
            },
            txn_retry_counter: fields.optional("txnRetryCounter", int)?,
        };
        request.check(rules)?;
        Ok(request)
    }

    fn check(&self, rules: RequestRules) -> Result<()> {
        if self.txn_number.is_some() && !rules.takes_txn_number {
            return Err(Error::location(50889, "It is illegal to provide a txnNumber for this command"));
        }
        match self.txn_number {
            Some(number) => self.check_number(number, rules)?,
            None if self.autocommit.is_some() => {
                return Err(invalid("'autocommit' field requires a transaction number to also be specified"));
            }
            None => {}
        }
        match self.autocommit {
            Some(true) => Err(invalid("Specifying autocommit=true is not allowed.")),
            None if self.start_transaction => {
                Err(invalid("'startTransaction' field requires 'autocommit' field to also be specified"))
            }
            None if self.session.is_some_and(LogicalSessionId::is_child) => {
                Err(invalid("Internal sessions are not supported outside of transactions"))
            }
            _ => Ok(()),
        }
    }

    fn check_number(&self, number: i64, rules: RequestRules) -> Result<()> {
        if self.session.is_none() {
            return Err(invalid("Transaction number requires a session ID to also be specified"));
        }
        if !rules.is_replicated {
            let reason = "Transaction numbers are only allowed on a replica set member or mongos";
            return Err(Error::new(ErrorCode::IllegalOperation, reason));
        }
        if number < 0 {
            return Err(invalid("Transaction number cannot be negative"));
        }
        match self.txn_retry_counter {
            Some(_) if self.autocommit.is_none() => {
                Err(invalid("Cannot specify txnRetryCounter for a retryable write"))
            }
            Some(..0) => Err(invalid("txnRetryCounter cannot be negative")),
            _ => Ok(()),
        }
    }

    /// Is it a retryable write: a number outside of transactions?
    pub fn retryable_write(&self) -> Option<(LogicalSessionId, i64)> {
        self.session.zip(self.txn_number).filter(|_| self.autocommit.is_none())
    }

    /// Is it part of a multi-document transaction?
    pub fn transaction(&self) -> Option<(LogicalSessionId, i64)> {
        self.session.zip(self.txn_number).filter(|_| self.autocommit.is_some())
    }
}

fn invalid(reason: &str) -> Error {
    Error::new(ErrorCode::InvalidOptions, reason)
}

/// The statement ids of a write command's statements: `stmtIds`, or counted from `stmtId`, or from zero.
pub struct StatementNumbers {
    given: Vec<i32>,
    first: i32,
}

impl StatementNumbers {
    /// Reads `stmtId` and `stmtIds`; there must be as many as statements.
    pub fn parse(command: DocRef<'_>, statement_count: usize) -> Result<StatementNumbers> {
        let fields = Fields::of("WriteCommandRequestBase", command);
        let first = fields.optional("stmtId", int)?;
        let given = fields.optional("stmtIds", |value| {
            let ids = value.as_array().ok_or("array")?;
            ids.values().map(int).collect::<std::result::Result<Vec<i32>, _>>()
        })?;
        if first.is_some() && given.is_some() {
            return Err(invalid("stmtIds and stmtId cannot both be specified"));
        }
        if given.as_ref().is_some_and(|given| given.len() != statement_count) {
            return Err(invalid("Number of statement ids must match the number of batch entries"));
        }
        Ok(StatementNumbers { given: given.unwrap_or_default(), first: first.unwrap_or(0) })
    }

    /// The id of the statement at this place of the batch.
    pub fn of(&self, place: usize) -> i32 {
        let counted = || self.first.saturating_add(i32::try_from(place).unwrap_or(i32::MAX));
        self.given.get(place).copied().unwrap_or_else(counted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::NO_USER;
    use pando_base::Uuid;
    use pando_doc::{DocBuilder, doc};

    const RULES: RequestRules = RequestRules { user: NO_USER, is_replicated: true, takes_txn_number: true };

    /// A command with a session and these fields.
    fn with_session(fields: pando_doc::Doc) -> pando_doc::Doc {
        let session = LogicalSessionId::new(Uuid::from_random([3; 16]), NO_USER);
        let mut builder = DocBuilder::new();
        builder.append("lsid", session.to_doc());
        builder.append_all(fields.view());
        builder.finish()
    }

    #[test]
    fn s17_rules_between_the_fields() {
        let cases = [
            (doc! { "txnNumber": 1_i64 }, 72),
            (with_session(doc! { "txnNumber": -1_i64 }), 72),
            (with_session(doc! { "txnNumber": 1 }), 14),
            (with_session(doc! { "autocommit": false }), 72),
            (with_session(doc! { "txnNumber": 1_i64, "autocommit": true }), 72),
            (with_session(doc! { "txnNumber": 1_i64, "startTransaction": true }), 72),
            (with_session(doc! { "txnNumber": 1_i64, "autocommit": false, "startTransaction": false }), 72),
            (with_session(doc! { "txnNumber": 1_i64, "txnRetryCounter": 0 }), 72),
        ];
        for (command, code) in cases {
            let error = SessionRequest::parse(command.view(), RULES).unwrap_err();
            assert_eq!(error.code().number(), code, "{error}");
        }
    }

    #[test]
    fn s17_retryable_writes_and_transactions_are_told_apart() {
        let write = with_session(doc! { "txnNumber": 4_i64 });
        let write = SessionRequest::parse(write.view(), RULES).unwrap();
        assert_eq!(write.retryable_write().map(|(_, number)| number), Some(4));
        assert_eq!(write.transaction(), None);
        let statement = with_session(doc! { "txnNumber": 4_i64, "autocommit": false, "startTransaction": true });
        let statement = SessionRequest::parse(statement.view(), RULES).unwrap();
        assert_eq!(statement.retryable_write(), None);
        assert!(statement.transaction().is_some() && statement.start_transaction);
        let plain = SessionRequest::parse(with_session(doc! {}).view(), RULES).unwrap();
        assert!(plain.session.is_some() && plain.retryable_write().is_none());
    }

    #[test]
    fn s17_a_number_is_never_ignored() {
        let command = with_session(doc! { "txnNumber": 4_i64 });
        let alone = RequestRules { is_replicated: false, ..RULES };
        let error = SessionRequest::parse(command.view(), alone).unwrap_err();
        assert_eq!(error.code(), ErrorCode::IllegalOperation);
        assert_eq!(error.reason(), "Transaction numbers are only allowed on a replica set member or mongos");
        let ping = RequestRules { takes_txn_number: false, ..RULES };
        assert_eq!(SessionRequest::parse(command.view(), ping).unwrap_err().code().number(), 50889);
    }

    #[test]
    fn s17_statements_are_numbered() {
        let counted = StatementNumbers::parse(doc! { "stmtId": 5 }.view(), 3).unwrap();
        assert_eq!([counted.of(0), counted.of(2)], [5, 7]);
        let given = StatementNumbers::parse(doc! { "stmtIds": [4, 1] }.view(), 2).unwrap();
        assert_eq!([given.of(0), given.of(1)], [4, 1]);
        assert_eq!(StatementNumbers::parse(doc! {}.view(), 1).unwrap().of(0), 0);
        assert!(StatementNumbers::parse(doc! { "stmtIds": [4, 1] }.view(), 3).is_err());
        assert!(StatementNumbers::parse(doc! { "stmtIds": [4], "stmtId": 3 }.view(), 1).is_err());
    }
}
