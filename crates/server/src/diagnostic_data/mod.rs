//! The archive of diagnostic data: what the node says of itself, every second, in a ring of files beside the data.
//!
//! The files have MongoDB's form (FTDC), so that its tools read them: `sample` asks, `chunk` packs, `ring` keeps the files. The
//! last sample is what `getDiagnosticData` shows. A failure to write is logged and stops nothing but the archive.

mod chunk;
mod ring;
mod sample;

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
            let mut outcome = Ok(());
            let parameters = &node.parameters;
            let now_ms = node.now_ms();
            env.tasks().blocking(&mut || outcome = archive.add(&taken, now_ms, parameters));
            if let Err(error) = outcome
                && !std::mem::replace(&mut archive.has_failed, true)
            {
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

impl Archive {
    fn add(&mut self, sample: &Doc, now_ms: i64, parameters: &ParameterSet) -> io::Result<()> {
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
            if let Some(full) = self.chunk.replace(ChunkBuilder::new(sample.clone(), now_ms)) {
                ring.add(&full.pack()?, &metadata, limits)?;
                ring.forget_aside()?;
            }
            return Ok(());
        }
        let Some(chunk) = &self.chunk else { return Ok(()) };
        if chunk.count() >= count(&SAMPLES_PER_CHUNK) {
            ring.add(&chunk.pack()?, &metadata, limits)?;
            ring.forget_aside()?;
            self.chunk = None;
        } else if chunk.count() % count(&SAMPLES_PER_INTERIM) == 0 {
            ring.put_aside(&chunk.pack()?, &metadata)?;
        }
        Ok(())
    }
}
