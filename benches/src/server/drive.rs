//! The load: one thread that keeps many connections busy.
//!
//! Each connection has one turn under way: written in one call, read when the poll says so, followed at once by the next.
//! So a reply costs the client two calls and a share of a poll, whatever the number of connections, and the load takes as
//! little as possible from the cores that it shares with the server. A latency runs from before a turn's request is
//! written until its last reply was read, and includes the wait for this thread when others were served first.
//!
//! Errors do not end a phase: they are counted, and the first is kept. Only a load that gets nothing but errors gives up.

use super::dialects::Dialect;
use super::operation::Operation;
use super::workloads::{Chooser, Turn};
use crate::Error;
use crate::measure::Latencies;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use std::io::{ErrorKind, Read, Write};
use std::time::{Duration, Instant};

/// So many errors without one success end a thread's load.
const HOPELESS_ERRORS: u64 = 50;
/// Nobody waits longer for an answer.
const PATIENCE: Duration = Duration::from_secs(30);
const BUFFER_BYTES: usize = 64 * 1024;
const EVENTS: usize = 256;

/// When a phase is measured.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// The warm-up ends.
    pub from: Instant,
    /// No turn starts later.
    pub until: Instant,
}

/// What came of the load.
pub struct Tally {
    /// Turns that ended within the window.
    pub turns: u64,
    /// How long they took.
    pub latencies: Latencies,
    /// Refusals, wrong answers and broken connections, at any time.
    pub errors: u64,
    /// The first of them.
    pub first_error: Option<String>,
    /// Turns that succeeded, at any time.
    succeeded: u64,
}

impl Tally {
    /// Nothing yet.
    pub fn new() -> Tally {
        Tally { turns: 0, latencies: Latencies::new(), errors: 0, first_error: None, succeeded: 0 }
    }

    /// Adds another thread's.
    pub fn merge(&mut self, other: Tally) {
        self.turns += other.turns;
        self.latencies.merge(&other.latencies);
        self.errors += other.errors;
        self.succeeded += other.succeeded;
        self.first_error = self.first_error.take().or(other.first_error);
    }

    /// Counts an error.
    pub fn fail(&mut self, error: String) {
        self.errors += 1;
        self.first_error.get_or_insert(error);
    }

    fn is_hopeless(&self) -> bool {
        self.errors >= HOPELESS_ERRORS && self.succeeded == 0
    }
}

/// One of the connections.
pub struct Connection {
    stream: TcpStream,
    dialect: Box<dyn Dialect>,
    chooser: Chooser,
    out: Vec<u8>,
    sent: usize,
    arrived: Vec<u8>,
    filled: usize,
    turn: Turn,
    current: Operation,
    started: Instant,
    is_busy: bool,
}

impl Connection {
    /// Around a prepared socket.
    pub fn new(stream: std::net::TcpStream, dialect: Box<dyn Dialect>, chooser: Chooser) -> Result<Connection, Error> {
        stream.set_nonblocking(true)?;
        let nothing = Operation::Find { number: 0 };
        Ok(Connection {
            stream: TcpStream::from_std(stream),
            dialect,
            chooser,
            out: Vec::new(),
            sent: 0,
            arrived: vec![0; BUFFER_BYTES],
            filled: 0,
            turn: Turn { first: nothing, second: None },
            current: nothing,
            started: Instant::now(),
            is_busy: false,
        })
    }

    fn start(&mut self, now: Instant) -> Result<(), Error> {
        self.started = now;
        self.is_busy = true;
        self.turn = self.chooser.next();
        self.send(self.turn.first)
    }

    fn send(&mut self, operation: Operation) -> Result<(), Error> {
        self.current = operation;
        self.out.clear();
        self.sent = 0;
        self.dialect.request(&operation, &mut self.out);
        self.flush()
    }

    fn flush(&mut self) -> Result<(), Error> {
        while let Some(rest) = self.out.get(self.sent..).filter(|rest| !rest.is_empty()) {
            match self.stream.write(rest) {
                Ok(written) => self.sent += written,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Reads what is there; the outcome of the current operation if it is complete.
    fn receive(&mut self) -> Result<Option<Result<u64, String>>, Error> {
        loop {
            if self.filled == self.arrived.len() {
                self.arrived.resize(self.filled * 2, 0);
            }
            let room = self.arrived.get_mut(self.filled..).unwrap_or_default();
            let room_bytes = room.len();
            let read = match self.stream.read(room) {
                Ok(0) => return Err("the server closed the connection".into()),
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            self.filled += read;
            let arrived = self.arrived.get(..self.filled).unwrap_or_default();
            if let Some(answer) = self.dialect.reply(arrived)? {
                self.arrived.copy_within(answer.size_bytes..self.filled, 0);
                self.filled -= answer.size_bytes;
                return Ok(Some(answer.outcome));
            }
            // A stream that gave less than it could is drained; the poll reports what comes later.
            if read < room_bytes {
                return Ok(None);
            }
        }
    }

    /// Goes on as far as the socket allows.
    fn advance(&mut self, window: &Window, tally: &mut Tally) -> Result<(), Error> {
        self.flush()?;
        while self.is_busy {
            let Some(outcome) = self.receive()? else { return Ok(()) };
            let checked = outcome.and_then(|documents| self.current.check(documents));
            if let (Ok(()), Some(second)) = (&checked, self.turn.second.take()) {
                self.send(second)?;
                continue;
            }
            let now = Instant::now();
            match checked {
                Ok(()) => self.count(window, now, tally),
                Err(error) => tally.fail(error),
            }
            self.chooser.answered();
            if now >= window.until || tally.is_hopeless() {
                self.is_busy = false;
            } else {
                self.start(now)?;
            }
        }
        Ok(())
    }

    fn count(&self, window: &Window, now: Instant, tally: &mut Tally) {
        tally.succeeded += 1;
        if now > window.from && now <= window.until {
            tally.turns += 1;
            tally.latencies.add(now - self.started);
        }
    }
}

/// Keeps the connections busy until the window ends, and hands them back so that they close when nothing is measured any more.
pub fn drive(mut connections: Vec<Connection>, window: &Window) -> Result<(Tally, Vec<Connection>), Error> {
    let mut tally = Tally::new();
    let mut poll = Poll::new()?;
    for (index, connection) in connections.iter_mut().enumerate() {
        let interest = Interest::READABLE | Interest::WRITABLE;
        poll.registry().register(&mut connection.stream, Token(index), interest)?;
    }
    for connection in &mut connections {
        if let Err(error) = connection.start(Instant::now()) {
            connection.is_busy = false;
            tally.fail(error.to_string());
        }
    }
    let mut events = Events::with_capacity(EVENTS);
    while connections.iter().any(|connection| connection.is_busy) {
        poll_once(&mut poll, &mut events)?;
        if events.is_empty() {
            let waiting = connections.iter().filter(|connection| connection.is_busy).count();
            tally.fail(format!("no answer for {} s on {waiting} connections", PATIENCE.as_secs()));
            break;
        }
        for event in &events {
            let Some(connection) = connections.get_mut(event.token().0) else { continue };
            if let Err(error) = connection.advance(window, &mut tally) {
                connection.is_busy = false;
                tally.fail(error.to_string());
            }
        }
    }
    Ok((tally, connections))
}

fn poll_once(poll: &mut Poll, events: &mut Events) -> Result<(), Error> {
    loop {
        match poll.poll(events, Some(PATIENCE)) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            other => return Ok(other?),
        }
    }
}
