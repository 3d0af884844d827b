//! Transactions that the server runs itself, on behalf of a command.
//!
//! Whoever needs several writes to happen together gives a body that runs its commands one after the other
//! ([`run_transaction`]). They go through dispatch as those of a client do, in a session of the server's own; at the end they are
//! committed. What conflicts is undone and the body begins again; a commit whose outcome is not known is sent again. How errors
//! are judged is in [`verdict`]; which sessions there are is in [`sessions`].
//!
//! The client's command has its own time: when that is over, or the client is gone, the transaction is given up.

mod sessions;
mod transaction;
mod verdict;

use crate::{ConnectionState, Invocation};
use pando_base::{Error, OperationContext, Result};
use pando_doc::Doc;
use pando_env::BoxedFuture;
use sessions::InternalSessions;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
pub use transaction::InternalTransaction;
use verdict::Verdict;

/// So often a transaction begins, or a commit is sent, before it is given up. A command with a deadline goes on until then.
const ATTEMPTS_MAX: u32 = 120;
/// How long it waits before it begins again, at first and at most.
const PAUSE_MIN: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(100);

/// Runs commands of the server's own through dispatch.
pub trait LocalCommands: Send + Sync {
    /// The reply to a command, which names its database in `$db`, run as this operation. Errors of the command are replies too.
    fn run<'a>(
        &'a self,
        connection: &'a Arc<ConnectionState>,
        context: OperationContext,
        body: Doc,
    ) -> BoxedFuture<'a, Result<Doc>>;
}

/// What a node needs to run transactions itself.
#[derive(Default)]
pub struct TransactionApi {
    local: OnceLock<Box<dyn LocalCommands>>,
    sessions: InternalSessions,
}

impl TransactionApi {
    /// Says who runs commands. The first counts.
    pub fn set_local(&self, local: Box<dyn LocalCommands>) {
        self.local.get_or_init(|| local);
    }

    fn local(&self) -> Result<&dyn LocalCommands> {
        let local = self.local.get().ok_or_else(|| Error::internal("nobody runs commands of the server's own"))?;
        Ok(&**local)
    }
}

/// The statements of a transaction. It may run more than once, each time from the beginning.
pub trait TransactionBody: Send {
    /// Runs the commands. An error undoes all of them.
    fn run<'a>(&'a mut self, transaction: &'a mut InternalTransaction<'_>) -> BoxedFuture<'a, Result<()>>;
}

/// Runs a transaction for a command, until it has committed or failed for good.
pub async fn run_transaction(invocation: &Invocation, body: &mut dyn TransactionBody) -> Result<()> {
    let mut transaction = InternalTransaction::new(invocation)?;
    let mut patience = Patience::new(invocation);
    loop {
        let verdict = match body.run(&mut transaction).await {
            Ok(()) => transaction.commit().await?,
            Err(error) => {
                let verdict = transaction.judge(error);
                transaction.abort().await;
                verdict
            }
        };
        match verdict {
            Verdict::Done => return Ok(()),
            Verdict::Fail(error) => return Err(error),
            Verdict::BeginAgain(error) => {
                patience.rest(error).await?;
                transaction.begin_again();
            }
        }
    }
}

/// How often something is tried, and how long it rests between, longer each time.
struct Patience<'a> {
    invocation: &'a Invocation,
    attempts: u32,
    pause: Duration,
}

impl Patience<'_> {
    fn new(invocation: &Invocation) -> Patience<'_> {
        Patience { invocation, attempts: 1, pause: PAUSE_MIN }
    }

    /// Rests after an attempt that failed with this, or fails with it for good.
    async fn rest(&mut self, error: Error) -> Result<()> {
        let context = &self.invocation.context;
        if self.attempts >= ATTEMPTS_MAX && context.deadline_ns().is_none() {
            return Err(error);
        }
        self.attempts += 1;
        context.interruptible(self.invocation.node.env.clock().sleep(self.pause)).await?;
        context.check()?;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        Ok(())
    }
}
