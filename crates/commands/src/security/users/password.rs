//! From a password to what is stored of it.

use super::super::parameters::iterations;
use super::super::state::is_mechanism_enabled;
use crate::{Invocation, Node};
use pando_base::{ErrorCode, Result, bail, ensure};
use pando_security::UserName;
use pando_security::scram::{Mechanism, ScramCredentials, digested_password, prepared_password};

/// A password, and how it is to be stored.
pub(super) struct Password<'a> {
    pub(super) password: &'a str,
    /// The client has not digested it.
    pub(super) is_plain: bool,
    /// For which mechanisms; none for all that the password can serve.
    pub(super) mechanisms: Option<&'a [&'a str]>,
}

/// The mechanisms of these names, each of which has to be one that users may use.
pub(super) fn mechanisms_named(node: &Node, names: &[&str]) -> Result<Vec<Mechanism>> {
    ensure!(!names.is_empty(), ErrorCode::BadValue, "mechanisms field must not be empty");
    let named = |name: &&str| {
        let Some(mechanism) = Mechanism::named(name) else {
            bail!(ErrorCode::BadValue, "Unknown auth mechanism '{name}'");
        };
        let is_enabled = is_mechanism_enabled(&node.parameters, name);
        ensure!(is_enabled, ErrorCode::BadValue, "{name} not supported in authMechanisms");
        Ok(mechanism)
    };
    let mut mechanisms: Vec<Mechanism> = names.iter().map(named).collect::<Result<_>>()?;
    mechanisms.sort();
    mechanisms.dedup();
    Ok(mechanisms)
}

/// What is stored. It is slow on purpose, and so leaves the thread to others.
pub(super) fn credentials(
    invocation: &Invocation,
    user: &UserName,
    given: &Password<'_>,
) -> Result<Vec<ScramCredentials>> {
    let node = &invocation.node;
    let mechanisms = match given.mechanisms {
        Some(names) => mechanisms_named(node, names)?,
        None => {
            let is_possible = |mechanism: &Mechanism| {
                is_mechanism_enabled(&node.parameters, mechanism.name())
                    && (given.is_plain || *mechanism == Mechanism::ScramSha1)
            };
            Mechanism::ALL.into_iter().filter(is_possible).collect()
        }
    };
    ensure!(!given.password.is_empty(), ErrorCode::BadValue, "Password cannot be empty");
    let mut made = Vec::new();
    for mechanism in mechanisms {
        let password = match mechanism {
            Mechanism::ScramSha1 if given.is_plain => digested_password(&user.user, given.password),
            Mechanism::ScramSha1 => given.password.to_owned(),
            Mechanism::ScramSha256 => {
                ensure!(given.is_plain, ErrorCode::BadValue, "Use of SCRAM-SHA-256 requires undigested passwords");
                prepared_password(given.password)?
            }
        };
        let mut salt = vec![0; mechanism.salt_bytes()];
        node.env.random().fill(&mut salt);
        let count = iterations(&node.parameters, mechanism);
        let mut credentials = None;
        node.env.tasks().blocking(&mut || {
            credentials = Some(ScramCredentials::new(mechanism, &password, &salt, count));
        });
        made.extend(credentials);
    }
    Ok(made)
}
