//! A block of the configuration file, and what becomes of it.

use super::{Expansion, http};
use pando_env::real::output_of;
use std::io::ErrorKind;
use yaml_rust2::{Yaml, YamlLoader, yaml::Hash};

/// More is not taken from a source.
const BYTES_MAX: usize = 128 << 20;

/// The words of a block beside its source.
const OTHERS: [&str; 4] = ["type", "trim", "digest", "digest_key"];

/// The tree with values in place of its blocks. The path is for complaints.
pub fn expand(node: Yaml, path: &str, allowed: Expansion) -> Result<Yaml, String> {
    let Yaml::Hash(fields) = node else { return Ok(node) };
    if let Some(block) = Block::read(&fields, path, allowed)? {
        return block.run(path, allowed);
    }
    let mut expanded = Hash::new();
    for (name, value) in fields {
        let below = match (name.as_str(), path.is_empty()) {
            (Some(name), true) => name.to_owned(),
            (Some(name), false) => format!("{path}.{name}"),
            (None, _) => path.to_owned(),
        };
        let value = expand(value, &below, allowed)?;
        expanded.insert(name, value);
    }
    Ok(Yaml::Hash(expanded))
}

#[derive(Debug)]
enum Source {
    Command(String),
    Server(String),
}

#[derive(Debug)]
struct Block {
    source: Source,
    is_yaml: bool,
    is_trimmed: bool,
    /// The digest that the result has to have, and its key.
    digest: Option<(Vec<u8>, Vec<u8>)>,
}

impl Block {
    /// The block that these fields are, if they are one.
    fn read(fields: &Hash, path: &str, allowed: Expansion) -> Result<Option<Block>, String> {
        let text = |name: &str| match fields.get(&Yaml::String(name.to_owned())) {
            None => Ok(None),
            Some(Yaml::String(text) | Yaml::Real(text)) => Ok(Some(text.clone())),
            Some(Yaml::Integer(number)) => Ok(Some(number.to_string())),
            Some(_) => Err(format!("{path}.{name} must be a string")),
        };
        let of_source = |name: &str, is_allowed: bool| match text(name)? {
            Some(_) if !is_allowed => Err(format!("{path}.{name} support has not been enabled")),
            found => Ok(found),
        };
        let server = of_source("__rest", allowed.asks_servers)?.map(Source::Server);
        let command = of_source("__exec", allowed.runs_commands)?.map(Source::Command);
        let (name, source) = match (server, command) {
            (None, None) => return Ok(None),
            (Some(_), Some(_)) => return Err(format!("{path}: only one of __rest and __exec can be the source")),
            (Some(server), None) => ("__rest", server),
            (None, Some(command)) => ("__exec", command),
        };
        let one_of = |name: &str, usual: &str, other: &str| match text(name)?.as_deref() {
            None => Ok(false),
            Some(found) if found == usual => Ok(false),
            Some(found) if found == other => Ok(true),
            Some(_) => Err(format!("{path}.{name} must be either '{other}' or '{usual}'")),
        };
        let (is_yaml, is_trimmed) = (one_of("type", "string", "yaml")?, one_of("trim", "none", "whitespace")?);
        let is_known = |field: &Yaml| field.as_str().is_some_and(|field| field == name || OTHERS.contains(&field));
        if !fields.keys().all(is_known) {
            return Err(format!(
                "{path} expansion block must contain only '{name}', with type, trim, digest and digest_key"
            ));
        }
        let digest = digest(text("digest")?, text("digest_key")?).map_err(|reason| format!("{path}.{reason}"))?;
        Ok(Some(Block { source, is_yaml, is_trimmed, digest }))
    }

    fn run(&self, path: &str, allowed: Expansion) -> Result<Yaml, String> {
        let found = match &self.source {
            Source::Server(url) => http::get(url, BYTES_MAX, allowed.patience)?,
            Source::Command(command) => {
                let output = output_of(command, BYTES_MAX, allowed.patience).map_err(|error| {
                    let reason = match error.kind() {
                        ErrorKind::TimedOut => "Timeout expired".to_owned(),
                        _ => error.to_string(),
                    };
                    format!("Failed expanding __exec section: {reason}")
                })?;
                String::from_utf8(output).map_err(|_| format!("{path}: the command's output is not UTF-8"))?
            }
        };
        let found = if self.is_trimmed { found.trim().to_owned() } else { found };
        if let Some((digest, key)) = &self.digest {
            let computed = pando_security::keyed_digest(key, found.as_bytes());
            if computed != *digest {
                return Err(format!(
                    "SHA256HMAC of config expansion {} does not match expected digest",
                    hex(&computed)
                ));
            }
        }
        if !self.is_yaml {
            return Ok(Yaml::String(found));
        }
        let documents = YamlLoader::load_from_str(&found).map_err(|error| format!("Failed parsing YAML: {error}"))?;
        let root = documents.into_iter().next().unwrap_or(Yaml::Null);
        expand(root, path, Expansion::NONE)
    }
}

type Digest = Option<(Vec<u8>, Vec<u8>)>;

fn digest(digest: Option<String>, key: Option<String>) -> Result<Digest, String> {
    let Some(digest) = digest else {
        return if key.is_some() { Err("digest_key requires digest".to_owned()) } else { Ok(None) };
    };
    let digest = bytes_of_hex("digest", &digest)?;
    if digest.len() != 32 {
        return Err("digest: a digest has 32 bytes".to_owned());
    }
    let key = bytes_of_hex("digest_key", &key.ok_or("digest requires digest_key")?)?;
    if key.is_empty() { Err("digest_key must not be empty".to_owned()) } else { Ok(Some((digest, key))) }
}

fn bytes_of_hex(name: &str, text: &str) -> Result<Vec<u8>, String> {
    let wrong = || format!("{name}: Not a valid, even length hex string");
    let digits: Option<Vec<u32>> = text.chars().map(|digit| digit.to_digit(16)).collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0).ok_or_else(wrong)?;
    let (pairs, _) = digits.as_chunks::<2>();
    Ok(pairs.iter().map(|[high, low]| (high * 16 + low) as u8).collect())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const ALL: Expansion = Expansion { runs_commands: true, asks_servers: true, patience: Duration::from_secs(20) };

    fn expanded(text: &str, allowed: Expansion) -> Result<Yaml, String> {
        expand(YamlLoader::load_from_str(text).unwrap().remove(0), "", allowed)
    }

    fn check(text: &str, plain: &str) {
        assert_eq!(expanded(text, ALL), Ok(YamlLoader::load_from_str(plain).unwrap().remove(0)), "{text}");
    }

    #[test]
    fn u12_a_block_becomes_what_its_command_writes() {
        check("a: {b: {__exec: 'printf 12345'}}", "a: {b: '12345'}");
        check("a: {__exec: 'echo; echo x', trim: whitespace, type: string}", "a: x");
        check("{__exec: 'echo \"net: {port: 1}\"', type: yaml}", "net: {port: 1}");
        let digest = "f88c7ebe4740db59c873cecf5e1f18e3726a1ad64068a13d764b79028430ab0e";
        check(&format!("a: {{__exec: 'printf 12345', digest: {digest}, digest_key: '736563726574'}}"), "a: '12345'");
        check("a: {b: [1, {c: 2}]}", "a: {b: [1, {c: 2}]}");
    }

    #[test]
    fn u12_blocks_that_are_wrong_say_so() {
        let digest = "f88c7ebe4740db59c873cecf5e1f18e3726a1ad64068a13d764b79028430ab0e";
        let cases = [
            ("a: {__exec: x, b: 1}".to_owned(), "a expansion block must contain only '__exec'"),
            ("a: {__exec: x, __rest: y}".to_owned(), "only one of"),
            ("a: {__exec: x, type: json}".to_owned(), "a.type must be either 'yaml' or 'string'"),
            (
                "a: {__exec: x, digest: '123', digest_key: '12'}".to_owned(),
                "a.digest: Not a valid, even length hex string",
            ),
            (format!("a: {{__exec: x, digest: {digest}, digest_key: '1X'}}"), "a.digest_key: Not a valid"),
            (format!("a: {{__exec: x, digest: {digest}}}"), "digest requires digest_key"),
            ("a: {__exec: x, digest_key: '12'}".to_owned(), "digest_key requires digest"),
            (format!("a: {{__exec: x, digest: {digest}, digest_key: ''}}"), "digest_key must not be empty"),
            (format!("a: {{__exec: 'echo', digest: {digest}, digest_key: '12'}}"), "does not match expected digest"),
            ("a: {__exec: 'exit 3'}".to_owned(), "Failed expanding __exec section: it ended with exit status: 3"),
            ("{__exec: \"echo '{a: {__exec: x}}'\", type: yaml}".to_owned(), "__exec support has not been enabled"),
        ];
        for (text, reason) in cases {
            let error = expanded(&text, ALL).unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
        let refused = expanded("a: {__exec: x}", Expansion::NONE).unwrap_err();
        assert_eq!(refused, "a.__exec support has not been enabled");
        let slow = Expansion { patience: Duration::from_millis(50), ..ALL };
        let error = expanded("a: {__exec: 'exec sleep 5'}", slow).unwrap_err();
        assert_eq!(error, "Failed expanding __exec section: Timeout expired");
    }
}
