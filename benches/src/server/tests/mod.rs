//! Both clients against servers: MongoDB's protocol against a small one in this process, PostgreSQL's against the real one
//! where it is installed.

mod fake;

use super::data::{Collection, orders_of};
use super::dialects::{Dialect, mongo::Mongo, postgres::Postgres};
use super::drive::{Connection, Window, drive};
use super::hosts;
use super::link::Link;
use super::operation::Operation;
use super::options::ServerOptions;
use super::phase::Service;
use super::run::Run;
use super::skew::Zipfian;
use super::talk::Workloads;
use super::workloads::{Chooser, Shared, Workload};
use crate::report::Figures;
use clap::Parser;
use fake::FakeServer;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

const DOCUMENTS: u64 = 600;

#[derive(Parser)]
struct CommandLine {
    #[command(flatten)]
    options: ServerOptions,
}

fn options(words: &[&str]) -> ServerOptions {
    let all = ["bench", "--documents", "600", "--seconds", "0.1", "--connections", "1,3"];
    CommandLine::parse_from(all.iter().chain(words)).options
}

/// Runs every workload at every number of connections.
fn measure(name: &'static str, address: SocketAddr, dialect: &dyn Fn() -> Box<dyn Dialect>, words: &[&str]) -> Outcome {
    let options = options(words);
    let (mut figures, mut failures) = (Figures::default(), Vec::new());
    let service = Service { address, processes: None, dialect };
    Run { name, round: 0, service, options: &options, figures: &mut figures, failures: &mut failures }.measure();
    Outcome { figures, failures }
}

struct Outcome {
    figures: Figures,
    failures: Vec<String>,
}

impl Outcome {
    /// Every workload was answered rightly; on a busy machine an answer may come after its phase.
    fn expect_all_workloads(&self, name: &str) {
        for workload in Workload::ALL {
            for connections in [1, 3] {
                let phase = format!("{}_{connections}", workload.name());
                let is_late = |failure: &String| failure.contains(&phase) && failure.contains("nothing ended within");
                let is_measured = self.figures.of(name, &format!("{phase}_throughput")).is_some();
                assert!(is_measured || self.failures.iter().any(is_late), "{phase}: {:?}", self.failures);
                assert_eq!(self.figures.of(name, &format!("{phase}_errors")), None, "{:?}", self.failures);
            }
        }
    }
}

fn mongo() -> Box<dyn Dialect> {
    Box::new(Mongo::new(orders_of(DOCUMENTS)))
}

fn postgres() -> Box<dyn Dialect> {
    Box::new(Postgres::new(orders_of(DOCUMENTS)))
}

#[test]
fn every_workload_runs_on_mongodbs_protocol() {
    let server = FakeServer::start(&[]);
    measure("pando", server.address, &mongo, &[]).expect_all_workloads("pando");
}

#[test]
fn every_workload_runs_on_postgres() {
    if hosts::postgres::programs().is_none() {
        return;
    }
    let directory = std::env::temp_dir().join(format!("pando-benches-postgres-{}", std::process::id()));
    let mut host = hosts::postgres::start(&directory).unwrap();
    let options = options(&[]);
    let (mut figures, mut failures) = (Figures::default(), Vec::new());
    let processes = Some(super::processes::Processes::of(host.process()));
    let service = Service { address: host.address, processes, dialect: &postgres };
    let mut run =
        Run { name: "postgres", round: 0, service, options: &options, figures: &mut figures, failures: &mut failures };
    run.greet(&mut host).unwrap();
    run.measure();
    host.stop().unwrap();
    crate::children::remove_folder(&directory);
    Outcome { figures, failures }.expect_all_workloads("postgres");
}

#[test]
fn a_refused_command_costs_its_own_workload_only() {
    let server = FakeServer::start(&["aggregate"]);
    let words = ["--workloads", "find,aggregate,update"];
    let outcome = measure("pando", server.address, &mongo, &words);
    assert_eq!(outcome.failures.len(), 2, "{:?}", outcome.failures);
    assert!(
        outcome.failures.iter().all(|failure| failure.contains("no such command: 'aggregate' (59 CommandNotFound)"))
    );
    assert!(outcome.figures.of("pando", "aggregate_1_throughput").is_none());
    assert!(outcome.figures.of("pando", "aggregate_1_errors").is_some_and(|errors| errors >= 50.0));
    assert_eq!(outcome.figures.of("pando", "find_3_errors"), None);
    assert_eq!(outcome.figures.of("pando", "update_3_errors"), None);
}

#[test]
fn what_something_is_asked_of_is_measured_again() {
    let server = FakeServer::start(&["insert"]);
    let all = ["bench", "--documents", "600", "--seconds", "0.1", "--connections", "3,16"];
    let options = CommandLine::parse_from(all.iter().chain(&["--workloads", "insert,ycsb-d,range"])).options;
    let failed_in = |round| {
        let (mut figures, mut failures) = (Figures::default(), Vec::new());
        let service = Service { address: server.address, processes: None, dialect: &mongo };
        let mut run =
            Run { name: "pando", round, service, options: &options, figures: &mut figures, failures: &mut failures };
        run.measure();
        let phases = ["insert_3", "insert_16", "ycsb_d_3", "ycsb_d_16"];
        let is_told = |phase: &&str| failures.iter().any(|failure| failure.contains(&format!("pando, {phase}:")));
        phases.into_iter().filter(is_told).collect::<Vec<_>>()
    };
    assert_eq!(failed_in(0), ["insert_3", "insert_16", "ycsb_d_3", "ycsb_d_16"]);
    assert_eq!(failed_in(1), ["insert_16"]);
}

#[test]
fn a_missing_document_is_an_error() {
    let server = FakeServer::start(&[]);
    let mut link = Link::open(server.address, mongo()).unwrap();
    let insert = Operation::Insert { collection: Collection::Users, number: 7 };
    link.operate(&insert).unwrap();
    link.operate(&Operation::Find { number: 7 }).unwrap();
    let told = link.operate(&Operation::Find { number: 8 }).unwrap_err().to_string();
    assert!(told.contains("0 documents where 1 were expected"), "{told}");
    let told = link.operate(&insert).unwrap_err().to_string();
    assert!(told.contains("(11000"), "{told}");
}

#[test]
fn a_server_that_goes_away_ends_the_load_with_an_error() {
    let server = FakeServer::start(&["find"]);
    server.hang_up_on_refusal();
    let shared = Arc::new(Shared::new(10, 1));
    let chooser = Chooser::new(Workload::Find, 0, Zipfian::new(10), shared);
    let (stream, dialect) = Link::open(server.address, mongo()).unwrap().into_parts().unwrap();
    let connection = Connection::new(stream, Box::new(Workloads::new(dialect, chooser)), None).unwrap();
    let from = Instant::now();
    let window = Window { from, until: from + Duration::from_secs(60) };
    let (tally, _) = drive(vec![connection], &window).unwrap();
    assert_eq!((tally.turns, tally.errors), (0, 1));
    assert!(tally.first_error.unwrap().contains("closed"));
}

#[test]
fn replies_are_read_however_they_are_cut() {
    let mut out = Vec::new();
    let ready = [b'Z', 0, 0, 0, 5, b'I'];
    out.extend_from_slice(&[b'2', 0, 0, 0, 4]);
    out.extend_from_slice(b"C\0\0\0\x0dSELECT 7\0");
    out.extend_from_slice(&ready);
    let mut dialect = Postgres::new(300);
    for end in 0..out.len() {
        assert_eq!(dialect.reply(&out[..end]).unwrap(), None, "{end}");
    }
    let answer = dialect.reply(&out).unwrap().unwrap();
    assert_eq!((answer.size_bytes, answer.outcome), (out.len(), Ok(7)));
    let mut refusal = b"E\0\0\0\x19SERROR\0C42P01\0Mno table\0\0".to_vec();
    refusal[4] = (refusal.len() - 1) as u8;
    refusal.extend_from_slice(&ready);
    assert_eq!(dialect.reply(&refusal).unwrap().unwrap().outcome, Err("no table (42P01)".to_owned()));
}
