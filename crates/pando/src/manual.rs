//! `pando reference --form man|bash|fish|zsh`: what a package brings beside the program, made from the command lines that
//! the program itself reads. A node's options belong to `pando` itself as well as to `pando serve`.

use crate::CommandLine;
use crate::error::Result;
use crate::serve::{self, ProgramName};
use clap::{Arg, Command, CommandFactory, ValueEnum};
use clap_complete::{Shell, generate};
use std::io::Write;

/// What the reference is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// The page docs/configuration.md
    Markdown,
    /// The lists of docs/from-mongod.md
    FromMongod,
    /// A manual page
    Man,
    /// Completions for bash
    Bash,
    /// Completions for fish
    Fish,
    /// Completions for zsh
    Zsh,
}

/// Writes a manual page or a shell's completions; nothing for the pages in Markdown.
pub fn write(form: Form, out: &mut dyn Write) -> Result<()> {
    let shell = match form {
        Form::Markdown | Form::FromMongod => return Ok(()),
        Form::Man => return Ok(clap_mangen::Man::new(program()).render(out)?),
        Form::Bash => Shell::Bash,
        Form::Fish => Shell::Fish,
        Form::Zsh => Shell::Zsh,
    };
    let mut page = Vec::new();
    generate(shell, &mut program(), "pando", &mut page);
    Ok(out.write_all(&page)?)
}

/// The program with all that can stand behind its name.
fn program() -> Command {
    let serve = serve::command(ProgramName::Pando);
    let options: Vec<Arg> = serve.get_arguments().cloned().collect();
    let about = serve.get_about().cloned().unwrap_or_default();
    let whole = CommandLine::command().subcommand_required(false).args(options.clone());
    let whole = whole.mut_subcommand("serve", |command| command.about(about).args(options.clone()));
    whole.mut_subcommand("repair", |command| command.args(options))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u12_the_manual_and_the_completions_know_every_option_and_tool() {
        for form in [Form::Man, Form::Bash, Form::Fish, Form::Zsh] {
            let mut page = Vec::new();
            write(form, &mut page).unwrap();
            let page = String::from_utf8(page).unwrap().replace("\\-", "-");
            for word in ["dbpath", "tlsCertificateKeyFile", "replSet", "inspect", "repair"] {
                assert!(page.contains(word), "{form:?} does not have {word}");
            }
        }
    }

    #[test]
    fn u12_the_whole_command_line_is_consistent() {
        program().debug_assert();
    }
}
