//! What all crates define, written down by hand: a crate that is added adds its lists here.

use crate::dispatch::{AwaitWriteConcern, ConfirmLinearizableRead, Stage, Transactions, stages};
use pando_base::{AnyFailPoint, AnyParameter};
use pando_commands::CommandRow;

/// The parameters.
pub(crate) const PARAMETERS: &[&[&dyn AnyParameter]] = &[
    crate::before_login::PARAMETERS,
    crate::diagnostic_data::PARAMETERS,
    pando_commands::PARAMETERS,
    pando_commands::db_check::PARAMETERS,
    pando_commands::security::PARAMETERS,
    pando_commands::pre_images::PARAMETERS,
    pando_commands::ttl::PARAMETERS,
    pando_commands::watch::PARAMETERS,
    pando_commands::catalog::VALIDATE_PARAMETERS,
    pando_index_build::PARAMETERS,
    pando_locks::PARAMETERS,
    pando_operation::PARAMETERS,
    pando_query::cursor::PARAMETERS,
    pando_query::executor::PARAMETERS,
    pando_query::limits::PARAMETERS,
    pando_query::spill::PARAMETERS,
    pando_query::stage::DELETE_PARAMETERS,
    pando_query::timeseries::PARAMETERS,
    pando_query::executor::SCRIPT_PARAMETERS,
    pando_repl::PARAMETERS,
    pando_repl::flow_control::PARAMETERS,
    pando_session::PARAMETERS,
];

/// Every parameter that there is.
pub fn parameters() -> impl Iterator<Item = &'static dyn AnyParameter> {
    PARAMETERS.iter().flat_map(|list| list.iter().copied())
}

/// Parameters of mongod that are taken at start and have no effect, with the reasons.
pub fn foreign_parameters() -> &'static [(&'static str, &'static str)] {
    pando_commands::FOREIGN_PARAMETERS
}

/// The fail points.
pub(crate) const FAIL_POINTS: &[&[&dyn AnyFailPoint]] = &[
    pando_base::FAIL_POINTS,
    pando_catalog::EXPIRY_FAIL_POINTS,
    pando_catalog::FAIL_POINTS,
    pando_collection::FAIL_POINTS,
    pando_commands::FAIL_POINTS,
    pando_commands::CATALOG_FAIL_POINTS,
    pando_commands::WRITE_FAIL_POINTS,
    pando_query::OPTIMIZER_FAIL_POINTS,
    pando_commands::db_check::FAIL_POINTS,
    pando_index::FAIL_POINTS,
    pando_index_build::FAIL_POINTS,
    pando_query::executor::FAIL_POINTS,
    pando_query::fail_points::FAIL_POINTS,
    pando_query::stage::DELETE_FAIL_POINTS,
    pando_query::timeseries::FAIL_POINTS,
    pando_repl::FAIL_POINTS,
    pando_session::FAIL_POINTS,
    pando_storage::FAIL_POINTS,
    crate::accepted_fail_points::FAIL_POINTS,
    crate::dispatch::FAIL_POINTS,
    crate::start::FAIL_POINTS,
];

/// The commands.
pub(crate) fn commands() -> Vec<&'static [CommandRow]> {
    pando_commands::ROWS.to_vec()
}

/// The stages of dispatch, in order. Leaving goes the other way round.
pub(crate) fn stages() -> Vec<Box<dyn Stage>> {
    vec![
        Box::new(stages::ApiVersion),
        Box::new(stages::Authorization),
        Box::new(stages::Deadline),
        Box::new(stages::FailCommandPoint),
        Box::new(stages::Database),
        Box::new(stages::SessionOptions),
        Box::new(stages::Concerns),
        Box::new(AwaitWriteConcern),
        Box::new(ConfirmLinearizableRead),
        Box::new(stages::Replication),
        Box::new(stages::UserWrites),
        Box::new(Transactions),
    ]
}
