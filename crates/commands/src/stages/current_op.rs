//! `$currentOp`: the operations in progress, and the cursors that rest between two batches.

use super::{Asked, Make, options};
use crate::arguments::Place;
use crate::diagnostic::{Observer, append_cursor};
use pando_base::{Client, ErrorCode, Namespace, OperationContext, Result, bail, ensure};
use pando_doc::{Doc, DocBuilder, DocRef, Value};
use pando_query::cursor::IdleCursor;
use std::sync::Arc;

crate::arguments! {
    struct CurrentOp<'a> of "$currentOp" {
        all_users: bool = "allUsers" or false,
        idle_connections: bool = "idleConnections" or false,
        idle_cursors: bool = "idleCursors" or false,
        idle_sessions: bool = "idleSessions" or true,
        local_operations: bool = "localOps" or false,
        truncate: bool = "truncateOps" or false,
        backtrace: bool = "backtrace" or false,
    }
}

fn read(value: Value<'_>) -> Result<CurrentOp<'_>> {
    let options = options("$currentOp", value, ErrorCode::TypeMismatch)?;
    check_flags(options)?;
    CurrentOp::parse_fields(options, &Place::of_command("$currentOp"), false)
}

/// Does the stage ask for the operations of everybody?
pub(crate) fn wants_operations_of_all(value: Value<'_>) -> Result<bool> {
    read(value).map(|arguments| arguments.all_users)
}

pub(super) fn parse(value: Value<'_>, namespace: &Namespace) -> Result<Make> {
    let arguments = read(value)?;
    ensure!(
        namespace.is_collectionless_aggregate() && namespace.database() == "admin",
        ErrorCode::InvalidNamespace,
        "$currentOp must be run against the 'admin' database with {{aggregate: 1}}"
    );
    let wish = Wish {
        with_connections: arguments.idle_connections,
        with_cursors: arguments.idle_cursors,
        with_sessions: arguments.idle_sessions,
        with_others: arguments.all_users,
        truncates: arguments.truncate,
    };
    Ok(Arc::new(move |asked: &Asked, _: &mut pando_operation::Operation| make(asked, wish)))
}

/// Options are booleans, and not even null. Two of them are looked at before the others, and have another code.
fn check_flags(options: DocRef<'_>) -> Result<()> {
    const FIRST: [&str; 2] = ["allUsers", "localOps"];
    const OTHERS: [&str; 5] = ["idleConnections", "idleCursors", "idleSessions", "truncateOps", "backtrace"];
    let mut names = options.elements().map(|option| option.name);
    if let Some(unknown) = names.find(|name| !FIRST.iter().chain(&OTHERS).any(|known| name == known)) {
        bail!(ErrorCode::FailedToParse, "Unrecognized option '{unknown}' in $currentOp stage.");
    }
    for (names, code) in [(&FIRST[..], ErrorCode::TypeMismatch), (&OTHERS[..], ErrorCode::FailedToParse)] {
        for option in options.elements().filter(|option| names.iter().any(|name| option.name == *name)) {
            let found = option.value.value_type();
            ensure!(
                matches!(option.value, Value::Bool(_)),
                code,
                "The '{}' parameter of the $currentOp stage must be a boolean value, but found: {found}",
                option.name
            );
        }
    }
    Ok(())
}

/// What is to be shown beside one's own operations.
#[derive(Clone, Copy)]
struct Wish {
    with_connections: bool,
    with_cursors: bool,
    with_sessions: bool,
    with_others: bool,
    truncates: bool,
}

fn make(asked: &Asked, wish: Wish) -> Result<Vec<Doc>> {
    // Without the word for everybody, one sees one's own.
    let user = asked.user().filter(|_| !wish.with_others);
    let is_shown = |context: &OperationContext| user.is_none() || context.client().user() == user;
    let operations = asked.node.operations.list();
    let shown = operations.iter().filter(|context| is_shown(context));
    let observer = Observer::of(&asked.node, wish.truncates);
    let mut documents: Vec<Doc> = shown.map(|context| observer.describe(context)).collect();
    if wish.with_connections {
        let is_shown = |client: &Client| user.is_none() || client.user() == user;
        documents.extend(observer.idle_connections(&operations, &is_shown));
    }
    if wish.with_sessions {
        documents.extend(observer.idle_transactions(&|client| user.is_none() || client.user() == user));
    }
    if wish.with_cursors {
        let cursors = &asked.data()?.cursors;
        let mut idle = cursors.idle();
        idle.retain(|cursor| user.is_none() || user == cursor.options.user);
        documents.extend(idle.iter().map(|cursor| idle_cursor(asked, cursor, wish.truncates)));
    }
    Ok(documents)
}

fn idle_cursor(asked: &Asked, idle: &IdleCursor, truncates: bool) -> Doc {
    let options = &idle.options;
    let mut document = DocBuilder::new();
    document.append("type", "idleCursor");
    document.append("host", &asked.node.options.host);
    document.append("ns", options.namespace.as_str());
    document.append_some("lsid", options.session.as_ref());
    document.append("planSummary", &*idle.plan_summary);
    if let Some(user) = &options.user {
        document.array("effectiveUsers", |users| {
            users.document(|out| {
                out.append("user", &user.user);
                out.append("db", &user.database);
            })
        });
    }
    let originating = Some(options.originating_command.view());
    document.document("cursor", |cursor| append_cursor(&asked.node, &idle.facts, originating, truncates, cursor));
    document.finish()
}
