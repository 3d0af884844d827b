//! `killCursors`.

use crate::table::run_boxed;
use crate::{Class, CommandRow, Invocation, NamespaceOf, arguments};
use pando_base::{Error, Result};
use pando_doc::{ArrayRef, DocBuilder, Value};

pub(super) const ROW: CommandRow = CommandRow {
    name: "killCursors",
    help: "Kill a list of cursor ids",
    run: |invocation, reply| run_boxed(run(invocation, reply)),
    class: Class::Command,
    is_allowed_in_transaction: true,
    is_in_api_version_1: true,
    namespace: NamespaceOf::FirstField,
    privileges: &["killCursors"],
    ..CommandRow::DEFAULT
};

arguments! {
    struct KillCursorsArguments<'a> of "killCursors" {
        cursors: ArrayRef<'a> = "cursors",
    }
}

async fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let data = invocation.data()?;
    let arguments = KillCursorsArguments::parse(&invocation.request)?;
    let namespace = invocation.collection()?;
    let ids: Vec<i64> = arguments.cursors.values().enumerate().map(id).collect::<Result<_>>()?;
    // A cursor of another collection is not this request's business.
    let kill = |id: &i64| data.cursors.namespace_of(*id).is_some_and(|of| of == namespace) && data.cursors.kill(*id);
    let (killed, unknown): (Vec<i64>, Vec<i64>) = ids.into_iter().partition(kill);
    let lists: [(&str, &[i64]); 4] =
        [("cursorsKilled", &killed), ("cursorsNotFound", &unknown), ("cursorsAlive", &[]), ("cursorsUnknown", &[])];
    for (name, ids) in lists {
        reply.array(name, |array| ids.iter().for_each(|id| array.push(*id)));
    }
    Ok(())
}

fn id((place, value): (usize, Value<'_>)) -> Result<i64> {
    match value {
        Value::Int64(id) => Ok(id),
        other => {
            let found = other.value_type().name();
            Err(Error::type_mismatch(format!(
                "BSON field 'killCursors.cursors.{place}' is the wrong type '{found}', expected type 'long'"
            )))
        }
    }
}
