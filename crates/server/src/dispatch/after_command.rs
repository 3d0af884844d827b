//! `waitAfterCommandFinishesExecution`: a test holds a command that has run, before its reply goes out.

use pando_base::{AnyFailPoint, FailPoint, Result};
use pando_commands::Invocation;
use pando_doc::DocRef;

/// Which commands are meant: those on this namespace, of these names. What is not said may be anything.
#[derive(Default)]
struct Meant {
    namespace: Option<String>,
    commands: Vec<String>,
}

static AFTER_COMMAND: FailPoint<Meant> = FailPoint::with_data("waitAfterCommandFinishesExecution", |bytes| {
    let data = if bytes.is_empty() { DocRef::EMPTY } else { DocRef::parse(bytes)? };
    let namespace = data.get("ns").and_then(|name| name.as_str()).filter(|name| !name.is_empty());
    let commands = data.get("commands").and_then(|names| names.as_array());
    let names =
        commands.into_iter().flat_map(|names| names.values()).filter_map(|name| name.as_str().map(str::to_owned));
    Ok(Meant { namespace: namespace.map(str::to_owned), commands: names.collect() })
});

pub(crate) const FAIL_POINTS: &[&dyn AnyFailPoint] = &[&AFTER_COMMAND];

/// Rests if the command is meant.
pub(super) async fn rest(invocation: &Invocation) -> Result<()> {
    if !AFTER_COMMAND.is_on() {
        return Ok(());
    }
    let namespace = invocation.context.description().namespace;
    let is_own = |name: &String| namespace.as_ref().is_some_and(|own| own.as_str() == name);
    let is_meant = |meant: &Meant| {
        meant.namespace.as_ref().is_none_or(is_own)
            && (meant.commands.is_empty() || meant.commands.iter().any(|name| name == invocation.row.name))
    };
    AFTER_COMMAND.rest_if(&invocation.context, is_meant).await
}
