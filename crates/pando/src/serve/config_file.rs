//! The configuration file: YAML, with the options nested by their dotted names; or, as in old times, a line `flag = value` for each.

use super::catalog::{ASKED, CHOICES, Kind, by_name};
use super::expansion::{Expansion, expand};
use super::settings::Settings;
use crate::error::{PandoError, Result};
use pando_env::Env;
use std::path::Path;
use yaml_rust2::{Yaml, YamlLoader};

/// Reads a file.
pub fn read(env: &Env, path: &Path, allowed: Expansion) -> Result<Settings> {
    let wrong =
        |reason: String| PandoError::Argument(format!("Error opening config file {}: {reason}", path.display()));
    allowed.check_file(env, path).map_err(PandoError::Argument)?;
    let bytes = env.disk().read_all(path).map_err(|error| wrong(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|_| wrong("it is not UTF-8".to_owned()))?;
    parse(&text, allowed).map_err(|reason| PandoError::Argument(format!("{}: {reason}", path.display())))
}

/// Parses a file's text.
fn parse(text: &str, allowed: Expansion) -> std::result::Result<Settings, String> {
    let mut documents =
        YamlLoader::load_from_str(text).map_err(|error| format!("Error parsing YAML config: {error}"))?;
    let mut settings = Settings::default();
    match documents.as_mut_slice() {
        [] => {}
        [Yaml::String(_)] => lines(text, &mut settings)?,
        [root] => walk(&expand(std::mem::replace(root, Yaml::Null), "", allowed)?, "", &mut settings)?,
        _ => return Err("Error parsing YAML config: more than one document".to_owned()),
    }
    Ok(settings)
}

/// The old form: options by their names on the command line.
fn lines(text: &str, settings: &mut Settings) -> std::result::Result<(), String> {
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (flag, value) = line.split_once('=').map_or((line, ""), |(flag, value)| (flag.trim(), value.trim()));
        // What is asked on the command line alone, and not asked here.
        if let Some(asked) = ASKED.iter().find(|asked| asked.name == flag).filter(|_| value == "false") {
            settings.set(asked, value)?;
            continue;
        }
        let choice = CHOICES.iter().find(|choice| !choice.flag.is_empty() && choice.flag == flag);
        let choice = choice.ok_or_else(|| format!("Unrecognized option: {flag}"))?;
        // A switch without a value is on.
        let value = if value.is_empty() && choice.kind == Kind::Switch { "true" } else { value };
        settings.set(choice, value)?;
    }
    Ok(())
}

fn walk(node: &Yaml, path: &str, settings: &mut Settings) -> std::result::Result<(), String> {
    let Yaml::Hash(fields) = node else {
        return if matches!(node, Yaml::Null) { Ok(()) } else { leaf(node, path, settings) };
    };
    for (key, value) in fields {
        let key = key.as_str().ok_or_else(|| format!("a name in '{path}' is no text"))?;
        let below = if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
        match by_name(&below).map(|choice| choice.kind) {
            Some(Kind::Pairs) => pairs(value, &below, settings)?,
            _ => walk(value, &below, settings)?,
        }
    }
    Ok(())
}

fn pairs(node: &Yaml, path: &str, settings: &mut Settings) -> std::result::Result<(), String> {
    let Yaml::Hash(fields) = node else { return Err(format!("'{path}' must be a map")) };
    for (name, value) in fields {
        let name = name.as_str().ok_or_else(|| format!("a name in '{path}' is no text"))?;
        settings.parameters.push((name.to_owned(), json_or_text(value, path)?));
    }
    Ok(())
}

fn leaf(node: &Yaml, path: &str, settings: &mut Settings) -> std::result::Result<(), String> {
    let choice = by_name(path).ok_or_else(|| format!("Unrecognized option: {path}"))?;
    settings.set(choice, &scalar(node, path)?)
}

fn scalar(node: &Yaml, path: &str) -> std::result::Result<String, String> {
    Ok(match node {
        Yaml::String(text) | Yaml::Real(text) => text.clone(),
        Yaml::Integer(number) => number.to_string(),
        Yaml::Boolean(truth) => truth.to_string(),
        _ => return Err(format!("'{path}' must be one value")),
    })
}

/// Parameters that are documents are written as maps in a file and as JSON on the command line.
fn json_or_text(node: &Yaml, path: &str) -> std::result::Result<String, String> {
    match node {
        Yaml::Hash(_) | Yaml::Array(_) => json(node, path),
        other => scalar(other, path),
    }
}

/// A document as people write it in a file, with or without quotes around its names, as JSON.
pub fn json_of_text(text: &str, path: &str) -> std::result::Result<String, String> {
    let documents = YamlLoader::load_from_str(text).map_err(|error| format!("{path}: {error}"))?;
    match documents.as_slice() {
        [root @ Yaml::Hash(_)] => json(root, path),
        _ => Err(format!("'{path}' must be one document")),
    }
}

fn json(node: &Yaml, path: &str) -> std::result::Result<String, String> {
    Ok(match node {
        Yaml::Hash(fields) => {
            let fields = fields
                .iter()
                .map(|(name, value)| Ok(format!("{}: {}", quoted(&scalar(name, path)?), json(value, path)?)));
            format!("{{{}}}", fields.collect::<std::result::Result<Vec<_>, String>>()?.join(", "))
        }
        Yaml::Array(values) => {
            let values = values.iter().map(|value| json(value, path));
            format!("[{}]", values.collect::<std::result::Result<Vec<_>, String>>()?.join(", "))
        }
        Yaml::String(text) => quoted(text),
        Yaml::Null => "null".to_owned(),
        other => scalar(other, path)?,
    })
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.escape_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "
systemLog:
  destination: file
  path: \"/var/log/mongod.log\"
  logAppend: true
storage:
  dbPath: /var/lib/mongo
  engine: wiredTiger
  wiredTiger:
    engineConfig:
      cacheSizeGB: 0.5
  journal:
    enabled: true
net:
  port: 27018
  bindIp: localhost,10.0.0.1
processManagement:
  timeZoneInfo: /usr/share/zoneinfo
replication:
  replSetName: rs1
security:
sharding.clusterRole: shardsvr
setParameter:
  enableTestCommands: 1
  failpoint.x: { mode: alwaysOn, data: { a: [1, two] } }
";

    #[test]
    fn u12_a_usual_file_is_read() {
        let settings = parse(FILE, Expansion::NONE).unwrap();
        assert_eq!(settings.text("storage.dbPath"), Some("/var/lib/mongo"));
        assert_eq!(settings.decimal("storage.wiredTiger.engineConfig.cacheSizeGB"), Some(0.5));
        assert_eq!(
            (settings.whole("net.port"), settings.text("net.bindIp")),
            (Some(27018), Some("localhost,10.0.0.1"))
        );
        assert_eq!(settings.text("replication.replSet"), Some("rs1"));
        assert_eq!(settings.text("sharding.clusterRole"), Some("shardsvr"));
        assert!(settings.is_on("systemLog.logAppend"));
        let expected =
            [("enableTestCommands", "1"), ("failpoint.x", "{\"mode\": \"alwaysOn\", \"data\": {\"a\": [1, \"two\"]}}")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(settings.parameters, expected);
        let parsed = settings.parsed();
        let shown = parsed.get("net").unwrap().as_document().unwrap();
        assert_eq!(shown.get("port"), Some(pando_doc::Value::Int32(27018)));
    }

    #[test]
    fn u12_an_old_file_has_a_line_for_each_option() {
        let settings =
            parse("# old\nport = 27018\nfork=true\n\nquiet\ndbpath=/x y\nsetParameter=a=b", Expansion::NONE).unwrap();
        assert_eq!((settings.whole("net.port"), settings.text("storage.dbPath")), (Some(27018), Some("/x y")));
        assert!(settings.is_on("processManagement.fork") && settings.is_on("systemLog.quiet"));
        assert_eq!(settings.parameters, [("a".to_owned(), "b".to_owned())]);
        assert_eq!(parse("port=1\nnonsense=2", Expansion::NONE).unwrap_err(), "Unrecognized option: nonsense");
        let shown = parse("noscripting=false\nnoauth=false", Expansion::NONE).unwrap().parsed();
        let expected = pando_doc::doc! { "security": { "authorization": "enabled", "javascriptEnabled": true } };
        assert_eq!(shown, expected);
    }

    #[test]
    fn u12_what_a_file_cannot_say_is_refused() {
        let cases = [
            ("net:\n  prot: 1", "Unrecognized option: net.prot"),
            ("net:\n  port: x", "Invalid value for option net.port: x"),
            ("net:\n  ipv6: maybe", "Invalid value for option net.ipv6: maybe"),
            ("net: [1]", "Unrecognized option: net"),
            ("storage:\n  dbPath: [a]", "'storage.dbPath' must be one value"),
        ];
        for (text, reason) in cases {
            assert_eq!(parse(text, Expansion::NONE).unwrap_err(), reason);
        }
        assert!(parse("a: [", Expansion::NONE).unwrap_err().starts_with("Error parsing YAML config"));
        assert_eq!(parse("", Expansion::NONE).unwrap(), Settings::default());
    }
}
