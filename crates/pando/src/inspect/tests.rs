//! Every question, asked of the oracle with the demo's data in it.

use super::*;
use crate::demo;
use clap::Parser;
use pando_engine_model::{Mode, ModelDisk, ModelEngine};
use std::sync::Arc;

#[derive(Parser)]
struct Line {
    #[command(subcommand)]
    question: Question,
}

fn engine(mode: Mode) -> Arc<dyn Engine> {
    ModelEngine::open(&ModelDisk::new(), mode).unwrap()
}

fn ask(engine: &dyn Engine, line: &str) -> Result<String> {
    let words = std::iter::once("inspect").chain(line.split(' '));
    let mut out = Vec::new();
    Line::try_parse_from(words).unwrap().question.answer(engine, &mut out)?;
    Ok(String::from_utf8(out).unwrap())
}

fn filled() -> Arc<dyn Engine> {
    let engine = engine(Mode::ReplicaSet);
    demo::fill(&engine, 100, 12).unwrap();
    engine
}

#[test]
fn tables_are_listed_with_their_sizes() {
    let answer = ask(&*filled(), "tables").unwrap();
    let lines: Vec<&str> = answer.lines().collect();
    assert!(lines[0].starts_with("table"));
    assert!(lines[1].starts_with("people ") && lines[1].contains(" 12 "), "{answer}");
    assert!(lines[2].starts_with("people.by_town"), "{answer}");
    assert_eq!(lines[3], "2 tables");
}

#[test]
fn a_dump_has_a_limit_a_start_and_a_direction() {
    let engine = filled();
    let all = ask(&*engine, "dump people").unwrap();
    assert!(all.lines().next().unwrap().contains("number: 1, town: 'Fish Lake'"), "{all}");
    assert!(all.ends_with("12 pairs\n"));
    let three = ask(&*engine, "dump people --limit 3").unwrap();
    assert_eq!(three.lines().count(), 4);
    assert!(three.ends_with("--limit 0 shows all\n"));
    let last = ask(&*engine, "dump people --reverse --limit 1").unwrap();
    assert!(last.contains("number: 12"), "{last}");
    let late = ask(&*engine, "dump people.by_town --start Salina --limit 0").unwrap();
    assert!(late.ends_with("2 pairs\n"), "{late}");
    assert!(ask(&*engine, "dump people --start 0x1").is_err());
    assert!(ask(&*engine, "dump nobody").is_err());
}

#[test]
fn the_newest_oplog_entries_come_oldest_first() {
    let answer = ask(&*filled(), "log --limit 2").unwrap();
    let lines: Vec<&str> = answer.lines().collect();
    assert!(lines[0].starts_with("12 entries"), "{answer}");
    assert_eq!(lines[1], "first Timestamp(100, 1), last Timestamp(100, 12), visible up to Timestamp(100, 12)");
    let entries = &lines[lines.len() - 2..];
    assert!(entries[0].starts_with("Timestamp(100, 11) {") && entries[1].starts_with("Timestamp(100, 12) {"));
}

#[test]
fn a_store_that_stands_alone_has_no_oplog() {
    assert!(ask(&*engine(Mode::StandAlone), "log").unwrap().contains("no oplog"));
}

#[test]
fn verify_describe_and_statistics_answer() {
    let engine = filled();
    assert!(ask(&*engine, "verify").unwrap().ends_with("everything holds\n"));
    assert!(!ask(&*engine, "describe").unwrap().is_empty());
    let statistics = ask(&*engine, "statistics").unwrap();
    assert!(statistics.contains("timestamp.stable"), "{statistics}");
    assert!(statistics.lines().any(|line| line.ends_with("Timestamp(100, 12)")), "{statistics}");
}
