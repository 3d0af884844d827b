//! `metrics.apiVersions`: which versions of the API the applications have asked for, by their names.
//!
//! A connection remembers what it has told, so that a request looks at one number. Lock: one, a leaf, for who has something new to tell.

use crate::Invocation;
use pando_doc::DocBuilder;
use parking_lot::Mutex;
use std::collections::BTreeMap;

/// More applications are not remembered.
const APPLICATIONS_MAX: usize = 1000;

/// The versions, with the bit of each.
const VERSIONS: [(&str, u8); 3] = [("default", 1), ("1", 2), ("2", 4)];

/// What the applications have asked for.
#[derive(Debug, Default)]
pub struct ApiVersions(Mutex<BTreeMap<String, u8>>);

impl ApiVersions {
    /// Notes what a request asks for.
    #[inline]
    pub fn note(&self, invocation: &Invocation) {
        let version = invocation.generic.api.version.as_deref().unwrap_or("default");
        let bit = VERSIONS.iter().find(|(name, _)| *name == version).map_or(0, |(_, bit)| *bit);
        if invocation.connection.client.metadata().is_some() && invocation.connection.is_new_api_version(bit) {
            self.add(invocation.connection.client.application(), bit);
        }
    }

    #[cold]
    fn add(&self, application: &str, bit: u8) {
        let mut known = self.0.lock();
        if known.len() < APPLICATIONS_MAX || known.contains_key(application) {
            *known.entry(application.to_owned()).or_default() |= bit;
        }
    }

    /// Appends the lists, by application. What cannot stand in a name is written by its number.
    pub fn append_to(&self, metrics: &mut DocBuilder) {
        metrics.document("apiVersions", |section| {
            for (application, bits) in &*self.0.lock() {
                section.array(escaped(application), |versions| {
                    let asked = VERSIONS.iter().filter(|(_, bit)| bits & bit != 0);
                    asked.for_each(|(name, _)| versions.push(*name));
                });
            }
        });
    }
}

fn escaped(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for character in name.chars() {
        match character.is_control() {
            true => text.push_str(&format!("\\u{:04x}", u32::from(character))),
            false => text.push(character),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::doc;

    #[test]
    fn applications_are_told_with_their_versions() {
        let versions = ApiVersions::default();
        for (application, bit) in [("shell", 1), ("shell", 2), ("n\0", 4)] {
            versions.add(application, bit);
        }
        let mut metrics = DocBuilder::new();
        versions.append_to(&mut metrics);
        let expected = doc! { "apiVersions": { "n\\u0000": ["2"], "shell": ["default", "1"] } };
        assert_eq!(metrics.finish(), expected);
    }
}
