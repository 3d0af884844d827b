//! `_hashBSONElement`: the hash that a hashed index keeps of a value.

use crate::{Access, CommandRow, Invocation, run_boxed};
use pando_base::{Error, Result};
use pando_doc::{DocBuilder, hash_element};

pub(super) const ROW: CommandRow = CommandRow {
    name: "_hashBSONElement",
    help: "returns the hash of the first BSONElement val in a BSONObj",
    run: |invocation, reply| run_boxed(std::future::ready(run(invocation, reply))),
    is_for_tests: true,
    privileges: Access::Nothing,
    ..CommandRow::DEFAULT
};

fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let Some(first) = invocation.body().raw_elements().next() else { return Ok(()) };
    let seed = match invocation.body().get("seed") {
        None => 0,
        Some(seed) if seed.is_number() => i32::try_from(seed.to_i64_or_zero()).unwrap_or(i32::MAX),
        Some(_) => return Err(Error::bad_value("seed must be a number")),
    };
    reply.append_some("key", first.value());
    reply.append("seed", seed);
    reply.append("out", hash_element(first, seed));
    Ok(())
}
