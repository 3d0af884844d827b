//! `killAllSessions`: ends what the sessions of these users have in progress; without any, those of everybody.

use super::ids::list;
use super::killing::{Pattern, kill};
use crate::arguments::Place;
use crate::{Access, Action, CommandRow, Invocation, run_boxed};
use pando_base::Result;
use pando_doc::ValueType;
use pando_session::user_digest;

pub(super) const ROW: CommandRow = CommandRow {
    name: "killAllSessions",
    help: "kill all logical sessions, for a user, and their operations",
    run: |invocation, _| run_boxed(run(invocation)),
    privileges: Access::Cluster(&[Action::KillAnySession]),
    ..CommandRow::DEFAULT
};

crate::arguments! {
    /// A user of the list.
    pub(super) struct User<'a> of "killAllSessions" {
        /// The name.
        user: &'a str = "user",
        /// The database it is known in.
        database: &'a str = "db",
    }
}

async fn run(invocation: &Invocation) -> Result<()> {
    let place = Place::of_command("KillAllSessionsCmd");
    let mut patterns = Vec::new();
    for value in list(invocation)? {
        let user = value.as_document().ok_or_else(|| place.wrong_type(value.value_type(), &[ValueType::Document]))?;
        let user = User::parse_fields(user, &place, false)?;
        patterns.push(Pattern::User(user_digest(user.user, user.database)));
    }
    if patterns.is_empty() {
        patterns.push(Pattern::Everything);
    }
    kill(invocation, &patterns).await
}
