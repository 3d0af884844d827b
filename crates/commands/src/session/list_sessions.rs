//! `$listSessions` and `$listLocalSessions`: what they stand for is put in their place.
//!
//! The first reads `config.system.sessions` and is a condition on whose sessions are wanted; the second brings documents
//! along, made of the sessions that this node has in use.

use super::kill_all_sessions::User;
use crate::Data;
use crate::arguments::Place;
use pando_base::{Error, ErrorCode, Namespace, Result, ensure};
use pando_doc::{ArrayBuilder, Doc, DocRef, Value, doc};
use pando_query::request::AggregateRequest;
use pando_security::UserName;
use pando_session::{UserDigest, user_digest};

crate::arguments! {
    /// Whose sessions are wanted.
    struct ListArguments<'a> of "$listSessions" {
        /// Everybody's.
        all_users: bool = "allUsers" or false,
        /// Those of these.
        users: Option<Vec<DocRef<'a>>> = "users",
        /// What another server has made of it.
        predicate: Option<DocRef<'a>> = "$_internalPredicate",
    }
}

/// Puts what they stand for in the place of these stages.
pub(crate) fn replace_stage(data: &Data, own: UserDigest, request: &mut AggregateRequest) -> Result<()> {
    for (place, stage) in request.pipeline.iter_mut().enumerate() {
        let replaced = match stage.view().first() {
            Some(first) if first.name == "$listSessions" => stored(first.value, own, &request.namespace)?,
            Some(first) if first.name == "$listLocalSessions" => local(data, first.value, own, &request.namespace)?,
            _ => continue,
        };
        let name = stage.view().first().map(|first| first.name.to_string()).unwrap_or_default();
        ensure!(place == 0, ErrorCode::location(40602), "{name} is only valid as the first stage in a pipeline");
        *stage = replaced;
    }
    Ok(())
}

/// `$listSessions` in a pipeline of another stage, where nothing is put in its place.
pub(crate) fn parse_stored(value: Value<'_>, namespace: &Namespace) -> Result<()> {
    ensure!(
        namespace == Namespace::sessions(),
        ErrorCode::InvalidNamespace,
        "$listSessions may only be run against {}",
        Namespace::sessions()
    );
    WantedSessions::read("$listSessions", value).map(|_| ())
}

/// The same of `$listLocalSessions`; gives whose sessions it wants.
pub(crate) fn parse_local(value: Value<'_>, namespace: &Namespace) -> Result<WantedSessions> {
    ensure!(
        namespace.is_collectionless_aggregate(),
        ErrorCode::InvalidNamespace,
        "$listLocalSessions must be run against the database with {{aggregate: 1}}, not a collection"
    );
    WantedSessions::read("$listLocalSessions", value)
}

fn stored(value: Value<'_>, own: UserDigest, namespace: &Namespace) -> Result<Doc> {
    parse_stored(value, namespace)?;
    let wanted = WantedSessions::read("$listSessions", value)?;
    let Some(users) = wanted.digests(own) else { return Ok(doc! { "$match": {} }) };
    let mut digests = ArrayBuilder::new();
    users.iter().for_each(|user| digests.push(Value::Binary { subtype: 0, bytes: user }));
    Ok(doc! { "$match": { "_id.uid": { "$in": (digests.finish()) } } })
}

fn local(data: &Data, value: Value<'_>, own: UserDigest, namespace: &Namespace) -> Result<Doc> {
    let users = parse_local(value, namespace)?.digests(own);
    let is_wanted = |user: &UserDigest| users.as_ref().is_none_or(|users| users.contains(user));
    let mut documents = ArrayBuilder::new();
    for session in data.session_cache.list().iter().filter(|session| is_wanted(&session.session.user)) {
        documents.push(session.to_doc());
    }
    Ok(doc! { "$documents": { "$literal": (documents.finish()) } })
}

/// Whose sessions are wanted.
pub(crate) enum WantedSessions {
    /// Everybody's.
    All,
    /// The client's own.
    Own,
    /// Those of these.
    Of(Vec<UserName>),
}

impl WantedSessions {
    /// Reads the options of one of the stages.
    pub(crate) fn read(stage: &str, value: Value<'_>) -> Result<WantedSessions> {
        let Value::Document(options) = value else {
            let found = value.value_type().name();
            return Err(Error::type_mismatch(format!(
                "{stage} options must be specified in an object, but found: {found}"
            )));
        };
        let place = Place::of_command(stage);
        let arguments = ListArguments::parse_fields(options, &place, false)?;
        let users = arguments.users.unwrap_or_default();
        ensure!(
            !arguments.all_users || users.is_empty(),
            ErrorCode::UnsupportedFormat,
            "{stage} may not specify {{allUsers:true}} and {{users:[...]}} at the same time"
        );
        let name = |user: &DocRef<'_>| {
            let user = User::parse_fields(*user, &place, false)?;
            Ok(UserName::new(user.user, user.database))
        };
        Ok(match (arguments.all_users, users.is_empty()) {
            (true, _) => WantedSessions::All,
            (false, true) => WantedSessions::Own,
            (false, false) => WantedSessions::Of(users.iter().map(name).collect::<Result<_>>()?),
        })
    }

    /// By the digests of the users; none for everybody.
    fn digests(self, own: UserDigest) -> Option<Vec<UserDigest>> {
        match self {
            WantedSessions::All => None,
            WantedSessions::Own => Some(vec![own]),
            WantedSessions::Of(users) => {
                Some(users.iter().map(|name| user_digest(&name.user, &name.database)).collect())
            }
        }
    }
}
