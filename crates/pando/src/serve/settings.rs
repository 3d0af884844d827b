//! Settings by dotted name, from wherever they came.

use super::catalog::{CLUSTER_PASSWORD, COMPONENTS, Choice, HIDDEN, Kind, PASSWORD, by_name};
use pando_doc::{Doc, DocBuilder, Value};
use std::collections::BTreeMap;

/// A setting's value.
#[derive(Clone, Debug, PartialEq)]
pub enum Setting {
    /// There or not.
    Switch(bool),
    /// Text.
    Text(String),
    /// A whole number.
    Whole(i64),
    /// A number.
    Decimal(f64),
}

/// Where the first is said on the command line, the second of the file does not count.
const EXCLUSIVE: [(&str, &str); 4] = [
    ("net.bindIp", "net.bindIpAll"),
    ("net.bindIpAll", "net.bindIp"),
    ("security.auth", "security.authorization"),
    ("security.noauth", "security.authorization"),
];

/// All settings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    values: BTreeMap<&'static str, Setting>,
    /// The parameters, in order.
    pub parameters: Vec<(String, String)>,
}

impl Settings {
    /// Sets an option from text, which has to be of its kind.
    pub fn set(&mut self, choice: &'static Choice, text: &str) -> Result<(), String> {
        let wrong = || format!("Invalid value for option {}: {text}", choice.name);
        let value = match choice.kind {
            Kind::Switch => Setting::Switch(match text {
                "true" => true,
                "false" => false,
                _ => return Err(wrong()),
            }),
            Kind::Text => Setting::Text(text.to_owned()),
            // -vv is said as often as more is wanted.
            Kind::Whole if choice.short == Some('v') && !text.is_empty() && text.bytes().all(|byte| byte == b'v') => {
                Setting::Whole(i64::try_from(text.len()).unwrap_or(0))
            }
            Kind::Whole => Setting::Whole(text.parse().map_err(|_| wrong())?),
            Kind::Decimal => Setting::Decimal(text.parse().map_err(|_| wrong())?),
            Kind::Pairs => {
                let (name, value) = text.split_once('=').ok_or_else(|| {
                    format!("Illegal option assignment: \"{text}\", expected setParameter argument of form name=value")
                })?;
                self.parameters.push((name.to_owned(), value.to_owned()));
                return Ok(());
            }
        };
        self.values.insert(choice.name, value);
        Ok(())
    }

    /// These settings, with others in front of them where both are there.
    #[must_use]
    pub fn overridden_by(mut self, others: Settings) -> Settings {
        for (one, other) in EXCLUSIVE {
            if others.values.contains_key(one) {
                self.values.remove(other);
            }
        }
        self.values.extend(others.values);
        self.parameters.retain(|(name, _)| !others.parameters.iter().any(|(other, _)| other == name));
        self.parameters.extend(others.parameters);
        self
    }

    /// Gives options that are written in several ways one form: the profiler's number becomes its mode.
    #[must_use]
    pub fn in_one_form(mut self) -> Settings {
        if let Some(Setting::Whole(level)) = self.values.get("operationProfiling.profile") {
            let mode = match level {
                0 => "off",
                1 => "slowOp",
                2 => "all",
                _ => return self,
            };
            self.values.remove("operationProfiling.profile");
            self.values.insert("operationProfiling.mode", Setting::Text(mode.to_owned()));
        }
        self
    }

    /// The verbosities of parts of the server: their dotted names and levels.
    pub fn component_verbosities(&self) -> impl Iterator<Item = (&'static str, i64)> {
        COMPONENTS.iter().filter_map(|choice| {
            let name = choice.name.strip_prefix("systemLog.component.")?.strip_suffix(".verbosity")?;
            Some((name, self.whole(choice.name)?))
        })
    }

    fn get(&self, name: &str) -> Option<&Setting> {
        debug_assert!(by_name(name).is_some(), "{name} is in the list");
        self.values.get(name)
    }

    /// Is it there, and not switched off?
    pub fn is_on(&self, name: &str) -> bool {
        self.get(name) == Some(&Setting::Switch(true))
    }

    /// The value as somebody would write it; none if it was not given.
    pub fn shown(&self, name: &str) -> Option<String> {
        Some(match self.get(name)? {
            Setting::Switch(on) => on.to_string(),
            Setting::Text(text) => text.clone(),
            Setting::Whole(number) => number.to_string(),
            Setting::Decimal(number) => number.to_string(),
        })
    }

    /// What it was switched to.
    pub fn switch(&self, name: &str) -> Option<bool> {
        match self.get(name)? {
            Setting::Switch(on) => Some(*on),
            _ => None,
        }
    }

    /// The text.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            Setting::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The whole number.
    pub fn whole(&self, name: &str) -> Option<i64> {
        match self.get(name)? {
            Setting::Whole(number) => Some(*number),
            _ => None,
        }
    }

    /// The number.
    pub fn decimal(&self, name: &str) -> Option<f64> {
        match self.get(name)? {
            Setting::Decimal(number) => Some(*number),
            _ => None,
        }
    }

    /// The settings as `getCmdLineOpts` shows them: nested by the parts of their names.
    pub fn parsed(&self) -> Doc {
        let mut tree = Tree::default();
        for (name, setting) in &self.values {
            let (name, leaf) = match (*name, setting) {
                (PASSWORD | CLUSTER_PASSWORD, _) => (*name, Leaf::Text(HIDDEN)),
                // Options that say the same in several ways are shown in mongod's one.
                ("security.auth", Setting::Switch(on)) => ("security.authorization", Leaf::enabled(*on)),
                ("security.noauth", Setting::Switch(off)) => ("security.authorization", Leaf::enabled(!*off)),
                ("security.noscripting", Setting::Switch(off)) => ("security.javascriptEnabled", Leaf::Truth(!*off)),
                ("net.bindIpAll", Setting::Switch(true)) => ("net.bindIp", Leaf::Text("*")),
                ("systemLog.syslog", Setting::Switch(true)) => ("systemLog.destination", Leaf::Text("syslog")),
                ("replication.enableMajorityReadConcern", Setting::Text(_)) => (*name, Leaf::Truth(true)),
                _ => (*name, Leaf::Setting(setting)),
            };
            tree.insert(name, leaf);
        }
        if self.values.contains_key("systemLog.path") {
            tree.insert("systemLog.destination", Leaf::Text("file"));
        }
        for (name, value) in &self.parameters {
            tree.insert(&format!("setParameter.{}", name.replace('.', "\u{0}")), Leaf::Text(value));
        }
        let mut parsed = DocBuilder::new();
        tree.append_to(&mut parsed);
        parsed.finish()
    }
}

enum Leaf<'a> {
    Setting(&'a Setting),
    Text(&'a str),
    /// Yes or no.
    Truth(bool),
}

impl Leaf<'_> {
    fn enabled(on: bool) -> Leaf<'static> {
        Leaf::Text(if on { "enabled" } else { "disabled" })
    }
}

#[derive(Default)]
struct Tree<'a> {
    leaf: Option<Leaf<'a>>,
    below: BTreeMap<String, Tree<'a>>,
}

impl<'a> Tree<'a> {
    fn insert(&mut self, path: &str, leaf: Leaf<'a>) {
        let mut place = self;
        for part in path.split('.') {
            place = place.below.entry(part.replace('\u{0}', ".")).or_default();
        }
        place.leaf = Some(leaf);
    }

    fn append_to(&self, document: &mut DocBuilder) {
        for (name, tree) in &self.below {
            match &tree.leaf {
                Some(Leaf::Setting(Setting::Switch(on))) => document.append(name, *on),
                Some(Leaf::Setting(Setting::Text(text))) => document.append(name, text),
                Some(Leaf::Setting(Setting::Whole(number))) => match i32::try_from(*number) {
                    Ok(number) => document.append(name, number),
                    Err(_) => document.append(name, *number),
                },
                Some(Leaf::Setting(Setting::Decimal(number))) => document.append(name, Value::Double(*number)),
                Some(Leaf::Text(text)) => document.append(name, *text),
                Some(Leaf::Truth(truth)) => document.append(name, *truth),
                None => document.document(name, |below| tree.append_to(below)),
            }
        }
    }
}
