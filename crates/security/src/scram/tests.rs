//! The exchange: the examples of the RFCs, and what an attacker would try.

use super::*;
use pando_base::ErrorCode;

const SALT: &[u8] = b"0123456789abcdef";

fn server(mechanism: Mechanism, first: &str, password: &str, nonce: &str) -> (ScramServer, String) {
    let credentials = ScramCredentials::new(mechanism, password, SALT, 10);
    ScramServer::begin(ClientFirst::parse(first.as_bytes()).unwrap(), vec![credentials], nonce).unwrap()
}

#[test]
fn u10_the_example_of_rfc_7677_holds() {
    use base64::Engine as _;
    let salt = base64::engine::general_purpose::STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
    let credentials = ScramCredentials::new(Mechanism::ScramSha256, "pencil", &salt, 4096);
    let first = ClientFirst::parse(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO").unwrap();
    let nonce = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
    let (server, answer) = ScramServer::begin(first, vec![credentials], nonce).unwrap();
    assert_eq!(answer, format!("r=rOprNGfwEbeRWgbNEkqO{nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"));
    let last = format!("c=biws,r=rOprNGfwEbeRWgbNEkqO{nonce},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=");
    assert_eq!(server.finish(last.as_bytes()).unwrap(), "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
}

#[test]
fn u10_the_example_of_rfc_5802_holds() {
    use base64::Engine as _;
    let salt = base64::engine::general_purpose::STANDARD.decode("QSXCR+Q6sek8bf92").unwrap();
    let credentials = ScramCredentials::new(Mechanism::ScramSha1, "pencil", &salt, 4096);
    let first = ClientFirst::parse(b"n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL").unwrap();
    let (server, _) = ScramServer::begin(first, vec![credentials], "3rfcNHYJY1ZVvWVs7j").unwrap();
    let last = "c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=";
    assert_eq!(server.finish(last.as_bytes()).unwrap(), "v=rmF9pqV8S7suAoZWja4dJRkFsKQ=");
}

#[test]
fn u10_both_sides_prove_that_they_know_the_password() {
    for mechanism in Mechanism::ALL {
        let (mut client, first) = ScramClient::begin(mechanism, "a,=b", "secret", "clientnonce");
        assert_eq!(ClientFirst::parse(first.as_bytes()).unwrap().user, "a,=b");
        let (exchange, answer) = server(mechanism, &first, "secret", "servernonce");
        let proof = client.prove(&answer).unwrap();
        client.verify(&exchange.finish(proof.as_bytes()).unwrap()).unwrap();
        assert!(client.verify("v=AAAA").is_err());

        let (exchange, answer) = server(mechanism, &first, "other", "servernonce");
        let proof = client.prove(&answer).unwrap();
        assert_eq!(exchange.finish(proof.as_bytes()).unwrap_err().code(), ErrorCode::AuthenticationFailed);
    }
}

#[test]
fn u10_a_proof_holds_for_one_exchange_only() {
    let mechanism = Mechanism::ScramSha256;
    let (mut client, first) = ScramClient::begin(mechanism, "u", "secret", "clientnonce");
    let (exchange, answer) = server(mechanism, &first, "secret", "one");
    let proof = client.prove(&answer).unwrap();
    exchange.finish(proof.as_bytes()).unwrap();
    let (replayed, _) = server(mechanism, &first, "secret", "two");
    assert!(replayed.finish(proof.as_bytes()).is_err());
    // With the nonce corrected, the proof does not fit.
    let (replayed, _) = server(mechanism, &first, "secret", "two");
    let corrected = proof.replace("clientnonceone", "clientnoncetwo");
    assert_eq!(replayed.finish(corrected.as_bytes()).unwrap_err().code(), ErrorCode::AuthenticationFailed);
    assert!(client.prove("r=othernonce,s=AAAA,i=10").is_err());
}

#[test]
fn u10_another_channel_is_refused() {
    let mechanism = Mechanism::ScramSha256;
    assert!(ClientFirst::parse(b"p=tls-unique,,n=u,r=abcdef").is_err());
    let (mut client, first) = ScramClient::begin(mechanism, "u", "secret", "clientnonce");
    let (exchange, answer) = server(mechanism, &first, "secret", "x");
    let proof = client.prove(&answer).unwrap().replace("c=biws", "c=eSws");
    assert_eq!(exchange.finish(proof.as_bytes()).unwrap_err().code(), ErrorCode::BadValue);
}

#[test]
fn u10_messages_that_make_no_sense_are_refused() {
    let long = format!("n,,n=u,r={}", "x".repeat(5000));
    for first in
        ["", "n", "n,", "n,,", "n,,n=,r=abcdef", "n,,n=u", "n,,n=u,r=ab", "x,,n=u,r=abcdef", "n,,m=1,n=u,r=abcdef"]
            .into_iter()
            .chain(["n,a=other,n=u,r=abcdef", "n,b=u,n=u,r=abcdef", "n,,n=u=2,r=abcdef", "n,,u,r=abcdef", &long])
    {
        assert!(ClientFirst::parse(first.as_bytes()).is_err(), "{first}");
    }
    assert!(ClientFirst::parse(b"n,,n=\xff,r=abcdef").is_err());
    for last in
        ["", "c=biws", "c=biws,r=abcdefx", "r=abcdefx,p=AAAA", "c=biws,r=abcdefx,p=?", "c=biws,r=abcdefx,p=AAAA"]
    {
        let (exchange, _) = server(Mechanism::ScramSha1, "n,,n=u,r=abcdef", "p", "x");
        assert!(exchange.finish(last.as_bytes()).is_err(), "{last}");
    }
}

#[test]
fn u10_nobody_looks_like_somebody() {
    for mechanism in Mechanism::ALL {
        let nobody = |user: &str| ScramCredentials::of_nobody(mechanism, user, b"secret", 15_000);
        assert_eq!(nobody("a"), nobody("a"));
        assert_ne!(nobody("a").salt, nobody("b").salt);
        assert_eq!(nobody("a").salt.len(), mechanism.salt_bytes());
        let (mut client, first) = ScramClient::begin(mechanism, "a", "", "clientnonce");
        let first = ClientFirst::parse(first.as_bytes()).unwrap();
        let (exchange, answer) = ScramServer::begin(first, vec![nobody("a")], "x").unwrap();
        let proof = client.prove(&answer).unwrap();
        assert!(exchange.finish(proof.as_bytes()).is_err());
    }
}

#[test]
fn u10_a_key_that_is_being_changed_has_two_proofs() {
    let mechanism = Mechanism::ScramSha256;
    let both = || ["old", "new"].map(|key| ScramCredentials::new(mechanism, key, SALT, 10)).to_vec();
    for (key, is_good) in [("old", true), ("new", true), ("none", false)] {
        let (mut client, first) = ScramClient::begin(mechanism, "__system", key, "clientnonce");
        let first = ClientFirst::parse(first.as_bytes()).unwrap();
        let (exchange, answer) = ScramServer::begin(first, both(), "x").unwrap();
        let proof = client.prove(&answer).unwrap();
        let answered = exchange.finish(proof.as_bytes());
        assert_eq!(answered.is_ok(), is_good);
        answered.iter().for_each(|answer| client.verify(answer).unwrap());
    }
}

#[test]
fn u10_credentials_are_read_as_they_are_written() {
    for mechanism in Mechanism::ALL {
        let credentials = ScramCredentials::new(mechanism, "p", SALT, 4096);
        let document = credentials.to_doc();
        assert_eq!(ScramCredentials::read(mechanism, document.view()).unwrap(), credentials);
        let other = if mechanism == Mechanism::ScramSha1 { Mechanism::ScramSha256 } else { Mechanism::ScramSha1 };
        assert!(ScramCredentials::read(other, document.view()).is_err());
        assert!(!format!("{credentials:?}").contains("key"));
    }
}

#[test]
fn u10_passwords_are_digested_or_prepared() {
    assert_eq!(digested_password("user", "pencil"), "1c33006ec1ffd90f9cadcbcc0e118200");
    assert_eq!(prepared_password("I\u{ad}X").unwrap(), "IX");
    assert_eq!(prepared_password("\u{2168}").unwrap(), "IX");
    assert!(prepared_password("\u{7}").is_err());
}
