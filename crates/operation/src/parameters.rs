//! The parameters of units of work and their retries.

use pando_base::{AnyParameter, Parameter, ParameterSet, ParameterValue};
use pando_storage::Engine;
use std::sync::Arc;

/// How often an operation that was rolled back for want of cache is tried again.
pub static TEMPORARILY_UNAVAILABLE_MAX_RETRIES: Parameter<i64> = Parameter::new(
    "temporarilyUnavailableMaxRetries",
    10,
    "How often an operation is tried again that was rolled back because the cache was full.",
)
.at_least(0);

/// The pause before the first such retry; each further one is longer by as much.
pub static TEMPORARILY_UNAVAILABLE_BACKOFF_BASE_MS: Parameter<i64> = Parameter::new(
    "temporarilyUnavailableBackoffBaseMs",
    1000,
    "The pause, in milliseconds, before an operation is tried again that was rolled back because the cache was full.",
)
.at_least(0);

/// The share of the dirty cache that one transaction may be before it is called too large.
pub static TRANSACTION_TOO_LARGE_FOR_CACHE_THRESHOLD: Parameter<f64> = Parameter::new(
    "transactionTooLargeForCacheThreshold",
    0.75,
    "The share of the cache's dirty bytes from which on a transaction that was rolled back is too large to be tried again.",
)
.at_least(0.0)
.at_most(1.0);

/// All of them.
pub static PARAMETERS: &[&dyn AnyParameter] = &[
    &TEMPORARILY_UNAVAILABLE_MAX_RETRIES,
    &TEMPORARILY_UNAVAILABLE_BACKOFF_BASE_MS,
    &TRANSACTION_TOO_LARGE_FOR_CACHE_THRESHOLD,
];

/// Tells the engine the parameters that are its business, now and whenever they change.
pub fn tell_engine(parameters: &ParameterSet, engine: &Arc<dyn Engine>) {
    engine.set_transaction_too_large_threshold(parameters.get(&TRANSACTION_TOO_LARGE_FOR_CACHE_THRESHOLD));
    let engine = Arc::downgrade(engine);
    parameters.subscribe(&TRANSACTION_TOO_LARGE_FOR_CACHE_THRESHOLD, move |value| {
        if let (Some(engine), ParameterValue::Double(share)) = (engine.upgrade(), value) {
            engine.set_transaction_too_large_threshold(*share);
        }
    });
}
