//! That the record which release builds are arranged by is of use for the packages there are.
#![allow(clippy::unwrap_used, reason = "a failed look-up fails the test that made it")]

use pando_house::{read, root};
use std::process::Command;

#[test]
fn the_record_was_made_with_these_packages_and_features() {
    let told = Command::new(root().join("profile/packages")).output().unwrap();
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    let recorded = read("profile/recorded");
    let packages = recorded.lines().nth(1).unwrap_or_default();
    let now = String::from_utf8_lossy(&told.stdout).trim().to_owned();
    assert_eq!(packages, now, "the names of all functions have changed: record anew with ./bench profile");
}
