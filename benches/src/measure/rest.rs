//! Waits until the machine is at rest, so that a phase does not pay for what the one before it left to be done.

use crate::Error;
use std::time::Duration;

/// From this share of the processors' time on, nobody works.
const IDLE_SHARE_MIN: f64 = 0.9;
/// So many looks in a row have to find it so: a server may wait a while before it takes a pause for one.
const LOOKS: u32 = 4;
/// After so many looks whoever still works does so all the time.
const LOOKS_MAX: u32 = 32;

/// The processors' time so far, in ticks.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ticks {
    idle: u64,
    all: u64,
}

/// Waits, a look apart from the next.
pub fn wait_for_rest(look: Duration) -> Result<(), Error> {
    let (mut before, mut quiet_looks) = (ticks()?, 0);
    for _ in 0..LOOKS_MAX {
        std::thread::sleep(look);
        let now = ticks()?;
        quiet_looks = if is_quiet(before, now) { quiet_looks + 1 } else { 0 };
        if quiet_looks == LOOKS {
            return Ok(());
        }
        before = now;
    }
    Ok(())
}

fn is_quiet(before: Ticks, now: Ticks) -> bool {
    let (idle, all) = (now.idle.saturating_sub(before.idle), now.all.saturating_sub(before.all));
    idle as f64 >= IDLE_SHARE_MIN * all as f64
}

fn ticks() -> Result<Ticks, Error> {
    Ok(parse(&std::fs::read_to_string("/proc/stat")?).ok_or("no line of all processors in /proc/stat")?)
}

/// user, nice, system, idle, waiting for the disk, interrupts, their other half, taken by the host; what follows is in these.
fn parse(text: &str) -> Option<Ticks> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let counts: Vec<u64> = line.split_whitespace().take(8).map_while(|count| count.parse().ok()).collect();
    let idle = counts.get(3)? + counts.get(4)?;
    Some(Ticks { idle, all: counts.iter().sum() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_s_line_is_understood() {
        let text = "cpu  10 1 20 300 40 5 6 7 8 9\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
        assert_eq!(parse(text), Some(Ticks { idle: 340, all: 389 }));
        assert_eq!(parse("intr 1 2 3"), None);
        assert!(ticks().is_ok());
    }

    #[test]
    fn who_works_a_tenth_of_the_time_is_at_rest() {
        let at = |idle, all| Ticks { idle, all };
        assert!(is_quiet(at(50, 100), at(140, 200)));
        assert!(!is_quiet(at(50, 100), at(139, 200)));
        assert!(is_quiet(at(50, 100), at(50, 100)), "no time has passed");
    }
}
