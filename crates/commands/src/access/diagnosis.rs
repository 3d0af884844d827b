//! The checks of the profiler and of looking at what a database is made of.

use super::AccessRequest;
use pando_base::{Namespace, Result};
use pando_security::{Action, Target};

/// Who may read what the profiler has written may ask what it is set to; changing it for all databases takes more.
pub(crate) fn may_profile(request: &AccessRequest<'_>) -> Result<bool> {
    let level = request.body.first().and_then(|level| level.value.as_number()).map(|level| level.truncated_i64());
    let changes_all = request.body.contains("slowms") || request.body.contains("sampleRate");
    let is_read = level.is_some_and(|level| level < 0) && !changes_all && !request.body.contains("filter");
    if is_read && request.may(Target::of(&Namespace::system_profile(request.database)), Action::Find) {
        return Ok(true);
    }
    let may_here = request.may(Target::Database(request.database.as_str()), Action::EnableProfiler);
    Ok(may_here && (!changes_all || request.may(Target::AnyNormal, Action::EnableProfiler)))
}

/// Looking at one collection, at one database, or at all.
pub(crate) fn may_validate_metadata(request: &AccessRequest<'_>) -> Result<bool> {
    let text = |field: &str| request.body.get(field).and_then(|value| value.as_str().map(str::to_owned));
    let Some(database) = text("db") else { return Ok(request.may(Target::AnyNormal, Action::Validate)) };
    match text("collection").map(|name| Namespace::parse(&format!("{database}.{name}"))) {
        Some(namespace) => Ok(request.may(Target::of(&namespace?), Action::Validate)),
        None => Ok(request.may(Target::Database(&database), Action::Validate)),
    }
}
