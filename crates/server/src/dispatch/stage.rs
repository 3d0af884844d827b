//! A step that every request passes on its way in, and perhaps on its way out.

use pando_base::{Error, Result};
use pando_commands::Invocation;
use pando_doc::DocBuilder;
use pando_env::BoxedFuture;

/// Something that lasts until the request is answered: a ticket, a checked-out session. It is given back when dropped.
pub type Hold = Box<dyn Send>;

/// What a stage says to a request.
pub enum Entered<'a> {
    /// Go on.
    Pass,
    /// No.
    Refuse(Error),
    /// Go on, and keep this meanwhile.
    Hold(Hold),
    /// Wait; then perhaps keep this.
    Wait(BoxedFuture<'a, Result<Option<Hold>>>),
}

impl From<Result<()>> for Entered<'_> {
    fn from(result: Result<()>) -> Self {
        match result {
            Ok(()) => Entered::Pass,
            Err(error) => Entered::Refuse(error),
        }
    }
}

/// A step of dispatch.
pub trait Stage: Send + Sync {
    /// Its name, for people.
    fn name(&self) -> &'static str;

    /// Before the command runs.
    fn enter<'a>(&'a self, invocation: &'a Invocation) -> Entered<'a>;

    /// After the command has failed, having run. What is written stands beside the error in the reply.
    fn fail<'a>(
        &'a self,
        _invocation: &'a Invocation,
        _error: &'a Error,
        _beside: &'a mut DocBuilder,
    ) -> Option<BoxedFuture<'a, ()>> {
        None
    }

    /// After the command has succeeded. May append to the reply; an error takes the reply's place.
    fn leave<'a>(
        &'a self,
        _invocation: &'a Invocation,
        _reply: &'a mut DocBuilder,
    ) -> Option<BoxedFuture<'a, Result<()>>> {
        None
    }
}
