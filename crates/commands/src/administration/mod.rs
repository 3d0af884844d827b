//! Commands by which an administrator changes how the node runs.

mod drop_connections;
mod feature_flags;
mod get_parameter;
mod kill_op;
mod log_component_verbosity;
mod log_rotate;
mod profile;
mod rotate_certificates;
mod set_parameter;
mod set_profiling_filter_globally;
mod shutdown;

pub use feature_flags::feature_flag;
pub use log_component_verbosity::{apply_verbosity, shown_verbosity};
pub(crate) use log_component_verbosity::{check_verbosity, verbosity_from_text};

use crate::security::{AUTHENTICATION_MECHANISMS, CLUSTER_SOURCES};
use crate::{CommandRow, Node};
use pando_base::{Component, ParameterValue, Severity, log};
use pando_doc::{DocBuilder, DocRef, Value};

/// The commands of this area.
pub static ROWS: &[CommandRow] = &[
    drop_connections::ROW,
    get_parameter::ROW,
    kill_op::ROW,
    log_rotate::ROW,
    profile::ROW,
    rotate_certificates::ROW,
    set_parameter::ROW,
    set_profiling_filter_globally::ROW,
    shutdown::ROW,
];

/// The value of a parameter as it is now: how much the log says is known by the log.
fn present_value(node: &Node, name: &str, value: ParameterValue) -> ParameterValue {
    match name {
        "logComponentVerbosity" => ParameterValue::Document(shown_verbosity(&node.log).bytes().to_vec()),
        "logLevel" => ParameterValue::Int(node.log.verbosity(Component::Default).map_or(0, i32::from)),
        _ => value,
    }
}

/// Whoever uses an old name of a parameter is told the new one.
fn warn_of_old_name(node: &Node, name: &str, present: &str) {
    if name != present {
        let message = "Use of deprecated server parameter name";
        let (log, severity) = (&node.log, Severity::Warning);
        log!(log, severity, Component::Control, 636300, message, "deprecatedName" = name, "canonicalName" = present);
    }
}

/// Is it the list of addresses from which members may come?
fn is_list_of_sources(name: &str) -> bool {
    name == CLUSTER_SOURCES.name() || name == "clusterIpSourceWhitelist"
}

/// Appends a parameter's value.
fn append_parameter(name: &str, value: &ParameterValue, reply: &mut DocBuilder) {
    match value {
        ParameterValue::Bool(value) => reply.append(name, *value),
        ParameterValue::Int(value) => reply.append(name, *value),
        ParameterValue::Long(value) => reply.append(name, *value),
        ParameterValue::Double(value) => reply.append(name, *value),
        // The one parameter that is a list, for those who ask.
        ParameterValue::String(value) if name == AUTHENTICATION_MECHANISMS.name() => {
            reply.array(name, |names| value.split(',').for_each(|one| names.push(one.trim())));
        }
        ParameterValue::String(value) if is_list_of_sources(name) => match value.as_str() {
            "" => reply.append(name, Value::Null),
            value => reply.array(name, |sources| value.split(',').for_each(|one| sources.push(one))),
        },
        ParameterValue::String(value) => reply.append(name, value),
        ParameterValue::Document(bytes) => reply.append(name, DocRef::trusted(bytes)),
    }
}
