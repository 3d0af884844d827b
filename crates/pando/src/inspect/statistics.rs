//! `statistics`: every figure by its name, and the timestamps.

use crate::error::Result;
use crate::show;
use pando_storage::{Engine, Statistic};
use std::io::Write;

pub fn run(engine: &dyn Engine, out: &mut dyn Write) -> Result<()> {
    let timestamps = engine.timestamps();
    let named = [
        ("oldest", timestamps.oldest),
        ("stable", timestamps.stable),
        ("all_durable", timestamps.all_durable),
        ("initial_data", timestamps.initial_data),
        ("recovery", timestamps.recovery),
        ("checkpoint", timestamps.checkpoint),
    ];
    let of_time = named.into_iter().map(|(name, timestamp)| vec![format!("timestamp.{name}"), timestamp.to_string()]);
    let figures = engine.statistics();
    let of_figures = figures.0.iter().map(|(name, figure)| vec![name.clone(), told(figure)]);
    let rows: Vec<Vec<String>> = of_time.chain(of_figures).collect();
    Ok(write!(out, "{}", show::columns(&rows))?)
}

fn told(figure: &Statistic) -> String {
    match figure {
        Statistic::Counter(value) => value.to_string(),
        Statistic::Gauge(value) => value.to_string(),
    }
}
