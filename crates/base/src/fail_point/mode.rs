//! When a fail point that is on does its work.

use crate::{Error, ErrorCode, Result, ensure};

/// A mode, as configureFailPoint gives it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum FailPointMode {
    /// Never.
    #[default]
    Off,
    /// Each time.
    AlwaysOn,
    /// So many times, then off.
    Times(u32),
    /// Each time after so many.
    Skip(u32),
    /// Each time with this probability.
    Probability(f64),
}

impl FailPointMode {
    /// The mode `{times: n}`.
    pub fn times(count: i64) -> Result<FailPointMode> {
        bounded("times", count).map(FailPointMode::Times)
    }

    /// The mode `{skip: n}`.
    pub fn skip(count: i64) -> Result<FailPointMode> {
        bounded("skip", count).map(FailPointMode::Skip)
    }

    /// The mode `{activationProbability: p}`.
    pub fn probability(probability: f64) -> Result<FailPointMode> {
        ensure!(
            (0.0..=1.0).contains(&probability),
            ErrorCode::BadValue,
            "activationProbability must be between 0.0 and 1.0; found {probability}"
        );
        Ok(FailPointMode::Probability(probability))
    }

    /// A mode by the name of one that has no number.
    pub fn named(name: &str) -> Result<FailPointMode> {
        match name {
            "off" => Ok(FailPointMode::Off),
            "alwaysOn" => Ok(FailPointMode::AlwaysOn),
            _ => Err(Error::bad_value(format!("unknown mode: {name}"))),
        }
    }

    /// The number that shows the mode in getParameter.
    pub const fn number(self) -> i32 {
        match self {
            FailPointMode::Off => 0,
            FailPointMode::AlwaysOn => 1,
            FailPointMode::Probability(_) => 2,
            FailPointMode::Times(_) => 3,
            FailPointMode::Skip(_) => 4,
        }
    }
}

fn bounded(option: &str, count: i64) -> Result<u32> {
    ensure!(count >= 0, ErrorCode::BadValue, "'{option}' option to 'mode' must be positive");
    let fits = u32::try_from(count).ok().filter(|count| *count <= i32::MAX as u32);
    fits.ok_or_else(|| Error::bad_value(format!("'{option}' option to 'mode' is too large")))
}
