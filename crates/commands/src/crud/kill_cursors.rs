//! `killCursors`.

use crate::table::run_boxed;
use crate::{Access, Class, CommandRow, Invocation, NamespaceOf, arguments};
use pando_base::{Error, ErrorCode, Result, ensure};
use pando_doc::{ArrayRef, DocBuilder, Value};
use pando_query::cursor::CursorOptions;
use pando_security::{Action, Target};

pub(super) const ROW: CommandRow = CommandRow {
    name: "killCursors",
    help: "Kill a list of cursor ids",
    run: |invocation, reply| run_boxed(run(invocation, reply)),
    class: Class::Command,
    is_allowed_in_transaction: true,
    is_in_api_version_1: true,
    namespace: NamespaceOf::FirstField,
    privileges: Access::Nothing,
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
    invocation.collection()?;
    // As in all of MongoDB's lists of a type, null is nobody.
    let given = arguments.cursors.values().enumerate().filter(|(_, value)| !value.is_nullish());
    let ids: Vec<i64> = given.map(id).collect::<Result<_>>()?;
    for options in ids.iter().filter_map(|id| data.cursors.options_of(*id)) {
        ensure!(
            may_kill(invocation, &options),
            ErrorCode::Unauthorized,
            "not authorized to kill cursor on {}",
            options.namespace
        );
    }
    // Whatever collection the request names: a cursor is known by its number.
    let (killed, unknown): (Vec<i64>, Vec<i64>) = ids.into_iter().partition(|id| data.cursors.kill(*id));
    let lists: [(&str, &[i64]); 4] =
        [("cursorsKilled", &killed), ("cursorsNotFound", &unknown), ("cursorsAlive", &[]), ("cursorsUnknown", &[])];
    for (name, ids) in lists {
        reply.array(name, |array| ids.iter().for_each(|id| array.push(*id)));
    }
    Ok(())
}

/// One's own; those of others with the right to kill any.
fn may_kill(invocation: &Invocation, options: &CursorOptions) -> bool {
    let target = match options.namespace.is_list_collections_cursor() {
        true => Target::Database(options.namespace.database()),
        false => Target::of(&options.namespace),
    };
    invocation.is_own(options.user.as_deref())
        || invocation.may(Target::Cluster, Action::KillAnyCursor)
        || invocation.may(target, Action::KillAnyCursor)
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
