//! `getParameter`: one, several or all, with or without details. Fail points show as parameters called `failpoint.NAME`.

use super::{append_parameter, feature_flags, present_value, warn_of_old_name};
use crate::{Access, Action, CommandRow, Invocation, run_boxed};
use pando_base::{ErrorCode, FailPointStatus, ParameterValue, Result, ensure};
use pando_doc::{Doc, DocBuilder, DocRef, Value};

pub(super) const ROW: CommandRow = CommandRow {
    name: "getParameter",
    help: "get administrative option(s)\nexample:\n{ getParameter:1, notablescan:1 }",
    run: |invocation, reply| run_boxed(std::future::ready(run(invocation, reply))),
    is_admin_only: true,
    privileges: Access::Cluster(&[Action::GetParameter]),
    ..CommandRow::DEFAULT
};

crate::arguments! {
    /// The document form of the command's own value.
    struct Wish<'a> of "getParameter" {
        /// With when they can be set.
        show_details: bool = "showDetails" or false,
        /// All of them.
        all: bool = "allParameters" or false,
    }
}

fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let (is_all, is_detailed) = match invocation.target() {
        Value::String(text) => (text == "*", false),
        Value::Document(wish) => {
            let wish = Wish::parse_fields(wish, &crate::arguments::Place::of_command("getParameter"), false)?;
            (wish.all, wish.show_details)
        }
        _ => (false, false),
    };
    let (node, body) = (&invocation.node, invocation.body());
    for (name, definition, value) in node.parameters.list_names() {
        if is_all || body.contains(name) {
            let (settable, value) = (definition.settable(), present_value(node, name, value));
            if !is_all {
                warn_of_old_name(node, name, definition.name());
            }
            append(name, &value, settable.at_runtime(), settable.at_startup(), is_detailed, reply);
        }
    }
    for (name, flag) in feature_flags::all().filter(|(name, _)| is_all || body.contains(name)) {
        append(&name, &ParameterValue::Document(flag.bytes().to_vec()), false, true, is_detailed, reply);
    }
    if node.options.test_commands_enabled {
        for point in node.fail_points.list() {
            let name = format!("failpoint.{}", point.name());
            if is_all || body.contains(&name) {
                let value = ParameterValue::Document(shown(&point.status()).bytes().to_vec());
                append(&name, &value, false, true, is_detailed, reply);
            }
        }
    }
    ensure!(!reply.is_empty(), ErrorCode::InvalidOptions, "no option found to get");
    Ok(())
}

fn append(
    name: &str,
    value: &ParameterValue,
    at_runtime: bool,
    at_startup: bool,
    is_detailed: bool,
    reply: &mut DocBuilder,
) {
    if !is_detailed {
        return append_parameter(name, value, reply);
    }
    reply.document(name, |details| {
        append_parameter("value", value, details);
        details.append("settableAtRuntime", at_runtime);
        details.append("settableAtStartup", at_startup);
    });
}

fn shown(status: &FailPointStatus) -> Doc {
    let mut shown = DocBuilder::new();
    shown.append("mode", status.mode.number());
    let data = if status.data.is_empty() { DocRef::EMPTY } else { DocRef::trusted(&status.data) };
    shown.append("data", data);
    shown.append("timesEntered", status.times_entered as i64);
    shown.finish()
}
