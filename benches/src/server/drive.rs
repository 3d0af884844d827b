//! The load: one thread that keeps many connections busy.
//!
//! Each connection has one turn under way: written in one call, read when the poll says so, followed by the next at once, or
//! when the timetable says so where a load has a [`Pace`]. So a reply costs the client two calls and a share of a poll, whatever the number of connections, and the load takes as
//! little as possible from the cores that it shares with the server. A latency runs from before a turn's request is
//! written until its last reply was read, and includes the wait for this thread when others were served first.
//!
//! Errors do not end a phase: they are counted, and the first is kept. Only a load that gets nothing but errors gives up.

use super::talk::{Next, Talk};
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

/// How often a connection begins a turn, where it does not do so as often as it can.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// From one beginning to the next.
    pub every: Duration,
    /// How long the first one waits, so that connections do not speak all at once.
    pub first: Duration,
}

/// What a connection does.
#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    /// A turn is under way.
    Busy,
    /// The next turn begins then.
    Waiting(Instant),
    /// There is no further turn.
    Ended,
}

/// One of the connections.
pub struct Connection {
    stream: TcpStream,
    talk: Box<dyn Talk>,
    pace: Option<Pace>,
    out: Vec<u8>,
    sent: usize,
    /// The request behind a reply, until that is complete.
    following: Vec<u8>,
    arrived: Vec<u8>,
    filled: usize,
    /// The stream gave less than it could the last time: the poll reports what comes later.
    is_drained: bool,
    started: Instant,
    due: Instant,
    state: State,
}

impl Connection {
    /// Around a prepared socket; as often as it can unless a pace is told.
    pub fn new(stream: std::net::TcpStream, talk: Box<dyn Talk>, pace: Option<Pace>) -> Result<Connection, Error> {
        stream.set_nonblocking(true)?;
        let now = Instant::now();
        Ok(Connection {
            stream: TcpStream::from_std(stream),
            talk,
            pace,
            out: Vec::new(),
            sent: 0,
            following: Vec::new(),
            arrived: vec![0; BUFFER_BYTES],
            filled: 0,
            is_drained: false,
            started: now,
            due: now,
            state: State::Ended,
        })
    }

    /// The first turn begins, or its time is set.
    fn open(&mut self, now: Instant) -> Result<(), Error> {
        match self.pace {
            None => self.start(now),
            Some(pace) => {
                self.due = now + pace.first;
                self.state = State::Waiting(self.due);
                Ok(())
            }
        }
    }

    fn start(&mut self, now: Instant) -> Result<(), Error> {
        self.started = now;
        self.state = State::Busy;
        self.out.clear();
        self.sent = 0;
        self.talk.begin(&mut self.out);
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

    /// Reads what is there; how the turn goes on if a reply is complete.
    fn receive(&mut self) -> Result<Option<Next>, Error> {
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
            self.is_drained = read < room_bytes;
            let arrived = self.arrived.get(..self.filled).unwrap_or_default();
            if let Some(taken) = self.talk.take(arrived, &mut self.following)? {
                std::mem::swap(&mut self.out, &mut self.following);
                self.following.clear();
                self.sent = 0;
                self.arrived.copy_within(taken.size_bytes..self.filled, 0);
                self.filled -= taken.size_bytes;
                return Ok(Some(taken.next));
            }
            if self.is_drained {
                return Ok(None);
            }
        }
    }

    /// Goes on as far as the socket allows.
    fn advance(&mut self, window: &Window, tally: &mut Tally) -> Result<(), Error> {
        self.flush()?;
        while self.state == State::Busy {
            match self.receive()? {
                None => return Ok(()),
                Some(Next::More) => self.flush()?,
                Some(Next::Over(outcome)) => {
                    let now = Instant::now();
                    match outcome {
                        Ok(()) => self.count(window, now, tally),
                        Err(error) => tally.fail(error),
                    }
                    self.go_on(now, window, tally)?;
                }
            }
            if self.is_drained {
                return Ok(());
            }
        }
        Ok(())
    }

    /// After a turn: the next one, a wait for its time, or the end.
    fn go_on(&mut self, now: Instant, window: &Window, tally: &Tally) -> Result<(), Error> {
        if now >= window.until || tally.is_hopeless() {
            self.state = State::Ended;
            return Ok(());
        }
        let Some(pace) = self.pace else { return self.start(now) };
        self.due += pace.every;
        if self.due <= now {
            return self.start(now);
        }
        self.state = State::Waiting(self.due);
        Ok(())
    }

    /// Begins a turn whose time has come.
    fn begin_if_due(&mut self, now: Instant, window: &Window) -> Result<(), Error> {
        match self.state {
            State::Waiting(_) if now >= window.until => {
                self.state = State::Ended;
                Ok(())
            }
            State::Waiting(due) if now >= due => self.start(now),
            _ => Ok(()),
        }
    }

    fn count(&self, window: &Window, now: Instant, tally: &mut Tally) {
        tally.succeeded += 1;
        if now > window.from && now <= window.until {
            tally.turns += 1;
            tally.latencies.add(now - self.started);
        }
    }

    /// Ends it if that went wrong.
    fn settle(&mut self, outcome: Result<(), Error>, tally: &mut Tally) {
        if let Err(error) = outcome {
            self.state = State::Ended;
            tally.fail(error.to_string());
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
        let outcome = connection.open(Instant::now());
        connection.settle(outcome, &mut tally);
    }
    let mut events = Events::with_capacity(EVENTS);
    while connections.iter().any(|connection| connection.state != State::Ended) {
        let due = connections.iter().filter_map(|connection| match connection.state {
            State::Waiting(due) => Some(due),
            State::Busy | State::Ended => None,
        });
        let due = due.min();
        poll_once(&mut poll, &mut events, due)?;
        if events.is_empty() && due.is_none() {
            let waiting = connections.iter().filter(|connection| connection.state == State::Busy).count();
            tally.fail(format!("no answer for {} s on {waiting} connections", PATIENCE.as_secs()));
            break;
        }
        for event in &events {
            let Some(connection) = connections.get_mut(event.token().0) else { continue };
            let outcome = connection.advance(window, &mut tally);
            connection.settle(outcome, &mut tally);
        }
        if due.is_some() {
            let now = Instant::now();
            for connection in &mut connections {
                let outcome = connection.begin_if_due(now, window);
                connection.settle(outcome, &mut tally);
            }
        }
    }
    Ok((tally, connections))
}

/// Waits for an event, or until this time.
fn poll_once(poll: &mut Poll, events: &mut Events, until: Option<Instant>) -> Result<(), Error> {
    loop {
        let patience = until.map_or(PATIENCE, |until| until.saturating_duration_since(Instant::now()));
        match poll.poll(events, Some(patience)) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            other => return Ok(other?),
        }
    }
}
