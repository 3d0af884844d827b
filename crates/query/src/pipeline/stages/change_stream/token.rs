//! Resume tokens: places in a stream that clients keep and come back with.
//!
//! A token is a key string of the event's cluster time, the token's version, its kind, the operation's place in its
//! transaction, whether the event is an invalidation, the collection's id and what else tells the event from others of the
//! same time; written as hexadecimal digits, so that texts sort as events do. Connectors read the time out of its first bytes,
//! and keep tokens that MongoDB has made: the form is MongoDB's, byte for byte.

use pando_base::{Error, ErrorCode, Result, Timestamp, Uuid, bail, ensure};
use pando_doc::{Doc, DocBuilder, DocRef, OwnedValue, Value, compare_docs};
use pando_keystring::{Discriminator, HeapBuilder, KeyOrdering, Version, to_values};
use std::cmp::Ordering;

/// The version of the tokens that are made unless a client wants older ones.
pub(in crate::pipeline) const TOKEN_VERSION: i32 = 2;

/// What a token stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TokenKind {
    /// A moment, before all events of that time.
    HighWaterMark = 0,
    /// An event.
    Event = 128,
}

/// A token that was read or is to be written.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ResumeToken {
    pub(super) cluster_time: Timestamp,
    pub(super) version: i32,
    pub(super) kind: TokenKind,
    /// The operation's place in its transaction.
    pub(super) txn_op_index: i32,
    /// The event is an invalidation, not the command that has caused it.
    pub(super) from_invalidate: bool,
    pub(super) uuid: Option<Uuid>,
    /// What tells the event from others of its time.
    pub(super) event: Option<Doc>,
    /// The part of an event that was split.
    pub(super) fragment: Option<i32>,
}

/// How an event stands to the token that a client came with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResumeStatus {
    /// It was before.
    Before,
    /// It is the one.
    Found,
    /// It is the one, of which the client has seen some parts.
    NeedsSplit,
    /// It comes later.
    Surpassed,
}

impl ResumeToken {
    /// A moment.
    pub(super) fn high_water_mark(cluster_time: Timestamp, version: i32) -> ResumeToken {
        ResumeToken {
            cluster_time,
            version,
            kind: TokenKind::HighWaterMark,
            txn_op_index: 0,
            from_invalidate: false,
            uuid: None,
            event: None,
            fragment: None,
        }
    }

    pub(super) fn is_high_water_mark(&self) -> bool {
        *self == ResumeToken::high_water_mark(self.cluster_time, self.version)
    }

    /// How an event with the token `self` stands to the one that a client came with.
    pub(super) fn against(&self, client: &ResumeToken) -> ResumeStatus {
        let order = self
            .cluster_time
            .cmp(&client.cluster_time)
            .then(self.kind.cmp(&client.kind))
            .then(self.txn_op_index.cmp(&client.txn_op_index))
            .then(self.from_invalidate.cmp(&client.from_invalidate))
            .then(self.uuid.cmp(&client.uuid))
            .then_with(|| match (&self.event, &client.event) {
                (Some(own), Some(other)) => compare_docs(own.view(), other.view()),
                (own, other) => own.is_some().cmp(&other.is_some()),
            });
        match (order, self.fragment, client.fragment) {
            (Ordering::Less, ..) => ResumeStatus::Before,
            (Ordering::Greater, ..) => ResumeStatus::Surpassed,
            (Ordering::Equal, None, Some(_)) => ResumeStatus::NeedsSplit,
            (Ordering::Equal, own, other) => match own.cmp(&other) {
                Ordering::Less => ResumeStatus::Before,
                Ordering::Equal => ResumeStatus::Found,
                Ordering::Greater => ResumeStatus::Surpassed,
            },
        }
    }

    /// As clients get it: `{_data, _typeBits}`.
    pub(super) fn to_doc(&self) -> Result<Doc> {
        let mut key = HeapBuilder::new(Version::V1, KeyOrdering::ASCENDING);
        key.append(Value::Timestamp(self.cluster_time))?;
        key.append(Value::Int32(self.version))?;
        if self.version >= 1 {
            key.append(Value::Int32(self.kind as i32))?;
        }
        key.append(Value::Int32(self.txn_op_index))?;
        if self.version >= 1 {
            key.append(Value::Bool(self.from_invalidate))?;
        }
        match &self.uuid {
            Some(uuid) => key.append(uuid_value(uuid))?,
            None if self.version >= 2 => key.append(Value::Null)?,
            None => {}
        }
        if let Some(event) = &self.event {
            key.append(Value::Document(event.view()))?;
        }
        if let Some(fragment) = self.fragment {
            ensure!(
                self.version >= 2,
                ErrorCode::location(7182504),
                "Tokens of version {} cannot have a fragmentNum",
                self.version
            );
            key.append(Value::Int32(fragment))?;
        }
        key.finish(Discriminator::Inclusive);
        let mut builder = DocBuilder::new();
        builder.append("_data", hexadecimal(key.bytes()).as_str());
        if !key.type_bits().is_all_zeros() {
            let bits = key.encoded_type_bits();
            builder.append("_typeBits", Value::Binary { subtype: 0, bytes: bits.as_ref() });
        }
        Ok(builder.finish())
    }

    /// Reads a token of a client.
    pub(super) fn parse(token: DocRef<'_>) -> Result<ResumeToken> {
        let Some(data) = token.get("_data").and_then(|data| match data {
            Value::String(text) => Some(text),
            _ => None,
        }) else {
            let reason = format!("Bad resume token: _data of missing or of wrong type. Expected string, got {token}");
            return Err(Error::location(40647, reason));
        };
        let type_bits = match token.get("_typeBits") {
            None => &[][..],
            Some(Value::Binary { subtype: 0, bytes }) => bytes,
            Some(_) => bail!(ErrorCode::location(40648), "Bad resume token: _typeBits of wrong type {token}"),
        };
        let key =
            bytes_of(data).ok_or_else(|| Error::failed_to_parse("resume token string was not a valid hex string"))?;
        let values = to_values(&key, KeyOrdering::ASCENDING, type_bits, Version::V1)?;
        TokenReader(values.into_iter()).read()
    }
}

/// The values of a token, one after the other.
struct TokenReader(std::vec::IntoIter<OwnedValue>);

impl TokenReader {
    fn next(&mut self, code: i32, missing: &str) -> Result<OwnedValue> {
        self.0.next().ok_or_else(|| Error::location(code, missing))
    }

    /// The next value, which has to be an int.
    fn int(&mut self, (code, missing): (i32, &str), (wrong_code, wrong): (i32, &str)) -> Result<i32> {
        match self.next(code, missing)? {
            OwnedValue::Int32(number) => Ok(number),
            _ => Err(Error::location(wrong_code, wrong)),
        }
    }

    fn read(mut self) -> Result<ResumeToken> {
        let time = self.next(40649, "invalid empty resume token")?;
        let version = self.int(
            (50796, "Resume Token does not contain version"),
            (50854, "Invalid resume token: wrong type for version"),
        )?;
        ensure!(
            (0..=2).contains(&version),
            ErrorCode::location(50795),
            "Invalid Resume Token: only supports version 0, 1 and 2"
        );
        let cluster_time = time.view().as_timestamp().unwrap_or(Timestamp::NONE);
        let mut token = ResumeToken::high_water_mark(cluster_time, version);
        token.kind = match version {
            0 => TokenKind::Event,
            _ => self.kind()?,
        };
        token.txn_op_index = self.int(
            (50793, "Resume Token does not contain txnOpIndex"),
            (50855, "Resume Token txnOpIndex is not an integer"),
        )?;
        ensure!(
            token.txn_op_index >= 0,
            ErrorCode::location(50794),
            "Invalid Resume Token: txnOpIndex should be non-negative"
        );
        if version >= 1 {
            let OwnedValue::Bool(from) = self.next(50872, "Resume Token does not contain fromInvalidate")? else {
                bail!(ErrorCode::location(50870), "Resume Token fromInvalidate is not a boolean.");
            };
            token.from_invalidate = from;
        }
        self.read_event(&mut token)?;
        Ok(token)
    }

    fn kind(&mut self) -> Result<TokenKind> {
        let kind = self.int(
            (51055, "Resume Token does not contain tokenType"),
            (51056, "Resume Token tokenType is not an int."),
        )?;
        match kind {
            0 => Ok(TokenKind::HighWaterMark),
            128 => Ok(TokenKind::Event),
            other => Err(Error::location(51057, format!("Token type {other} not recognized"))),
        }
    }

    fn read_event(&mut self, token: &mut ResumeToken) -> Result<()> {
        match self.0.next() {
            None => {
                ensure!(token.version <= 1, ErrorCode::location(6189500), "Expected UUID or null");
                return Ok(());
            }
            Some(OwnedValue::Null) => {}
            Some(OwnedValue::Binary { subtype: 4, bytes }) => token.uuid = Some(Uuid::from_slice(&bytes)?),
            Some(other) => {
                let found = other.view().value_type();
                let reason = format!("Invalid UUID: expected binData with subtype newUUID (4), found {found}");
                return Err(Error::new(ErrorCode::InvalidUUID, reason));
            }
        }
        let identifier = self.0.next();
        let is_event = token.kind == TokenKind::Event;
        ensure!(is_event || identifier.is_none(), ErrorCode::location(6189504), "Invalid high water mark token");
        match identifier {
            None => {
                ensure!(
                    !is_event || token.version < 2,
                    ErrorCode::location(6189501),
                    "Expected an eventIdentifier for an event resume token"
                );
                return Ok(());
            }
            Some(OwnedValue::Document(event)) => token.event = Some(event),
            Some(_) => bail!(ErrorCode::location(6189503), "Resume Token eventIdentifier is not an object"),
        }
        match self.0.next() {
            None => return Ok(()),
            Some(OwnedValue::Int32(fragment)) if token.version >= 2 && fragment >= 0 => token.fragment = Some(fragment),
            Some(_) if token.version >= 2 => {
                bail!(ErrorCode::location(7182501), "Resume token 'fragmentNum' must be a non-negative integer.")
            }
            Some(_) => bail!(ErrorCode::location(40646), "invalid oversized resume token"),
        }
        ensure!(self.0.next().is_none(), ErrorCode::location(40646), "invalid oversized resume token");
        Ok(())
    }
}

/// A UUID as a value of a document.
pub(super) fn uuid_value(uuid: &Uuid) -> Value<'_> {
    Value::Binary { subtype: 4, bytes: uuid.as_bytes() }
}

fn hexadecimal(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let digit = |nibble: u8| char::from(DIGITS.get(usize::from(nibble)).copied().unwrap_or_default());
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

fn bytes_of(text: &[u8]) -> Option<Vec<u8>> {
    let nibble = |digit: u8| char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    if !text.len().is_multiple_of(2) {
        return None;
    }
    text.chunks_exact(2)
        .map(|pair| match pair {
            [high, low] => Some(nibble(*high)? << 4 | nibble(*low)?),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::doc;

    fn event(txn_op_index: i32, id: i32) -> ResumeToken {
        ResumeToken {
            cluster_time: Timestamp::new(0x6500_0000, 7),
            version: TOKEN_VERSION,
            kind: TokenKind::Event,
            txn_op_index,
            from_invalidate: false,
            uuid: Some(Uuid::from_bytes([7; 16])),
            event: Some(doc! { "operationType": "insert", "documentKey": { "_id": id } }),
            fragment: None,
        }
    }

    fn data(token: &ResumeToken) -> String {
        token.to_doc().unwrap().get("_data").unwrap().as_str().unwrap().to_owned()
    }

    #[test]
    fn u13_tokens_have_the_form_that_connectors_read() {
        let mark = ResumeToken::high_water_mark(Timestamp::new(0x6500_0000, 7), 2);
        assert_eq!(data(&mark), "8265000000000000072B0429296E1404");
        let mark = ResumeToken::high_water_mark(Timestamp::new(0x6500_0000, 7), 1);
        assert_eq!(data(&mark), "8265000000000000072B0229296E04");
        let expected = "8265000000000000072B042C0100296E5A1004070707070707070707070707070707\
                        07463C6F7065726174696F6E54797065003C696E736572740046646F63756D656E744B65790046\
                        1E5F6964002B0A000004";
        assert_eq!(data(&event(0, 5)), expected);
    }

    #[test]
    fn u13_tokens_are_read_as_they_were_written() {
        let mut tokens = vec![event(0, 5), event(3, -1), ResumeToken::high_water_mark(Timestamp::new(9, 1), 1)];
        tokens.push(ResumeToken { fragment: Some(4), ..event(0, 1) });
        tokens.push(ResumeToken { from_invalidate: true, uuid: None, ..event(0, 1) });
        let key = doc! { "operationType": "insert", "documentKey": { "_id": 5.0, "n": 5_i64 } };
        tokens.push(ResumeToken { event: Some(key), ..event(0, 1) });
        for token in tokens {
            assert_eq!(ResumeToken::parse(token.to_doc().unwrap().view()).unwrap(), token);
        }
    }

    #[test]
    fn u13_tokens_sort_as_events_do() {
        let early = ResumeToken::high_water_mark(event(0, 1).cluster_time, 2);
        let ordered =
            [early, event(0, 1), event(0, 2), event(1, 0), ResumeToken { from_invalidate: true, ..event(1, 0) }];
        for pair in ordered.windows(2) {
            assert!(data(&pair[0]) < data(&pair[1]));
            assert_eq!(pair[0].against(&pair[1]), ResumeStatus::Before);
            assert_eq!(pair[1].against(&pair[0]), ResumeStatus::Surpassed);
            assert_eq!(pair[0].against(&pair[0]), ResumeStatus::Found);
        }
        let part = ResumeToken { fragment: Some(1), ..event(0, 1) };
        assert_eq!(event(0, 1).against(&part), ResumeStatus::NeedsSplit);
    }

    #[test]
    fn u13_what_is_no_token_is_refused() {
        let cases = [
            (doc! {}, 40647),
            (doc! { "_data": 1 }, 40647),
            (doc! { "_data": "82", "_typeBits": 1 }, 40648),
            (doc! { "_data": "8" }, 9),
            (doc! { "_data": "zz" }, 9),
            (doc! { "_data": "" }, 40649),
            (doc! { "_data": "826500000000000007" }, 50796),
            (doc! { "_data": "8265000000000000072B0829296E1404" }, 50795),
            (doc! { "_data": "8265000000000000072B042C010029" }, 50872),
        ];
        for (token, code) in cases {
            assert_eq!(ResumeToken::parse(token.view()).unwrap_err().code().number(), code, "{token}");
        }
    }
}
