//! Commands by which an administrator changes how the node runs.

mod get_parameter;
mod kill_op;
mod log_rotate;
mod set_parameter;
mod shutdown;

use crate::CommandRow;
use pando_base::ParameterValue;
use pando_doc::{DocBuilder, DocRef};

/// The commands of this area.
pub static ROWS: &[CommandRow] =
    &[get_parameter::ROW, kill_op::ROW, log_rotate::ROW, set_parameter::ROW, shutdown::ROW];

/// Appends a parameter's value.
fn append_parameter(name: &str, value: &ParameterValue, reply: &mut DocBuilder) {
    match value {
        ParameterValue::Bool(value) => reply.append(name, *value),
        ParameterValue::Int(value) => reply.append(name, *value),
        ParameterValue::Long(value) => reply.append(name, *value),
        ParameterValue::Double(value) => reply.append(name, *value),
        ParameterValue::String(value) => reply.append(name, value),
        ParameterValue::Document(bytes) => reply.append(name, DocRef::trusted(bytes)),
    }
}
