//! What the tests of the Rust driver share: a client of the server that `PANDO_URI` names, and empty databases.
//!
//! The driver's blocking interface is used, so that tests are plain functions. Every test has a database of its own.

pub use bson;
pub use mongodb;

use mongodb::options::ClientOptions;
use mongodb::sync::{Client, Database};

/// Where the server is.
pub fn uri() -> String {
    std::env::var("PANDO_URI").unwrap_or_else(|_| "mongodb://127.0.0.1:27017/?directConnection=true".to_owned())
}

/// A client with options of the test's own.
pub fn client_with(change: impl FnOnce(&mut ClientOptions)) -> Client {
    let mut options = ClientOptions::parse(uri()).run().expect("the address is well formed");
    change(&mut options);
    Client::with_options(options).expect("the options are allowed")
}

/// A client as most programs make one.
pub fn client() -> Client {
    client_with(|_| {})
}

/// A database of that name without anything in it.
pub fn empty_database(client: &Client, name: &str) -> Database {
    let database = client.database(name);
    database.drop().run().expect("the database can be dropped");
    database
}

/// The server's code of an error, or 0.
pub fn code_of(error: &mongodb::error::Error) -> i32 {
    use mongodb::error::{ErrorKind, WriteFailure};
    match &*error.kind {
        ErrorKind::Command(command) => command.code,
        ErrorKind::Write(WriteFailure::WriteError(write)) => write.code,
        ErrorKind::Write(WriteFailure::WriteConcernError(concern)) => concern.code,
        ErrorKind::InsertMany(many) => many.write_errors.iter().flatten().next().map_or(0, |write| write.code),
        _ => 0,
    }
}
