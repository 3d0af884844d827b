//! How code of a client fails: exceptions as errors with MongoDB's codes, errors as exceptions, and being stopped.

use super::{Host, out_of_memory};
use crate::interruption::Watch;
use pando_base::{Error, ErrorCode};
use parking_lot::Mutex;
use rquickjs::{Array, Ctx, Value as JsValue};

/// MongoDB cuts longer messages.
const MESSAGE_SIZE_BYTES_MAX: usize = 1024 * 1024;

/// The watch over the call under way, and why it had to stop, if it had.
#[derive(Default)]
pub(super) struct Pending(Mutex<(Option<Watch>, Option<Error>)>);

impl Pending {
    pub(super) fn begin(&self, watch: Watch) {
        *self.0.lock() = (Some(watch), None);
    }

    pub(super) fn end(&self) -> Option<Error> {
        let mut state = self.0.lock();
        state.0 = None;
        state.1.take()
    }

    /// True if the call has to stop; why is kept.
    pub(super) fn must_stop(&self) -> bool {
        let mut state = self.0.lock();
        if state.1.is_some() {
            return true;
        }
        let stopped = state.0.as_ref().and_then(|watch| watch.check().err());
        let must_stop = stopped.is_some();
        state.1 = stopped;
        must_stop
    }
}

/// The error for what the interpreter said.
pub(super) fn of(ctx: &Ctx<'_>, error: rquickjs::Error, pending: &Pending) -> Error {
    match error {
        rquickjs::Error::Exception => {
            let thrown = ctx.catch();
            // Telling what was thrown may run code; what was stopped stays so.
            if pending.must_stop() { out_of_memory() } else { of_thrown(ctx, thrown) }
        }
        rquickjs::Error::Allocation => out_of_memory(),
        other => Error::new(ErrorCode::JSInterpreterFailure, other.to_string()),
    }
}

fn of_thrown<'js>(ctx: &Ctx<'js>, thrown: JsValue<'js>) -> Error {
    // Where no memory is left even for an error, the interpreter throws null instead. Code that throws null itself cannot be told
    // from that, and is told the same.
    if thrown.is_null() {
        return out_of_memory();
    }
    let is_object = thrown.is_object();
    let told = Host::of(ctx).ok().and_then(|host| {
        let told: Array<'js> = host.describe.call((thrown,)).ok()?;
        Some((told.get::<i32>(0).ok()?, told.get::<String>(1).ok()?, told.get::<String>(2).ok()?))
    });
    let Some((code, said, stack)) = told else {
        ctx.catch();
        return Error::new(ErrorCode::JSInterpreterFailure, "uncaught exception: it could not be told");
    };
    let said = cut(said);
    if !is_object {
        return Error::new(ErrorCode::UnknownError, format!("uncaught exception: {said}"));
    }
    if said == "InternalError: out of memory" {
        return out_of_memory();
    }
    Error::new(ErrorCode::location(code), format!("{said} :\n{stack}"))
}

fn cut(mut text: String) -> String {
    if text.len() > MESSAGE_SIZE_BYTES_MAX {
        let end = (0..=MESSAGE_SIZE_BYTES_MAX).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
    }
    text
}

/// Throws an error of the server into the clients' code.
pub(super) fn throw(ctx: &Ctx<'_>, error: &Error) -> rquickjs::Error {
    let made = Host::of(ctx)
        .ok()
        .and_then(|host| host.fail.call::<_, JsValue<'_>>((error.code().number(), error.reason())).ok());
    match made {
        Some(made) => ctx.throw(made),
        None => rquickjs::Error::Allocation,
    }
}
