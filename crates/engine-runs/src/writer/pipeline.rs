//! Encodes and compresses blocks, in order, on as many threads as there are.
//!
//! With one thread everything happens in `submit`. With more, workers take jobs from a queue; the caller takes one itself when
//! the queue is full, and at the end, so that it never only waits and a worker may sleep while little is queued. Results come
//! out in the order of submission.
//!
//! A pipeline that [stands back](Pipeline::stand_back_until) has all its workers on threads aside, and the caller waits for them instead of taking jobs
//! itself; when there is no more time it takes them as ever. Such a worker may be kept waiting for a processor with a job, never with the lock
//! for long: it only moves jobs and results under it. Lock order: there is one lock, held only to move jobs and results.

use crate::block::builder::StagedBlock;
use crate::block::compression::{Compressor, WriteDictionary};
use crate::block::frame::{FrameHeader, FrameKind};
use crate::section::index::HistoryMark;
use pando_env::{Env, ThreadHandle};
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::Arc;

/// Jobs waiting before the caller helps.
const QUEUE_MAX: usize = 64;
/// Jobs waiting before a worker is woken: a call of the system for each would cost a tenth of the whole.
const QUEUE_WAKE: usize = 16;
/// Small checkpoints are done before a thread would have started.
const BYTES_BEFORE_THREADS: usize = 1 << 20;
/// Emptied blocks kept for reuse.
const SPARE_MAX: usize = 128;

/// A block to be encoded, with what the index will say about it.
#[derive(Default)]
pub(crate) struct Job {
    pub(crate) staged: StagedBlock,
    pub(crate) is_history: bool,
    /// What the index says: at least the block's last key, below the next block's first.
    pub(crate) index_key: Vec<u8>,
    /// Filter hashes of the keys.
    pub(crate) hashes: Vec<u64>,
    pub(crate) mark: Option<HistoryMark>,
    pub(crate) dictionary: Option<Arc<WriteDictionary>>,
    /// What the block becomes.
    pub(crate) payload: Vec<u8>,
}

/// A block ready to be placed.
pub(crate) struct FinishedBlock {
    pub(crate) job: Job,
    pub(crate) header: FrameHeader,
}

impl FinishedBlock {
    pub(crate) fn payload(&self) -> &[u8] {
        &self.job.payload
    }
}

#[derive(Default)]
struct State {
    queue: VecDeque<(u64, Job)>,
    /// Results from `next_out` on; `None` while a worker has the job.
    results: VecDeque<Option<FinishedBlock>>,
    next_out: u64,
    stop: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    work: Condvar,
    finished: Condvar,
}

struct Worker {
    compressor: Compressor,
}

/// Says whether there is no more time to stand back. Asked for every block.
pub type IsHurried = Arc<dyn Fn() -> bool + Send + Sync>;

/// See the module.
pub(crate) struct Pipeline {
    env: Env,
    threads_wanted: usize,
    is_hurried: Option<IsHurried>,
    level: i32,
    shared: Arc<Shared>,
    threads: Vec<Box<dyn ThreadHandle>>,
    own: Worker,
    next_in: u64,
    submitted_bytes: usize,
    inline: VecDeque<FinishedBlock>,
    spare: Vec<Job>,
}

impl Worker {
    fn new(level: i32) -> Worker {
        Worker { compressor: Compressor::new(level) }
    }

    fn run(&mut self, mut job: Job) -> FinishedBlock {
        self.compressor.set_dictionary(job.dictionary.clone());
        let (compression, raw_length) = self.compressor.compress_block(&job.staged, &mut job.payload);
        let header = FrameHeader {
            stored_length: job.payload.len() as u32,
            raw_length: raw_length as u32,
            kind: if job.is_history { FrameKind::History } else { FrameKind::Data },
            compression,
            entries: job.staged.count() as u16,
        };
        FinishedBlock { job, header }
    }
}

impl Pipeline {
    pub(crate) fn new(env: &Env, threads: usize, level: i32) -> Pipeline {
        Pipeline {
            env: env.clone(),
            threads_wanted: threads.min(env.tasks().parallelism()),
            is_hurried: None,
            level,
            shared: Arc::default(),
            threads: Vec::new(),
            own: Worker::new(level),
            next_in: 0,
            submitted_bytes: 0,
            inline: VecDeque::new(),
            spare: Vec::new(),
        }
    }

    /// Takes only what others leave of the processors until this is true. To be called before the first block is submitted.
    pub(crate) fn stand_back_until(&mut self, is_hurried: IsHurried) {
        self.is_hurried = Some(is_hurried);
    }

    fn stands_back(&self) -> bool {
        self.is_hurried.as_ref().is_some_and(|is_hurried| !is_hurried())
    }

    /// An empty job, recycled if possible.
    pub(crate) fn blank(&mut self) -> Job {
        self.spare.pop().unwrap_or_default()
    }

    /// The compressor of the calling thread, without a dictionary.
    pub(crate) fn compressor(&mut self) -> &mut Compressor {
        self.own.compressor.set_dictionary(None);
        &mut self.own.compressor
    }

    /// Gives a block to be compressed.
    pub(crate) fn submit(&mut self, job: Job) {
        self.submitted_bytes += job.staged.size_bytes();
        if self.threads.is_empty() && !self.start_threads() {
            let finished = self.own.run(job);
            self.inline.push_back(finished);
            return;
        }
        let mut state = self.shared.state.lock();
        state.queue.push_back((self.next_in, job));
        state.results.push_back(None);
        self.next_in += 1;
        let waiting = state.queue.len();
        drop(state);
        if waiting.is_multiple_of(QUEUE_WAKE) {
            self.shared.work.notify_one();
        }
        if waiting > QUEUE_MAX {
            self.wait_for_room();
        }
    }

    /// The next block in order, if it is ready.
    pub(crate) fn poll(&mut self) -> Option<FinishedBlock> {
        if let Some(finished) = self.inline.pop_front() {
            return Some(finished);
        }
        if self.threads.is_empty() {
            return None;
        }
        self.shared.state.lock().pop_result()
    }

    /// The next block in order, waiting for it; `None` when all are out.
    pub(crate) fn wait(&mut self) -> Option<FinishedBlock> {
        loop {
            if let Some(finished) = self.poll() {
                return Some(finished);
            }
            let stands_back = self.stands_back();
            if !stands_back && self.help() {
                continue;
            }
            let mut state = self.shared.state.lock();
            if state.results.is_empty() {
                return None;
            }
            if !matches!(state.results.front(), Some(Some(_))) {
                if stands_back {
                    // Too few may wait for a worker to have been woken.
                    self.shared.work.notify_all();
                }
                self.shared.finished.wait(&mut state);
            }
        }
    }

    /// Takes back what a placed block no longer needs.
    pub(crate) fn recycle(&mut self, finished: FinishedBlock) {
        if self.spare.len() < SPARE_MAX {
            let mut job = finished.job;
            job.staged.clear();
            job.hashes.clear();
            job.index_key.clear();
            self.spare.push(Job { mark: None, dictionary: None, is_history: false, ..job });
        }
    }

    /// Waits until a worker has taken a job, or takes one.
    fn wait_for_room(&mut self) {
        while self.stands_back() {
            let mut state = self.shared.state.lock();
            if state.queue.len() <= QUEUE_MAX {
                return;
            }
            self.shared.finished.wait(&mut state);
        }
        self.help();
    }

    /// Does one waiting job on this thread; false if there is none.
    fn help(&mut self) -> bool {
        let Some((number, job)) = self.shared.state.lock().queue.pop_front() else { return false };
        let finished = self.own.run(job);
        self.shared.state.lock().put_result(number, finished);
        true
    }

    fn start_threads(&mut self) -> bool {
        if self.threads_wanted <= 1 || self.submitted_bytes < BYTES_BEFORE_THREADS {
            return false;
        }
        let stands_back = self.is_hurried.is_some();
        for _ in usize::from(!stands_back)..self.threads_wanted {
            let (shared, level) = (self.shared.clone(), self.level);
            let body = Box::new(move || work(&shared, level));
            let tasks = self.env.tasks();
            let started = match stands_back {
                true => tasks.spawn_thread_aside("run-compression", body),
                false => tasks.spawn_thread("run-compression", body),
            };
            match started {
                Ok(thread) => self.threads.push(thread),
                // No thread to be had: the caller's is enough.
                Err(_) => break,
            }
        }
        if self.threads.is_empty() {
            self.threads_wanted = 1;
        }
        !self.threads.is_empty()
    }
}

impl State {
    fn put_result(&mut self, number: u64, finished: FinishedBlock) {
        if let Some(place) = self.results.get_mut((number - self.next_out) as usize) {
            *place = Some(finished);
        }
    }

    fn pop_result(&mut self) -> Option<FinishedBlock> {
        let finished = self.results.front_mut()?.take()?;
        self.results.pop_front();
        self.next_out += 1;
        Some(finished)
    }
}

fn work(shared: &Shared, level: i32) {
    let mut worker = Worker::new(level);
    let mut state = shared.state.lock();
    while !state.stop {
        let Some((number, job)) = state.queue.pop_front() else {
            shared.work.wait(&mut state);
            continue;
        };
        drop(state);
        let finished = worker.run(job);
        state = shared.state.lock();
        state.put_result(number, finished);
        shared.finished.notify_one();
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        self.shared.state.lock().stop = true;
        self.shared.work.notify_all();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stamp;
    use std::sync::atomic::{AtomicUsize, Ordering};

    const BLOCKS: u32 = 600;

    fn job(pipeline: &mut Pipeline, number: u32) -> Job {
        let mut job = pipeline.blank();
        let value = number.to_le_bytes().repeat(1024);
        job.staged.push(&number.to_be_bytes(), 0, &Stamp::SETTLED, &value);
        job.index_key = number.to_be_bytes().to_vec();
        job
    }

    /// Passes blocks through; true if all came out, in order.
    fn pass(pipeline: &mut Pipeline) -> bool {
        let mut out = Vec::new();
        let mut note = |pipeline: &mut Pipeline, finished: FinishedBlock| {
            out.push(finished.job.index_key.clone());
            pipeline.recycle(finished);
        };
        for number in 0..BLOCKS {
            let job = job(pipeline, number);
            pipeline.submit(job);
            while let Some(finished) = pipeline.poll() {
                note(pipeline, finished);
            }
        }
        while let Some(finished) = pipeline.wait() {
            note(pipeline, finished);
        }
        out == (0..BLOCKS).map(|number| number.to_be_bytes().to_vec()).collect::<Vec<_>>()
    }

    #[test]
    fn who_stands_back_gives_the_same() {
        let mut pipeline = Pipeline::new(&Env::real(), 2, 1);
        pipeline.stand_back_until(Arc::new(|| false));
        assert!(pass(&mut pipeline));
    }

    #[test]
    fn who_must_hurry_after_a_while_gives_the_same() {
        let asked = AtomicUsize::new(0);
        let mut pipeline = Pipeline::new(&Env::real(), 2, 1);
        pipeline.stand_back_until(Arc::new(move || asked.fetch_add(1, Ordering::SeqCst) > 20));
        assert!(pass(&mut pipeline));
    }
}
