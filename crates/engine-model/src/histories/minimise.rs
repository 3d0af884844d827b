//! Making a failing history short.

use super::operation::Operation;
use super::{Config, Failure, Subject, replay, run};
use std::ops::Range;

/// So many shorter histories are tried.
const ATTEMPTS_MAX: usize = 600;

/// Drops steps, many at once first, while what is left still fails.
pub fn minimise(failure: &Failure, config: &Config, make: &mut dyn FnMut() -> Box<dyn Subject>) -> Failure {
    let mut best = failure.clone();
    let mut attempts = 0;
    let mut length = best.trace.len() / 2;
    while length > 0 && attempts < ATTEMPTS_MAX {
        let mut start = 0;
        let mut shortened = false;
        while start < best.trace.len() && attempts < ATTEMPTS_MAX {
            attempts += 1;
            match attempt(&best.trace, start..start + length, config, make) {
                Some(shorter) => {
                    best = Failure { seed: failure.seed, ..shorter };
                    shortened = true;
                }
                None => start += length,
            }
        }
        if !shortened || length > 1 {
            length /= 2;
        }
    }
    best
}

/// The failure without these steps, if there still is one.
fn attempt(
    trace: &[Operation],
    dropped: Range<usize>,
    config: &Config,
    make: &mut dyn FnMut() -> Box<dyn Subject>,
) -> Option<Failure> {
    let kept: Vec<Operation> = trace
        .iter()
        .enumerate()
        .filter(|(place, _)| !dropped.contains(place))
        .map(|(_, operation)| operation.clone())
        .collect();
    let mut subject = make();
    replay(&kept, &mut *subject, config.clone()).err()
}

/// Plays many seeds, each with a fresh subject and the configuration made for it. The first failure is made short and
/// returned.
pub fn run_seeds(
    seeds: Range<u64>,
    configure: &dyn Fn(u64) -> Config,
    make: &mut dyn FnMut(u64, &Config) -> Box<dyn Subject>,
) -> Result<(), Failure> {
    for seed in seeds {
        let config = configure(seed);
        let mut subject = make(seed, &config);
        if let Err(failure) = run(seed, &mut *subject, config.clone()) {
            drop(subject);
            return Err(minimise(&failure, &config, &mut || make(seed, &config)));
        }
    }
    Ok(())
}
