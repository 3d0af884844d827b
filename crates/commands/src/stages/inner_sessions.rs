//! `$listSessions` and `$listLocalSessions` in pipelines of other stages. In front of a pipeline something is put in their place
//! before it is read; elsewhere they are refused, each for its reason.

use super::{Asked, Make};
use crate::session::{parse_local, parse_stored};
use pando_base::{ErrorCode, Namespace, Result, bail};
use pando_doc::Value;
use pando_operation::Operation;
use std::sync::Arc;

pub(super) fn parse_stored_sessions(value: Value<'_>, namespace: &Namespace) -> Result<Make> {
    parse_stored(value, namespace)?;
    Ok(refused("$listSessions"))
}

pub(super) fn parse_local_sessions(value: Value<'_>, namespace: &Namespace) -> Result<Make> {
    parse_local(value, namespace)?;
    Ok(refused("$listLocalSessions"))
}

fn refused(name: &'static str) -> Make {
    Arc::new(move |_: &Asked, _: &mut Operation| {
        bail!(ErrorCode::CommandNotSupported, "{name} in a pipeline of another stage is not supported")
    })
}
