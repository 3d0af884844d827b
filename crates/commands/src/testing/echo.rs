//! `echo`: the request comes back. And `cpuload`: keeps a processor busy for a while.

use crate::{Access, CommandRow, Invocation, run_boxed};
use pando_base::Result;
use pando_base::operation;
use pando_doc::DocBuilder;

pub(super) const ROW: CommandRow = CommandRow {
    name: "echo",
    help: "no parameters. returns the request",
    run: |invocation, reply| run_boxed(std::future::ready(run(invocation, reply))),
    is_for_tests: true,
    privileges: Access::Nothing,
    ..CommandRow::DEFAULT
};

pub(super) const CPU_LOAD: CommandRow = CommandRow {
    name: "cpuload",
    help: "internal. for testing only. { cpuload: 1, cpuFactor: 1 }",
    run: |invocation, _| run_boxed(std::future::ready(cpu_load(invocation))),
    is_for_tests: true,
    privileges: Access::Nothing,
    place: pando_env::Place::Lanes,
    ..CommandRow::DEFAULT
};

/// The length of a walk of factor 1.
const STEPS: u64 = 1_000_000;

fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    reply.append("echo", invocation.body());
    Ok(())
}

fn cpu_load(invocation: &Invocation) -> Result<()> {
    let factor = invocation.body().get("cpuFactor").and_then(|factor| factor.to_double()).unwrap_or(1.0);
    let steps = (STEPS as f64 * factor.max(0.0)) as u64;
    let context = invocation.context.clone();
    operation::during(&context, || {
        let mut state: u64 = 1;
        for _ in 0..steps {
            operation::tick(1)?;
            state = std::hint::black_box(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        }
        Ok(())
    })
}
