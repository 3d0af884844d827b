//! The bulk load: sorted documents and a sorted index into an empty store, until they are durable.

use crate::Error;
use crate::measure::{per_second, timed, written_bytes};
use crate::peers::Peer;
use crate::report::Recorder;
use crate::workload::Workload;

/// Loads and waits until everything has settled. The input is made beforehand.
pub fn run(peer: &dyn Peer, workload: &Workload, recorder: &Recorder) -> Result<(), Error> {
    let input = workload.bulk_input();
    let before = written_bytes()?;
    let ((), duration) = timed(|| peer.bulk_load(&input))?;
    recorder.record("bulk_load", per_second(workload.documents(), duration));
    peer.checkpoint()?;
    peer.settle()?;
    recorder.record("bulk_load_written", (written_bytes()? - before).passed as f64);
    Ok(())
}
