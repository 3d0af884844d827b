//! `pando reference`: the page docs/configuration.md, made from the lists of options and parameters, so that it says what the program does.

use crate::error::Result;
use crate::serve::{Choice, Kind, choices, unmeant_table};
use pando_base::{AnyParameter, ParameterValue, Settable};
use pando_doc::{DocRef, JsonFormat, doc_to_json};
use std::io::Write;

const INTRODUCTION: &str = "# Configuration

This page is made by `pando reference`; a test compares it with the program.

Options stand on the command line or in a YAML file (`--config`), where the dots of a name are levels; the command line wins. Parameters are set at start
with `--setParameter name=value` or in the file below `setParameter`, at run time with the command `setParameter`, and shown by `getParameter`.

```sh
pando --port 27018 --setParameter cursorTimeoutMillis=60000
```

```yaml
net:
  port: 27018
setParameter:
  cursorTimeoutMillis: 60000
```
";

/// Writes the page.
pub fn write(out: &mut dyn Write) -> Result<()> {
    writeln!(out, "{INTRODUCTION}\n## Options\n\n| option | in a file | takes | meaning |\n| --- | --- | --- | --- |")?;
    let (components, options): (Vec<&Choice>, Vec<&Choice>) = choices().partition(|choice| choice.is_component());
    let (meant, accepted): (Vec<&Choice>, Vec<&Choice>) =
        options.into_iter().partition(|choice| !choice.help.is_empty());
    for choice in meant {
        let name = choice.name;
        writeln!(out, "| {} | `{name}` | {} | {} |", flag(choice), takes(choice.kind), in_table(choice.help))?;
    }
    writeln!(out, "\nHow much parts of the server log is set in a file by {}.", names(&components))?;
    let without = "Options of mongod without a meaning here, and what becomes of them, are listed in";
    writeln!(out, "\n{without} [From mongod](from-mongod.md#options): {}.", names(&accepted))?;
    let mut parameters: Vec<&dyn AnyParameter> = pando_server::parameters().collect();
    parameters.sort_by_key(|parameter| parameter.name());
    let (for_tests, usual): (Vec<_>, Vec<_>) = parameters.into_iter().partition(|parameter| parameter.is_for_tests());
    writeln!(out, "\n## Parameters\n")?;
    write_parameters(&usual, out)?;
    writeln!(out, "\n### For tests\nThese are there only with `--setParameter enableTestCommands=1`.\n")?;
    write_parameters(&for_tests, out)
}

/// What docs/from-mongod.md says of options without a meaning and of parameters that have no effect.
pub fn write_from_mongod(out: &mut dyn Write) -> Result<()> {
    Ok(write!(out, "{}\n{}", unmeant_table(), foreign_table())?)
}

/// Parameters of mongod that this server takes at start and does nothing with.
fn foreign_table() -> String {
    let rows = pando_server::foreign_parameters().iter();
    let rows = rows.map(|(name, instead)| format!("| `{name}` | {instead} |\n"));
    rows.fold("| parameter | because |\n| --- | --- |\n".to_owned(), |page, row| page + &row)
}

fn names(choices: &[&Choice]) -> String {
    choices.iter().map(|choice| format!("`{}`", choice.name)).collect::<Vec<_>>().join(", ")
}

fn write_parameters(parameters: &[&dyn AnyParameter], out: &mut dyn Write) -> Result<()> {
    writeln!(out, "| parameter | default | set | meaning |\n| --- | --- | --- | --- |")?;
    for parameter in parameters {
        let aliases: String = parameter.aliases().iter().map(|alias| format!(", `{alias}`")).collect();
        let (default, when) = (shown(&parameter.default_value()), when(parameter.settable()));
        writeln!(
            out,
            "| `{}`{aliases} | {default} | {when} | {} |",
            parameter.name(),
            in_table(parameter.description())
        )?;
    }
    Ok(())
}

fn flag(choice: &Choice) -> String {
    match (choice.flag, choice.short) {
        ("", _) => String::new(),
        (flag, None) => format!("`--{flag}`"),
        (flag, Some(short)) => format!("`--{flag}`, `-{short}`"),
    }
}

const fn takes(kind: Kind) -> &'static str {
    match kind {
        Kind::Switch => "",
        Kind::Text => "text",
        Kind::Whole => "whole number",
        Kind::Decimal => "number",
        Kind::Pairs => "name=value",
    }
}

const fn when(settable: Settable) -> &'static str {
    match settable {
        Settable::AtStartup => "at start",
        Settable::AtRuntime => "at run time",
        Settable::Always => "at any time",
        Settable::Never => "never",
    }
}

fn shown(value: &ParameterValue) -> String {
    let text = match value {
        ParameterValue::Bool(value) => value.to_string(),
        ParameterValue::Int(value) => value.to_string(),
        ParameterValue::Long(value) => value.to_string(),
        ParameterValue::Double(value) => value.to_string(),
        ParameterValue::String(value) if value.is_empty() => return String::new(),
        ParameterValue::String(value) => value.clone(),
        ParameterValue::Document(bytes) => doc_to_json(DocRef::trusted(bytes), JsonFormat::Relaxed),
    };
    format!("`{}`", in_table(&text))
}

fn in_table(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u12_the_page_for_those_who_come_from_mongod_has_the_parameters() {
        let page = include_str!("../../../docs/from-mongod.md");
        assert!(page.contains(&foreign_table()), "docs/from-mongod.md is out of date:\n{}", foreign_table());
    }

    /// `pando reference > docs/configuration.md` puts it right.
    #[test]
    fn u12_the_reference_says_what_the_program_does() {
        let mut page = Vec::new();
        write(&mut page).unwrap();
        let kept = include_str!("../../../docs/configuration.md");
        let made = String::from_utf8(page).unwrap();
        let differing = made.lines().zip(kept.lines()).find(|(made, kept)| made != kept);
        assert!(made == kept, "docs/configuration.md is out of date: {differing:?}");
    }
}
