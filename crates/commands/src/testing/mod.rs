//! Commands that are there only with `enableTestCommands`.

mod api_versions;
mod clear_log;
mod configure_fail_point;
mod echo;
mod god_insert;
mod hash_bson_element;
mod log_message;
mod sleep;
mod stage_debug;
mod test_internal_transactions;
mod test_recover_to_stable;
mod wait_for_fail_point;

use crate::CommandRow;

/// The commands of this area.
pub static ROWS: &[CommandRow] = &[
    api_versions::VERSION_2,
    api_versions::VERSIONS_1_AND_2,
    api_versions::DEPRECATION,
    api_versions::DEPRECATION_IN_VERSION_2,
    api_versions::REMOVAL,
    clear_log::ROW,
    configure_fail_point::ROW,
    echo::CPU_LOAD,
    echo::ROW,
    god_insert::ROW,
    hash_bson_element::ROW,
    log_message::ROW,
    sleep::ROW,
    stage_debug::ROW,
    test_internal_transactions::ROW,
    test_recover_to_stable::ROW,
    wait_for_fail_point::ROW,
];
