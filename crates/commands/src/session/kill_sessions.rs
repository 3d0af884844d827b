//! `killSessions`: ends what these sessions have in progress; without any, what the user's own have.

use super::ids::sessions_of;
use super::killing::{Pattern, kill};
use crate::{Access, CommandRow, Invocation, run_boxed};
use pando_base::Result;
use pando_security::{Action, Target};

pub(super) const ROW: CommandRow = CommandRow {
    name: "killSessions",
    help: "kill a logical session and its operations",
    run: |invocation, _| run_boxed(run(invocation)),
    privileges: Access::Nothing,
    ..CommandRow::DEFAULT
};

async fn run(invocation: &Invocation) -> Result<()> {
    let kills_any = invocation.node.security.is_enabled && invocation.may(Target::Cluster, Action::KillAnySession);
    let sessions = sessions_of(invocation, kills_any || invocation.acts_for_others())?;
    let patterns: Vec<Pattern> = match sessions.is_empty() {
        true if invocation.node.security.is_enabled => vec![Pattern::User(invocation.user_digest())],
        true => vec![Pattern::Everything],
        false => sessions.into_iter().map(Pattern::Session).collect(),
    };
    kill(invocation, &patterns).await
}
