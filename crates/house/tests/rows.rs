//! `docs/rows.txt`: the capabilities that must have a test.
//!
//! Each line is an id, a space and a short text. A test that proves a row begins with its id in lower case (`x20_…`).

use pando_house::{expect_none, read};
use std::collections::BTreeSet;

#[test]
fn rows_are_well_formed_and_unique() {
    let text = read("docs/rows.txt");
    let rows: Vec<&str> = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    assert!(!rows.is_empty());
    let malformed = rows.iter().filter(|row| !is_well_formed(row)).map(|row| row.to_string());
    expect_none("a row is `X4 what it is`", &malformed.collect::<Vec<_>>());
    let ids: BTreeSet<&str> = rows.iter().filter_map(|row| row.split(' ').next()).collect();
    assert_eq!(ids.len(), rows.len(), "an id is listed twice");
}

fn is_well_formed(row: &str) -> bool {
    let Some((id, text)) = row.split_once(' ') else { return false };
    let (letter, number) = id.split_at(id.len().min(1));
    let is_letter = letter.chars().all(|letter| letter.is_ascii_uppercase());
    let is_number = number.parse::<u32>().is_ok_and(|number| number.to_string() == id[1..]);
    is_letter && is_number && !text.trim().is_empty() && text.trim() == text
}
