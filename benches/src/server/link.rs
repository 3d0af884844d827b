//! A connection that waits for its answers: for greetings, set-up and the load.

use super::dialects::{Chore, Dialect};
use super::operation::Operation;
use crate::Error;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A chore may be the build of an index or a checkpoint of ten million documents.
const PATIENCE: Duration = Duration::from_secs(30 * 60);
const CONNECT_PATIENCE: Duration = Duration::from_secs(5);
const READ_BYTES: usize = 64 * 1024;

/// A greeted connection.
pub struct Link {
    stream: TcpStream,
    dialect: Box<dyn Dialect>,
    out: Vec<u8>,
    arrived: Vec<u8>,
    /// How much was sent in operations.
    pub sent_bytes: u64,
}

impl Link {
    /// Connects and greets.
    pub fn open(address: SocketAddr, dialect: Box<dyn Dialect>) -> Result<Link, Error> {
        let stream = TcpStream::connect_timeout(&address, CONNECT_PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut link = Link { stream, dialect, out: Vec::new(), arrived: Vec::new(), sent_bytes: 0 };
        let greeting = link.dialect.greeting();
        link.run(greeting)?;
        Ok(link)
    }

    /// Makes it ready for operations.
    pub fn prepare(&mut self) -> Result<(), Error> {
        let preparation = self.dialect.preparation();
        self.run(preparation)
    }

    /// What the connection is made of.
    pub fn into_parts(self) -> Result<(TcpStream, Box<dyn Dialect>), Error> {
        self.stream.set_read_timeout(None)?;
        self.stream.set_write_timeout(None)?;
        Ok((self.stream, self.dialect))
    }

    /// Whoever speaks here.
    pub fn dialect(&mut self) -> &mut dyn Dialect {
        &mut *self.dialect
    }

    /// Sends each and waits for its answer.
    pub fn run(&mut self, chores: Vec<Chore>) -> Result<(), Error> {
        for chore in chores {
            let outcome = self.exchange(&chore.request)?;
            if !chore.may_fail {
                outcome?;
            }
        }
        Ok(())
    }

    /// One operation, checked.
    pub fn operate(&mut self, operation: &Operation) -> Result<(), Error> {
        let mut out = std::mem::take(&mut self.out);
        out.clear();
        self.dialect.request(operation, &mut out);
        self.sent_bytes += out.len() as u64;
        let outcome = self.exchange(&out);
        self.out = out;
        Ok(operation.check(outcome??)?)
    }

    /// How long an answer may take.
    pub fn set_patience(&mut self, patience: Duration) -> Result<(), Error> {
        Ok(self.stream.set_read_timeout(Some(patience))?)
    }

    /// The socket, for whoever closes it while an answer is waited for.
    pub fn socket(&self) -> Result<TcpStream, Error> {
        Ok(self.stream.try_clone()?)
    }

    /// The bytes of the last answer.
    pub fn last_answer(&self) -> &[u8] {
        &self.arrived
    }

    /// Sends bytes and waits for the answer to them.
    pub fn exchange(&mut self, request: &[u8]) -> Result<Result<u64, String>, Error> {
        self.stream.write_all(request)?;
        self.arrived.clear();
        loop {
            let filled = self.arrived.len();
            self.arrived.resize(filled + READ_BYTES, 0);
            let read = self.stream.read(self.arrived.get_mut(filled..).unwrap_or_default())?;
            self.arrived.truncate(filled + read);
            if read == 0 {
                return Err("the server closed the connection".into());
            }
            if let Some(answer) = self.dialect.reply(&self.arrived)? {
                return Ok(answer.outcome);
            }
        }
    }
}
