//! Values of the configuration file that come from elsewhere (`--configExpand`): `{__exec: "command"}` is what a command writes,
//! `{__rest: "http://localhost/…"}` what a web server on this machine answers.
//!
//! A block stands in place of a value, or of the whole file. Beside its source it may say that the result is YAML (`type: yaml`), that white
//! space around it does not count (`trim: whitespace`), and which digest it has to have (`digest`, `digest_key`). What comes from elsewhere
//! is not looked through for further blocks. The file has to belong to its owner: nobody else may write commands into it or
//! read addresses from it.

mod block;
mod http;

pub use block::expand;

use super::settings::Settings;
use pando_env::Env;
use std::path::Path;
use std::time::Duration;

/// What blocks may do, and for how long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expansion {
    runs_commands: bool,
    asks_servers: bool,
    patience: Duration,
}

/// How long a source may take, unless it is said.
const PATIENCE_SECONDS: i64 = 30;

/// The permissions by which others write and read.
const WRITTEN_BY_OTHERS: u32 = 0o022;
const READ_BY_OTHERS: u32 = 0o044;

impl Expansion {
    /// Blocks are refused.
    pub const NONE: Expansion = Expansion { runs_commands: false, asks_servers: false, patience: Duration::ZERO };

    /// What the command line allows.
    pub fn of(words: &Settings) -> Result<Expansion, String> {
        let seconds = words.whole("configExpandTimeoutSecs").unwrap_or(PATIENCE_SECONDS);
        let seconds = u64::try_from(seconds).ok().filter(|seconds| *seconds > 0);
        let seconds = seconds.ok_or("Invalid value for configExpandTimeoutSecs")?;
        let mut allowed = Expansion { patience: Duration::from_secs(seconds), ..Expansion::NONE };
        match words.text("configExpand") {
            None | Some("none") => {}
            Some(list) => {
                for one in list.split(',') {
                    match one {
                        "exec" => allowed.runs_commands = true,
                        "rest" => allowed.asks_servers = true,
                        _ => return Err(format!("Invalid value for --configExpand: '{one}'")),
                    }
                }
            }
        }
        Ok(allowed)
    }

    /// Is the file safe from others?
    pub fn check_file(self, env: &Env, path: &Path) -> Result<(), String> {
        if !self.runs_commands && !self.asks_servers {
            return Ok(());
        }
        let permissions = env.disk().permissions(path).map_err(|error| error.to_string())?;
        if self.runs_commands && permissions & WRITTEN_BY_OTHERS != 0 {
            return Err(format!("{} is writable by non-owner users", path.display()));
        }
        if self.asks_servers && permissions & READ_BY_OTHERS != 0 {
            return Err(format!("{} is readable by non-owner users", path.display()));
        }
        Ok(())
    }
}
