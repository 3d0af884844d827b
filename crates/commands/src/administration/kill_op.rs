//! `killOp`: tells an operation to stop.

use crate::{Access, CommandRow, Invocation, run_boxed};
use pando_base::{Component, Error, ErrorCode, Result, Severity, ensure, log};
use pando_doc::{DocBuilder, Element};
use pando_env::Place;

pub(super) const ROW: CommandRow = CommandRow {
    name: "killOp",
    help: "{ killOp: 1, op: <op id> }",
    run: |invocation, reply| run_boxed(std::future::ready(run(invocation, reply))),
    is_admin_only: true,
    privileges: Access::Checked(crate::access::may_kill),
    place: Place::Control,
    ..CommandRow::DEFAULT
};

fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let missing = || Error::new(ErrorCode::NoSuchKey, "Missing expected field \"op\"");
    let found = invocation.body().elements().find(|element| element.name == "op").ok_or_else(missing)?;
    let number = number(found)?;
    ensure!(
        i32::try_from(number).is_ok(),
        ErrorCode::location(26823),
        "invalid op : {number}. Op ID cannot be represented with 32 bits"
    );
    // An operation that has ended meanwhile is as good as killed.
    invocation.node.operations.kill(number as u32, ErrorCode::Interrupted);
    log!(
        invocation.node.log,
        Severity::Info,
        Component::Command,
        558700,
        "Successful killOp",
        "remote" = invocation.connection.client.remote(),
        "op" = number
    );
    reply.append("info", "attempting to kill op");
    Ok(())
}

fn number(op: Element<'_>) -> Result<i64> {
    let expected = |found| Error::type_mismatch(format!("Expected field \"op\" to be a number, found {found}"));
    let number = op.value.as_number().ok_or_else(|| expected(op.value.value_type().name()))?;
    number.to_i64_exact().ok_or_else(|| {
        let shown = op.value;
        let reason = format!(
            "Expected field \"op\" to have a value exactly representable as a 64-bit integer, but found op: {shown}"
        );
        Error::bad_value(reason)
    })
}
