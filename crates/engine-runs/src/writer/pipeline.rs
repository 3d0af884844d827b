//! Encodes and compresses blocks, in order, on as many threads as there are.
//!
//! With one thread everything happens in `submit`. With more, workers take jobs from a queue; the caller takes one itself when
//! the queue is full, and at the end, so that it never only waits and a worker may sleep while little is queued. Results come
//! out in the order of submission. Lock order: there is one lock, held only to move jobs and results.

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

/// See the module.
pub(crate) struct Pipeline {
    env: Env,
    threads_wanted: usize,
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
            self.help();
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
            if self.help() {
                continue;
            }
            let mut state = self.shared.state.lock();
            if state.results.is_empty() {
                return None;
            }
            if !matches!(state.results.front(), Some(Some(_))) {
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
        for _ in 1..self.threads_wanted {
            let (shared, level) = (self.shared.clone(), self.level);
            let body = Box::new(move || work(&shared, level));
            match self.env.tasks().spawn_thread("run-compression", body) {
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
