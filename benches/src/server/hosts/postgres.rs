//! Starts PostgreSQL with the settings of a careful user on this machine; everything else is its default.
//!
//! A quarter of the memory for its buffers and three quarters assumed for the page cache; a log that is long enough for checkpoints
//! to be rare, since each makes the next update of a page log the whole page; costs for a solid-state disk; no just-in-time
//! compiler, which only costs here. `synchronous_commit` is on, as it is by default: a commit is on the disk when it is
//! answered. Clients come over TCP, as ours do.
//!
//! It refuses to run as root. Then it gets the rights of the user that its package made, or of `nobody`.

use super::{Host, empty_folder, free_address};
use crate::Error;
use crate::measure::machine_bytes;
use crate::server::dialects::postgres::USER;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where the script `bench` found the programs.
const PROGRAMS_VARIABLE: &str = "PANDO_BENCH_POSTGRES";

/// Whom it runs as.
#[derive(Clone, Copy, Debug)]
struct Account {
    user: u32,
    group: u32,
}

/// The folder with its programs, if it is installed.
pub fn programs() -> Option<PathBuf> {
    let told = std::env::var_os(PROGRAMS_VARIABLE).map(PathBuf::from);
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = told.into_iter().chain(std::env::split_paths(&paths));
    folders.find(|folder| folder.join("postgres").exists() && folder.join("initdb").exists())
}

/// Starts it with its data in this folder.
pub fn start(directory: &Path) -> Result<Host, Error> {
    let programs = programs().ok_or("PostgreSQL is not installed")?;
    let folder = empty_folder(directory)?;
    let account = account()?;
    if let Some(account) = account {
        hand_over(&folder, account)?;
    }
    let data = folder.join("data");
    let mut initdb = as_account(programs.join("initdb"), account, &folder);
    initdb.arg("--pgdata").arg(&data).args(["--username", USER, "--auth", "trust", "--locale", "C"]);
    initdb.args(["--encoding", "UTF8"]);
    let output = initdb.stdin(Stdio::null()).output()?;
    if !output.status.success() {
        return Err(format!("initdb: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    let address = free_address()?;
    let mut command = as_account(programs.join("postgres"), account, &folder);
    command.arg("-D").arg(&data).args(["-p", &address.port().to_string()]);
    for setting in settings()? {
        command.args(["-c", &setting]);
    }
    // The interrupt signal is its fast shutdown.
    Host::start(command, address, folder.join("server.log"), libc::SIGINT)
}

fn settings() -> Result<Vec<String>, Error> {
    let memory_mb = machine_bytes()? >> 20;
    Ok(vec![
        "listen_addresses=127.0.0.1".to_owned(),
        "unix_socket_directories=".to_owned(),
        format!("shared_buffers={}MB", memory_mb / 4),
        format!("effective_cache_size={}MB", memory_mb / 4 * 3),
        "synchronous_commit=on".to_owned(),
        "max_wal_size=8GB".to_owned(),
        "checkpoint_timeout=15min".to_owned(),
        "random_page_cost=1.1".to_owned(),
        "effective_io_concurrency=200".to_owned(),
        "work_mem=16MB".to_owned(),
        "jit=off".to_owned(),
        "max_connections=200".to_owned(),
    ])
}

fn as_account(program: PathBuf, account: Option<Account>, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder).env("LC_ALL", "C");
    if let Some(account) = account {
        command.uid(account.user).gid(account.group);
    }
    command
}

/// Somebody else, if this is root.
fn account() -> Result<Option<Account>, Error> {
    // SAFETY: no arguments, no memory.
    if unsafe { libc::geteuid() } != 0 {
        return Ok(None);
    }
    let users = std::fs::read_to_string("/etc/passwd")?;
    let found = ["postgres", "nobody"].into_iter().find_map(|name| named(&users, name));
    Ok(Some(found.ok_or("PostgreSQL does not run as root, and there is no user postgres or nobody")?))
}

fn named(users: &str, name: &str) -> Option<Account> {
    let fields: Vec<&str> =
        users.lines().map(|line| line.split(':').collect()).find(|fields: &Vec<&str>| fields.first() == Some(&name))?;
    Some(Account { user: fields.get(2)?.parse().ok()?, group: fields.get(3)?.parse().ok()? })
}

/// Gives the folder away, and makes sure that its new owner can get there.
fn hand_over(folder: &Path, account: Account) -> Result<(), Error> {
    std::os::unix::fs::chown(folder, Some(account.user), Some(account.group))?;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700))?;
    for ancestor in folder.ancestors().skip(1) {
        if std::fs::metadata(ancestor)?.mode() & 0o001 == 0 {
            let path = ancestor.display();
            return Err(
                format!("PostgreSQL may not run as root, and others may not enter {path}: use --directory").into()
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_found_by_their_name() {
        let users = "root:x:0:0:root:/root:/bin/sh\npostgres2:x:7:8::/:/bin/sh\npostgres:x:101:104:,,,:/:/bin/sh\n";
        let account = named(users, "postgres").unwrap();
        assert_eq!((account.user, account.group), (101, 104));
        assert!(named(users, "nobody").is_none());
    }
}
