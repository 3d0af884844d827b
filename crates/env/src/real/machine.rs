//! The machine that this process runs on, as Linux tells of it. What it does not tell stays empty.

use super::heap;
use crate::{Machine, MachineFacts, ProcessUsage};
use rustix::process::{Resource, getrlimit};

/// The length of a tick in /proc, which is the same on every Linux that we know of.
const TICK_MICROS: u64 = 10_000;

/// The machine that this process runs on.
pub struct RealMachine {
    facts: MachineFacts,
}

impl RealMachine {
    /// Asks the system.
    pub fn new() -> RealMachine {
        let system = rustix::system::uname();
        let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
        let memory_bytes = memory_bytes().unwrap_or(0);
        let processors = std::thread::available_parallelism().map_or(1, |count| count.get() as u32);
        let listed = Processors::parse(&read("/proc/cpuinfo").unwrap_or_default());
        let page_bytes = page_bytes();
        let facts = MachineFacts {
            hostname: text(system.nodename()),
            process_id: std::process::id(),
            system_type: text(system.sysname()),
            system_name: system_name().unwrap_or_default(),
            system_version: format!("Kernel {}", text(system.release())),
            architecture: text(system.machine()),
            memory_bytes,
            memory_limit_bytes: memory_limit_bytes().unwrap_or(memory_bytes).min(memory_bytes),
            processors,
            cores: if listed.cores == 0 { processors } else { listed.cores },
            sockets: listed.sockets.max(1),
            memory_nodes: memory_nodes(),
            processor_name: listed.name,
            processor_mhz: listed.mhz,
            processor_features: listed.features,
            kernel_text: read("/proc/version").unwrap_or_default().trim().to_owned(),
            page_bytes,
            pages: memory_bytes.checked_div(page_bytes).unwrap_or(0),
            open_files_max: getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX),
        };
        RealMachine { facts }
    }
}

impl Default for RealMachine {
    fn default() -> RealMachine {
        RealMachine::new()
    }
}

impl Machine for RealMachine {
    fn facts(&self) -> &MachineFacts {
        &self.facts
    }

    fn end_abruptly(&self, code: i32) {
        std::process::exit(code);
    }

    fn usage(&self) -> ProcessUsage {
        let usage = read("/proc/self/stat").and_then(|stat| parse_usage(&stat, self.facts.page_bytes));
        let anonymous_bytes = read("/proc/self/status").and_then(|status| kilobytes(&status, "RssAnon:"));
        ProcessUsage {
            anonymous_bytes: anonymous_bytes.unwrap_or(0),
            heap_bytes: heap::committed_bytes(),
            ..usage.unwrap_or_default()
        }
    }

    fn give_back_memory(&self) {
        heap::give_back();
    }
}

/// What the list of processors says; the first of them stands for all.
#[derive(Debug, Default, PartialEq)]
struct Processors {
    cores: u32,
    sockets: u32,
    name: String,
    mhz: String,
    features: String,
}

impl Processors {
    fn parse(list: &str) -> Processors {
        let values = |name: &'static str| {
            list.lines().filter_map(move |line| {
                let (found, value) = line.split_once(':')?;
                (found.trim() == name).then(|| value.trim().to_owned())
            })
        };
        let first = |name| values(name).next().unwrap_or_default();
        let sockets: Vec<String> = values("physical id").collect();
        let mut places: Vec<(String, String)> = sockets.iter().cloned().zip(values("core id")).collect();
        places.sort_unstable();
        places.dedup();
        let mut sockets = sockets;
        sockets.sort_unstable();
        sockets.dedup();
        Processors {
            cores: places.len() as u32,
            sockets: sockets.len() as u32,
            name: first("model name"),
            mhz: first("cpu MHz"),
            features: first("flags"),
        }
    }
}

fn page_bytes() -> u64 {
    // Not from the auxiliary vector: programs that look into this one (valgrind) do not show it whole.
    // SAFETY: it only asks for a number.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(bytes).unwrap_or(0)
}

fn memory_nodes() -> u32 {
    let nodes = std::fs::read_dir("/sys/devices/system/node").into_iter().flatten().flatten();
    let is_node = |name: &std::ffi::OsStr| {
        let number = name.to_str().and_then(|name| name.strip_prefix("node"));
        number.is_some_and(|number| number.parse::<u32>().is_ok())
    };
    (nodes.filter(|entry| is_node(&entry.file_name())).count() as u32).max(1)
}

/// The fields after the process's name, which stands in parentheses and may contain anything.
fn parse_usage(stat: &str, page_bytes: u64) -> Option<ProcessUsage> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    // The first one here is the third of the manual page.
    let number = |place: usize| fields.get(place - 3)?.parse::<u64>().ok();
    Some(ProcessUsage {
        page_faults: number(12)?,
        user_micros: number(14)?.saturating_mul(TICK_MICROS),
        system_micros: number(15)?.saturating_mul(TICK_MICROS),
        threads: number(20)? as u32,
        virtual_bytes: number(23)?,
        resident_bytes: number(24)?.saturating_mul(page_bytes),
        ..ProcessUsage::default()
    })
}

fn memory_bytes() -> Option<u64> {
    kilobytes(&read("/proc/meminfo")?, "MemTotal:")
}

/// The line of this name in a list that counts in kilobytes; as bytes.
fn kilobytes(list: &str, name: &str) -> Option<u64> {
    let line = list.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: u64 = line.split_ascii_whitespace().next()?.parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// The limit of the container, if there is one.
fn memory_limit_bytes() -> Option<u64> {
    read("/sys/fs/cgroup/memory.max")?.trim().parse().ok()
}

fn system_name() -> Option<String> {
    let release = read("/etc/os-release")?;
    let value = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(value.trim_matches('"').to_owned())
}

fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_uses_something() {
        let machine = RealMachine::new();
        assert_eq!(machine.facts().process_id, std::process::id());
        assert!(machine.facts().processors >= 1 && !machine.facts().hostname.is_empty());
        assert!(machine.usage().resident_bytes > 0 && machine.usage().threads >= 1);
    }

    #[test]
    fn cores_and_chips_are_counted_once() {
        let list = "physical id : 0\ncore id : 0\nmodel name : Fast\ncpu MHz : 3.0\nflags : a b\n\n\
                    physical id : 0\ncore id : 0\nmodel name : Fast\n\nphysical id : 1\ncore id : 0\n";
        let (name, mhz, features) = ("Fast".to_owned(), "3.0".to_owned(), "a b".to_owned());
        assert_eq!(Processors::parse(list), Processors { cores: 2, sockets: 2, name, mhz, features });
        assert_eq!(Processors::parse("nothing known"), Processors::default());
    }

    #[test]
    fn a_name_with_parentheses_does_not_confuse() {
        let stat = "7 (a) b) S 1 7 7 0 -1 0 11 0 5 0 20 30 0 0 20 0 4 0 99 4096 3 0";
        let usage = parse_usage(stat, 4096).unwrap();
        assert_eq!((usage.page_faults, usage.threads, usage.virtual_bytes, usage.resident_bytes), (5, 4, 4096, 12288));
        assert_eq!((usage.user_micros, usage.system_micros), (200_000, 300_000));
        assert_eq!(parse_usage("7 (short) S 1", 4096), None);
    }
}
