//! What the kernel counts for a server: its process and all that it started.
//!
//! A backend that has ended is found again in the counters of its parent, which waited for it: processor time as "children's
//! time", bytes because the kernel adds them to the parent's. So PostgreSQL's figures lose no connection.

use crate::Error;
use std::ops::Sub;

/// What was used since the server began.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// User and system time.
    pub cpu_seconds: f64,
    /// Through write calls (`wchar`); sends to sockets are not among them. What the systems are compared by.
    pub written_bytes: u64,
    /// Pages made dirty (`write_bytes`). A file system with large folios counts a whole one for every few bytes.
    pub dirtied_bytes: u64,
}

impl Sub for Usage {
    type Output = Usage;

    fn sub(self, earlier: Usage) -> Usage {
        Usage {
            cpu_seconds: self.cpu_seconds - earlier.cpu_seconds,
            written_bytes: self.written_bytes.saturating_sub(earlier.written_bytes),
            dirtied_bytes: self.dirtied_bytes.saturating_sub(earlier.dirtied_bytes),
        }
    }
}

/// A server's processes, found through the first.
#[derive(Clone, Copy, Debug)]
pub struct Processes {
    root: u32,
}

/// The fields of `/proc/PID/stat` that count here.
struct Status {
    parent: u32,
    ticks: u64,
    ticks_of_children: u64,
}

impl Processes {
    /// All that descend from this one.
    pub fn of(root: u32) -> Processes {
        Processes { root }
    }

    /// So far.
    pub fn usage(self) -> Result<Usage, Error> {
        let mut usage = Usage::default();
        let mut ticks = 0;
        for process in self.members()? {
            // One that ended since the listing is with its parent, or will be at the next look.
            let Some(status) = status(process) else { continue };
            ticks += status.ticks;
            if process == self.root {
                ticks += status.ticks_of_children;
            }
            if let Ok(text) = std::fs::read_to_string(format!("/proc/{process}/io")) {
                usage.written_bytes += field(&text, "wchar:");
                usage.dirtied_bytes += field(&text, "write_bytes:");
            }
        }
        usage.cpu_seconds = ticks as f64 / ticks_per_second();
        Ok(usage)
    }

    /// Physical memory, where what several processes share is counted once.
    pub fn memory_bytes(self) -> Result<u64, Error> {
        let shares = self.members()?.into_iter().map(|process| {
            let text = std::fs::read_to_string(format!("/proc/{process}/smaps_rollup")).unwrap_or_default();
            field(&text, "Pss:") * 1024
        });
        Ok(shares.sum())
    }

    fn members(self) -> Result<Vec<u32>, Error> {
        let mut parents = Vec::new();
        for entry in std::fs::read_dir("/proc")? {
            let Some(process) = entry?.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
            if let Some(status) = status(process) {
                parents.push((process, status.parent));
            }
        }
        let mut members = vec![self.root];
        let mut next = 0;
        while let Some(&parent) = members.get(next) {
            members.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(process, _)| *process));
            next += 1;
        }
        Ok(members)
    }
}

fn status(process: u32) -> Option<Status> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name before may hold anything, also blanks and brackets.
    let fields: Vec<&str> = text.get(text.rfind(')')? + 1..)?.split_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    Some(Status {
        parent: u32::try_from(number(1)?).ok()?,
        ticks: number(11)? + number(12)?,
        ticks_of_children: number(13)? + number(14)?,
    })
}

fn ticks_per_second() -> f64 {
    // SAFETY: no pointers.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    if ticks > 0 { ticks as f64 } else { 100.0 }
}

fn field(text: &str, name: &str) -> u64 {
    let line = text.lines().find(|line| line.starts_with(name));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn children_are_counted_alive_and_ended() {
        let mut root = Command::new("sh")
            .args(["-c", "sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done'; echo ended; read line"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = [0; 6];
        std::io::Read::read_exact(root.stdout.as_mut().unwrap(), &mut line).unwrap();
        let processes = Processes::of(root.id());
        assert!(processes.usage().unwrap().cpu_seconds > 0.0, "the ended child's time is its parent's");
        assert!(processes.memory_bytes().unwrap() > 0);
        drop(root.stdin.take());
        root.wait().unwrap();
    }

    #[test]
    fn this_process_has_itself_among_its_members() {
        assert!(Processes::of(std::process::id()).members().unwrap().contains(&std::process::id()));
    }
}
