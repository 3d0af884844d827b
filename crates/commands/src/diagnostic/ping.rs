//! `ping`: is anybody there?

use crate::{Access, CommandRow, Invocation, run_boxed};
use pando_base::Result;
use pando_env::Place;

pub(super) const ROW: CommandRow = CommandRow {
    name: "ping",
    help: "a way to check that the server is alive. responds immediately even if server is in a db lock.",
    run: |invocation, _| run_boxed(std::future::ready(run(invocation))),
    is_allowed_before_authentication: true,
    is_in_api_version_1: true,
    privileges: Access::Nothing,
    place: Place::Control,
    ..CommandRow::DEFAULT
};

crate::arguments! {
    /// What ping takes: nothing.
    struct Arguments<'a> of "ping" {}
}

fn run(invocation: &Invocation) -> Result<()> {
    Arguments::parse(&invocation.request).map(|_| ())
}
