//! Starting child processes and gathering what they measured.
//!
//! Each system runs in a process of its own, so that its memory, its threads and the kernel's counters are its alone. The
//! program is this one again. Figures come line by line, so a child that fails loses only what it had not measured yet.

use crate::Error;
use crate::measure::quiet_disk;
use crate::options::ChildTask;
use crate::peers::System;
use crate::report::{Figure, Figures};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A child to be started.
pub struct Child {
    /// What it does.
    pub task: ChildTask,
    /// On which system.
    pub system: System,
    /// In which folder.
    pub directory: PathBuf,
    /// Further options, as on the command line.
    pub arguments: Vec<String>,
}

impl Child {
    /// Runs it to its end and returns its figures. With `may_die` its exit is not looked at.
    pub fn run(&self, may_die: bool) -> (Vec<Figure>, Result<(), Error>) {
        let mut figures = Vec::new();
        let result = self.gather(may_die, &mut figures);
        (figures, result)
    }

    fn gather(&self, may_die: bool, figures: &mut Vec<Figure>) -> Result<(), Error> {
        settle_machine();
        let task = clap::ValueEnum::to_possible_value(&self.task).ok_or("a task without a name")?;
        let mut child = Command::new(std::env::current_exe()?)
            .args(["child", "--task", task.get_name(), "--system", self.system.name(), "--directory"])
            .arg(&self.directory)
            .args(&self.arguments)
            .stdout(Stdio::piped())
            .spawn()?;
        let output = child.stdout.take().ok_or("a child without output")?;
        for line in BufReader::new(output).lines() {
            if let Some(figure) = Figure::from_line(&line?) {
                show_progress(&figure);
                figures.push(figure);
            }
        }
        let status = child.wait()?;
        if status.success() || may_die { Ok(()) } else { Err(format!("the child ended with {status}").into()) }
    }

    /// Runs it in an empty folder, which is removed afterwards; a failure is told and leaves what was measured.
    pub fn run_in_own_folder(&self, all: &mut Figures, failures: &mut Vec<String>) -> Vec<Figure> {
        remove_folder(&self.directory);
        let (figures, result) = self.run(false);
        if let Err(error) = result {
            let message = format!("{}: {error}", self.system.name());
            eprintln!("FAILED {message}");
            failures.push(message);
        }
        remove_folder(&self.directory);
        all.0.extend(figures.iter().cloned());
        figures
    }
}

/// Gives every child the same machine: what an earlier one left to be written back would be charged to this one's time, and
/// memory full of its files, in small pieces, would decide who gets large pages. Where this may not be done, it is left out.
fn settle_machine() {
    quiet_disk();
    for switch in ["/proc/sys/vm/drop_caches", "/proc/sys/vm/compact_memory"] {
        _ = std::fs::write(switch, "1");
    }
}

fn show_progress(figure: &Figure) {
    if !figure.metric.starts_with("statistic.") {
        eprintln!("  {:10} {:28} {:>16.3} {}", figure.system, figure.metric, figure.value, figure.unit);
    }
}

/// Removes a store, if there is one.
pub fn remove_folder(directory: &Path) {
    // Most often it is just not there.
    _ = std::fs::remove_dir_all(directory);
}
