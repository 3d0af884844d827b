//! What the engine is to reach beside its peers in the same run. Marks for the reader: nothing fails by them.

use super::{Figures, table::readable};
use crate::peers::System;
use System::{Fjall, Lmdb, Pando, Redb, Wiredtiger};

/// What a figure of ours is held against.
pub enum Bound {
    /// A fixed value.
    Value(f64),
    /// A factor of the same metric of a peer.
    Of(f64, System),
    /// A factor of the best of several peers; the flag says that more is better.
    OfBest(f64, &'static [System], bool),
    /// A factor of another metric of ours.
    OfOwn(f64, &'static str),
    /// Either will do.
    Either(&'static Bound, &'static Bound),
}

/// Which side of the bound is good.
#[derive(Clone, Copy, PartialEq)]
pub enum Side {
    /// Our figure may not be below.
    AtLeast,
    /// Our figure may not be above.
    AtMost,
}

/// One line of the list.
pub struct Target {
    metric: &'static str,
    side: Side,
    bound: Bound,
    words: &'static str,
}

const fn at_least(metric: &'static str, bound: Bound, words: &'static str) -> Target {
    Target { metric, side: Side::AtLeast, bound, words }
}

const fn at_most(metric: &'static str, bound: Bound, words: &'static str) -> Target {
    Target { metric, side: Side::AtMost, bound, words }
}

const SIZE: Bound = Bound::Of(0.8, Wiredtiger);
const GROWTH: Bound = Bound::Value(1.3);
const GROWTH_OF_LMDB: Bound = Bound::Of(1.0, Lmdb);

/// For `./bench engine`.
pub static ENGINE_TARGETS: &[Target] = &[
    at_most("size", SIZE, "size <= 0.8x WiredTiger"),
    at_most("size_later", SIZE, "size, 4 checkpoints later <= 0.8x WiredTiger"),
    at_most("size_of_raw", Bound::Value(0.45), "size <= 0.45 of raw (counts where there is no WiredTiger)"),
    at_least("bulk_load", Bound::Of(1.0, Wiredtiger), "bulk load >= 1.0x WiredTiger"),
    at_least("bulk_load", Bound::Of(1.5, Fjall), "bulk load >= 1.5x fjall"),
    at_least("get_cached", Bound::Of(1.3, Wiredtiger), "get, cached >= 1.3x WiredTiger"),
    at_least("get_cached", Bound::Of(2.0, Fjall), "get, cached >= 2x fjall"),
    at_least("get_cached_later", Bound::Of(1.3, Wiredtiger), "get, cached, later >= 1.3x WiredTiger"),
    at_least("get_cached_later", Bound::Of(2.0, Fjall), "get, cached, later >= 2x fjall"),
    at_least(
        "get_uncached",
        Bound::OfBest(1.0, &[Wiredtiger, Fjall], true),
        "get, cache of 5 % >= best compressed peer",
    ),
    at_least(
        "get_uncached_later",
        Bound::OfBest(1.0, &[Wiredtiger, Fjall], true),
        "get, cache of 5 %, later >= best compressed peer",
    ),
    at_least("scan", Bound::Of(1.0, Wiredtiger), "scan >= 1.0x WiredTiger"),
    at_least("scan", Bound::Of(2.5, Fjall), "scan >= 2.5x fjall"),
    at_least("scan_later", Bound::Of(0.6, Wiredtiger), "scan, later >= 0.6x WiredTiger"),
    at_least("scan_reverse", Bound::OfOwn(0.7, "scan"), "reverse scan >= 0.7x forward"),
    at_least("scan_reverse_later", Bound::OfOwn(0.7, "scan_later"), "reverse scan, later >= 0.7x forward"),
    at_most("checkpoint_written", Bound::Of(1.0, Fjall), "checkpoint writes <= 1.0x fjall"),
    at_most(
        "checkpoint_written",
        Bound::OfBest(0.5, &[Wiredtiger, Lmdb, Redb], false),
        "checkpoint writes <= 0.5x the least of the B-trees",
    ),
    at_most("checkpoint_settled", Bound::Of(1.0, Fjall), "checkpoint until settled <= fjall"),
    at_most("checkpoint_get_p99", Bound::Value(30.0), "get p99 meanwhile <= 30 us"),
    at_least("hot_get", Bound::Value(1.5e6), "hot rows >= 1.5 M gets/s"),
    at_least("small_commits", Bound::Value(3e5), "small transactions >= 300 k commits/s"),
    at_least("waiting_commits_per_sync", Bound::Value(20.0), "64 waiting committers >= 20 commits a sync"),
    at_most("cost_get_growth", Bound::Either(&GROWTH, &GROWTH_OF_LMDB), "get at 10x <= 1.3x, or LMDB's growth"),
    at_most("cost_scan_growth", Bound::Either(&GROWTH, &GROWTH_OF_LMDB), "scan at 10x <= 1.3x, or LMDB's growth"),
    at_most("cost_update_growth", Bound::Either(&GROWTH, &GROWTH_OF_LMDB), "update at 10x <= 1.3x, or LMDB's growth"),
];

/// For `./bench recovery`.
pub static RECOVERY_TARGETS: &[Target] = &[
    at_most("recovery_open", Bound::Value(10.0), "1 GB of log re-applied in <= 10 s"),
    at_most("clean_open", Bound::Value(0.2), "open of a clean 10 GB store in <= 0.2 s"),
    at_most("idle_memory", Bound::Value(20e6), "idle memory <= 20 MB"),
];

/// `./bench scale`.
pub static SCALE_TARGETS: &[Target] = &[
    at_most("start", Bound::Value(0.3), "start in <= 0.3 s"),
    at_most("rest_memory", Bound::Value(50e6), "at rest <= 50 MB"),
    at_most("idle_connections_memory", Bound::Value(100e6), "5,000 connections at rest <= 100 MB"),
    at_most("create_growth", Bound::Value(1.5), "create with 10,000 collections <= 1.5 x"),
    at_most("read_growth", Bound::Value(1.5), "point read with 10,000 collections <= 1.5 x"),
    at_most("list_collections", Bound::Value(50.0), "listing 10,000 collections in <= 50 ms"),
];

/// What `./bench watch` is held against.
pub static WATCH_TARGETS: &[Target] = &[
    at_most("ycsb_c_cost", Bound::Value(0.02), "watching reads takes < 2 % of the throughput"),
    at_most("ycsb_a_cost", Bound::Value(0.02), "watching reads and updates takes < 2 % of the throughput"),
];

impl Bound {
    /// The value to be held against; none where a peer is missing.
    fn limit(&self, figures: &Figures, metric: &str, side: Side) -> Option<f64> {
        match self {
            Bound::Value(value) => Some(*value),
            Bound::Of(factor, peer) => Some(factor * figures.value(*peer, metric)?),
            Bound::OfBest(factor, peers, more_is_better) => {
                let values = peers.iter().filter_map(|peer| figures.value(*peer, metric));
                let best = if *more_is_better { values.reduce(f64::max) } else { values.reduce(f64::min) };
                Some(factor * best?)
            }
            Bound::OfOwn(factor, other) => Some(factor * figures.value(Pando, other)?),
            Bound::Either(first, second) => {
                let limits = [first, second].into_iter().filter_map(|bound| bound.limit(figures, metric, side));
                if side == Side::AtMost { limits.reduce(f64::max) } else { limits.reduce(f64::min) }
            }
        }
    }
}

/// Prints a mark for each target.
pub fn print_targets(figures: &Figures, targets: &[Target]) {
    println!("\ntargets (for information)");
    for target in targets {
        println!("  {}", line(figures, target));
    }
}

fn line(figures: &Figures, target: &Target) -> String {
    let ours = figures.value(Pando, target.metric);
    let limit = target.bound.limit(figures, target.metric, target.side);
    let (Some(ours), Some(limit)) = (ours, limit) else { return format!("  -   {}", target.words) };
    let reached = match target.side {
        Side::AtLeast => ours >= limit,
        Side::AtMost => ours <= limit,
    };
    let unit = super::metrics::unit(target.metric);
    let mark = if reached { "pass" } else { "MISS" };
    format!("{mark}  {}: {} (limit {})", target.words, readable(ours, unit), readable(limit, unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_name_known_metrics() {
        for target in ENGINE_TARGETS.iter().chain(RECOVERY_TARGETS).chain(SCALE_TARGETS).chain(WATCH_TARGETS) {
            assert_ne!(crate::report::metrics::unit(target.metric), "", "{}", target.metric);
        }
    }

    #[test]
    fn a_missing_peer_gives_no_mark() {
        let mut figures = Figures::default();
        figures.add("pando", "size", 70.0, "bytes");
        assert!(line(&figures, &ENGINE_TARGETS[0]).contains("-"));
        figures.add("wiredtiger", "size", 100.0, "bytes");
        assert!(line(&figures, &ENGINE_TARGETS[0]).starts_with("pass"));
    }
}
