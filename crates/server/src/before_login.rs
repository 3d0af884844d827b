//! What somebody may send who has not logged in yet: short messages, on so many connections that
//! all of them together fit into a part of the memory.
//!
//! A message counts as long as it is decompressed. Where nobody has to log in, everybody may send
//! what the protocol allows.

use pando_base::{AnyParameter, Component, Log, Parameter, ParameterSet, Settable, Severity, log};
use pando_commands::{ConnectionState, Node};
use pando_wire::limits::MESSAGE_SIZE_BYTES_MAX;

static MESSAGE_SIZE_BYTES: Parameter<i32> = Parameter::new(
    "preAuthMaximumMessageSizeBytes",
    16 * 1024,
    "The largest message that a client may send before it has logged in, in bytes; decompressed, if it comes compressed.",
)
.at_least(1024);

static MEMORY_PERCENT: Parameter<i32> = Parameter::new(
    "capMemoryConsumptionForPreAuthBuffers",
    20,
    "So much of the memory, in percent, the messages of all clients may take together that have not logged in: no more \
     connections are accepted than send so much at once. 100 is no limit.",
)
.at_least(1)
.at_most(100)
.settable(Settable::AtStartup);

/// The parameters of this module.
pub(crate) static PARAMETERS: &[&dyn AnyParameter] = &[&MEMORY_PERCENT, &MESSAGE_SIZE_BYTES];

/// How long a message of this client may be now.
pub(crate) fn message_size_bytes_max(node: &Node, connection: &ConnectionState) -> usize {
    match node.security.is_enabled && connection.identity().is_none() {
        true => message_size_bytes(&node.parameters),
        false => MESSAGE_SIZE_BYTES_MAX,
    }
}

fn message_size_bytes(parameters: &ParameterSet) -> usize {
    usize::try_from(parameters.get(&MESSAGE_SIZE_BYTES)).unwrap_or_default().min(MESSAGE_SIZE_BYTES_MAX)
}

/// How many connections there may be at once on a machine with so much memory, if the options allow
/// this many.
pub(crate) fn connections_max(options_max: u64, parameters: &ParameterSet, memory_bytes: u64, log: &Log) -> u64 {
    let percent = u64::try_from(parameters.get(&MEMORY_PERCENT)).unwrap_or_default();
    if percent == 100 || memory_bytes == 0 {
        return options_max;
    }
    let message_bytes = message_size_bytes(parameters).max(1) as u64;
    let fitting = (memory_bytes / 100).saturating_mul(percent) / message_bytes;
    if fitting >= options_max {
        return options_max;
    }
    log!(
        log,
        Severity::Warning,
        Component::Network,
        11_621_101,
        "Overriding max connections to honor `capMemoryConsumptionForPreAuthBuffers` settings",
        "limit" = fitting
    );
    fitting
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited(percent: i32, memory_bytes: u64) -> u64 {
        let parameters = ParameterSet::new(&[PARAMETERS], false).unwrap();
        parameters.set_from_text("capMemoryConsumptionForPreAuthBuffers", &percent.to_string()).unwrap();
        connections_max(1000, &parameters, memory_bytes, &Log::silent())
    }

    #[test]
    fn connections_fit_into_their_part_of_the_memory() {
        assert_eq!(limited(20, 1 << 30), 1000);
        assert_eq!(limited(20, 16 * 1024 * 500), 100);
        assert_eq!(limited(100, 16 * 1024 * 500), 1000);
        // A machine that does not tell how much it has.
        assert_eq!(limited(20, 0), 1000);
    }
}
