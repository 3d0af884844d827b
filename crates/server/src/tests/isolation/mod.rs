//! Isolation under concurrency and crashes: random transactions of many clients against the durable engine on a disk that loses
//! power, and a checker that knows from what they read and wrote whether there was an order that snapshot isolation allows.
//!
//! One history is one simulated machine: the server runs in several incarnations, each on a runtime of its own that is dropped when
//! the power goes; so nothing of it is left but the disk. `retries` uses the same machine for single writes.

mod checker;
mod clients;
mod history;
mod retries;

use super::*;
use checker::check;
use clients::play;
use history::History;
use pando_engine::{DurableEngine, EngineOptions};
use std::path::Path;
use std::time::Duration;

/// How many histories are played: 100, or 5,000 in long mode, or a fifth of the seeds that were asked for.
fn history_count() -> u64 {
    let chosen: Option<u64> = std::env::var("PANDO_SEEDS").ok().and_then(|text| text.parse().ok());
    let long = std::env::var("PANDO_TEST_LONG").is_ok().then_some(5_000);
    long.or(chosen.map(|seeds| seeds.div_ceil(5))).unwrap_or(100)
}

/// Chances from a seed.
#[derive(Clone)]
struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }
}

/// One machine, whose server is started again and again.
struct Machine {
    simulation: Simulation,
    env: Env,
}

impl Machine {
    fn new(seed: u64) -> Machine {
        let simulation = Simulation::new(seed);
        let env = simulation.env();
        Machine { simulation, env }
    }

    /// Starts the server and lets the clients work, until they are done or the power is gone; true if they were done.
    fn incarnation<W: Future<Output = ()>>(&self, work: impl FnOnce(Fixture) -> W) -> bool {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let Some(fixture) = self.start().await else { return false };
            tokio::select! {
                biased;
                () = self.until_power_is_lost() => false,
                () = work(fixture) => true,
            }
        })
    }

    async fn start(&self) -> Option<Fixture> {
        let options = EngineOptions::stepped(pando_engine::Mode::ReplicaSet);
        let engine = DurableEngine::open(&self.env, Path::new("/data"), options).ok()?;
        let control = Arc::new(ProcessControl::new(Arc::new(Nowhere)));
        let machine = Arc::new(SimulatedMachine::new("node1"));
        let set_of_one = options_of_a_set();
        let (env, log) = (self.env.clone(), Log::silent());
        let server = Server::start(&env, machine, Some(engine), set_of_one, log, Arc::clone(&control)).await.ok()?;
        Some(Fixture { simulation: Simulation::new(0), env, server: Arc::new(server), control })
    }

    async fn until_power_is_lost(&self) {
        while !self.simulation.disk().has_lost_power() {
            // Time goes on, so that waits come to their ends.
            self.simulation.clock().advance(Duration::from_micros(100));
            tokio::task::yield_now().await;
        }
    }

    /// The power goes, or only the process.
    fn end(&mut self, dice: &mut Dice) {
        self.env = if dice.below(2) == 0 { self.simulation.crash() } else { self.simulation.kill() };
    }
}

fn options_of_a_set() -> ServerOptions {
    options(ReplicationMode::OneMember("rs0".into()))
}

/// Plays a history and says what is wrong with it.
fn play_and_check(seed: u64) -> Result<History, String> {
    let (mut machine, mut dice) = (Machine::new(seed), Dice::new(seed));
    let history = Arc::new(parking_lot::Mutex::new(History::default()));
    let crash_count = dice.below(3);
    for incarnation in 0..=crash_count {
        let is_last = incarnation == crash_count;
        if !is_last {
            machine.simulation.disk().crash_after(40 + dice.below(400));
        }
        let (shared, seed) = (Arc::clone(&history), dice.below(u64::MAX));
        let done = machine.incarnation(|fixture| play(fixture, shared, seed, is_last));
        assert!(done || !is_last, "seed {seed}: the last incarnation ends by itself");
        machine.end(&mut dice);
    }
    let history = Arc::try_unwrap(history).unwrap_or_else(|_| panic!("everybody has ended")).into_inner();
    check(&history).map_err(|anomaly| format!("{anomaly:?}"))?;
    Ok(history)
}

#[test]
fn r9_histories_of_transactions_have_an_order_that_snapshots_allow() {
    let (mut committed, mut aborted) = (0, 0);
    for seed in 1..=history_count() {
        let history = play_and_check(seed).unwrap_or_else(|anomaly| panic!("seed {seed}: {anomaly}"));
        committed += history.transactions.iter().filter(|transaction| transaction.is_committed()).count();
        aborted += history.transactions.iter().filter(|transaction| !transaction.is_committed()).count();
    }
    assert!(committed > 0 && aborted > 0, "there is something to check: {committed} and {aborted}");
}
