//! `./bench engine`: the parent's side.

use crate::Error;
use crate::children::Child;
use crate::options::{ChildTask, EngineOptions};
use crate::peers::System;
use crate::report::{ENGINE_TARGETS, Figures, METRICS, print_table, print_targets};
use crate::workload::{raw_bytes, reference_ratios};
use std::path::Path;

const JSON_PATH: &str = "target/bench/engine.json";
const LARGE_FACTOR: u64 = 10;
/// The systems whose growth is compared.
const LARGE_SYSTEMS: [System; 2] = [System::Pando, System::Lmdb];

/// Runs every system, prints the table and writes the JSON.
pub fn run(options: &EngineOptions) -> Result<(), Error> {
    let mut figures = Figures::default();
    let mut failures = Vec::new();
    print_workload(options, &mut figures)?;
    for system in systems(options) {
        eprintln!("{}", system.name());
        let child = child(options, system, ChildTask::Engine, options.documents());
        child.run_in_own_folder(&mut figures, &mut failures);
    }
    if options.large {
        measure_growth(options, &mut figures, &mut failures);
    }
    print_table(&figures, METRICS);
    println!("  (written: bytes passed to write calls, files deleted since included; write_bytes: pages made dirty)");
    if figures.has(System::Pando) {
        print_targets(&figures, ENGINE_TARGETS);
    }
    figures.write_json(Path::new(JSON_PATH))?;
    println!("\nfigures: {JSON_PATH}");
    if failures.is_empty() { Ok(()) } else { Err(failures.join("; ").into()) }
}

/// What was asked for, or all, without those that are not built in.
fn systems(options: &EngineOptions) -> Vec<System> {
    let asked = if options.systems.is_empty() { System::ALL.to_vec() } else { options.systems.clone() };
    let (built_in, missing): (Vec<_>, Vec<_>) = asked.into_iter().partition(|system| system.is_built_in());
    for system in missing {
        println!("{} is not in this build and is left out", system.name());
    }
    built_in
}

fn print_workload(options: &EngineOptions, figures: &mut Figures) -> Result<(), Error> {
    let documents = options.documents();
    let raw_mb = raw_bytes(documents) as f64 / 1e6;
    println!("{documents} documents of 500 B with 8 B keys ({raw_mb:.0} MB raw) and one index of random 16 B keys");
    println!("reference compression of this data, documents alone (with the index, as stored):");
    for ratio in reference_ratios()? {
        println!("  {:22} {:.3} ({:.3})", ratio.name, ratio.documents, ratio.with_index);
        figures.add("workload", &format!("documents, {}", ratio.name), ratio.documents, "ratio");
        figures.add("workload", &format!("documents and index, {}", ratio.name), ratio.with_index, "ratio");
    }
    Ok(())
}

fn child(options: &EngineOptions, system: System, task: ChildTask, documents: u64) -> Child {
    let directory = options.directory.join(system.name());
    let mut arguments = vec!["--documents".to_owned(), documents.to_string()];
    if options.quick {
        arguments.push("--quick".to_owned());
    }
    Child { task, system, directory, arguments }
}

/// Runs the same operations at two sizes; what the larger one costs is recorded under names of its own.
fn measure_growth(options: &EngineOptions, figures: &mut Figures, failures: &mut Vec<String>) {
    for system in systems(options).into_iter().filter(|system| LARGE_SYSTEMS.contains(system)) {
        for factor in [1, LARGE_FACTOR] {
            eprintln!("{} at {factor} x", system.name());
            let mut child = child(options, system, ChildTask::Growth, options.documents() * factor);
            // The same number of updates at both sizes.
            child.arguments.extend(["--updates".to_owned(), (options.documents() / 10).to_string()]);
            let mut found = Figures::default();
            child.run_in_own_folder(&mut found, failures);
            let suffix = if factor == 1 { "" } else { "_large" };
            for figure in found.0.into_iter().filter(|figure| figure.metric.starts_with("cost_")) {
                figures.add(&figure.system, &format!("{}{suffix}", figure.metric), figure.value, &figure.unit);
            }
        }
        for operation in ["cost_get", "cost_scan", "cost_update"] {
            let small = figures.value(system, operation);
            let large = figures.value(system, &format!("{operation}_large"));
            if let Some((small, large)) = small.zip(large) {
                figures.add(system.name(), &format!("{operation}_growth"), large / small, "ratio");
            }
        }
    }
}
