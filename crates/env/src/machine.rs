//! The machine and the process, as a trait: facts that are shown to people and never decide what the data is.

/// What does not change while the process runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineFacts {
    /// The machine's name on the network.
    pub hostname: String,
    /// This process's number.
    pub process_id: u32,
    /// The kind of operating system: "Linux".
    pub system_type: String,
    /// The operating system's own name: "Debian GNU/Linux 12".
    pub system_name: String,
    /// The kernel's version.
    pub system_version: String,
    /// The processor's architecture: "x86_64".
    pub architecture: String,
    /// Memory of the machine.
    pub memory_bytes: u64,
    /// Memory that this process may use; less than the machine's inside a container.
    pub memory_limit_bytes: u64,
    /// Processors that can run at once.
    pub processors: u32,
    /// Cores that those are on; fewer than the processors where each core runs several.
    pub cores: u32,
    /// Chips that those are on.
    pub sockets: u32,
    /// The nodes of memory, each nearer to some processors.
    pub memory_nodes: u32,
    /// The processor's own name.
    pub processor_name: String,
    /// How fast it runs: "2800.000".
    pub processor_mhz: String,
    /// What it can do, as the system lists it.
    pub processor_features: String,
    /// What the kernel says of itself.
    pub kernel_text: String,
    /// The size of a page of memory.
    pub page_bytes: u64,
    /// Pages of memory.
    pub pages: u64,
    /// How many files and sockets this process may have open.
    pub open_files_max: u64,
}

/// What this process uses now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessUsage {
    /// Memory in use.
    pub resident_bytes: u64,
    /// The part of it that is no file's: the heap, stacks.
    pub anonymous_bytes: u64,
    /// What the allocator has from the system, including what it keeps for later.
    pub heap_bytes: u64,
    /// Addresses in use.
    pub virtual_bytes: u64,
    /// Threads.
    pub threads: u32,
    /// Processor time in user mode, in microseconds.
    pub user_micros: u64,
    /// Processor time in the kernel, in microseconds.
    pub system_micros: u64,
    /// Page faults that needed the disk.
    pub page_faults: u64,
}

/// Where these facts come from.
pub trait Machine: Send + Sync {
    /// What does not change.
    fn facts(&self) -> &MachineFacts;
    /// What this process uses now; zeros where the system does not tell.
    fn usage(&self) -> ProcessUsage;
    /// Gives memory that was freed a while ago back to the system, which the allocator does not do by itself at rest.
    fn give_back_memory(&self) {}
    /// Ends the process on the spot with this code, as a test of recovery wants it: nothing is written any more. Where the process is
    /// only simulated, it goes on.
    fn end_abruptly(&self, code: i32);
}
