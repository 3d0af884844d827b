//! The bulk load: sorted documents and a sorted index into an empty store, until they are durable.

use crate::Error;
use crate::measure::{per_second, quiet_disk, timed, touch_memory, written_bytes};
use crate::peers::Peer;
use crate::report::Recorder;
use crate::workload::Workload;

/// Memory that is made ready for each document: what the hungriest system takes for it, its files in the page cache included.
const TOUCHED_BYTES: u64 = 2048;

/// Loads and waits until everything has settled. The input is made beforehand.
pub fn run(peer: &dyn Peer, workload: &Workload, recorder: &Recorder) -> Result<(), Error> {
    let input = workload.bulk_input();
    quiet_disk();
    touch_memory(workload.documents() * TOUCHED_BYTES)?;
    let before = written_bytes()?;
    let ((), duration) = timed(|| peer.bulk_load(&input))?;
    recorder.record("bulk_load", per_second(workload.documents(), duration));
    peer.checkpoint()?;
    peer.settle()?;
    recorder.record("bulk_load_written", (written_bytes()? - before).passed as f64);
    Ok(())
}
