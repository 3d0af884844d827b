//! The archive of diagnostic data: what the node says of itself, every second, in a ring of files beside the data.
//!
//! The files have MongoDB's form (FTDC), so that its tools read them: `sample` asks, `chunk` packs, `ring` keeps the files. The
//! last sample is what `getDiagnosticData` shows. A failure to write is logged, once until a write succeeds again, and costs the
//! samples that were to be written; with the next ones the archive is tried again.

mod chunk;
mod ring;
mod sample;

pub(crate) use sample::ask;

use chunk::ChunkBuilder;
use pando_base::{AnyParameter, Component, Parameter, ParameterSet, Severity, log};
use pando_commands::Node;
use pando_doc::Doc;
use pando_env::Env;
use ring::{Limits, Ring};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Weak;
use std::time::Duration;

/// The archive's directory below that of the data.
pub(crate) const DIRECTORY: &str = "diagnostic.data";

static ENABLED: Parameter<bool> =
    Parameter::new("diagnosticDataCollectionEnabled", true, "Collects and archives diagnostic data.");

static PERIOD_MS: Parameter<i32> = Parameter::new(
    "diagnosticDataCollectionPeriodMillis",
    1000,
    "How often diagnostic data is collected, in milliseconds.",
)
.at_least(100);

static DIRECTORY_MB: Parameter<i32> = Parameter::new(
    "diagnosticDataCollectionDirectorySizeMB",
    200,
    "How large the archive of diagnostic data may be, in megabytes.",
)
.at_least(10);

static FILE_MB: Parameter<i32> = Parameter::new(
    "diagnosticDataCollectionFileSizeMB",
    10,
    "How large a file of diagnostic data may be, in megabytes.",
)
.at_least(1);

static SAMPLES_PER_CHUNK: Parameter<i32> = Parameter::new(
    "diagnosticDataCollectionSamplesPerChunk",
    300,
    "How many samples are packed together in the archive of diagnostic data.",
)
.at_least(2);

static SAMPLES_PER_INTERIM: Parameter<i32> = Parameter::new(
    "diagnosticDataCollectionSamplesPerInterimUpdate",
    10,
    "After how many samples those that are not in the archive yet are put aside on disk.",
)
.at_least(2);

/// The parameters of diagnostic data.
pub(crate) static PARAMETERS: &[&dyn AnyParameter] =
    &[&ENABLED, &PERIOD_MS, &DIRECTORY_MB, &FILE_MB, &SAMPLES_PER_CHUNK, &SAMPLES_PER_INTERIM];

/// Takes samples until the node is gone. Without a directory they are only shown, not kept.
pub(crate) async fn collect(env: Env, node: Weak<Node>, directory: Option<PathBuf>) {
    let mut archive: Option<Archive> = None;
    loop {
        let Some(period_ms) = node.upgrade().map(|node| node.parameters.get(&PERIOD_MS)) else { return };
        env.clock().sleep(Duration::from_millis(u64::try_from(period_ms).unwrap_or(1000))).await;
        let Some(node) = node.upgrade() else { return };
        if !node.parameters.get(&ENABLED) {
            continue;
        }
        if let (None, Some(directory)) = (&archive, &directory) {
            archive = Some(Archive {
                env: env.clone(),
                directory: directory.clone(),
                facts: sample::facts(&node).await,
                ring: None,
                chunk: None,
                has_failed: false,
            });
        }
        let taken = sample::take_sample(&node).await;
        if let Some(archive) = &mut archive {
            let mut outcome = Ok(Added::Kept);
            let parameters = &node.parameters;
            let now_ms = node.now_ms();
            env.tasks().blocking(&mut || outcome = archive.add(&taken, now_ms, parameters));
            if let Some(error) = archive.failure_to_tell(outcome) {
                let message = "Diagnostic data cannot be archived";
                log!(node.log, Severity::Warning, Component::Ftdc, 20631, message, "error" = error.to_string());
            }
        }
        node.set_diagnostic_sample(taken);
    }
}

/// The archive while it is written.
struct Archive {
    env: Env,
    directory: PathBuf,
    /// What opens each file.
    facts: Doc,
    ring: Option<Ring>,
    chunk: Option<ChunkBuilder>,
    has_failed: bool,
}

/// What became of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Added {
    /// It waits in memory.
    Kept,
    /// Something was written.
    Written,
}

impl Archive {
    /// The first failure after a success is told. What was open is given up: it may be gone, or end in the middle.
    fn failure_to_tell(&mut self, outcome: io::Result<Added>) -> Option<io::Error> {
        match outcome {
            Ok(Added::Kept) => None,
            Ok(Added::Written) => {
                self.has_failed = false;
                None
            }
            Err(error) => {
                self.ring = None;
                (!std::mem::replace(&mut self.has_failed, true)).then_some(error)
            }
        }
    }

    fn add(&mut self, sample: &Doc, now_ms: i64, parameters: &ParameterSet) -> io::Result<Added> {
        let metadata = chunk::metadata(self.facts.view(), now_ms);
        let ring = match &mut self.ring {
            Some(ring) => ring,
            none => none.insert(Ring::open(&self.env, Path::new(&self.directory))?),
        };
        let megabytes = |parameter| u64::try_from(parameters.get(parameter)).unwrap_or(1) << 20;
        let limits = Limits { file_bytes: megabytes(&FILE_MB), directory_bytes: megabytes(&DIRECTORY_MB) };
        let count = |parameter| usize::try_from(parameters.get(parameter)).unwrap_or(2);
        let fits = self.chunk.as_mut().is_some_and(|chunk| chunk.add(sample.view()));
        if !fits {
            let Some(full) = self.chunk.replace(ChunkBuilder::new(sample.clone(), now_ms)) else {
                return Ok(Added::Kept);
            };
            ring.add(&full.pack()?, &metadata, limits)?;
            ring.forget_aside()?;
            return Ok(Added::Written);
        }
        // A chunk that cannot be written is not kept: others come, and memory is no archive.
        if let Some(full) = self.chunk.take_if(|chunk| chunk.count() >= count(&SAMPLES_PER_CHUNK)) {
            ring.add(&full.pack()?, &metadata, limits)?;
            ring.forget_aside()?;
            return Ok(Added::Written);
        }
        let Some(chunk) = &self.chunk else { return Ok(Added::Kept) };
        if chunk.count() % count(&SAMPLES_PER_INTERIM) != 0 {
            return Ok(Added::Kept);
        }
        ring.put_aside(&chunk.pack()?, &metadata)?;
        Ok(Added::Written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::doc;
    use pando_env::simulated::{Fault, FaultKind, Simulation};

    #[test]
    fn u15_the_archive_is_tried_again_after_a_failure_that_is_told_once() {
        let machine = Simulation::new(9);
        let parameters = ParameterSet::new(&[PARAMETERS], false).unwrap();
        let mut archive = Archive {
            env: machine.env(),
            directory: DIRECTORY.into(),
            facts: doc! {},
            ring: None,
            chunk: None,
            has_failed: false,
        };
        let mut told_in = |count: i64| {
            let mut told = 0;
            for now_ms in 0..count {
                let outcome = archive.add(&doc! { "a": now_ms }, now_ms, &parameters);
                told += usize::from(archive.failure_to_tell(outcome).is_some());
            }
            told
        };
        for _ in 0..2 {
            machine.disk().inject(Fault::new(FaultKind::SpaceRunsOut));
            assert_eq!(told_in(1000), 1);
            machine.disk().clear_faults();
            assert_eq!(told_in(1000), 0);
        }
        let files = machine.env().disk().list(Path::new(DIRECTORY)).unwrap();
        assert!(files.len() > 1, "{files:?}");
    }
}
