//! From where a user may come, and which address they may reach: `authenticationRestrictions`.
//!
//! An array of documents, of which one must be met; each may list networks that the client's address must be in, and
//! networks that the address it reached must be in.

use crate::names::refuse_repeated;
use pando_base::{Error, ErrorCode, Result, ensure};
use pando_doc::{Array, ArrayRef, Value};
use std::net::IpAddr;

/// A network: addresses that begin alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Network {
    address: IpAddr,
    prefix_bits: u8,
}

impl Network {
    fn read(text: &str) -> Option<Network> {
        let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().ok()?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let prefix_bits = bits.map_or(Some(most), |bits| bits.parse().ok())?;
        (prefix_bits <= most).then_some(Network { address, prefix_bits })
    }

    fn contains(&self, other: IpAddr) -> bool {
        let leading = |same: u128, width: u32| same.leading_zeros() - (128 - width) >= u32::from(self.prefix_bits);
        match (self.address.to_canonical(), other.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => leading(u128::from(own.to_bits() ^ other.to_bits()), 32),
            (IpAddr::V6(own), IpAddr::V6(other)) => leading(own.to_bits() ^ other.to_bits(), 128),
            _ => false,
        }
    }
}

/// Networks of which a client's address must be in one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Networks(Vec<Network>);

impl Networks {
    /// Reads addresses and CIDR ranges with commas between; nothing if one is none.
    pub fn read(text: &str) -> Option<Networks> {
        text.split(',').map(Network::read).collect::<Option<Vec<_>>>().map(Networks)
    }

    /// Is the address in one of them?
    pub fn contain(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(address))
    }
}

/// One of the alternatives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Restriction {
    client_source: Option<Vec<Network>>,
    server_address: Option<Vec<Network>>,
}

impl Restriction {
    fn is_met(&self, client: IpAddr, server: IpAddr) -> bool {
        let holds = |networks: &Option<Vec<Network>>, address: IpAddr| {
            networks.as_ref().is_none_or(|networks| networks.iter().any(|network| network.contains(address)))
        };
        holds(&self.client_source, client) && holds(&self.server_address, server)
    }
}

/// Alternatives of which one must be met; none at all is no restriction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Restrictions {
    alternatives: Vec<Restriction>,
    written: Option<Array>,
}

impl Restrictions {
    /// Reads them.
    pub fn read(value: Value<'_>) -> Result<Restrictions> {
        let Some(array) = value.as_array() else {
            return Err(Error::type_mismatch("authenticationRestrictions must be an array"));
        };
        let alternatives: Vec<Restriction> = array.values().map(restriction).collect::<Result<_>>()?;
        Ok(Restrictions { alternatives, written: Some(array.to_array()) })
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.alternatives.is_empty()
    }

    /// May a client come from there and reach that?
    pub fn are_met(&self, client: IpAddr, server: IpAddr) -> bool {
        self.is_empty() || self.alternatives.iter().any(|alternative| alternative.is_met(client, server))
    }

    /// As they were written.
    pub fn document(&self) -> ArrayRef<'_> {
        self.written.as_ref().map_or(ArrayRef::EMPTY, Array::view)
    }
}

fn restriction(value: Value<'_>) -> Result<Restriction> {
    let refused = |reason: String| Error::new(ErrorCode::UnsupportedFormat, reason);
    let Some(document) = value.as_document() else {
        return Err(refused("restriction set sub-documents must be objects".to_owned()));
    };
    refuse_repeated(document, "authenticationRestrictions")?;
    let mut found = Restriction::default();
    for element in document.elements() {
        let networks = networks(element.value)?;
        match &**element.name {
            b"clientSource" => found.client_source = Some(networks),
            b"serverAddress" => found.server_address = Some(networks),
            other => {
                let other = String::from_utf8_lossy(other);
                return Err(refused(format!("authenticationRestrictions contains an unrecognized field '{other}'")));
            }
        }
    }
    let is_empty = found == Restriction::default();
    ensure!(!is_empty, ErrorCode::CollectionIsEmpty, "Empty authenticationRestrictions document is not allowed");
    Ok(found)
}

/// An address alone or an array of them.
fn networks(value: Value<'_>) -> Result<Vec<Network>> {
    let read = |value: Value<'_>| {
        let wrong = || {
            let reason = "authenticationRestrictions addresses must be strings with an IP address or a CIDR range";
            Error::new(ErrorCode::UnsupportedFormat, reason)
        };
        value.as_str().and_then(Network::read).ok_or_else(wrong)
    };
    match value.as_array() {
        Some(array) => array.values().map(read).collect(),
        None => Ok(vec![read(value)?]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::doc;

    fn read(restrictions: &pando_doc::Doc) -> Result<Restrictions> {
        Restrictions::read(restrictions.get("r").unwrap())
    }

    #[test]
    fn u10_addresses_are_compared_by_their_networks() {
        let local: IpAddr = "127.0.0.1".parse().unwrap();
        let is_met = |restrictions: &pando_doc::Doc, client: &str| {
            read(restrictions).unwrap().are_met(client.parse().unwrap(), local)
        };
        let networks = doc! { "r": [{ "clientSource": ["10.0.0.0/8", "::1"], "serverAddress": ["127.0.0.1"] }] };
        assert!(is_met(&networks, "10.1.2.3") && is_met(&networks, "::1") && is_met(&networks, "::ffff:10.0.0.1"));
        assert!(!is_met(&networks, "11.0.0.1") && !is_met(&networks, "127.0.0.1"));
        let either = doc! { "r": [{ "clientSource": ["10.0.0.0/8"] }, { "clientSource": ["0.0.0.0/0"] }] };
        assert!(is_met(&either, "1.2.3.4") && !is_met(&either, "::1"));
        assert!(is_met(&doc! { "r": [] }, "1.2.3.4"));
        assert!(!is_met(&doc! { "r": [{ "serverAddress": ["10.0.0.1"] }] }, "10.0.0.1"));
    }

    #[test]
    fn u10_restrictions_that_make_no_sense_are_refused() {
        for bad in [
            doc! { "r": 1 },
            doc! { "r": [1] },
            doc! { "r": [{}] },
            doc! { "r": [{ "clientSource": ["nowhere"] }] },
            doc! { "r": [{ "clientSource": ["1.2.3.4/33"] }] },
            doc! { "r": [{ "from": ["1.2.3.4"] }] },
        ] {
            assert!(read(&bad).is_err(), "{bad}");
        }
    }
}
